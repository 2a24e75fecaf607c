//! What rebuilds NAT64.

use shoal_interface::Interfaces;
use shoal_module::{Control, Phase, Running, word};

use crate::config::{Inside, Outside, Timeouts};
use crate::{Address, Nat64};

pub(crate) fn running(control: &Control, running: &mut Running) {
    let Some(nat) = running.part::<Nat64>(control) else { return };
    let Some(interfaces) = running.part::<Interfaces>(control) else { return };
    let Some(on) = nat.enabled() else { return };
    let mut line = |line: String| running.line(Phase::Policies, line);
    let sizes = [("bib-buckets", on.bib_buckets), ("st-buckets", on.st_buckets)];
    let given = sizes.iter().filter(|(_, n)| *n > 0).map(|(name, n)| format!(" {name} {n}"));
    line(format!("nat64 plugin enable{}", given.collect::<Vec<_>>().concat()));
    let (timeouts, usual) = (nat.timeouts(), Timeouts::default());
    if timeouts != usual {
        line(format!("set nat64 timeouts{}", times(&timeouts)));
    }
    for (vrf, prefix) in nat.prefixes() {
        line(format!("nat64 add prefix {prefix} tenant-vrf {vrf}"));
    }
    let name = |interface| interfaces.name(interface).map(|name| word(&name).into_owned());
    for (interface, sides) in nat.sides() {
        let Ok(name) = name(interface) else { continue };
        for (on, side) in [(sides.inside, "in"), (sides.outside, "out")] {
            if on {
                line(format!("set interface nat64 {side} {name}"));
            }
        }
    }
    for name in nat.followed().into_iter().filter_map(|interface| name(interface).ok()) {
        line(format!("nat64 add interface address {name}"));
    }
    for Address { address, vrf, .. } in nat.addresses().into_iter().filter(|address| !address.follows) {
        let vrf = vrf.map(|vrf| format!(" tenant-vrf {vrf}")).unwrap_or_default();
        line(format!("nat64 add pool address {address}{vrf}"));
    }
    for (vrf, inside, outside) in nat.statics() {
        let (Inside { address, port, protocol, .. }, Outside { address: shared, port: open, .. }) =
            (inside, outside);
        let protocol = crate::cli::protocol_name(protocol);
        line(format!("nat64 add static bib {address} {port} {shared} {open} {protocol} vrf {vrf}"));
    }
}

/// All timeouts, as the command has them.
pub(crate) fn times(timeouts: &Timeouts) -> String {
    let Timeouts { udp, tcp_established, tcp_transitory, icmp } = timeouts;
    format!(" udp {udp} tcp-established {tcp_established} tcp-transitory {tcp_transitory} icmp {icmp}")
}
