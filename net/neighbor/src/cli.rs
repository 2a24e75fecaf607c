//! Commands: `set ip neighbor`, `show ip neighbors`, `set ip neighbor-config` and their relatives.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use serde::Serialize;
use shoal_adj::Family;
use shoal_interface::cli::column::{centre, line};
use shoal_interface::{InterfaceArg, Interfaces, SwIfIndex};
use shoal_message::AddressFamily;
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};
use shoal_wire::MacAddress;

use crate::api::{Walk, Watched, watched};
use crate::counters::Messages;
use crate::table::{FibEntry, Limits, Origin, WhenFull};
use crate::{Families, Flush, Info, NeighbourError, NewLimits, Role, State};

/// Commands of this crate.
pub static COMMANDS: &[Command] = &[
    Command::new(
        "set ip neighbor [del] [static] [no-fib-entry] <interface> <address:ip-address> [<mac>] \
         [static] [no-fib-entry] [count <count:u32>]",
        "Add or delete neighbours",
        neighbor,
    )
    .doc("With `count`, addresses and MAC addresses rise by one from neighbour to neighbour.")
    .examples(&[
        "set ip neighbor loop0 10.0.0.2 02:fe:00:00:00:02 static",
        "set ip neighbor loop0 10.0.0.10 02fe.0000.0010 count 5",
        "set ip neighbor loop0 2001:db8::2 02:fe:00:00:00:02",
        "set ip neighbor del loop0 10.0.0.2",
    ]),
    Command::new(
        "ip neighbor [del] [static] [no-fib-entry] <interface> <address:ip-address> [<mac>] \
         [static] [no-fib-entry] [count <count:u32>]",
        "The older form of `set ip neighbor'",
        neighbor,
    )
    .examples(&["ip neighbor loop0 10.0.0.2 02:fe:00:00:00:02"]),
    Command::new("show ip neighbors [<interface>]", "Show neighbours of both families", show)
        .examples(&["show ip neighbors"]),
    Command::new("show ip4 neighbors [<interface>]", "Show IPv4 neighbours", show_ip4)
        .examples(&["show ip4 neighbors loop0"]),
    Command::new("show ip6 neighbors [<interface>] [verbose]", "Show IPv6 neighbours", show_ip6)
        .doc("With `verbose`, also how sure it is that each one is there (RFC 4861 7.3.2), and `R` for a router.")
        .examples(&["show ip6 neighbors loop0 verbose"]),
    // VPP has both numbers of the word, and guides use both.
    Command::new("show ip neighbor [<interface>]", "Show neighbours of both families", show)
        .examples(&["show ip neighbor"]),
    Command::new("show ip4 neighbor [<interface>]", "Show IPv4 neighbours", show_ip4)
        .examples(&["show ip4 neighbor"]),
    Command::new("show ip6 neighbor [<interface>] [verbose]", "Show IPv6 neighbours", show_ip6)
        .examples(&["show ip6 neighbor"]),
    Command::new("clear ip neighbors [<interface>]", "Forget dynamic neighbours of both families", clear)
        .examples(&["clear ip neighbors loop0"]),
    Command::new(
        "set ip neighbor-config {ip4 | ip6} [limit <limit:u32>] [interface-limit <interface-limit:u32>] \
         [age <age:u32>] [recycle] [norecycle]",
        "Set how many neighbours are kept and how long, in seconds; 0 is no limit",
        configure,
    )
    .doc(
        "`interface-limit` is how many one interface may have besides static ones. With `recycle` a full table makes \
         room, first of those that never answered a question of this router.",
    )
    .examples(&["set ip neighbor-config ip4 limit 1000 age 300 recycle"]),
    Command::new("show ip neighbor-watcher", "Show which clients want to know of neighbours", watchers)
        .examples(&["show ip neighbor-watcher"]),
    Command::new(
        "show ip neighbor-stats [<interface>]",
        "Show how many messages of ARP and neighbour discovery interfaces sent and received",
        stats,
    )
    .examples(&["show ip neighbor-stats", "show ip neighbor-stats loop0"]),
    Command::new("show ip neighbor-config", "Show the limits of the neighbour tables", show_config)
        .examples(&["show ip neighbor-config"]),
];

/// An interface by name, for arguments named `interface`.
fn interface(args: &Args) -> Result<Option<SwIfIndex>, CliError> {
    Ok(args.opt::<InterfaceArg>("interface")?.map(|i| i.0))
}

fn failed(e: NeighbourError) -> CliError {
    CliError::failed(e.to_string())
}

