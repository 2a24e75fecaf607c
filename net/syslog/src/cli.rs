//! Commands: `set syslog`, `show syslog`, `test syslog`.

use std::fmt;
use std::rc::Rc;

use serde::Serialize;
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Expected, FromArg, Output, nearest};

use crate::control::{LEAST_SIZE, MOST_SIZE, PORT};
use crate::message::SD_NAME;
use crate::{Facility, Message, Sender, Severity, Syslog, SyslogError, is_name};

/// Commands of this crate.
pub static COMMANDS: &[Command] = &[
    Command::new(
        "set syslog sender {disable | {collector <collector:ip4-address> & src <src:ip4-address> & [port <port:u16>] \
         & [vrf-id <vrf-id:u32>] & [max-msg-size <max-msg-size:u32>]}}",
        "Send syslog messages to a collector, or send no more",
        sender,
    )
    .examples(&["set syslog sender collector 192.0.2.9 src 192.0.2.1"])
    .doc(
        "Messages are those of RFC 5424, one in each UDP datagram, by default to port 514. A text that makes a message longer \
         than `max-msg-size` (480) is cut.",
    ),
    Command::new(
        "set syslog filter severity <severity:word>",
        "Send only messages that are so bad, or worse",
        filter,
    )
    .examples(&["set syslog filter severity warning"])
    .doc("From bad to good: emergency, alert, critical, error, warning, notice, informational, debug."),
    Command::new("show syslog sender", "Show where syslog messages go", show_sender)
        .examples(&["show syslog sender"]),
    Command::new("show syslog filter", "Show which syslog messages are sent", show_filter)
        .examples(&["show syslog filter"]),
    Command::new(
        "test syslog <facility:word> <severity:word> <app-name:word> <msgid:word> [<message:rest>]",
        "Send a syslog message",
        test,
    )
    .examples(&["test syslog local6 warning test testMsg sd-id example@32473 sd-param eventID 1011 a text"])
    .doc("Structured data stands before the text: `sd-id ID [sd-param NAME VALUE] ...`, any number of times."),
];

impl FromArg for Severity {
    fn from_arg(text: &str, _: &Control) -> Result<Self, Expected> {
        word(text, Severity::ALL, Severity::word, "a severity, from emergency to debug")
    }
}

impl FromArg for Facility {
    fn from_arg(text: &str, _: &Control) -> Result<Self, Expected> {
        word(text, Facility::ALL, Facility::word, "a facility, such as local0")
    }
}

fn word<T: Copy>(text: &str, all: &[T], name: fn(T) -> &'static str, what: &str) -> Result<T, Expected> {
    let found = all.iter().copied().find(|one| name(*one) == text);
    let near = || nearest(text, all.iter().map(|one| name(*one))).map(str::to_owned);
    found.ok_or_else(|| Expected::new(what).nearest(near()))
}

fn syslog(control: &Control) -> Result<Rc<Syslog>, CliError> {
    Ok(control.get::<Syslog>()?)
}

fn sender(control: &Control, args: &Args) -> Result<Output, CliError> {
    let syslog = syslog(control)?;
    if args.has("disable") {
        syslog.disable();
        return Ok(Output::none());
    }
    let sender = Sender {
        collector: args.get("collector")?,
        port: args.or("port", PORT)?,
        source: args.get("src")?,
        vrf: args.or("vrf-id", 0)?,
        max_size: args.or("max-msg-size", LEAST_SIZE)?,
    };
    syslog.set_sender(sender).map_err(|e| refused(&e, sender))?;
    Ok(Output::none())
}

/// Points at the argument that is wrong.
fn refused(error: &SyslogError, sender: Sender) -> CliError {
    let (argument, near) = match error {
        SyslogError::NoCollector => ("collector", None),
        SyslogError::NoHost(address) if *address == sender.collector => ("collector", None),
        SyslogError::NoSource | SyslogError::NoHost(_) => ("src", None),
        SyslogError::Port => ("port", Some(PORT.to_string())),
        SyslogError::TooSmall(_) => ("max-msg-size", Some(LEAST_SIZE.to_string())),
        SyslogError::TooLarge(_) => ("max-msg-size", Some(MOST_SIZE.to_string())),
        SyslogError::Fib(_) => ("vrf-id", None),
    };
    CliError::argument(argument, error.to_string()).nearest(near)
}

fn filter(control: &Control, args: &Args) -> Result<Output, CliError> {
    syslog(control)?.set_filter(args.get("severity")?);
    Ok(Output::none())
}

#[derive(Serialize)]
struct SenderView {
    enabled: bool,
    collector: String,
    port: u16,
    source: String,
    vrf: u32,
    max_msg_size: u32,
}

impl fmt::Display for SenderView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.enabled {
            return writeln!(f, "syslog sender is disabled");
        }
        let SenderView { collector, port, source, vrf, max_msg_size, .. } = self;
        writeln!(
            f,
            "collector {collector}:{port}, src address {source}, VRF ID {vrf}, max-msg-size {max_msg_size}"
        )
    }
}

fn show_sender(control: &Control, _: &Args) -> Result<Output, CliError> {
    let sender = syslog(control)?.sender();
    let text = |address: Option<std::net::Ipv4Addr>| address.map(|a| a.to_string()).unwrap_or_default();
    Ok(Output::view(SenderView {
        enabled: sender.is_some(),
        collector: text(sender.map(|s| s.collector)),
        port: sender.map_or(PORT, |s| s.port),
        source: text(sender.map(|s| s.source)),
        vrf: sender.map_or(0, |s| s.vrf),
        max_msg_size: sender.map_or(LEAST_SIZE, |s| s.max_size),
    }))
}

#[derive(Serialize)]
struct FilterView {
    severity: &'static str,
}

impl fmt::Display for FilterView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "severity-filter: {}", self.severity)
    }
}

fn show_filter(control: &Control, _: &Args) -> Result<Output, CliError> {
    Ok(Output::view(FilterView { severity: syslog(control)?.filter().word() }))
}

/// The words of a line, one after the other, and what is left of it.
struct Words<'a>(&'a str);

impl Words<'_> {
    /// Takes a word if it is this one.
    fn is(&mut self, word: &str) -> bool {
        let mut rest = Words(self.0);
        let is_it = rest.next() == Some(word);
        if is_it {
            *self = rest;
        }
        is_it
    }
}

impl<'a> Iterator for Words<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let text = self.0.trim_start();
        let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        self.0 = rest;
        (!word.is_empty()).then_some(word)
    }
}

fn name<'a>(argument: &str, word: Option<&'a str>, most: usize) -> Result<&'a str, CliError> {
    let what = format!("1 to {most} printable ASCII characters without = ] \" or blanks");
    word.filter(|word| is_name(word, most)).ok_or_else(|| CliError::argument(argument, what))
}

fn test(control: &Control, args: &Args) -> Result<Output, CliError> {
    let (facility, severity): (Facility, Severity) = (args.get("facility")?, args.get("severity")?);
    let app = name("app-name", args.text("app-name"), 48)?;
    let id = name("msgid", args.text("msgid"), 32)?;
    let mut message = Message::new(facility, severity, app, id);
    let mut words = Words(args.text("message").unwrap_or_default());
    while words.is("sd-id") {
        message = message.element(name("message", words.next(), SD_NAME)?);
        while words.is("sd-param") {
            let key = name("message", words.next(), SD_NAME)?;
            let value = words.next().ok_or_else(|| CliError::argument("message", "sd-param NAME VALUE"))?;
            message = message.param(key, value);
        }
    }
    syslog(control)?.send(message.text(words.0.trim()));
    Ok(Output::none())
}
