//! Commands: `cdp`, `show cdp`.

use std::fmt;

use serde::Serialize;
use shoal_interface::Interfaces;
use shoal_interface::cli::column::{centre, line};
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};

use crate::{Cdp, Look};

/// Commands of this crate.
pub static COMMANDS: &[Command] = &[
    Command::new("cdp {enable | disable}", "Speak CDP on all ports, or no longer", cdp)
        .doc("This router says every 60 seconds who it is, and lists which devices are at the other ends of links."),
    Command::new("show cdp", "Show which devices are at the other ends of links", show).examples(&["show cdp"]),
];

fn cdp(control: &Control, args: &Args) -> Result<Output, CliError> {
    if control.get::<Cdp>()?.enable(args.has("enable")) {
        return Ok(Output::none());
    }
    Err(CliError::failed("frames of too many protocols are taken already".to_owned()))
}

#[derive(Serialize)]
struct Row {
    interface: String,
    peer_system: String,
    peer_port: String,
    seconds_since_heard: f64,
}

#[derive(Serialize)]
struct View {
    enabled: bool,
    neighbors: Vec<Row>,
}

fn show(control: &Control, _: &Args) -> Result<Output, CliError> {
    let (cdp, interfaces) = (control.get::<Cdp>()?, control.get::<Interfaces>()?);
    let now = control.graph()?.clock().now();
    let row = |look: Look| Row {
        interface: interfaces.name(look.index).unwrap_or_default(),
        peer_system: look.neighbor.device.to_string(),
        peer_port: look.neighbor.port.to_string(),
        seconds_since_heard: now.since(look.heard).as_secs_f64(),
    };
    let neighbors = cdp.list().into_iter().map(row).collect();
    Ok(Output::view(View { enabled: cdp.is_enabled(), neighbors }))
}

impl fmt::Display for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.enabled {
            return f.write_str("cdp is not enabled: `cdp enable'\n");
        }
        let columns =
            |[a, b, c, d]: [&str; 4]| line(&[centre(a, 25), centre(b, 15), centre(c, 25), centre(d, 10)]);
        f.write_str(&columns(["Our Port", "Peer System", "Peer Port", "Last Heard"]))?;
        self.neighbors.iter().try_for_each(|row| {
            let heard = format!("{:.1}", row.seconds_since_heard);
            f.write_str(&columns([&row.interface, &row.peer_system, &row.peer_port, &heard]))
        })
    }
}
