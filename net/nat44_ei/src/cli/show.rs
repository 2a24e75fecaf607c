//! What is configured.

use std::fmt::{self, Write};
use std::net::Ipv4Addr;

use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};
use shoal_nat44::mapping::External;

use super::{name, nat, text};
use crate::Spec;
use crate::config::{Algorithm, AtUserLimit, Timeouts};
use shoal_nat44::sizes::buckets;

pub(super) const ADDRESSES: Command =
    Command::new("show nat44 ei addresses", "Show addresses that hosts share", addresses)
        .examples(&["show nat44 ei addresses"]);

pub(super) const INTERFACES: Command =
    Command::new("show nat44 ei interfaces", "Show where packets are translated", interfaces)
        .examples(&["show nat44 ei interfaces"]);

pub(super) const MAPPINGS: Command =
    Command::new("show nat44 ei static mappings", "Show static mappings", mappings)
        .examples(&["show nat44 ei static mappings"]);

pub(super) const INTERFACE_ADDRESSES: Command = Command::new(
    "show nat44 ei interface address",
    "Show interfaces whose addresses hosts share",
    interface_addresses,
)
.examples(&["show nat44 ei interface address"]);

pub(super) const ALGORITHM: Command = Command::new(
    "show nat44 ei addr-port-assignment-alg",
    "Show which ports of shared addresses hosts have",
    algorithm,
)
.examples(&["show nat44 ei addr-port-assignment-alg"]);

pub(super) const BLOCKS: Command =
    Command::new("show nat44 ei port-blocks", "Show which host has which block of ports", blocks)
        .examples(&["show nat44 ei port-blocks"]);

pub(super) const EXEMPT: Command = Command::new(
    "show nat44 ei exempt",
    "Show destinations that hosts reach with their own addresses",
    exempt,
)
.examples(&["show nat44 ei exempt"]);

pub(super) const MSS: Command =
    Command::new("show nat44 ei mss-clamping", "Show how large a connection's segments may be", mss)
        .examples(&["show nat44 ei mss-clamping"]);

pub(super) const USER_LIMIT: Command = Command::new(
    "show nat44 ei user-limit",
    "Show how many sessions a host may have, and what becomes of it then",
    user_limit,
)
.examples(&["show nat44 ei user-limit"]);

pub(super) const TIMEOUTS: Command =
    Command::new("show nat44 ei timeouts", "Show for how long sessions may be silent", timeouts)
        .examples(&["show nat44 ei timeouts"]);

pub(super) const WORKERS: Command =
    Command::new("show nat44 ei workers", "Show the workers that translate", workers)
        .examples(&["show nat44 ei workers"]);

pub(super) const TABLES: Command =
    Command::new("show nat44 ei hash tables", "Show how full tables of sessions are", tables)
        .examples(&["show nat44 ei hash tables"]);

type Text = Result<Output, CliError>;

fn addresses(control: &Control, _: &Args) -> Text {
    let nat = nat(control)?;
    text(|f| {
        writeln!(f, "NAT44 pool addresses:")?;
        for address in nat.addresses() {
            writeln!(f, "{}", address.address)?;
            match address.vrf {
                Some(vrf) => writeln!(f, "  tenant VRF: {vrf}")?,
                None => writeln!(f, "  tenant VRF independent")?,
            }
            if address.synced {
                writeln!(f, "  synced with interface address")?;
            }
        }
        Ok(())
    })
}

fn interfaces(control: &Control, _: &Args) -> Text {
    let nat = nat(control)?;
    text(|f| {
        writeln!(f, "NAT44 interfaces:")?;
        for (feature, all) in [("", nat.sides()), (" output-feature", nat.outputs())] {
            for (interface, sides) in all {
                let sides = match (sides.inside, sides.outside) {
                    (true, true) => "in out",
                    (true, false) => "in",
                    _ => "out",
                };
                writeln!(f, " {}{feature} {sides}", name(control, interface))?;
            }
        }
        Ok(())
    })
}

fn one(f: &mut String, control: &Control, spec: &Spec, address: Option<Ipv4Addr>) -> fmt::Result {
    // VPP prints all bits set as -1, and so do those who read it.
    let vrf = spec.vrf.map_or("-1".to_owned(), |vrf| vrf.to_string());
    let external = match (address, spec.external) {
        (Some(address), _) => address.to_string(),
        (None, External::Interface(interface)) => name(control, interface),
        (None, External::Address(address)) => Ipv4Addr::from_bits(address).to_string(),
    };
    let proto = match spec.protocol {
        6 => "tcp",
        17 => "udp",
        _ => "icmp",
    };
    match (spec.identity, spec.is_address_only()) {
        (true, true) => writeln!(f, " identity mapping {external} vrf {vrf}"),
        (true, false) => writeln!(f, " identity mapping {proto} {external}:{} vrf {vrf}", spec.external_port),
        (false, true) => writeln!(f, " local {} external {external} vrf {vrf}", spec.local),
        (false, false) => writeln!(
            f,
            " {proto} local {}:{} external {external}:{} vrf {vrf}",
            spec.local, spec.local_port, spec.external_port
        ),
    }
}

