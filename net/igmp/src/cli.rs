//! Commands: `igmp`, `igmp listen`, `show igmp config`.

use std::fmt;
use std::net::Ipv4Addr;

use serde::Serialize;
use shoal_fib::Fib;
use shoal_interface::{InterfaceArg, Interfaces};
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};
use shoal_wire::Ip4Prefix;

use crate::control::Listen;
use crate::{GroupKind, Igmp, IgmpError, Listeners, Timers};

/// Commands of this crate.
pub static COMMANDS: &[Command] = &[
    Command::new(
        "igmp {{enable | disable} & {host | router} & <interface>}",
        "Speak IGMP as a host or as a router on an interface",
        enable,
    )
    .examples(&["igmp enable host local0", "igmp local0 disable host", "igmp enable router local0"])
    .doc(
        "A host speaks version 3; version 2 or 1 for as long as a router of that version asks. A router asks who listens, and \
         the groups' multicast routes forward to the interface while somebody does. `disable` leaves all groups.",
    ),
    Command::new(
        "igmp proxy-dev {{add | del} & vrf-id <vrf:u32> & <interface>}",
        "Listen on an interface for listeners of others",
        proxy,
    )
    .examples(&["igmp proxy-dev add vrf-id 0 local0"])
    .doc("The interface, where IGMP speaks as a host, is upstream. A table has one proxy."),
    Command::new(
        "igmp proxy-dev itf {{add | del} & vrf-id <vrf:u32> & <interface>}",
        "Listen for the listeners of an interface",
        downstream,
    )
    .examples(&["igmp proxy-dev itf add vrf-id 0 local0"])
    .doc("The interface, where IGMP speaks as a router, is downstream of the table's proxy."),
    Command::new(
        "igmp ssm-range {add | del} <groups:ip4-prefix>",
        "Say of which groups listeners name their sources",
        range,
    )
    .examples(&["igmp ssm-range add 239.232.0.0/16", "igmp ssm-range del 232.0.0.0/8"]),
    Command::new("show igmp ssm-ranges", "Show of which groups listeners name their sources", show_ranges)
        .examples(&["show igmp ssm-ranges"]),
    Command::new("show igmp timers", "Show how long things take for a router", show_timers)
        .examples(&["show igmp timers"]),
    Command::new(
        "test igmp timers {[query <query:u32>] & [src <src:u32>] & [leave <leave:u32>]}",
        "Say how long things take for a router, in seconds",
        set_timers,
    )
    .examples(&["test igmp timers query 2 src 3 leave 1"])
    .doc("Between general queries; for how long a report holds; for how long what a listener leaves is still wanted."),
    Command::new("clear igmp int <interface>", "Leave or forget all groups of an interface", clear)
        .examples(&["clear igmp int local0"]),
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
    let done = match (args.has("disable"), args.has("router")) {
        (true, _) => igmp.disable(interface),
        (false, true) => igmp.enable_router(interface),
        (false, false) => igmp.enable(interface),
    };
    done.map_err(failed)?;
    Ok(Output::none())
}

fn proxy(control: &Control, args: &Args) -> Result<Output, CliError> {
    let (igmp, fib) = (control.get::<Igmp>()?, control.get::<Fib>()?);
    let (InterfaceArg(interface), table) = (args.get("interface")?, args.get::<u32>("vrf")?);
    let done = if args.has("del") {
        igmp.remove_proxy(table, interface)
    } else {
        igmp.add_proxy(&fib, table, interface)
    };
    done.map_err(failed)?;
    Ok(Output::none())
}

fn downstream(control: &Control, args: &Args) -> Result<Output, CliError> {
    let (igmp, fib) = (control.get::<Igmp>()?, control.get::<Fib>()?);
    let (InterfaceArg(interface), table) = (args.get("interface")?, args.get::<u32>("vrf")?);
    let done = if args.has("del") {
        igmp.remove_downstream(table, interface)
    } else {
        igmp.add_downstream(&fib, table, interface)
    };
    done.map_err(failed)?;
    Ok(Output::none())
}

fn clear(control: &Control, args: &Args) -> Result<Output, CliError> {
    let InterfaceArg(interface) = args.get("interface")?;
    match control.get::<Igmp>()?.leave_all(interface) {
        // There is nothing to leave where IGMP does not run.
        Ok(()) | Err(IgmpError::NotEnabled(_)) => Ok(Output::none()),
        Err(e) => Err(failed(e)),
    }
}

