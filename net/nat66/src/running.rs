//! What rebuilds NAT66.

use shoal_interface::Interfaces;
use shoal_module::{Control, Phase, Running, word};

use crate::Nat66;

pub(crate) fn running(control: &Control, running: &mut Running) {
    let Some(nat) = running.part::<Nat66>(control) else { return };
    let Some(interfaces) = running.part::<Interfaces>(control) else { return };
    let Some(outside) = nat.outside_vrf() else { return };
    let vrf = if outside == 0 { String::new() } else { format!(" outside-vrf {outside}") };
    running.line(Phase::Policies, format!("nat66 plugin enable{vrf}"));
    for (interface, side) in nat.sides() {
        let Ok(name) = interfaces.name(interface) else { continue };
        running.line(Phase::Policies, format!("set interface nat66 {side} {}", word(&name)));
    }
    for mapping in nat.mappings() {
        let vrf = if mapping.vrf == 0 { String::new() } else { format!(" vrf {}", mapping.vrf) };
        let (local, external) = (mapping.local, mapping.external);
        let line = format!("nat66 add static mapping local {local} external {external}{vrf}");
        running.line(Phase::Policies, line);
    }
}