fn mappings(control: &Control, _: &Args) -> Text {
    let all = nat(control)?.mappings();
    text(|f| {
        writeln!(f, "NAT44 static mappings:")?;
        all.iter().try_for_each(|(spec, address)| one(f, control, spec, *address))
    })
}

fn interface_addresses(control: &Control, _: &Args) -> Text {
    let all = nat(control)?.followed();
    text(|f| {
        writeln!(f, "NAT44 pool address interfaces:")?;
        all.into_iter().try_for_each(|interface| writeln!(f, " {}", name(control, interface)))
    })
}

fn algorithm(control: &Control, _: &Args) -> Text {
    let algorithm = nat(control)?.algorithm();
    text(|f| match algorithm {
        Algorithm::Default => writeln!(f, "NAT address and port: default"),
        Algorithm::MapE { psid, offset, length, rfc7597 } => {
            writeln!(f, "NAT address and port: map-e")?;
            let order = if rfc7597 { " rfc7597" } else { "" };
            writeln!(f, "  psid {psid} psid-offset {offset} psid-len {length}{order}")
        }
        Algorithm::Blocks { size, most } => {
            writeln!(f, "NAT address and port: port-blocks")?;
            writeln!(f, "  size {size} per-user {most}")
        }
        Algorithm::Range { first, last } => {
            writeln!(f, "NAT address and port: port-range")?;
            writeln!(f, "  start-port {first} end-port {last}")
        }
    })
}

fn blocks(control: &Control, _: &Args) -> Text {
    let nat = nat(control)?;
    let all = nat.blocks().map_err(super::refused)?;
    text(|f| {
        writeln!(f, "NAT44 port blocks:")?;
        for block in all {
            let (host, vrf) = (Ipv4Addr::from_bits(block.host.0), nat.vrf_of_table(block.host.1));
            let address = Ipv4Addr::from_bits(block.address);
            writeln!(f, " {address}:{}-{} {host} vrf {vrf}", block.first, block.last)?;
        }
        Ok(())
    })
}

fn exempt(control: &Control, _: &Args) -> Text {
    let all = nat(control)?.exempt();
    text(|f| {
        writeln!(f, "NAT44 exempt destinations:")?;
        all.iter().try_for_each(|prefix| writeln!(f, " {prefix}"))
    })
}

fn mss(control: &Control, _: &Args) -> Text {
    let mss = nat(control)?.mss();
    text(|f| if mss == 0 { writeln!(f, "mss-clamping disabled") } else { writeln!(f, "mss-clamping {mss}") })
}

fn user_limit(control: &Control, _: &Args) -> Text {
    let nat = nat(control)?;
    let what = match nat.at_user_limit() {
        AtUserLimit::Recycle => "the oldest ends for another",
        AtUserLimit::Drop => "others are dropped",
    };
    text(|f| match nat.enabled() {
        Some(on) => writeln!(f, "user limit: {} sessions, {what}", on.user_sessions),
        None => writeln!(f, "user limit: {what}"),
    })
}

fn timeouts(control: &Control, _: &Args) -> Text {
    let Timeouts { udp, tcp_established, tcp_transitory, icmp } = nat(control)?.timeouts();
    text(|f| {
        writeln!(f, "udp timeout: {udp}sec")?;
        writeln!(f, "tcp established timeout: {tcp_established}sec")?;
        writeln!(f, "tcp transitory timeout: {tcp_transitory}sec")?;
        writeln!(f, "icmp timeout: {icmp}sec")
    })
}

fn workers(control: &Control, _: &Args) -> Text {
    let nat = nat(control)?;
    let all: Vec<usize> = nat.threads().into_iter().filter(|thread| *thread > 0).collect();
    text(|f| {
        writeln!(f, "{} workers", all.len())?;
        all.iter().try_for_each(|thread| writeln!(f, "  {}", nat.thread_name(*thread)))
    })
}

fn tables(control: &Control, _: &Args) -> Text {
    let nat = nat(control)?;
    let counts = nat.counts().map_err(super::refused)?;
    let users = nat.users().map_err(super::refused)?;
    let on = nat.enabled();
    text(|f| {
        for (thread, sessions) in &counts {
            let hosts = users.iter().filter(|user| user.thread == *thread).count();
            writeln!(f, "thread {thread} {}: {sessions} sessions, {hosts} users", nat.thread_name(*thread))?;
        }
        writeln!(f, "static mappings: {}", nat.mappings().len())?;
        writeln!(f, "translation buckets: {}", on.map_or(0, |on| buckets(on.sessions)))?;
        writeln!(f, "user buckets: {}", on.map_or(0, |on| buckets(on.users)))
    })
}
