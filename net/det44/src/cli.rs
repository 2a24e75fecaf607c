//! Commands: `det44 ...`, `set det44 timeouts`, `set interface det44`, `show det44 ...`.

use std::fmt;
use std::net::Ipv4Addr;

use serde::Serialize;
use shoal_interface::{InterfaceArg, Interfaces};
use shoal_module::Control;
use shoal_module::cli::{ArgType, Args, CliError, Command, Expected, FromArg, Output, check};
use shoal_wire::Ip4Prefix;

use crate::config::{Share, Timeouts};
use crate::sessions::Record;
use crate::{Det44, Det44Error, Enable, Side};

/// Commands of this crate.
pub static COMMANDS: &[Command] = &[
    Command::new(
        "det44 plugin {enable | disable} [inside vrf <inside-vrf:u32>] [outside vrf <outside-vrf:u32>]",
        "Switch deterministic NAT44 on or off",
        plugin,
    )
    .examples(&["det44 plugin enable", "det44 plugin disable"])
    .doc("`disable` forgets maps, interfaces and sessions."),
    Command::new(
        "det44 add in <inside:ip4-prefix> out <outside:ip4-prefix> [del]",
        "Have hosts share addresses, each with ports that follow from its own address",
        add,
    )
    .examples(&["det44 add in 10.0.0.0/24 out 192.0.2.0/30"])
    .doc(
        "Ports 1024 to 65535 of each address are shared out equally, in order: with 64 hosts to an address each has 1008. A host \
         has up to 1000 sessions.",
    ),
    Command::new("det44 forward <host:ip4-address>", "Show which address and ports a host has", forward)
        .examples(&["det44 forward 10.0.0.5"]),
    Command::new("det44 reverse <place:ip4-port>", "Show which host has a port of an address", reverse)
        .examples(&["det44 reverse 192.0.2.1:6000"]),
    Command::new(
        "det44 close session out <shared:ip4-port> <remote:ip4-port>",
        "End the session of a shared address and port with a remote",
        close_out,
    )
    .examples(&["det44 close session out 192.0.2.1:6000 198.51.100.7:53"]),
    Command::new(
        "det44 close session in <host:ip4-port> <remote:ip4-port>",
        "End the session of a host and its port with a remote",
        close_in,
    )
    .examples(&["det44 close session in 10.0.0.5:2000 198.51.100.7:53"]),
    Command::new(
        "set det44 timeouts [udp <udp:u32>] [tcp established <tcp-established:u32>] \
         [tcp transitory <tcp-transitory:u32>] [icmp <icmp:u32>] [reset]",
        "Set after how many seconds without a packet sessions end",
        set_timeouts,
    )
    .examples(&["set det44 timeouts udp 100", "set det44 timeouts reset"])
    .doc("Usually 300, 7440, 240 and 60."),
    Command::new(
        "set interface det44 [inside <inside:interface>] [outside <outside:interface>] [del]",
        "Translate packets that come in by interfaces",
        side,
    )
    .examples(&["set interface det44 inside local0", "set interface det44 inside local0 outside local0 del"]),
    Command::new("show det44 mappings", "Show which hosts share which addresses", show_maps).examples(&["show det44 mappings"]),
    Command::new("show det44 sessions", "Show sessions of hosts", show_sessions).examples(&["show det44 sessions"]),
    Command::new("show det44 timeouts", "Show after how long sessions end", show_timeouts).examples(&["show det44 timeouts"]),
    Command::new("show det44 interfaces", "Show interfaces whose packets are translated", show_interfaces)
        .examples(&["show det44 interfaces"]),
];

/// Argument types of this crate.
pub static ARG_TYPES: &[ArgType] = &[ArgType::new("ip4-port", "an IPv4 address and a port", check::<Place>)];

/// An address and a port.
struct Place(Ipv4Addr, u16);

impl FromArg for Place {
    fn from_arg(text: &str, _: &Control) -> Result<Self, Expected> {
        let parsed: Result<std::net::SocketAddrV4, _> = text.parse();
        let expected = || Expected::new("an IPv4 address and a port such as 192.0.2.1:6000");
        parsed.map(|place| Place(*place.ip(), place.port())).map_err(|_| expected())
    }
}

