//! Commands: `igmp`, `igmp listen`, `show igmp config`.

use std::fmt;
use std::net::Ipv4Addr;

use serde::Serialize;
use shoal_interface::{InterfaceArg, Interfaces};
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};

use crate::control::Listen;
use crate::{Igmp, IgmpError};

/// Commands of this crate.
pub static COMMANDS: &[Command] = &[
    Command::new(
        "igmp {{enable | disable} & host & <interface>}",
        "Speak IGMP as a host on an interface",
        enable,
    )
    .examples(&["igmp enable host local0", "igmp local0 disable host"])
    .doc("Version 3; version 2 or 1 for as long as a router of that version asks. `disable` leaves all groups."),
    Command::new(
        "igmp listen [enable | disable] {int <interface> & saddr <saddr:ip4-address> & gaddr <gaddr:ip4-address>}",
        "Listen to a group on an interface, or no longer",
        listen,
    )
    .examples(&["igmp listen enable int local0 saddr 192.0.2.1 gaddr 232.1.1.1"])
    .doc("`saddr 0.0.0.0` is any source. The group's multicast route accepts packets from the interface."),
    Command::new("show igmp config", "Show which groups are listened to", show).examples(&["show igmp config"]),
];

fn failed(error: IgmpError) -> CliError {
    let name = match &error {
        IgmpError::NotAGroup(_) => "gaddr",
        IgmpError::NotASource(_) => "saddr",
        _ => return CliError::failed(error.to_string()),
    };
    CliError::argument(name, error.to_string())
}

fn enable(control: &Control, args: &Args) -> Result<Output, CliError> {
    let igmp = control.get::<Igmp>()?;
    let InterfaceArg(interface) = args.get("interface")?;
    let done = if args.has("disable") { igmp.disable(interface) } else { igmp.enable(interface) };
    done.map_err(failed)?;
    Ok(Output::none())
}

fn listen(control: &Control, args: &Args) -> Result<Output, CliError> {
    let igmp = control.get::<Igmp>()?;
    let InterfaceArg(interface) = args.get("interface")?;
    let (source, group) = (args.get::<Ipv4Addr>("saddr")?, args.get::<Ipv4Addr>("gaddr")?);
    let on = if args.has("disable") { Listen::No } else { Listen::Yes };
    igmp.listen(interface, source, group, on).map_err(failed)?;
    Ok(Output::none())
}

#[derive(Serialize)]
struct GroupRow {
    group: Ipv4Addr,
    any_source: bool,
    sources: Vec<Ipv4Addr>,
}

#[derive(Serialize)]
struct Row {
    interface: String,
    mode: &'static str,
    version: u8,
    groups: Vec<GroupRow>,
}

#[derive(Serialize)]
struct Config {
    interfaces: Vec<Row>,
}

fn show(control: &Control, _: &Args) -> Result<Output, CliError> {
    let (igmp, interfaces) = (control.get::<Igmp>()?, control.get::<Interfaces>()?);
    let row = |info: crate::InterfaceInfo| Row {
        interface: interfaces.name(info.interface).unwrap_or_default(),
        mode: "host",
        version: info.version as u8 + 1,
        groups: info
            .groups
            .into_iter()
            .map(|g| GroupRow { group: g.group, any_source: g.any, sources: g.sources })
            .collect(),
    };
    Ok(Output::view(Config { interfaces: igmp.list().into_iter().map(row).collect() }))
}

impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for row in &self.interfaces {
            writeln!(f, "interface: {} mode: {} version: {}", row.interface, row.mode, row.version)?;
            for group in &row.groups {
                writeln!(f, "  group: {}", group.group)?;
                if group.any_source {
                    writeln!(f, "    source: *")?;
                }
                for source in &group.sources {
                    writeln!(f, "    source: {source}")?;
                }
            }
        }
        Ok(())
    }
}
