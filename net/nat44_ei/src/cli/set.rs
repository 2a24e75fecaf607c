//! On, off, interfaces, addresses, and what holds for all sessions.

use shoal_interface::InterfaceArg;
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};

use super::{nat, refused};
use crate::config::{Algorithm, AtUserLimit, Mode, Timeouts};
use crate::{Enable, Side, Sides};

pub(super) const PLUGIN: Command = Command::new(
    "nat44 ei plugin {enable [sessions <sessions:u32>] [users <users:u32>] [user-sessions <user-sessions:u32>] \
     [inside-vrf <inside-vrf:u32>] [outside-vrf <outside-vrf:u32>] \
     [static-mapping-only [connection-tracking]] [out2in-dpo] | disable}",
    "Switch endpoint-independent NAT44 on or off",
    plugin,
)
.examples(&["nat44 ei plugin enable sessions 100000"])
.doc(
    "`sessions` and `users` are those of each worker, 10240 and 1024 by default, `user-sessions` those of a host: when it \
     has as many, its oldest one ends for a new one. With `static-mapping-only` hosts without a mapping are not translated, and \
     there are sessions with `connection-tracking` only. `out2in-dpo` changes nothing here: the router answers for its shared \
     addresses. Switched off, all sessions and all that was configured go.",
);

pub(super) const INTERFACE: Command = Command::new(
    "set interface nat44 ei {in <in:interface> | out <out:interface>} ... [output-feature] [del]",
    "Translate what comes in by an interface, or what goes out by it",
    interface,
)
.examples(&["set interface nat44 ei in local0 out local0"])
.doc(
    "Hosts are behind `in`, the world is behind `out`; an interface may be both. With `output-feature` packets are \
     translated when they go out by the interface, after they were routed, and answers when they come in by it.",
);

pub(super) const ADDRESS: Command = Command::new(
    "nat44 ei add address <first:ip4-address> [- <last:ip4-address>] [tenant-vrf <vrf:u32>] [del]",
    "Have hosts share an address, or a range of them",
    address,
)
.examples(&["nat44 ei add address 192.0.2.1", "nat44 ei add address 192.0.2.10 - 192.0.2.20 tenant-vrf 7"]);

pub(super) const INTERFACE_ADDRESS: Command = Command::new(
    "nat44 ei add interface address <interface> [del]",
    "Have hosts share the address of an interface, whichever it is",
    interface_address,
)
.examples(&["nat44 ei add interface address local0"]);

pub(super) const FORWARDING: Command = Command::new(
    "nat44 ei forwarding {enable | disable}",
    "Let packets pass that belong to no session, or drop them",
    forwarding,
)
.examples(&["nat44 ei forwarding enable"]);

pub(super) const USER_LIMIT: Command = Command::new(
    "nat44 ei user-limit {recycle | drop}",
    "Say what becomes of hosts that have `user-sessions` sessions and begin another",
    user_limit,
)
.examples(&["nat44 ei user-limit drop", "nat44 ei user-limit recycle"])
.doc("`recycle`, the default and VPP's way, ends the session of the host that was not used for longest; `drop` drops the packet and counts it (`maximum sessions exceeded`), so that no session ends before its time (RFC 6888 REQ-11).");

pub(super) const TIMEOUT: Command = Command::new(
    "set nat44 ei timeout {reset | [udp <udp:u32>] [tcp-established <tcp-established:u32>] [tcp-transitory <tcp-transitory:u32>] [icmp <icmp:u32>]}",
    "Say for how many seconds sessions may be silent",
    timeout,
)
.examples(&["set nat44 ei timeout udp 120 icmp 30", "set nat44 ei timeout reset"])
.doc("300 for UDP, 7440 for TCP once packets went both ways, 240 before, 60 for ICMP.");

pub(super) const ALGORITHM: Command = Command::new(
    "nat44 ei addr-port-assignment-alg {default | map-e psid <psid:u16> psid-offset <psid-offset:u8> psid-len <psid-len:u8> [rfc7597] | \
     port-range <start:u16> - <end:u16> | port-blocks size <size:u16> [per-user <per-user:u8>]}",
    "Say which ports of shared addresses hosts have",
    algorithm,
)
.examples(&[
    "nat44 ei addr-port-assignment-alg default",
    "nat44 ei addr-port-assignment-alg map-e psid 10 psid-offset 6 psid-len 6",
    "nat44 ei addr-port-assignment-alg port-range 1025 - 1027",
    "nat44 ei addr-port-assignment-alg port-blocks size 252 per-user 4",
])
.doc(
    "With `port-blocks` a host has ports of its own, `size` at once and up to `per-user` times, 1 by default; a block is logged when \
     the host gets it and when it has it no more, sessions are not. Sizes that divide 1008 waste no port. Changing to blocks or from \
     them ends all sessions but those of mappings. `map-e` and `port-range` use the first address only. VPP puts the bits of a `map-e` port in the order offset, port set, rest from \
     the lowest; `rfc7597` puts them there from the highest, as border relays of other makers expect.",
);

pub(super) const EXEMPT: Command = Command::new(
    "nat44 ei exempt <prefix:ip4-prefix> [del]",
    "Have hosts reach a destination with their own addresses",
    exempt,
)
.examples(&["nat44 ei exempt 192.0.2.0/24", "nat44 ei exempt 192.0.2.0/24 del"])
.doc("Sessions that are there stay.");

