//! Commands: `set arp proxy`, `set interface proxy-arp`, `show arp proxy`.

use std::fmt;
use std::net::Ipv4Addr;

use serde::Serialize;
use shoal_interface::{InterfaceArg, Interfaces};
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};

use crate::{ProxyArp, ProxyError};

/// Commands of this crate.
pub static COMMANDS: &[Command] = &[
    Command::new(
        "set arp proxy [del] [table-ID <table:u32>] start <first:ip4-address> end <last:ip4-address>",
        "Answer ARP requests for other hosts' addresses, from the first to the last",
        proxy,
    )
    .doc("On interfaces with `set interface proxy-arp`, and never for a host that is on the asking link itself.")
    .examples(&[
        "set arp proxy table-ID 0 start 10.0.0.10 end 10.0.0.20",
        "set arp proxy start 10.0.0.10 end 10.0.0.20",
        "set arp proxy del table-ID 0 start 10.0.0.10 end 10.0.0.20",
    ]),
    Command::new(
        "set interface proxy-arp <interface> [{enable | disable}]",
        "Let an interface answer ARP requests for other hosts, or no longer",
        enable,
    )
    .examples(&["set interface proxy-arp loop0 enable", "set interface proxy-arp loop0 disable"]),
    Command::new("show arp proxy", "Show the addresses for which ARP requests are answered, and where", show)
        .examples(&["show arp proxy"]),
];

/// Points at what is wrong.
fn failed(e: ProxyError) -> CliError {
    let nearest = match &e {
        ProxyError::NoRange { nearest, .. } => nearest.map(|r| r.first.to_string()),
        ProxyError::Fib(_) => return CliError::argument("table", e.to_string()),
        ProxyError::Empty(first, _) => Some(first.to_string()),
        ProxyError::NoHosts(..) => None,
        _ => return CliError::failed(e.to_string()),
    };
    let argument = if matches!(e, ProxyError::Empty(..)) { "last" } else { "first" };
    CliError::argument(argument, e.to_string()).nearest(nearest)
}

fn proxy(control: &Control, args: &Args) -> Result<Output, CliError> {
    let proxy = control.get::<ProxyArp>()?;
    let (table, first, last) =
        (args.or("table", 0u32)?, args.get::<Ipv4Addr>("first")?, args.get::<Ipv4Addr>("last")?);
    let done = if args.has("del") { proxy.remove(table, first, last) } else { proxy.add(table, first, last) };
    done.map_err(failed)?;
    Ok(Output::none())
}

fn enable(control: &Control, args: &Args) -> Result<Output, CliError> {
    let InterfaceArg(interface) = args.get("interface")?;
    control.get::<ProxyArp>()?.enable(interface, !args.has("disable")).map_err(failed)?;
    Ok(Output::none())
}

/// `show arp proxy`.
#[derive(Serialize)]
struct View {
    ranges: Vec<Row>,
    interfaces: Vec<String>,
}

#[derive(Serialize)]
struct Row {
    table: u32,
    first: Ipv4Addr,
    last: Ipv4Addr,
}

impl fmt::Display for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.ranges.is_empty() {
            writeln!(f, "Proxy arps:")?;
        }
        for Row { table, first, last } in &self.ranges {
            writeln!(f, "  table-ID {table}  {first} - {last}")?;
        }
        if !self.interfaces.is_empty() {
            writeln!(f, "Proxy arps enabled for:")?;
        }
        self.interfaces.iter().try_for_each(|name| writeln!(f, "  {name}"))
    }
}

fn show(control: &Control, _: &Args) -> Result<Output, CliError> {
    let (proxy, interfaces) = (control.get::<ProxyArp>()?, control.get::<Interfaces>()?);
    let row = |(table, range): (u32, crate::Range)| Row { table, first: range.first, last: range.last };
    let name = |i| interfaces.name(i).ok();
    Ok(Output::view(View {
        ranges: proxy.ranges().into_iter().map(row).collect(),
        interfaces: proxy.enabled().into_iter().filter_map(name).collect(),
    }))
}