fn neighbor(control: &Control, args: &Args) -> Result<Output, CliError> {
    let InterfaceArg(interface) = args.get("interface")?;
    let (first, count) = (args.get::<IpAddr>("address")?, args.or("count", 1u32)?);
    let neighbours = Families::of(control).get(Family::of(first)).map_err(failed)?;
    if args.has("del") {
        neighbours.remove_many((interface, first), count).map_err(failed)?;
        return Ok(Output::none());
    }
    let mac = args.get::<MacAddress>("mac")?;
    let origin = if args.has("static") { Origin::Static } else { Origin::Dynamic };
    let fib_entry = if args.has("no-fib-entry") { FibEntry::Unwanted } else { FibEntry::Wanted };
    neighbours.set_many((interface, first), mac, count, origin, fib_entry).map_err(failed)?;
    Ok(Output::none())
}

/// Whether columns are printed that VPP does not have.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verbose {
    No,
    Yes,
}

#[derive(Serialize)]
struct Row {
    age: f64,
    ip: IpAddr,
    flags: String,
    mac: String,
    interface: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<State>,
    role: Role,
    #[serde(skip)]
    verbose: Verbose,
    /// The line of columns' names stands before the first row; without a row there is none.
    #[serde(skip)]
    first: bool,
}

impl Row {
    fn new(info: &Info<IpAddr>, interfaces: &Interfaces, verbose: Verbose, first: bool) -> Self {
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
            state: info.state,
            role: info.role,
            verbose,
            first,
        }
    }
}

fn header(verbose: Verbose) -> String {
    let columns = [("Age", 12), ("IP", 40), ("Flags", 6), ("Ethernet", 20)];
    let mut header = columns.map(|(name, width)| centre(name, width)).to_vec();
    header.extend((verbose == Verbose::Yes).then(|| centre("State", 12)));
    header.push(centre("Interface", 24));
    line(&header)
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.first {
            f.write_str(&header(self.verbose))?;
        }
        let verbose = self.verbose == Verbose::Yes;
        let router = if verbose && self.role == Role::Router { "R" } else { "" };
        let mut cells = vec![
            centre(format_args!("{:.4}", self.age), 12),
            centre(self.ip, 40),
            centre(format_args!("{}{router}", self.flags), 6),
            centre(&self.mac, 20),
        ];
        let state = || self.state.map_or("-".to_owned(), |s| s.to_string());
        cells.extend(verbose.then(|| centre(state(), 12)));
        cells.push(self.interface.clone());
        f.write_str(&line(&cells))
    }
}

fn list(control: &Control, args: &Args, family: Option<Family>) -> Result<Output, CliError> {
    let interfaces = control.get::<Interfaces>()?;
    let only = interface(args)?;
    let families =
        Families::of(control).all().into_iter().filter(move |(f, _)| family.is_none_or(|only| only == *f));
    let verbose = if args.has("verbose") { Verbose::Yes } else { Verbose::No };
    let all = families.flat_map(move |(family, neighbours)| {
        let af = if family == Family::Ip4 { AddressFamily::Ip4 } else { AddressFamily::Ip6 };
        Walk::new(neighbours, af, only)
    });
    let rows = all.enumerate().map(move |(n, info)| Row::new(&info, &interfaces, verbose, n == 0));
    Ok(Output::rows_in("neighbors", "", rows))
}

fn show(control: &Control, args: &Args) -> Result<Output, CliError> {
    list(control, args, None)
}

fn show_ip4(control: &Control, args: &Args) -> Result<Output, CliError> {
    list(control, args, Some(Family::Ip4))
}

fn show_ip6(control: &Control, args: &Args) -> Result<Output, CliError> {
    list(control, args, Some(Family::Ip6))
}

fn clear(control: &Control, args: &Args) -> Result<Output, CliError> {
    let only = interface(args)?;
    Families::of(control).all().iter().for_each(|(_, n)| n.flush(only, Flush::Dynamic));
    Ok(Output::none())
}

fn configure(control: &Control, args: &Args) -> Result<Output, CliError> {
    if args.has("recycle") && args.has("norecycle") {
        return Err(CliError::failed("recycle and norecycle exclude each other"));
    }
    let word = |name, value| args.has(name).then_some(value);
    let family = if args.has("ip4") { Family::Ip4 } else { Family::Ip6 };
    Families::of(control).get(family).map_err(failed)?.set_limits(NewLimits {
        entries: args.opt::<u32>("limit")?.map(|n| n as usize),
        interface_entries: args.opt::<u32>("interface-limit")?.map(|n| n as usize),
        age: args.opt::<u32>("age")?.map(|s| Duration::from_secs(s.into())),
        when_full: word("recycle", WhenFull::Recycle).or(word("norecycle", WhenFull::Refuse)),
    });
    Ok(Output::none())
}