fn range(control: &Control, args: &Args) -> Result<Output, CliError> {
    let kind = if args.has("del") { GroupKind::Asm } else { GroupKind::Ssm };
    control.get::<Igmp>()?.set_range(args.get::<Ip4Prefix>("groups")?, kind);
    Ok(Output::none())
}

#[derive(Serialize)]
#[serde(transparent)]
struct Ranges(Vec<String>);

fn show_ranges(control: &Control, _: &Args) -> Result<Output, CliError> {
    let all = control.get::<Igmp>()?.ranges();
    Ok(Output::view(Ranges(all.iter().map(Ip4Prefix::to_string).collect())))
}

impl fmt::Display for Ranges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|prefix| writeln!(f, "{prefix} => SSM"))
    }
}

#[derive(Serialize)]
struct Shown {
    query: u32,
    src: u32,
    leave: u32,
}

fn show_timers(control: &Control, _: &Args) -> Result<Output, CliError> {
    let Timers { query, src, leave } = control.get::<Igmp>()?.timers();
    Ok(Output::view(Shown { query, src, leave }))
}

fn set_timers(control: &Control, args: &Args) -> Result<Output, CliError> {
    let igmp = control.get::<Igmp>()?;
    let Timers { query, src, leave } = igmp.timers();
    igmp.set_timers(Timers {
        query: args.or("query", query)?,
        src: args.or("src", src)?,
        leave: args.or("leave", leave)?,
    });
    Ok(Output::none())
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "query: {}\nsrc: {}\nleave: {}", self.query, self.src, self.leave)
    }
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
    /// In the part of a router: for how many seconds each is still wanted.
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_in: Option<Vec<u64>>,
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
struct Proxy {
    vrf: u32,
    upstream: String,
    downstream: Vec<String>,
}

#[derive(Serialize)]
struct Config {
    interfaces: Vec<Row>,
    proxies: Vec<Proxy>,
}

fn listeners(of: Listeners) -> GroupRow {
    let any_source = of.sources.iter().any(|(source, _)| source.is_unspecified());
    let (sources, expires_in) = of.sources.into_iter().map(|(source, left)| (source, left.as_secs())).unzip();
    GroupRow { group: of.group, any_source, expires_in: Some(expires_in), sources }
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
            .map(|g| GroupRow { group: g.group, any_source: g.any, expires_in: None, sources: g.sources })
            .collect(),
    };
    let router = |interface| Row {
        interface: interfaces.name(interface).unwrap_or_default(),
        mode: "router",
        version: 3,
        groups: igmp.listeners(interface).into_iter().map(listeners).collect(),
    };
    let name = |interface| interfaces.name(interface).unwrap_or_default();
    let proxy = |proxy: crate::ProxyInfo| Proxy {
        vrf: proxy.table,
        upstream: name(proxy.upstream),
        downstream: proxy.downstream.into_iter().map(name).collect(),
    };
    let mut rows: Vec<Row> = igmp.list().into_iter().map(row).collect();
    rows.extend(igmp.router_interfaces().into_iter().map(router));
    Ok(Output::view(Config { interfaces: rows, proxies: igmp.proxies().into_iter().map(proxy).collect() }))
}

impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for row in &self.interfaces {
            writeln!(f, "interface: {} mode: {} version: {}", row.interface, row.mode, row.version)?;
            for group in &row.groups {
                writeln!(f, "  group: {}", group.group)?;
                if group.any_source && group.expires_in.is_none() {
                    writeln!(f, "    source: *")?;
                }
                let mut expires = group.expires_in.iter().flatten();
                for source in &group.sources {
                    let source = if source.is_unspecified() { "*".to_owned() } else { source.to_string() };
                    match expires.next() {
                        Some(left) => writeln!(f, "    source: {source} expires in: {left}s")?,
                        None => writeln!(f, "    source: {source}")?,
                    }
                }
            }
        }
        for Proxy { vrf, upstream, downstream } in &self.proxies {
            writeln!(f, "proxy: vrf-id {vrf} upstream: {upstream} downstream: {}", downstream.join(" "))?;
        }
        Ok(())
    }
}
