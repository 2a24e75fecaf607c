//! What rebuilds NAT.

use std::fmt::Write;

use shoal_interface::Interfaces;
use shoal_module::{Control, Phase, Running, word};
use shoal_nat44::mapping::External;

use crate::config::{Algorithm, AtUserLimit, Mode, Timeouts};
use crate::{Enable, Failover, Listener, Nat44Ei, Sides, Spec};

pub(crate) fn running(control: &Control, running: &mut Running) {
    let Some(nat) = running.part::<Nat44Ei>(control) else { return };
    let Some(interfaces) = running.part::<Interfaces>(control) else { return };
    let Some(on) = nat.enabled() else { return };
    let mut line = |line: String| running.line(Phase::Policies, line);
    line(enable(on));
    settings(&nat, &mut line);
    let name = |interface| interfaces.name(interface).map(|name| word(&name).into_owned());
    for (feature, all) in [("", nat.sides()), (" output-feature", nat.outputs())] {
        for (interface, sides) in all {
            let Ok(name) = name(interface) else { continue };
            // An output feature on both sides is what `out` makes.
            let sides =
                if feature.is_empty() || !sides.outside { sides } else { Sides { inside: false, ..sides } };
            for (on, side) in [(sides.inside, "in"), (sides.outside, "out")] {
                if on {
                    line(format!("set interface nat44 ei {side} {name}{feature}"));
                }
            }
        }
    }
    for interface in nat.followed() {
        let Ok(name) = name(interface) else { continue };
        line(format!("nat44 ei add interface address {name}"));
    }
    for address in nat.addresses().into_iter().filter(|address| !address.synced) {
        let vrf = address.vrf.map(|vrf| format!(" tenant-vrf {vrf}")).unwrap_or_default();
        line(format!("nat44 ei add address {}{vrf}", address.address));
    }
    for (spec, _) in nat.mappings() {
        let external = match spec.external {
            External::Address(address) => std::net::Ipv4Addr::from_bits(address).to_string(),
            External::Interface(interface) => name(interface).unwrap_or_default(),
        };
        line(mapping(&spec, &external));
    }
    if let Some(Listener { address, port, path_mtu }) = nat.listener() {
        line(format!("nat44 ei ha listener {address}:{port} path-mtu {path_mtu}"));
    }
    if let Some(Failover { address, port, refresh }) = nat.failover() {
        line(format!("nat44 ei ha failover {address}:{port} refresh-interval {refresh}"));
    }
}

fn enable(on: Enable) -> String {
    let default = Enable::default();
    let mut line = "nat44 ei plugin enable".to_owned();
    for (name, value, usual) in [
        ("sessions", on.sessions, default.sessions),
        ("users", on.users, default.users),
        ("inside-vrf", on.inside_vrf, default.inside_vrf),
        ("outside-vrf", on.outside_vrf, default.outside_vrf),
        ("user-sessions", on.user_sessions, on.sessions),
    ] {
        if value != usual {
            let _ = write!(line, " {name} {value}");
        }
    }
    line += match on.mode {
        Mode::Dynamic => "",
        Mode::StaticTracked => " static-mapping-only connection-tracking",
        Mode::Static => " static-mapping-only",
    };
    line + if on.out2in_dpo { " out2in-dpo" } else { "" }
}

fn settings(nat: &Nat44Ei, line: &mut impl FnMut(String)) {
    if nat.forwarding() {
        line("nat44 ei forwarding enable".to_owned());
    }
    if nat.at_user_limit() == AtUserLimit::Drop {
        line("nat44 ei user-limit drop".to_owned());
    }
    if nat.mss() > 0 {
        line(format!("nat44 ei mss-clamping {}", nat.mss()));
    }
    let Timeouts { udp, tcp_established, tcp_transitory, icmp } = nat.timeouts();
    if nat.timeouts() != Timeouts::default() {
        line(format!(
            "set nat44 ei timeout udp {udp} tcp-established {tcp_established} tcp-transitory {tcp_transitory} icmp {icmp}"
        ));
    }
    match nat.algorithm() {
        Algorithm::Default => {}
        Algorithm::MapE { psid, offset, length, rfc7597 } => {
            let order = if rfc7597 { " rfc7597" } else { "" };
            line(format!(
                "nat44 ei addr-port-assignment-alg map-e psid {psid} psid-offset {offset} psid-len {length}{order}"
            ));
        }
        Algorithm::Blocks { size, most } => {
            line(format!("nat44 ei addr-port-assignment-alg port-blocks size {size} per-user {most}"));
        }
        Algorithm::Range { first, last } => {
            line(format!("nat44 ei addr-port-assignment-alg port-range {first} - {last}"));
        }
    }
    for prefix in nat.exempt() {
        line(format!("nat44 ei exempt {prefix}"));
    }
}

fn mapping(spec: &Spec, external: &str) -> String {
    let Spec { local, local_port, external_port, protocol, .. } = spec;
    let vrf = spec.vrf.map(|vrf| format!(" vrf {vrf}")).unwrap_or_default();
    let proto = match protocol {
        6 => "tcp",
        17 => "udp",
        _ => "icmp",
    };
    if spec.identity {
        let what = match spec.external {
            External::Address(_) => external.to_owned(),
            External::Interface(_) => format!("external {external}"),
        };
        let port = if spec.is_address_only() { String::new() } else { format!(" {proto} {local_port}") };
        return format!("nat44 ei add identity mapping {what}{port}{vrf}");
    }
    if spec.is_address_only() {
        return format!("nat44 ei add static mapping local {local} external {external}{vrf}");
    }
    format!(
        "nat44 ei add static mapping {proto} local {local} {local_port} external {external} {external_port}{vrf}"
    )
}