/// `show ip neighbor-config`, by family.
#[derive(Serialize)]
struct Configs(BTreeMap<&'static str, Config>);

#[derive(Serialize)]
struct Config {
    limit: usize,
    interface_limit: usize,
    age: u64,
    recycle: bool,
}

impl fmt::Display for Configs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (family, Config { limit, interface_limit, age, recycle }) in &self.0 {
            write!(f, "{family}:\n  limit:{limit}, age:{age}, recycle:{}", u8::from(*recycle))?;
            if *interface_limit > 0 {
                write!(f, ", interface-limit:{interface_limit}")?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

#[derive(Serialize)]
struct Watcher {
    address: Option<IpAddr>,
    interface: Option<String>,
    pid: u32,
    client: u32,
}

/// `show ip neighbor-watcher`.
#[derive(Serialize)]
struct Watchers(Vec<Watcher>);

impl fmt::Display for Watchers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|Watcher { address, interface, pid, client }| {
            let address = address.map_or("*".to_owned(), |a| a.to_string());
            let interface = interface.as_deref().unwrap_or("*");
            writeln!(f, "Key: {address}, {interface}\n  Pid: {pid}, Client: {client}")
        })
    }
}

fn watchers(control: &Control, _: &Args) -> Result<Output, CliError> {
    let interfaces = control.get::<Interfaces>()?;
    let name = |i: SwIfIndex| interfaces.name(i).unwrap_or_else(|_| "deleted".to_owned());
    let row = |Watched { interface, address, pid, client }| Watcher {
        address,
        interface: interface.map(name),
        pid,
        client,
    };
    Ok(Output::view(Watchers(watched(control).into_iter().map(row).collect())))
}

/// One interface of `show ip neighbor-stats`.
#[derive(Serialize)]
struct Stats {
    interface: String,
    protocols: BTreeMap<&'static str, Vec<Messages>>,
}

impl fmt::Display for Stats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.interface)?;
        for (protocol, kinds) in &self.protocols {
            let side = |of: fn(&Messages) -> u64| {
                kinds.iter().map(|m| format!("{}:{}", m.kind, of(m))).collect::<Vec<_>>().join(" ")
            };
            writeln!(f, "  {protocol}: rx:[{}] tx:[{}]", side(|m| m.rx), side(|m| m.tx))?;
        }
        Ok(())
    }
}

fn stats(control: &Control, args: &Args) -> Result<Output, CliError> {
    let interfaces = control.get::<Interfaces>()?;
    let all = interface(args)?.map_or_else(|| interfaces.indices(), |only| vec![only]);
    let families = Families::of(control).all();
    let rows = all.into_iter().filter_map(move |index| {
        let protocols = families.iter().map(|(_, n)| n.messages(index)).collect();
        Some(Stats { interface: interfaces.name(index).ok()?, protocols })
    });
    Ok(Output::rows_in("interfaces", "", rows))
}

fn show_config(control: &Control, _: &Args) -> Result<Output, CliError> {
    let config = |limits: Limits| Config {
        limit: limits.entries,
        interface_limit: limits.interface_entries,
        age: limits.age.as_secs(),
        recycle: limits.when_full == WhenFull::Recycle,
    };
    let all = Families::of(control).all();
    Ok(Output::view(Configs(all.iter().map(|(family, n)| (family.name(), config(n.limits()))).collect())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_print_in_vpps_columns() {
        let mut row = Row {
            age: 11.98219,
            ip: IpAddr::from([10, 0, 0, 2]),
            flags: "D".into(),
            mac: "02:fe:00:00:00:02".into(),
            interface: "pg0".into(),
            state: Some(State::Stale),
            role: Role::Router,
            verbose: Verbose::No,
            first: true,
        };
        let text = row.to_string();
        let names = "     Age                       IP                    Flags      Ethernet              Interface\n";
        let line = "\x20  11.9822                  10.0.0.2                   D    02:fe:00:00:00:02 pg0\n";
        assert_eq!(text, format!("{names}{line}"));
        row.first = false;
        assert_eq!(row.to_string(), line);
        (row.first, row.verbose) = (true, Verbose::Yes);
        let text = row.to_string();
        assert!(text.contains(" State ") && text.contains(" DR ") && text.contains(" stale "), "{text}");
    }
}