pub(super) const MSS: Command = Command::new(
    "nat44 ei mss-clamping {disable | <mss:u16>}",
    "Say how large a translated connection's segments may be",
    mss,
)
.examples(&["nat44 ei mss-clamping 1400"]);

pub(super) const IPFIX: Command = Command::new(
    "nat44 ei ipfix logging [domain <domain:u32>] [src-port <src-port:u16>] [disable]",
    "Tell flow collectors of sessions",
    ipfix,
)
.examples(&["nat44 ei ipfix logging domain 1", "nat44 ei ipfix logging disable"])
.doc("Records go to the exporters of `set ipfix exporter`: of each session that begins or ends, and when there is no port or session left. They are those of all kinds of NAT: `nat ipfix logging` and `nat44 ei ipfix logging` are the same.");

fn plugin(control: &Control, args: &Args) -> Result<Output, CliError> {
    let nat = nat(control)?;
    if args.has("disable") {
        nat.disable().map_err(refused)?;
        return Ok(Output::none());
    }
    let default = Enable::default();
    let asked = Enable {
        sessions: args.or("sessions", default.sessions)?,
        users: args.or("users", default.users)?,
        user_sessions: args.or("user-sessions", 0)?,
        inside_vrf: args.or("inside-vrf", default.inside_vrf)?,
        outside_vrf: args.or("outside-vrf", default.outside_vrf)?,
        mode: match (args.has("static-mapping-only"), args.has("connection-tracking")) {
            (true, true) => Mode::StaticTracked,
            (true, false) => Mode::Static,
            (false, _) => Mode::Dynamic,
        },
        out2in_dpo: args.has("out2in-dpo"),
    };
    nat.enable(asked).map_err(refused)?;
    Ok(Output::none())
}

fn interface(control: &Control, args: &Args) -> Result<Output, CliError> {
    let (nat, on) = (nat(control)?, !args.has("del"));
    let (inside, outside) = (args.all::<InterfaceArg>("in")?, args.all::<InterfaceArg>("out")?);
    if args.has("output-feature") {
        let all = inside.iter().map(|i| (i, true)).chain(outside.iter().map(|i| (i, false)));
        let mut sides = std::collections::BTreeMap::<_, Sides>::new();
        for (InterfaceArg(interface), is_inside) in all {
            let side = if is_inside { Side::Inside } else { Side::Outside };
            let old = sides.get(interface).copied().unwrap_or_default();
            sides.insert(*interface, old.with(side, true));
        }
        for (interface, sides) in sides {
            let sides = if sides.outside { Sides { inside: true, outside: true } } else { sides };
            nat.set_output(interface, sides, on).map_err(refused)?;
        }
        return Ok(Output::none());
    }
    let sides = inside.iter().map(|i| (i, Side::Inside)).chain(outside.iter().map(|i| (i, Side::Outside)));
    for (InterfaceArg(interface), side) in sides {
        nat.set_side(*interface, side, on).map_err(refused)?;
    }
    Ok(Output::none())
}

fn address(control: &Control, args: &Args) -> Result<Output, CliError> {
    let nat = nat(control)?;
    let first = args.get("first")?;
    let range = (first, args.or("last", first)?);
    let done =
        if args.has("del") { nat.del_addresses(range) } else { nat.add_addresses(range, args.opt("vrf")?) };
    done.map_err(refused)?;
    Ok(Output::none())
}

fn interface_address(control: &Control, args: &Args) -> Result<Output, CliError> {
    let nat = nat(control)?;
    let InterfaceArg(interface) = args.get("interface")?;
    let done =
        if args.has("del") { nat.unfollow_interface(interface) } else { nat.follow_interface(interface) };
    done.map_err(refused)?;
    Ok(Output::none())
}

fn forwarding(control: &Control, args: &Args) -> Result<Output, CliError> {
    nat(control)?.set_forwarding(args.has("enable"));
    Ok(Output::none())
}

fn user_limit(control: &Control, args: &Args) -> Result<Output, CliError> {
    nat(control)?.set_at_user_limit(if args.has("drop") { AtUserLimit::Drop } else { AtUserLimit::Recycle });
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

fn algorithm(control: &Control, args: &Args) -> Result<Output, CliError> {
    let algorithm = if args.has("map-e") {
        Algorithm::MapE {
            psid: args.get("psid")?,
            offset: args.get("psid-offset")?,
            length: args.get("psid-len")?,
            rfc7597: args.has("rfc7597"),
        }
    } else if args.has("port-range") {
        Algorithm::Range { first: args.get("start")?, last: args.get("end")? }
    } else if args.has("port-blocks") {
        Algorithm::Blocks { size: args.get("size")?, most: args.or("per-user", 1)? }
    } else {
        Algorithm::Default
    };
    nat(control)?.set_algorithm(algorithm).map_err(refused)?;
    Ok(Output::none())
}

fn exempt(control: &Control, args: &Args) -> Result<Output, CliError> {
    nat(control)?.set_exempt(args.get("prefix")?, !args.has("del")).map_err(refused)?;
    Ok(Output::none())
}

fn mss(control: &Control, args: &Args) -> Result<Output, CliError> {
    let most = if args.has("disable") { 0 } else { args.get("mss")? };
    nat(control)?.set_mss(most);
    Ok(Output::none())
}

fn ipfix(control: &Control, args: &Args) -> Result<Output, CliError> {
    let stream = (args.or("domain", 0)?, args.or("src-port", 0)?);
    nat(control)?.set_ipfix((!args.has("disable")).then_some(stream));
    Ok(Output::none())
}
