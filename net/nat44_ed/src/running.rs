//! What rebuilds NAT.

use std::fmt::Write;

use shoal_interface::Interfaces;
use shoal_module::{Control, Phase, Running, word};

use crate::config::Timeouts;
use crate::{Balanced, Enable, Nat44, Purpose, SharedAddress, Spec};
use shoal_nat44::mapping::{External, TwiceNat};

pub(crate) fn running(control: &Control, running: &mut Running) {
    let Some(nat) = running.part::<Nat44>(control) else { return };
    let Some(interfaces) = running.part::<Interfaces>(control) else { return };
    let mut line = |line: String| running.line(Phase::Policies, line);
    if let Some((domain, port)) = nat.ipfix() {
        line(format!("nat ipfix logging domain {domain} src-port {port}"));
    }
    let Some(on) = nat.enabled() else { return };
    line(enable(on));
    settings(&nat, &mut line);
    let name = |interface| interfaces.name(interface).map(|name| word(&name).into_owned());
    for (interface, sides) in nat.sides() {
        let Ok(name) = name(interface) else { continue };
        for (on, side) in [(sides.inside, "in"), (sides.outside, "out")] {
            if on {
                line(format!("set interface nat44 {side} {name}"));
            }
        }
    }
    for name in nat.outputs().into_iter().filter_map(|interface| name(interface).ok()) {
        line(format!("set interface nat44 out {name} output-feature"));
    }
    for of in nat.followed() {
        let Ok(name) = name(of.interface) else { continue };
        line(format!("nat44 add interface address {name}{}", purpose(of.purpose)));
    }
    for address in nat.addresses().into_iter().filter(|address| !address.synced) {
        let vrf = address.vrf.map(|vrf| format!(" tenant-vrf {vrf}")).unwrap_or_default();
        line(format!("nat44 add address {}{vrf}{}", address.address, purpose(address.purpose)));
    }
    for (address, filtering) in nat.independent() {
        let address = match address {
            SharedAddress::Address(address) => format!("address {address}"),
            SharedAddress::OfInterface(interface) => match name(interface) {
                Ok(name) => format!("interface {name}"),
                Err(_) => continue,
            },
        };
        line(format!("set nat44 mapping endpoint-independent {address} filtering {}", filtering.name()));
    }
    for (spec, _) in nat.mappings() {
        let external = match spec.external {
            External::Address(address) => std::net::Ipv4Addr::from_bits(address).to_string(),
            External::Interface(interface) => name(interface).unwrap_or_default(),
        };
        line(if spec.identity { identity(&spec, &external) } else { mapping(&spec, &external) });
    }
    nat.balanced().iter().for_each(|many| line(balanced(many)));
}

fn enable(on: Enable) -> String {
    let default = Enable::default();
    let mut line = "nat44 plugin enable".to_owned();
    for (name, value, usual) in [
        ("sessions", on.sessions, default.sessions),
        ("inside-vrf", on.inside_vrf, default.inside_vrf),
        ("outside-vrf", on.outside_vrf, default.outside_vrf),
    ] {
        if value != usual {
            let _ = write!(line, " {name} {value}");
        }
    }
    line
}

fn settings(nat: &Nat44, line: &mut impl FnMut(String)) {
    if nat.forwarding() {
        line("nat44 forwarding enable".to_owned());
    }
    if nat.mss() > 0 {
        line(format!("nat mss-clamping {}", nat.mss()));
    }
    let Timeouts { udp, tcp_established, tcp_transitory, icmp } = nat.timeouts();
    if nat.timeouts() != Timeouts::default() {
        line(format!(
            "set nat timeout udp {udp} tcp-established {tcp_established} tcp-transitory {tcp_transitory} icmp {icmp}"
        ));
    }
    for (vrf, limit) in nat.limits() {
        line(format!("set nat44 session limit {limit} vrf {vrf}"));
    }
    for (table, routes) in nat.vrf_tables() {
        line(format!("nat44 vrf table add {table}"));
        for vrf in &routes {
            line(format!("nat44 vrf route add table {table} {vrf}"));
        }
    }
}

fn purpose(purpose: Purpose) -> &'static str {
    if purpose == Purpose::Twice { " twice-nat" } else { "" }
}

fn proto(protocol: u8) -> &'static str {
    match protocol {
        6 => "tcp",
        17 => "udp",
        _ => "icmp",
    }
}

fn twice(twice: TwiceNat, out2in_only: bool) -> String {
    let twice = match twice {
        TwiceNat::No => "",
        TwiceNat::Always => " twice-nat",
        TwiceNat::OfItself => " self-twice-nat",
    };
    format!("{twice}{}", if out2in_only { " out2in-only" } else { "" })
}

fn vrf(spec: &Spec) -> String {
    spec.vrf.map(|vrf| format!(" vrf {vrf}")).unwrap_or_default()
}

fn mapping(spec: &Spec, external: &str) -> String {
    let Spec { local, local_port, external_port, protocol, .. } = spec;
    let exact = spec.pool_address.map(|exact| format!(" exact {exact}")).unwrap_or_default();
    let rest = format!("{}{}{exact}", vrf(spec), twice(spec.twice, spec.out2in_only));
    if spec.is_address_only() {
        return format!("nat44 add static mapping local {local} external {external}{rest}");
    }
    let proto = proto(*protocol);
    format!(
        "nat44 add static mapping {proto} local {local} {local_port} external {external} {external_port}{rest}"
    )
}

fn identity(spec: &Spec, external: &str) -> String {
    let what = match spec.external {
        External::Address(_) => external.to_owned(),
        External::Interface(_) => format!("external {external}"),
    };
    let port = if spec.is_address_only() {
        String::new()
    } else {
        format!(" {} {}", proto(spec.protocol), spec.local_port)
    };
    format!("nat44 add identity mapping {what}{port}{}", vrf(spec))
}

fn balanced(many: &Balanced) -> String {
    let mut line = format!(
        "nat44 add load-balancing static mapping protocol {} external {}:{}",
        proto(many.protocol),
        many.external,
        many.port
    );
    for (address, port, probability, vrf) in &many.locals {
        let _ = write!(line, " local {address}:{port} probability {probability}");
        if *vrf != 0 {
            let _ = write!(line, " vrf {vrf}");
        }
    }
    if many.affinity > 0 {
        let _ = write!(line, " affinity {}", many.affinity);
    }
    line + &twice(many.twice, many.out2in_only)
}
