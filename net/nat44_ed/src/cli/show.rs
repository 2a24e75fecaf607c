//! What is configured.

use std::fmt::{self, Write};

use shoal_interface::{Interfaces, SwIfIndex};
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};

use super::nat;
use crate::config::Timeouts;
use crate::show::Proto;
use crate::{Balanced, Purpose, Spec};
use shoal_nat44::mapping::{External, TwiceNat};

pub(super) const ADDRESSES: Command =
    Command::new("show nat44 addresses", "Show addresses that hosts share", addresses)
        .examples(&["show nat44 addresses"]);

pub(super) const INTERFACES: Command =
    Command::new("show nat44 interfaces", "Show where packets are translated", interfaces)
        .examples(&["show nat44 interfaces"]);

pub(super) const MAPPINGS: Command =
    Command::new("show nat44 static mappings", "Show static mappings", mappings)
        .examples(&["show nat44 static mappings"]);

pub(super) const INTERFACE_ADDRESSES: Command = Command::new(
    "show nat44 interface address",
    "Show interfaces whose addresses hosts share",
    interface_addresses,
)
.examples(&["show nat44 interface address"]);

pub(super) const VRF_TABLES: Command = Command::new(
    "show nat44 vrf tables",
    "Show where destinations of a VRF's hosts are looked for",
    vrf_tables,
)
.examples(&["show nat44 vrf tables"]);

pub(super) const MSS: Command =
    Command::new("show nat mss-clamping", "Show how large a connection's segments may be", mss)
        .examples(&["show nat mss-clamping"]);

pub(super) const TIMEOUTS: Command =
    Command::new("show nat timeouts", "Show for how long sessions may be silent", timeouts)
        .examples(&["show nat timeouts"]);

pub(super) const WORKERS: Command =
    Command::new("show nat workers", "Show the workers that translate", workers)
        .examples(&["show nat workers"]);

type Text = Result<Output, CliError>;

fn text(write: impl FnOnce(&mut String) -> fmt::Result) -> Text {
    let mut text = String::new();
    write(&mut text).map_err(|e| CliError::failed(e.to_string()))?;
    Ok(Output::text(text))
}

fn name(control: &Control, interface: SwIfIndex) -> String {
    let found = control.get::<Interfaces>().ok().and_then(|all| all.name(interface).ok());
    found.unwrap_or_else(|| interface.0.to_string())
}

fn addresses(control: &Control, _: &Args) -> Text {
    let nat = nat(control)?;
    let (all, independent) = (nat.addresses(), nat.filtering());
    text(|f| {
        for (heading, purpose) in
            [("NAT44 pool addresses:", Purpose::Pool), ("NAT44 twice-nat pool addresses:", Purpose::Twice)]
        {
            writeln!(f, "{heading}")?;
            for address in all.iter().filter(|address| address.purpose == purpose) {
                writeln!(f, "{}", address.address)?;
                match address.vrf {
                    Some(vrf) => writeln!(f, "  tenant VRF: {vrf}")?,
                    None => writeln!(f, "  tenant VRF independent")?,
                }
                if address.synced {
                    writeln!(f, "  synced with interface address")?;
                }
                if purpose == Purpose::Pool
                    && let Some(filtering) = independent.get(&address.address.to_bits())
                {
                    writeln!(f, "  mapping endpoint-independent, filtering {}", filtering.name())?;
                }
            }
        }
        Ok(())
    })
}

fn interfaces(control: &Control, _: &Args) -> Text {
    let nat = nat(control)?;
    text(|f| {
        writeln!(f, "NAT44 interfaces:")?;
        for (interface, sides) in nat.sides() {
            let sides = match (sides.inside, sides.outside) {
                (true, true) => "in out",
                (true, false) => "in",
                _ => "out",
            };
            writeln!(f, " {} {sides}", name(control, interface))?;
        }
        for interface in nat.outputs() {
            writeln!(f, " {} output-feature in out", name(control, interface))?;
        }
        Ok(())
    })
}

