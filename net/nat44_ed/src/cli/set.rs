//! On, off, interfaces, addresses, and what holds for all sessions.

use shoal_interface::InterfaceArg;
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};

use super::{nat, refused};
use crate::config::Timeouts;
use crate::{Enable, OfInterface, Purpose, Side};

pub(super) const PLUGIN: Command = Command::new(
    "nat44 plugin {enable [sessions <sessions:u32>] [inside-vrf <inside-vrf:u32>] [outside-vrf <outside-vrf:u32>] | disable}",
    "Switch NAT44 on or off",
    plugin,
)
.examples(&["nat44 plugin enable sessions 100000"])
.doc("`sessions` are those of each worker, 64512 by default. Switched off, all sessions and all that was configured go.");

pub(super) const INTERFACE: Command = Command::new(
    "set interface nat44 {in <in:interface> | out <out:interface>} ... [output-feature] [del]",
    "Translate what comes in by an interface, or what goes out by it",
    interface,
)
.examples(&["set interface nat44 in local0 out local0"])
.doc(
    "Hosts are behind `in`, the world is behind `out`; an interface may be both. With `output-feature` packets are \
     translated when they go out by the interface, after they were routed, and answers when they come in by it.",
);

pub(super) const ADDRESS: Command = Command::new(
    "nat44 add address <first:ip4-address> [- <last:ip4-address>] [tenant-vrf <vrf:u32>] [twice-nat] [del]",
    "Have hosts share an address, or a range of them",
    address,
)
.examples(&["nat44 add address 192.0.2.1", "nat44 add address 192.0.2.10 - 192.0.2.20 tenant-vrf 7"]);

pub(super) const INTERFACE_ADDRESS: Command = Command::new(
    "nat44 add interface address <interface> [twice-nat] [del]",
    "Have hosts share the address of an interface, whichever it is",
    interface_address,
)
.examples(&["nat44 add interface address local0"]);

pub(super) const FORWARDING: Command = Command::new(
    "nat44 forwarding {enable | disable}",
    "Let packets pass that belong to no session, or drop them",
    forwarding,
)
.examples(&["nat44 forwarding enable"]);

pub(super) const TIMEOUT: Command = Command::new(
    "set nat timeout {reset | [udp <udp:u32>] [tcp-established <tcp-established:u32>] [tcp-transitory <tcp-transitory:u32>] [icmp <icmp:u32>]}",
    "Say for how many seconds sessions may be silent",
    timeout,
)
.examples(&["set nat timeout udp 120 icmp 30", "set nat timeout reset"])
.doc("300 for UDP and protocols without ports, 7440 for established TCP connections, 240 for others, 60 for ICMP.");

pub(super) const IPFIX: Command = Command::new(
    "nat ipfix logging [domain <domain:u32>] [src-port <src-port:u16>] [disable]",
    "Send a record of each session to flow collectors",
    ipfix,
)
.examples(&["nat ipfix logging domain 1", "nat ipfix logging disable"])
.doc("Records go to the exporters of `set ipfix exporter`: of each session that begins or ends, and when there is no port or session left. They are those of all kinds of NAT: `nat ipfix logging` and `nat44 ei ipfix logging` are the same.");

pub(super) const LIMIT: Command = Command::new(
    "set nat44 session limit {off | <limit:u32>} [vrf <vrf:u32>]",
    "Limit the sessions of a VRF's hosts",
    limit,
)
.examples(&["set nat44 session limit 1000", "set nat44 session limit off vrf 7"])
.doc("Each worker counts for itself. Sessions that are there stay.");

pub(super) const MSS: Command = Command::new(
    "nat mss-clamping {disable | <mss:u16>}",
    "Say how large a translated connection's segments may be",
    mss,
)
.examples(&["nat mss-clamping 1400"]);

pub(super) const VRF_TABLE: Command = Command::new(
    "nat44 vrf table {add | del} <table:u32>",
    "Look for destinations of a VRF's hosts in VRFs that are named",
    vrf_table,
)
.examples(&["nat44 vrf table add 10"]);

pub(super) const VRF_ROUTE: Command = Command::new(
    "nat44 vrf route {add | del} table <table:u32> <vrf:u32>",
    "Name a VRF in which destinations of a VRF's hosts are looked for",
    vrf_route,
);

