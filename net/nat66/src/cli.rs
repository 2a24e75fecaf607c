//! Commands: `nat66`, `set interface nat66`, `show nat66`.

use std::fmt::{self, Write};
use std::rc::Rc;

use shoal_interface::{InterfaceArg, Interfaces};
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};

use crate::{Nat66, Nat66Error, Side};

/// Commands of this crate.
pub static COMMANDS: &[Command] = &[
    Command::new(
        "nat66 plugin {enable [outside-vrf <outside-vrf:u32>] | disable}",
        "Switch NAT66 on or off",
        plugin,
    )
    .examples(&["nat66 plugin enable"])
    .doc(
        "A host's packets are looked up in its own table, and in that of `outside-vrf` if that has no way. Switched off, all that \
         was configured goes.",
    ),
    Command::new(
        "set interface nat66 {in <in:interface> | out <out:interface>} ... [del]",
        "Translate IPv6 addresses of what comes in by an interface",
        interface,
    )
    .examples(&["set interface nat66 in local0"])
    .doc("Hosts are behind `in`, the world is behind `out`. An interface is on one side."),
    Command::new(
        "nat66 add static mapping local <local:ip6-address> external <external:ip6-address> [vrf <vrf:u32>] [del]",
        "Have a host be known outside by another IPv6 address",
        mapping,
    )
    .examples(&["nat66 add static mapping local fd00::5 external 2001:db8:f::5"])
    .doc("Checksums follow, ports stay. `vrf` is the host's."),
    Command::new("show nat66 interfaces", "Show where IPv6 addresses are translated", interfaces)
        .examples(&["show nat66 interfaces"]),
    Command::new("show nat66 static mappings", "Show which IPv6 address stands for which", mappings)
        .examples(&["show nat66 static mappings"]),
];

fn nat(control: &Control) -> Result<Rc<Nat66>, CliError> {
    Ok(control.get::<Nat66>()?)
}

/// Points at the argument that is wrong.
fn refused(error: Nat66Error) -> CliError {
    let text = error.to_string();
    match error {
        Nat66Error::NoMapping => CliError::argument("local", text),
        _ => CliError::failed(text),
    }
}

fn plugin(control: &Control, args: &Args) -> Result<Output, CliError> {
    let nat = nat(control)?;
    let done = if args.has("disable") { nat.disable() } else { nat.enable(args.or("outside-vrf", 0)?) };
    done.map_err(refused)?;
    Ok(Output::none())
}

fn interface(control: &Control, args: &Args) -> Result<Output, CliError> {
    let (nat, on) = (nat(control)?, !args.has("del"));
    for (word, side) in [("in", Side::Inside), ("out", Side::Outside)] {
        for InterfaceArg(interface) in args.all::<InterfaceArg>(word)? {
            nat.set_side(interface, side, on).map_err(refused)?;
        }
    }
    Ok(Output::none())
}

fn mapping(control: &Control, args: &Args) -> Result<Output, CliError> {
    let nat = nat(control)?;
    let (local, external, vrf) = (args.get("local")?, args.get("external")?, args.or("vrf", 0)?);
    let done = if args.has("del") {
        nat.del_mapping(local, external, vrf)
    } else {
        nat.add_mapping(local, external, vrf)
    };
    done.map_err(refused)?;
    Ok(Output::none())
}

/// What is shown while NAT66 is on.
fn text(
    control: &Control,
    write: impl FnOnce(&Nat66, &mut String) -> fmt::Result,
) -> Result<Output, CliError> {
    let (nat, mut text) = (nat(control)?, String::new());
    nat.outside_vrf().ok_or(Nat66Error::Off).map_err(refused)?;
    write(&nat, &mut text).map_err(|e| CliError::failed(e.to_string()))?;
    Ok(Output::text(text))
}

fn interfaces(control: &Control, _: &Args) -> Result<Output, CliError> {
    let all = control.get::<Interfaces>()?;
    text(control, |nat, f| {
        writeln!(f, "NAT66 interfaces:")?;
        for (interface, side) in nat.sides() {
            writeln!(f, " {} {side}", all.name(interface).unwrap_or_default())?;
        }
        Ok(())
    })
}

fn mappings(control: &Control, _: &Args) -> Result<Output, CliError> {
    text(control, |nat, f| {
        writeln!(f, "NAT66 static mappings:")?;
        for mapping in nat.mappings() {
            writeln!(f, " local {} external {} vrf {}", mapping.local, mapping.external, mapping.vrf)?;
            writeln!(f, "  total pkts {}, total bytes {}", mapping.packets, mapping.bytes)?;
        }
        Ok(())
    })
}