fn twice(twice: TwiceNat) -> &'static str {
    match twice {
        TwiceNat::No => "",
        TwiceNat::Always => "twice-nat",
        TwiceNat::OfItself => "self-twice-nat",
    }
}

fn only(out2in_only: bool) -> &'static str {
    if out2in_only { "out2in-only" } else { "" }
}

fn one(f: &mut String, control: &Control, spec: &Spec, address: Option<std::net::Ipv4Addr>) -> fmt::Result {
    // VPP prints all bits set as -1, and so do those who read it.
    let vrf = spec.vrf.map_or("-1".to_owned(), |vrf| vrf.to_string());
    let external = match (address, spec.external) {
        (Some(address), _) => address.to_string(),
        (None, External::Interface(interface)) => name(control, interface),
        (None, External::Address(address)) => std::net::Ipv4Addr::from_bits(address).to_string(),
    };
    let proto = Proto(spec.protocol);
    if spec.identity {
        if spec.is_address_only() {
            return writeln!(f, " identity mapping {external} vrf {vrf}");
        }
        return writeln!(f, " identity mapping {proto} {external}:{} vrf {vrf}", spec.external_port);
    }
    if spec.is_address_only() {
        return writeln!(
            f,
            " local {} external {external} vrf {vrf} {} {}",
            spec.local,
            twice(spec.twice),
            only(spec.out2in_only)
        );
    }
    let (local, port) = (spec.local, spec.local_port);
    let (twice, only) = (twice(spec.twice), only(spec.out2in_only));
    writeln!(
        f,
        " {proto} local {local}:{port} external {external}:{} vrf {vrf} {twice} {only}",
        spec.external_port
    )
}

fn several(f: &mut String, many: &Balanced) -> fmt::Result {
    let proto = Proto(many.protocol);
    let (twice, only) = (twice(many.twice), only(many.out2in_only));
    writeln!(f, " {proto} external {}:{} {twice} {only}", many.external, many.port)?;
    for (address, port, probability, vrf) in &many.locals {
        writeln!(f, "  local {address}:{port} vrf {vrf} probability {probability}")?;
    }
    Ok(())
}

fn mappings(control: &Control, _: &Args) -> Text {
    let nat = nat(control)?;
    text(|f| {
        writeln!(f, "NAT44 static mappings:")?;
        let all = nat.mappings();
        for (spec, address) in all.iter().filter(|(_, address)| address.is_some()) {
            one(f, control, spec, *address)?;
        }
        nat.balanced().iter().try_for_each(|many| several(f, many))?;
        all.iter()
            .filter(|(_, address)| address.is_none())
            .try_for_each(|(spec, _)| one(f, control, spec, None))
    })
}

fn interface_addresses(control: &Control, _: &Args) -> Text {
    let all = nat(control)?.followed();
    text(|f| {
        writeln!(f, "NAT44 pool address interfaces:")?;
        for of in all {
            let twice = if of.purpose == Purpose::Twice { " twice-nat" } else { "" };
            writeln!(f, " {}{twice}", name(control, of.interface))?;
        }
        Ok(())
    })
}

fn vrf_tables(control: &Control, _: &Args) -> Text {
    let all = nat(control)?.vrf_tables();
    text(|f| {
        for (table, routes) in all {
            writeln!(f, "table {table}:")?;
            for (nth, vrf) in routes.iter().enumerate() {
                writeln!(f, "[{nth}] vrf-id {vrf}")?;
            }
        }
        Ok(())
    })
}

fn mss(control: &Control, _: &Args) -> Text {
    let mss = nat(control)?.mss();
    text(|f| if mss == 0 { writeln!(f, "mss-clamping disabled") } else { writeln!(f, "mss-clamping {mss}") })
}

fn timeouts(control: &Control, _: &Args) -> Text {
    let Timeouts { udp, tcp_established, tcp_transitory, icmp } = nat(control)?.timeouts();
    text(|f| {
        writeln!(f, "udp timeout: {udp}sec")?;
        writeln!(f, "tcp-established timeout: {tcp_established}sec")?;
        writeln!(f, "tcp-transitory timeout: {tcp_transitory}sec")?;
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
