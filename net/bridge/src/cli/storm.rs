//! `set interface l2 storm-control`, `show bridge-domain storm-control`.

use std::fmt;

use serde::Serialize;
use shoal_interface::{InterfaceArg, Interfaces};
use shoal_l2::{L2, Mode};
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};

use super::refused;
use crate::{Bridges, StormClass};

pub(super) const SET: Command = Command::new(
    "set interface l2 storm-control <interface> {off | [broadcast <broadcast:u32>] [multicast <multicast:u32>] \
     [unknown-unicast <unknown-unicast:u32>]}",
    "Limit what a bridge's member brings in for all, for groups and for unknown stations",
    set,
)
.doc(
    "The numbers are packets a second; 0 lets none pass. What is not named stays as it is, `off` ends all limits. A bucket \
     holds one second's packets, and all workers share it. The limits end when the interface leaves its bridge domain.",
);

pub(super) const SHOW: Command = Command::new(
    "show bridge-domain storm-control",
    "Show limits of what members of bridges bring in, and what was dropped",
    show,
)
.examples(&["show bridge-domain storm-control"]);

fn set(control: &Control, args: &Args) -> Result<Output, CliError> {
    let (bridges, InterfaceArg(port)) = (control.get::<Bridges>()?, args.get("interface")?);
    let mut limits = bridges.storm_limits(port);
    let mut named = false;
    for class in StormClass::ALL {
        let limit = args.opt::<u32>(class.word())?;
        if args.has("off") {
            limits = limits.with(class, None);
        } else if limit.is_some() {
            limits = limits.with(class, limit);
            named = true;
        }
    }
    if !named && !args.has("off") {
        return Err(CliError::argument("interface", "a limit, or `off', is missing"));
    }
    bridges.set_storm_limits(port, limits).map_err(refused)?;
    Ok(Output::none())
}

#[derive(Serialize)]
struct ClassRow {
    class: &'static str,
    packets_per_second: Option<u32>,
    drops: u64,
}

#[derive(Serialize)]
struct Row {
    interface: String,
    sw_if_index: u32,
    bd_id: u32,
    classes: Vec<ClassRow>,
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for ClassRow { class, packets_per_second, drops } in &self.classes {
            let limit = packets_per_second.map_or_else(|| "off".to_owned(), |limit| limit.to_string());
            writeln!(f, "{:<24} {:>8} {class:<16} {limit:>12} {drops:>16}", self.interface, self.bd_id)?;
        }
        Ok(())
    }
}

fn head() -> String {
    format!("{:<24} {:>8} {:<16} {:>12} {:>16}\n", "Interface", "BD-ID", "Class", "Packets/s", "Drops")
}

fn show(control: &Control, _: &Args) -> Result<Output, CliError> {
    let (bridges, l2) = (control.get::<Bridges>()?, control.get::<L2>()?);
    let interfaces = control.get::<Interfaces>()?;
    let ports = bridges.storm_ports();
    if ports.is_empty() {
        return Ok(Output::text("no storm control is configured\n"));
    }
    let row = move |(port, limits): (shoal_interface::SwIfIndex, crate::StormLimits)| Row {
        interface: interfaces.name(port).unwrap_or_else(|_| "DELETED".into()),
        sw_if_index: port.0,
        bd_id: match l2.mode(port) {
            Mode::Bridge(place) => bridges.number_of(place.domain).unwrap_or(0),
            _ => 0,
        },
        classes: StormClass::ALL
            .map(|class| ClassRow {
                class: class.word(),
                packets_per_second: limits.get(class),
                drops: bridges.storm_drops(port, class),
            })
            .into(),
    };
    Ok(Output::rows(head(), ports.into_iter().map(row)))
}
