//! Commands: `vrrp ...`, `show vrrp vr`.

use std::fmt;
use std::net::IpAddr;

use serde::Serialize;
use shoal_adj::Family;
use shoal_fib::PrefixArg;
use shoal_interface::{InterfaceArg, SwIfIndex};
use shoal_message::Retval;
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};

use crate::packet::Version;
use crate::{Config, Info, VrKey, Vrrp, VrrpError};

/// Commands of this crate.
pub static COMMANDS: &[Command] = &[
    Command::new(
        "vrrp vr add <interface> {vr_id <vr-id:u32>} [ipv6] [priority <priority:u32>] [interval <interval:u32>] [no_preempt] \
         [accept_mode] [unicast] [version <version:u32>] [<address:ip-address>] ...",
        "Add a virtual router: addresses that this router shares with others",
        add,
    )
    .examples(&[
        "vrrp vr add local0 vr_id 7 priority 120 accept_mode 192.0.2.1",
        "vrrp vr add local0 vr_id 7 ipv6 fe80::7 2001:db8::1",
    ])
    .doc(
        "The router with the highest priority that works has the addresses, and a MAC address that goes with them: 100 by default; 255 \
         is for the router that has the addresses as its own. The interval is in hundredths of a second, 100 by default. Without \
         `accept_mode` the addresses are for forwarding alone: pings to them are not answered. Version 2 is for IPv4 and intervals of \
         whole seconds, for routers that know no other: keepalived as long as it is not told `vrrp_version 3`.",
    ),
    Command::new("vrrp vr del <interface> {vr_id <vr-id:u32>} [ipv6]", "Delete a virtual router", del)
        .examples(&["vrrp vr del local0 vr_id 7"]),
    Command::new(
        "vrrp proto {start | stop} [<interface>] [vr_id <vr-id:u32>] [ipv6]",
        "Start or stop a virtual router",
        proto,
    )
    .examples(&["vrrp proto start local0 vr_id 7"]),
    Command::new(
        "vrrp peers <interface> {vr_id <vr-id:u32>} [ipv6] {<peer:ip-address>} ...",
        "Set the routers that a unicast virtual router tells",
        peers,
    )
    .examples(&["vrrp peers local0 vr_id 7 192.0.2.3 192.0.2.4"]),
    Command::new(
        "vrrp vr track-if {add | del} <interface> {vr_id <vr-id:u32>} [ipv6] {<tracked:interface>} {priority <by:u8>}",
        "Have an interface that is down lower the priority of a virtual router",
        track_if,
    )
    .examples(&["vrrp vr track-if add local0 vr_id 7 local0 priority 30"]),
    Command::new(
        "vrrp vr track-route {add | del} <interface> {vr_id <vr-id:u32>} [ipv6] {<prefix:ip-prefix>} [priority <by:u8>]",
        "Have a route that leads nowhere lower the priority of a virtual router",
        track_route,
    )
    .examples(&["vrrp vr track-route add local0 vr_id 7 0.0.0.0/0 priority 30"])
    .doc(
        "The route leads nowhere while it is not there, or while all of its next hops are down: a BFD session that fails counts at once. \
         Routes are looked at every tenth of a second.",
    ),
    Command::new("show vrrp vr [<interface>]", "Show virtual routers", show).examples(&["show vrrp vr"]),
];

fn vrrp(control: &Control) -> Result<std::rc::Rc<Vrrp>, CliError> {
    Ok(control.get::<Vrrp>()?)
}

fn failed(error: VrrpError) -> CliError {
    CliError::failed(error.to_string())
}

fn vr_id(args: &Args) -> Result<u8, CliError> {
    let out = || CliError::argument("vr-id", "VR ID must be between 1 and 255...");
    let number: u32 = args.opt("vr-id")?.ok_or_else(out)?;
    u8::try_from(number).ok().filter(|id| *id != 0).ok_or_else(out)
}

fn key(args: &Args) -> Result<VrKey, CliError> {
    let given = args.opt::<InterfaceArg>("interface")?;
    let interface = given.ok_or_else(|| CliError::failed("Please specify an interface..."))?.0;
    let family = if args.has("ipv6") { Family::Ip6 } else { Family::Ip4 };
    Ok(VrKey { interface, vr_id: vr_id(args)?, family })
}

fn add(control: &Control, args: &Args) -> Result<Output, CliError> {
    let usual = Config::new(key(args)?);
    let number = |name: &'static str, usual: u32, most: u32| {
        let value: u32 = args.or(name, usual)?;
        let error = || CliError::argument(name, format!("{name} must be between 1 and {most}"));
        if (1..=most).contains(&value) { Ok(value) } else { Err(error()) }
    };
    let version = match args.or("version", 3)? {
        2 => Version::V2,
        3 => Version::V3,
        _ => return Err(CliError::argument("version", "version must be 2 or 3")),
    };
    let longest = if version == Version::V2 { 25_500 } else { u32::from(crate::LONGEST_INTERVAL) };
    let config = Config {
        priority: number("priority", usual.priority.into(), 255)? as u8,
        interval: number("interval", usual.interval.into(), longest)? as u16,
        preempt: !args.has("no_preempt"),
        accept: args.has("accept_mode"),
        unicast: args.has("unicast"),
        version,
        addresses: args.all("address")?,
        ..usual
    };
    vrrp(control)?.add(config).map_err(failed)?;
    Ok(Output::none())
}

fn del(control: &Control, args: &Args) -> Result<Output, CliError> {
    let (vrrp, key) = (vrrp(control)?, key(args)?);
    let index = vrrp.find(key).map_err(|_| CliError::failed("Failed to delete VR which does not exist"))?;
    vrrp.del(index).map_err(failed)?;
    Ok(Output::none())
}

