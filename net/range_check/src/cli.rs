//! Commands: `set ip source-and-port-range-check`, and which interfaces it holds for.

use std::fmt;
use std::net::Ipv4Addr;

use serde::Serialize;
use shoal_interface::{InterfaceArg, Interfaces};
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};
use shoal_wire::Ip4Prefix;

use crate::{PortRange, RangeCheck, RangeError, Setting, Verdict};

/// Commands of this crate.
pub static COMMANDS: &[Command] = &[
    Command::new(
        "set ip source-and-port-range-check {vrf <vrf:u32> & <hosts:ip4-prefix> & {port <port:u16> | range <low:u16> - \
         <high:u16>} & [del]}",
        "Say to which ports hosts of a prefix may speak",
        set,
    )
    .examples(&[
        "set ip source-and-port-range-check vrf 7 172.16.1.0/24 port 23",
        "set ip source-and-port-range-check vrf 7 172.16.1.0/24 range 23 - 100",
        "set ip source-and-port-range-check vrf 7 172.16.1.0/24 range 23 - 100 del",
    ])
    .doc("The longest prefix that holds a packet's source decides. The first range of a table makes the table."),
    Command::new(
        "set interface ip source-and-port-range-check {<interface> & [tcp-out-vrf <tcp-out:u32>] & [udp-out-vrf \
         <udp-out:u32>] & [tcp-in-vrf <tcp-in:u32>] & [udp-in-vrf <udp-in:u32>] & [del]}",
        "Say by which tables sources and ports of an interface's packets are checked",
        set_interface,
    )
    .examples(&[
        "set interface ip source-and-port-range-check local0 tcp-out-vrf 7 udp-out-vrf 7",
        "set interface ip source-and-port-range-check local0 udp-in-vrf 7 del",
    ])
    .doc(
        "`out` are packets that the interface receives, `in` those that it sends. Where one of TCP and UDP has a table, \
         nothing of the other passes without one.",
    ),
    Command::new(
        "show ip source-and-port-range-check [{vrf <vrf:u32> & <host:ip4-address> & [port <port:u16>]}]",
        "Show to which ports hosts may speak",
        show,
    )
    .examples(&[
        "show ip source-and-port-range-check",
        "show ip source-and-port-range-check vrf 7 172.16.1.9",
        "show ip source-and-port-range-check vrf 7 172.16.1.9 port 23",
    ]),
];

fn failed(error: RangeError) -> CliError {
    let (name, nearest) = match &error {
        RangeError::DefaultTable => ("vrf", Some("1".to_owned())),
        RangeError::Fib(shoal_fib::FibError::NoTable { nearest, .. }) => ("vrf", Some(nearest.to_string())),
        RangeError::Range(_) => ("low", None),
        RangeError::NotThere { .. } | RangeError::TooMany(_) => ("hosts", None),
        _ => return CliError::failed(error.to_string()),
    };
    CliError::argument(name, error.to_string()).nearest(nearest)
}

fn set(control: &Control, args: &Args) -> Result<Output, CliError> {
    let check = control.get::<RangeCheck>()?;
    let (table, hosts) = (args.get::<u32>("vrf")?, args.get::<Ip4Prefix>("hosts")?);
    let range = match args.opt::<u16>("port")? {
        Some(port) => PortRange { low: port, high: port },
        None => PortRange { low: args.get("low")?, high: args.get("high")? },
    };
    let done = if args.has("del") {
        check.remove(table, hosts, &[range])
    } else {
        check.add(table, hosts, &[range])
    };
    done.map_err(failed)?;
    Ok(Output::none())
}

fn set_interface(control: &Control, args: &Args) -> Result<Output, CliError> {
    let check = control.get::<RangeCheck>()?;
    let InterfaceArg(interface) = args.get("interface")?;
    let setting = Setting {
        tcp_in: args.opt("tcp-in")?,
        tcp_out: args.opt("tcp-out")?,
        udp_in: args.opt("udp-in")?,
        udp_out: args.opt("udp-out")?,
    };
    let done =
        if args.has("del") { check.disable(interface, setting) } else { check.enable(interface, setting) };
    done.map_err(|e| CliError::failed(e.to_string()))?;
    Ok(Output::none())
}