fn plugin(control: &Control, args: &Args) -> Result<Output, CliError> {
    let nat = nat(control)?;
    if args.has("disable") {
        nat.disable_nat().map_err(refused)?;
        return Ok(Output::none());
    }
    let default = Enable::default();
    let asked = Enable {
        sessions: args.or("sessions", default.sessions)?,
        inside_vrf: args.or("inside-vrf", default.inside_vrf)?,
        outside_vrf: args.or("outside-vrf", default.outside_vrf)?,
    };
    nat.enable_nat(asked).map_err(refused)?;
    Ok(Output::none())
}

fn interface(control: &Control, args: &Args) -> Result<Output, CliError> {
    let (nat, on) = (nat(control)?, !args.has("del"));
    let (inside, outside) = (args.all::<InterfaceArg>("in")?, args.all::<InterfaceArg>("out")?);
    let sides = inside.iter().map(|i| (i, Side::Inside)).chain(outside.iter().map(|i| (i, Side::Outside)));
    let mut seen = std::collections::BTreeSet::new();
    for (InterfaceArg(interface), side) in sides {
        if !args.has("output-feature") {
            nat.set_side(*interface, side, on).map_err(refused)?;
        } else if seen.insert(*interface) {
            nat.set_output(*interface, on).map_err(refused)?;
        }
    }
    Ok(Output::none())
}

fn purpose(args: &Args) -> Purpose {
    if args.has("twice-nat") { Purpose::Twice } else { Purpose::Pool }
}

fn address(control: &Control, args: &Args) -> Result<Output, CliError> {
    let nat = nat(control)?;
    let first = args.get("first")?;
    let range = (first, args.or("last", first)?);
    let done = if args.has("del") {
        nat.del_addresses(range, purpose(args))
    } else {
        nat.add_addresses(range, purpose(args), args.opt("vrf")?)
    };
    done.map_err(refused)?;
    Ok(Output::none())
}

fn interface_address(control: &Control, args: &Args) -> Result<Output, CliError> {
    let nat = nat(control)?;
    let InterfaceArg(interface) = args.get("interface")?;
    let of = OfInterface { interface, purpose: purpose(args) };
    let done = if args.has("del") { nat.unfollow_interface(of) } else { nat.follow_interface(of) };
    done.map_err(refused)?;
    Ok(Output::none())
}

fn forwarding(control: &Control, args: &Args) -> Result<Output, CliError> {
    nat(control)?.set_forwarding(args.has("enable")).map_err(refused)?;
    Ok(Output::none())
}

fn timeout(control: &Control, args: &Args) -> Result<Output, CliError> {
    let nat = nat(control)?;
    let old = if args.has("reset") { Timeouts::default() } else { nat.timeouts() };
    let new = Timeouts {
        udp: args.or("udp", old.udp)?,
        tcp_established: args.or("tcp-established", old.tcp_established)?,
        tcp_transitory: args.or("tcp-transitory", old.tcp_transitory)?,
        icmp: args.or("icmp", old.icmp)?,
    };
    nat.set_timeouts(new).map_err(refused)?;
    Ok(Output::none())
}

fn limit(control: &Control, args: &Args) -> Result<Output, CliError> {
    if args.has("off") {
        nat(control)?.forget_limit(args.or("vrf", 0)?).map_err(refused)?;
        return Ok(Output::none());
    }
    nat(control)?.set_limit(args.or("vrf", 0)?, args.get("limit")?).map_err(refused)?;
    Ok(Output::none())
}

fn ipfix(control: &Control, args: &Args) -> Result<Output, CliError> {
    let stream = (args.or("domain", 0)?, args.or("src-port", 0)?);
    nat(control)?.set_ipfix((!args.has("disable")).then_some(stream));
    Ok(Output::none())
}

fn mss(control: &Control, args: &Args) -> Result<Output, CliError> {
    let most = if args.has("disable") { 0 } else { args.get("mss")? };
    nat(control)?.set_mss(most).map_err(refused)?;
    Ok(Output::none())
}

fn vrf_table(control: &Control, args: &Args) -> Result<Output, CliError> {
    nat(control)?.set_vrf_table(args.get("table")?, args.has("add")).map_err(refused)?;
    Ok(Output::none())
}

fn vrf_route(control: &Control, args: &Args) -> Result<Output, CliError> {
    let (table, vrf) = (args.get("table")?, args.get("vrf")?);
    nat(control)?.set_vrf_route(table, vrf, args.has("add")).map_err(refused)?;
    Ok(Output::none())
}