fn proto(control: &Control, args: &Args) -> Result<Output, CliError> {
    let (vrrp, key) = (vrrp(control)?, key(args)?);
    let done = if args.has("start") { vrrp.start(key) } else { vrrp.stop(key) };
    done.map_err(|e| {
        let text = e.to_string();
        CliError::failed(format!("vrrp_vr_start_stop returned {}: {text}", Retval::from(e).0))
    })?;
    Ok(Output::none())
}

fn peers(control: &Control, args: &Args) -> Result<Output, CliError> {
    let peers: Vec<IpAddr> = args.all("peer")?;
    vrrp(control)?.set_peers(key(args)?, peers).map_err(failed)?;
    Ok(Output::none())
}

fn track_if(control: &Control, args: &Args) -> Result<Output, CliError> {
    let (vrrp, key) = (vrrp(control)?, key(args)?);
    let tracked = args.get::<InterfaceArg>("tracked")?.0;
    let done = if args.has("add") {
        vrrp.track_interfaces(key, &[(tracked, args.get("by")?)])
    } else {
        vrrp.untrack_interfaces(key, &[tracked])
    };
    done.map_err(failed)?;
    Ok(Output::none())
}

fn track_route(control: &Control, args: &Args) -> Result<Output, CliError> {
    let (vrrp, key) = (vrrp(control)?, key(args)?);
    let prefix = args.get::<PrefixArg>("prefix")?.0;
    let done = if args.has("add") {
        vrrp.track_route(key, prefix, args.get("by")?)
    } else {
        vrrp.untrack_route(key, prefix)
    };
    done.map_err(failed)?;
    Ok(Output::none())
}

#[derive(Serialize)]
struct Tracked {
    sw_if_index: u32,
    priority: u8,
}

#[derive(Serialize)]
struct TrackedRoute {
    prefix: String,
    priority: u8,
}

#[derive(Serialize)]
struct VrView {
    index: u32,
    sw_if_index: u32,
    vr_id: u8,
    version: u8,
    ipv6: bool,
    state: String,
    preempt: bool,
    accept: bool,
    unicast: bool,
    priority: u8,
    adjusted_priority: u8,
    interval: u16,
    master_interval: u16,
    skew: u16,
    master_down: u16,
    mac: String,
    addresses: Vec<IpAddr>,
    peers: Vec<IpAddr>,
    tracked_interfaces: Vec<Tracked>,
    tracked_routes: Vec<TrackedRoute>,
}

impl From<Info> for VrView {
    fn from(info: Info) -> Self {
        let Info { index, config, peers, interfaces, routes, machine } = info;
        VrView {
            index,
            sw_if_index: config.key.interface.0,
            vr_id: config.key.vr_id,
            version: config.version.number(),
            ipv6: config.key.family == Family::Ip6,
            state: machine.state.to_string(),
            preempt: config.preempt,
            accept: config.accept,
            unicast: config.unicast,
            priority: config.priority,
            adjusted_priority: machine.adjusted(),
            interval: config.interval,
            master_interval: machine.master_interval,
            skew: machine.skew(),
            master_down: machine.master_down(),
            mac: config.key.mac().to_string(),
            addresses: config.addresses,
            peers,
            tracked_interfaces: interfaces
                .into_iter()
                .map(|(SwIfIndex(sw_if_index), priority)| Tracked { sw_if_index, priority })
                .collect(),
            tracked_routes: routes
                .into_iter()
                .map(|(prefix, priority)| TrackedRoute { prefix: prefix.to_string(), priority })
                .collect(),
        }
    }
}

impl fmt::Display for VrView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let yes = |is: bool| if is { "yes" } else { "no" };
        let family = if self.ipv6 { "IPv6" } else { "IPv4" };
        writeln!(f, "[{}] sw_if_index {} VR ID {} {family}", self.index, self.sw_if_index, self.vr_id)?;
        writeln!(
            f,
            "   state {} flags: preempt {} accept {} unicast {}",
            self.state,
            yes(self.preempt),
            yes(self.accept),
            yes(self.unicast)
        )?;
        writeln!(f, "   priority: configured {} adjusted {}", self.priority, self.adjusted_priority)?;
        writeln!(
            f,
            "   timers: adv interval {} master adv {} skew {} master down {}",
            self.interval, self.master_interval, self.skew, self.master_down
        )?;
        writeln!(f, "   virtual MAC {}", self.mac)?;
        for (what, all) in [("addresses", &self.addresses), ("peer addresses", &self.peers)] {
            write!(f, "   {what} ")?;
            all.iter().try_for_each(|address| write!(f, "{address} "))?;
            writeln!(f)?;
        }
        write!(f, "   tracked interfaces ")?;
        for Tracked { sw_if_index, priority } in &self.tracked_interfaces {
            write!(f, "sw_if_index {sw_if_index} priority {priority} ")?;
        }
        writeln!(f)?;
        for TrackedRoute { prefix, priority } in &self.tracked_routes {
            writeln!(f, "   tracked route {prefix} priority {priority}")?;
        }
        if self.version == 2 { writeln!(f, "   version 2") } else { Ok(()) }
    }
}

#[derive(Serialize)]
#[serde(transparent)]
struct VrsView(Vec<VrView>);

impl fmt::Display for VrsView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|vr| vr.fmt(f))
    }
}

fn show(control: &Control, args: &Args) -> Result<Output, CliError> {
    let only = args.opt::<InterfaceArg>("interface")?.map(|interface| interface.0);
    let all = vrrp(control)?.list().into_iter();
    let wanted = all.filter(|info| only.is_none_or(|only| only == info.config.key.interface));
    Ok(Output::view(VrsView(wanted.map(VrView::from).collect())))
}
