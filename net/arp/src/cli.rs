//! Commands: `set ip neighbor`, `show ip neighbors`, `set ip neighbor-config` and their relatives.

use std::fmt;
use std::net::Ipv4Addr;
use std::time::Duration;

use serde::Serialize;
use shoal_interface::cli::column::{centre, line};
use shoal_interface::{InterfaceArg, Interfaces, SwIfIndex};
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};
use shoal_wire::MacAddress;

use crate::table::{FibEntry, Origin, WhenFull};
use crate::{Flush, Info, Neighbours, NewLimits};

/// Commands of this crate.
pub static COMMANDS: &[Command] = &[
    Command::new(
        "set ip neighbor [del] <interface> <address:ip4-address> [<mac>] [static] [no-fib-entry] [count <count:u32>]",
        "Add or delete neighbours",
        neighbor,
    )
    .doc("With `count`, addresses and MAC addresses rise by one from neighbour to neighbour.")
    .examples(&[
        "set ip neighbor loop0 10.0.0.2 02:fe:00:00:00:02 static",
        "set ip neighbor loop0 10.0.0.10 02fe.0000.0010 count 5",
        "set ip neighbor del loop0 10.0.0.2",
    ]),
    Command::new(
        "ip neighbor [del] <interface> <address:ip4-address> [<mac>] [static] [no-fib-entry] [count <count:u32>]",
        "The older form of `set ip neighbor'",
        neighbor,
    )
    .examples(&["ip neighbor loop0 10.0.0.2 02:fe:00:00:00:02"]),
    Command::new("show ip neighbors [<interface>]", "Show neighbours", show).examples(&["show ip neighbors"]),
    Command::new("show ip4 neighbors [<interface>]", "Show IPv4 neighbours", show)
        .examples(&["show ip4 neighbors loop0"]),
    // VPP has both numbers of the word, and guides use both.
    Command::new("show ip neighbor [<interface>]", "Show neighbours", show).examples(&["show ip neighbor"]),
    Command::new("show ip4 neighbor [<interface>]", "Show IPv4 neighbours", show).examples(&["show ip4 neighbor"]),
    Command::new("clear ip neighbors [<interface>]", "Forget dynamic neighbours", clear)
        .examples(&["clear ip neighbors loop0"]),
    Command::new(
        "set ip neighbor-config ip4 [limit <limit:u32>] [age <age:u32>] [recycle] [norecycle]",
        "Set how many neighbours are kept and how long, in seconds; 0 is no limit",
        configure,
    )
    .examples(&["set ip neighbor-config ip4 limit 1000 age 300 recycle"]),
    Command::new("show ip neighbor-config", "Show the limits of the neighbour table", show_config)
        .examples(&["show ip neighbor-config"]),
];

/// An interface by name, for arguments named `interface`.
fn interface(args: &Args) -> Result<Option<SwIfIndex>, CliError> {
    Ok(args.opt::<InterfaceArg>("interface")?.map(|i| i.0))
}

fn neighbor(control: &Control, args: &Args) -> Result<Output, CliError> {
    let neighbours = control.get::<Neighbours>()?;
    let InterfaceArg(interface) = args.get("interface")?;
    let (first, count) = (args.get::<Ipv4Addr>("address")?, args.or("count", 1u32)?);
    if args.has("del") {
        neighbours.remove_many(interface, first, count)?;
        return Ok(Output::none());
    }
    let mac = args.get::<MacAddress>("mac")?;
    let origin = if args.has("static") { Origin::Static } else { Origin::Dynamic };
    let fib_entry = if args.has("no-fib-entry") { FibEntry::Unwanted } else { FibEntry::Wanted };
    neighbours.set_many((interface, first), mac, count, origin, fib_entry)?;
    Ok(Output::none())
}

/// `show ip neighbors`.
#[derive(Serialize)]
struct List {
    neighbors: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    age: f64,
    ip: Ipv4Addr,
    flags: String,
    mac: String,
    interface: String,
}