fn det44(control: &Control) -> Result<std::rc::Rc<Det44>, CliError> {
    Ok(control.get::<Det44>()?)
}

fn plugin(control: &Control, args: &Args) -> Result<Output, CliError> {
    let det44 = det44(control)?;
    if args.has("disable") {
        det44.disable().map_err(|e| CliError::failed(format!("plugin disable failed: {e}")))?;
    } else {
        let vrf = |name: &str| Ok::<u32, CliError>(args.opt(name)?.unwrap_or(0));
        let asked = Enable { inside_vrf: vrf("inside-vrf")?, outside_vrf: vrf("outside-vrf")? };
        det44.enable(asked).map_err(|e| CliError::failed(format!("plugin enable failed: {e}")))?;
    }
    Ok(Output::none())
}

fn add(control: &Control, args: &Args) -> Result<Output, CliError> {
    let (inside, outside): (Ip4Prefix, Ip4Prefix) = (args.get("inside")?, args.get("outside")?);
    let det44 = det44(control)?;
    if args.has("del") { det44.del_map(inside, outside) } else { det44.add_map(inside, outside) }?;
    Ok(Output::none())
}

/// What VPP prints where it finds none is no error.
fn found<T>(result: Result<T, Det44Error>, text: impl FnOnce(T) -> String) -> Result<Output, CliError> {
    match result {
        Ok(value) => Ok(Output::text(text(value))),
        Err(Det44Error::NoMatch) => Ok(Output::text("no match\n")),
        Err(error) => Err(error.into()),
    }
}

fn forward(control: &Control, args: &Args) -> Result<Output, CliError> {
    let text = |share: Share| format!("{}:<{}-{}>\n", share.address, share.first, share.last());
    found(det44(control)?.forward(args.get("host")?), text)
}

fn reverse(control: &Control, args: &Args) -> Result<Output, CliError> {
    let Place(address, port) = args.get("place")?;
    found(det44(control)?.reverse(address, port), |host| format!("{host}\n"))
}

fn places(args: &Args, mine: &str) -> Result<[(Ipv4Addr, u16); 2], CliError> {
    let (Place(address, port), Place(remote, far)) = (args.get(mine)?, args.get("remote")?);
    Ok([(address, port), (remote, far)])
}

fn close_out(control: &Control, args: &Args) -> Result<Output, CliError> {
    let [shared, remote] = places(args, "shared")?;
    found(det44(control)?.close_out(shared, remote), |()| String::new())
}

fn close_in(control: &Control, args: &Args) -> Result<Output, CliError> {
    let [host, remote] = places(args, "host")?;
    found(det44(control)?.close_in(host, remote), |()| String::new())
}

fn side(control: &Control, args: &Args) -> Result<Output, CliError> {
    let det44 = det44(control)?;
    if !args.has("inside") && !args.has("outside") {
        return Err(CliError::failed("which side: inside INTERFACE, outside INTERFACE, or both"));
    }
    for (name, side) in [("inside", Side::Inside), ("outside", Side::Outside)] {
        if let Some(InterfaceArg(interface)) = args.opt(name)? {
            let done = det44.set_side(interface, side, !args.has("del"));
            let what = if args.has("del") { "del" } else { "add" };
            done.map_err(|e| CliError::argument(name, format!("{what} {name} failed: {e}")))?;
        }
    }
    Ok(Output::none())
}

fn set_timeouts(control: &Control, args: &Args) -> Result<Output, CliError> {
    let det44 = det44(control)?;
    let now = if args.has("reset") { Timeouts::default() } else { det44.timeouts() };
    det44.set_timeouts(Timeouts {
        udp: args.opt("udp")?.unwrap_or(now.udp),
        tcp_established: args.opt("tcp-established")?.unwrap_or(now.tcp_established),
        tcp_transitory: args.opt("tcp-transitory")?.unwrap_or(now.tcp_transitory),
        icmp: args.opt("icmp")?.unwrap_or(now.icmp),
    })?;
    Ok(Output::none())
}

#[derive(Serialize)]
struct TimeoutsView {
    udp: u32,
    tcp_established: u32,
    tcp_transitory: u32,
    icmp: u32,
}