#[derive(Serialize)]
struct Range {
    low: u16,
    high: u16,
}

fn ranges(of: &[PortRange]) -> Vec<Range> {
    of.iter().map(|PortRange { low, high }| Range { low: *low, high: *high }).collect()
}

/// The ranges of one host.
#[derive(Serialize)]
struct Host {
    host: Ipv4Addr,
    /// None: the host has no entry.
    ranges: Option<Vec<Range>>,
}

#[derive(Serialize)]
struct Asked {
    host: Ipv4Addr,
    port: u16,
    pass: bool,
}

#[derive(Serialize)]
struct PrefixRow {
    vrf: u32,
    prefix: String,
    ranges: Vec<Range>,
}

#[derive(Serialize)]
struct InterfaceRow {
    interface: String,
    tcp_in: Option<u32>,
    tcp_out: Option<u32>,
    udp_in: Option<u32>,
    udp_out: Option<u32>,
}

#[derive(Serialize)]
struct All {
    prefixes: Vec<PrefixRow>,
    interfaces: Vec<InterfaceRow>,
}

fn show(control: &Control, args: &Args) -> Result<Output, CliError> {
    let check = control.get::<RangeCheck>()?;
    let Some(host) = args.opt::<Ipv4Addr>("host")? else { return all(control, &check) };
    let table = args.get::<u32>("vrf")?;
    if let Some(port) = args.opt::<u16>("port")? {
        let pass = check.verdict(table, host, port).map_err(failed)? == Verdict::Pass;
        return Ok(Output::view(Asked { host, port, pass }));
    }
    let found = check.ranges_of(table, host).map_err(failed)?;
    Ok(Output::view(Host { host, ranges: found.map(|found| ranges(&found)) }))
}

fn all(control: &Control, check: &RangeCheck) -> Result<Output, CliError> {
    let interfaces = control.get::<Interfaces>()?;
    let prefix = |(vrf, prefix, all): (u32, Ip4Prefix, Vec<PortRange>)| PrefixRow {
        vrf,
        prefix: prefix.to_string(),
        ranges: ranges(&all),
    };
    let interface = |(index, setting): (_, Setting)| InterfaceRow {
        interface: interfaces.name(index).unwrap_or_default(),
        tcp_in: setting.tcp_in,
        tcp_out: setting.tcp_out,
        udp_in: setting.udp_in,
        udp_out: setting.udp_out,
    };
    Ok(Output::view(All {
        prefixes: check.list().into_iter().map(prefix).collect(),
        interfaces: check.settings().into_iter().map(interface).collect(),
    }))
}

fn text(ranges: &[Range]) -> String {
    ranges.iter().map(|Range { low, high }| format!("{low} - {high}")).collect::<Vec<_>>().join(" ")
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.ranges {
            Some(ranges) => writeln!(f, "{}: {}", self.host, text(ranges)),
            None => writeln!(f, "{}: src address drop", self.host),
        }
    }
}

impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} port {} {}", self.host, self.port, if self.pass { "PASS" } else { "FAIL" })
    }
}

impl fmt::Display for All {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for PrefixRow { vrf, prefix, ranges } in &self.prefixes {
            writeln!(f, "vrf {vrf} {prefix}: {}", text(ranges))?;
        }
        for row in &self.interfaces {
            write!(f, "{}:", row.interface)?;
            let words = ["tcp-in-vrf", "tcp-out-vrf", "udp-in-vrf", "udp-out-vrf"];
            let tables = [row.tcp_in, row.tcp_out, row.udp_in, row.udp_out];
            for (word, table) in words.into_iter().zip(tables) {
                table.map_or(Ok(()), |table| write!(f, " {word} {table}"))?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}
