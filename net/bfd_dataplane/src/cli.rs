//! Commands: `bfd dataplane`, `show bfd dataplane`.

use std::fmt;
use std::rc::Rc;

use serde::Serialize;
use shoal_lcp::{DaemonAddress, ListenError};
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};

use crate::control::USUAL;
use crate::{Dataplane, DataplaneState, Meeting};

/// Commands of this crate.
pub static COMMANDS: &[Command] = &[
    Command::new(
        "bfd dataplane {listen | connect} <address:word> [netns <netns:word>]",
        "Run the BFD sessions of FRR's bfdd, which connects to a loopback address and port, or to which the router connects",
        meet,
    )
    .examples(&[
        "bfd dataplane listen 127.0.0.1:50700",
        "bfd dataplane connect 127.0.0.1:50700 netns dataplane",
    ])
    .doc(
        "Bfdd runs with `--dplaneaddr ipv4c:127.0.0.1:50700` where the router listens, with `--dplaneaddr ipv4:127.0.0.1:50700` where it connects. \
         FRR before 10.2 cannot connect: it closes each connection at once. One connection is taken at a time. Sessions are by interfaces \
         that have an image in the namespace of bfdd (`lcp create`); those by others wait. They stay for a minute after a connection has ended.",
    ),
    Command::new("bfd dataplane off", "Leave bfdd's sessions to bfdd, and delete those it asked for", off)
        .examples(&["bfd dataplane off"]),
    Command::new("show bfd dataplane", "Show whether bfdd is connected and how many sessions it asked for", show)
        .examples(&["show bfd dataplane"]),
];

fn plane(control: &Control) -> Result<Rc<Dataplane>, CliError> {
    Ok(control.get::<Dataplane>()?)
}

fn off(control: &Control, _: &Args) -> Result<Output, CliError> {
    plane(control)?.stop();
    Ok(Output::none())
}

fn meet(control: &Control, args: &Args) -> Result<Output, CliError> {
    let plane = plane(control)?;
    let address = DaemonAddress::of(args, USUAL)?;
    let meeting = if args.has("listen") { Meeting::Listen(address) } else { Meeting::Connect(address) };
    plane.meet(&meeting).map_err(ListenError::of_command)?;
    Ok(Output::none())
}

#[derive(Serialize)]
struct Summary {
    /// Whether the router connects; if not, bfdd does.
    connects: bool,
    address: Option<String>,
    netns: Option<String>,
    connection: Option<u64>,
    connected_seconds: Option<f64>,
    sessions: usize,
    up: usize,
    waiting: usize,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.address {
            None => writeln!(f, "bfd dataplane is off")?,
            Some(address) => {
                let how = if self.connects { "connects to" } else { "listens at" };
                write!(f, "bfd dataplane {how} {address}")?;
                if let Some(netns) = &self.netns {
                    write!(f, " netns {netns}")?;
                }
                writeln!(f)?;
            }
        }
        match (self.connection, self.connected_seconds) {
            (Some(number), Some(seconds)) => {
                writeln!(f, "bfdd is connected for {seconds:.1} s, connection {number}")?;
            }
            _ => writeln!(f, "bfdd is not connected")?,
        }
        let Summary { sessions, up, waiting, .. } = self;
        writeln!(f, "sessions: {sessions}, up {up}, waiting {waiting}")
    }
}

fn show(control: &Control, _: &Args) -> Result<Output, CliError> {
    let DataplaneState { meeting, connected, sessions, waiting, up } = plane(control)?.state();
    let address = meeting.as_ref().map(Meeting::address);
    Ok(Output::view(Summary {
        connects: matches!(meeting, Some(Meeting::Connect(_))),
        address: address.map(|address| address.at.to_string()),
        netns: address.and_then(|address| address.netns.clone()),
        connection: connected.map(|(number, _)| number),
        connected_seconds: connected.map(|(_, since)| since.as_secs_f64()),
        sessions,
        up,
        waiting,
    }))
}