fn show_timeouts(control: &Control, _: &Args) -> Result<Output, CliError> {
    let Timeouts { udp, tcp_established, tcp_transitory, icmp } = det44(control)?.timeouts();
    Ok(Output::view(TimeoutsView { udp, tcp_established, tcp_transitory, icmp }))
}

impl fmt::Display for TimeoutsView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "udp timeout: {}sec", self.udp)?;
        writeln!(f, "tcp established timeout: {}sec", self.tcp_established)?;
        writeln!(f, "tcp transitory timeout: {}sec", self.tcp_transitory)?;
        writeln!(f, "icmp timeout: {}sec", self.icmp)
    }
}

#[derive(Serialize)]
struct MapView {
    inside: String,
    outside: String,
    sharing_ratio: u32,
    ports_per_host: u16,
    sessions: usize,
}

#[derive(Serialize)]
struct MapsView(Vec<MapView>);

fn show_maps(control: &Control, _: &Args) -> Result<Output, CliError> {
    let det44 = det44(control)?;
    let sessions = det44.sessions()?;
    let view = |map: crate::config::Map| MapView {
        inside: map.inside.to_string(),
        outside: map.outside.to_string(),
        sharing_ratio: map.ratio,
        ports_per_host: map.ports,
        sessions: sessions.iter().filter(|record| map.inside.contains(record.flow.host)).count(),
    };
    Ok(Output::view(MapsView(det44.maps().into_iter().map(view).collect())))
}

impl fmt::Display for MapsView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "NAT44 deterministic mappings:")?;
        self.0.iter().try_for_each(|map| {
            writeln!(f, " in {} out {}", map.inside, map.outside)?;
            writeln!(f, "  outside address sharing ratio: {}", map.sharing_ratio)?;
            writeln!(f, "  number of ports per inside host: {}", map.ports_per_host)?;
            writeln!(f, "  sessions number: {}", map.sessions)
        })
    }
}

#[derive(Serialize)]
struct SessionView {
    host: Ipv4Addr,
    host_port: u16,
    address: Ipv4Addr,
    port: u16,
    remote: Ipv4Addr,
    remote_port: u16,
    protocol: u8,
    state: &'static str,
    expire: u32,
}

#[derive(Serialize)]
struct SessionsView(Vec<SessionView>);

fn show_sessions(control: &Control, _: &Args) -> Result<Output, CliError> {
    let view = |Record { flow, state, expires }: Record| SessionView {
        host: flow.host,
        host_port: flow.port,
        address: flow.shared.0,
        port: flow.shared.1,
        remote: flow.remote.0,
        remote_port: flow.remote.1,
        protocol: flow.protocol,
        state: state.name(),
        expire: expires,
    };
    Ok(Output::view(SessionsView(det44(control)?.sessions()?.into_iter().map(view).collect())))
}

impl fmt::Display for SessionsView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "NAT44 deterministic sessions:")?;
        self.0.iter().try_for_each(|s| {
            let SessionView { host, host_port, address, port, remote, remote_port, state, expire, .. } = s;
            writeln!(
                f,
                "  in {host}:{host_port} out {address}:{port} external host {remote}:{remote_port} state: {state} expire: {expire}"
            )
        })
    }
}

#[derive(Serialize)]
struct SideView {
    interface: String,
    sides: Vec<&'static str>,
}

#[derive(Serialize)]
struct SidesView(Vec<SideView>);

fn show_interfaces(control: &Control, _: &Args) -> Result<Output, CliError> {
    let (det44, interfaces) = (det44(control)?, control.get::<Interfaces>()?);
    let view = |(interface, sides): (shoal_interface::SwIfIndex, crate::Sides)| {
        let both = [(sides.inside, "in"), (sides.outside, "out")];
        SideView {
            interface: interfaces.name(interface).unwrap_or_else(|_| interface.0.to_string()),
            sides: both.into_iter().filter(|(on, _)| *on).map(|(_, side)| side).collect(),
        }
    };
    Ok(Output::view(SidesView(det44.sides().into_iter().map(view).collect())))
}

impl fmt::Display for SidesView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "DET44 interfaces:")?;
        self.0.iter().try_for_each(|view| writeln!(f, " {} {}", view.interface, view.sides.join(" ")))
    }
}
