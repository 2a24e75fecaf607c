//! Commands: `show api`, `api trace`.

use std::fmt;
use std::rc::Rc;

use serde::Serialize;
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};

use crate::Server;
use crate::server_context::ServerContext;

/// Commands of this crate.
pub static COMMANDS: &[Command] = &[
    Command::new("show api clients", "Show who is connected to the binary API", clients)
        .examples(&["show api clients"]),
    Command::new("show api message-table", "Show the messages of the binary API and their numbers", messages)
        .examples(&["show api message-table", "show api message-table --json"]),
    Command::new("show api errors", "Show how many messages were handled, and why others were dropped", errors)
        .examples(&["show api errors"]),
    Command::new("show api trace-status", "Show whether messages of the binary API are kept", status)
        .examples(&["show api trace-status"]),
    Command::new("api trace {on | off | free}", "Keep the last messages of the binary API, or forget them", switch)
        .examples(&["api trace on", "api trace off", "api trace free"]),
    Command::new("api trace save <name:word>", "Store the last messages of the binary API in a file in /tmp", save)
        .examples(&["api trace save before-the-crash.api"])
        .doc(
            "The file begins with how many messages follow and how long the table of messages is (4 bytes each) and \
             whether older messages were forgotten (1 byte). Then the table: of each message its number (2 bytes) and \
             its name with the checksum (64). Then each message behind its length (4). All numbers have the most \
             significant byte first.",
        ),
    Command::new("api trace dump", "Print the last messages of the binary API", dump).examples(&["api trace dump"]),
];

fn desk(control: &Control) -> Result<Rc<ServerContext>, CliError> {
    Ok(Rc::clone(&control.get::<Server>()?.desk))
}

#[derive(Serialize)]
struct Client {
    index: u32,
    name: String,
}

#[derive(Serialize)]
struct ClientList {
    clients: Vec<Client>,
    connections: usize,
}

fn clients(control: &Control, _: &Args) -> Result<Output, CliError> {
    let desk = desk(control)?;
    let clients =
        desk.clients.list().into_iter().map(|(index, name)| Client { index: index.0, name }).collect();
    Ok(Output::view(ClientList { clients, connections: desk.open.get() }))
}

impl fmt::Display for ClientList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:>12}  Name", "Index")?;
        for Client { index, name } in &self.clients {
            writeln!(f, "{index:>#12x}  {name}")?;
        }
        writeln!(f, "{} connections", self.connections)
    }
}

#[derive(Serialize)]
struct MessageRow {
    id: u16,
    name: String,
}

#[derive(Serialize)]
#[serde(transparent)]
struct MessageList(Vec<MessageRow>);

fn messages(control: &Control, _: &Args) -> Result<Output, CliError> {
    let row = |(id, entry): (u16, &crate::table::Entry)| MessageRow { id, name: entry.key.clone() };
    Ok(Output::view(MessageList(desk(control)?.table.iter().map(row).collect())))
}

impl fmt::Display for MessageList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:>5}  Name", "ID")?;
        self.0.iter().try_for_each(|MessageRow { id, name }| writeln!(f, "{id:>5}  {name}"))
    }
}

#[derive(Serialize)]
struct Drop {
    why: &'static str,
    count: u64,
}

#[derive(Serialize)]
struct Errors {
    requests: u64,
    dropped: Vec<Drop>,
}

fn errors(control: &Control, _: &Args) -> Result<Output, CliError> {
    let desk = desk(control)?;
    let dropped = desk.drops().map(|(why, count)| Drop { why, count }).collect();
    Ok(Output::view(Errors { requests: desk.requests(), dropped }))
}

impl fmt::Display for Errors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:>12}  requests", self.requests)?;
        self.dropped.iter().try_for_each(|Drop { why, count }| writeln!(f, "{count:>12}  dropped: {why}"))
    }
}

#[derive(Serialize)]
struct Status {
    on: bool,
    messages: usize,
    most: usize,
}

fn status(control: &Control, _: &Args) -> Result<Output, CliError> {
    let (on, messages, most) = desk(control)?.trace.status();
    Ok(Output::view(Status { on, messages, most }))
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Status { on, messages, most } = self;
        writeln!(f, "API trace is {}: {messages} of {most} messages", if *on { "on" } else { "off" })
    }
}

fn switch(control: &Control, args: &Args) -> Result<Output, CliError> {
    let desk = desk(control)?;
    if args.has("free") {
        desk.trace.clear();
    } else {
        desk.trace.switch(args.has("on"));
    }
    Ok(Output::none())
}

fn save(control: &Control, args: &Args) -> Result<Output, CliError> {
    let desk = desk(control)?;
    let name = args.get::<String>("name")?;
    let saved = desk.trace.save(&name, &desk.table).map_err(|e| CliError::argument("name", e.to_string()))?;
    Ok(Output::text(format!("API trace of {} messages saved to {}\n", saved.1, saved.0.display())))
}

fn dump(control: &Control, _: &Args) -> Result<Output, CliError> {
    use fmt::Write as _;
    let desk = desk(control)?;
    let mut text = String::new();
    desk.trace.each(|message| {
        let id = message.first_chunk().map_or(0, |id| u16::from_be_bytes(*id));
        let name = desk.table.get(id).map_or("no message", |entry| &entry.name);
        let _: fmt::Result = write!(text, "{name} ({id}), {} bytes:", message.len());
        for byte in message.iter().take(256) {
            let _: fmt::Result = write!(text, " {byte:02x}");
        }
        text.push('\n');
    });
    Ok(Output::text(text))
}