impl Row {
    fn new(info: &Info, interfaces: &Interfaces) -> Self {
        let mut flags = String::new();
        flags.push(if info.neighbour.origin == Origin::Static { 'S' } else { 'D' });
        if info.neighbour.fib_entry == FibEntry::Unwanted {
            flags.push('N');
        }
        Row {
            age: info.age.as_secs_f64(),
            ip: info.address,
            flags,
            mac: info.neighbour.mac.to_string(),
            interface: interfaces.name(info.interface).unwrap_or_else(|_| info.interface.to_string()),
        }
    }
}

impl fmt::Display for List {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.neighbors.is_empty() {
            return Ok(());
        }
        let columns = [("Age", 12), ("IP", 40), ("Flags", 6), ("Ethernet", 20), ("Interface", 24)];
        f.write_str(&line(&columns.map(|(name, width)| centre(name, width))))?;
        for row in &self.neighbors {
            let cells = [
                centre(format_args!("{:.4}", row.age), 12),
                centre(row.ip, 40),
                centre(&row.flags, 6),
                centre(&row.mac, 20),
                row.interface.clone(),
            ];
            f.write_str(&line(&cells))?;
        }
        Ok(())
    }
}

fn show(control: &Control, args: &Args) -> Result<Output, CliError> {
    let (neighbours, interfaces) = (control.get::<Neighbours>()?, control.get::<Interfaces>()?);
    let only = interface(args)?;
    let wanted = neighbours.list().into_iter().filter(|n| only.is_none_or(|i| i == n.interface));
    Ok(Output::view(List { neighbors: wanted.map(|n| Row::new(&n, &interfaces)).collect() }))
}

fn clear(control: &Control, args: &Args) -> Result<Output, CliError> {
    control.get::<Neighbours>()?.flush(interface(args)?, Flush::Dynamic);
    Ok(Output::none())
}

fn configure(control: &Control, args: &Args) -> Result<Output, CliError> {
    if args.has("recycle") && args.has("norecycle") {
        return Err(CliError::failed("recycle and norecycle exclude each other"));
    }
    let word = |name, value| args.has(name).then_some(value);
    control.get::<Neighbours>()?.set_limits(NewLimits {
        entries: args.opt::<u32>("limit")?.map(|n| n as usize),
        age: args.opt::<u32>("age")?.map(|s| Duration::from_secs(s.into())),
        when_full: word("recycle", WhenFull::Recycle).or(word("norecycle", WhenFull::Refuse)),
    });
    Ok(Output::none())
}

/// `show ip neighbor-config`.
#[derive(Serialize)]
struct Config {
    limit: usize,
    age: u64,
    recycle: bool,
}

impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Config { limit, age, recycle } = self;
        writeln!(f, "ip4:\n  limit:{limit}, age:{age}, recycle:{}", u8::from(*recycle))
    }
}

fn show_config(control: &Control, _: &Args) -> Result<Output, CliError> {
    let limits = control.get::<Neighbours>()?.limits();
    let recycle = limits.when_full == WhenFull::Recycle;
    Ok(Output::view(Config { limit: limits.entries, age: limits.age.as_secs(), recycle }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_print_in_vpps_columns() {
        let row = Row {
            age: 11.98219,
            ip: Ipv4Addr::new(10, 0, 0, 2),
            flags: "D".into(),
            mac: "02:fe:00:00:00:02".into(),
            interface: "pg0".into(),
        };
        let text = List { neighbors: vec![row] }.to_string();
        let want = "     Age                       IP                    Flags      Ethernet              Interface\n\
                    \x20  11.9822                  10.0.0.2                   D    02:fe:00:00:00:02 pg0\n";
        assert_eq!(text, want);
        assert_eq!(List { neighbors: Vec::new() }.to_string(), "");
    }
}
