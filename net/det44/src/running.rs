//! What rebuilds DET44.

use shoal_interface::Interfaces;
use shoal_module::{Control, Phase, Running, word};

use crate::Det44;
use crate::config::Timeouts;

pub(crate) fn running(control: &Control, running: &mut Running) {
    let Some(det44) = running.part::<Det44>(control) else { return };
    let Some(interfaces) = running.part::<Interfaces>(control) else { return };
    let Some(on) = det44.enabled() else { return };
    let mut line = |line: String| running.line(Phase::Policies, line);
    let vrfs = [("inside", on.inside_vrf), ("outside", on.outside_vrf)];
    let given = vrfs.iter().filter(|(_, vrf)| *vrf > 0).map(|(side, vrf)| format!(" {side} vrf {vrf}"));
    line(format!("det44 plugin enable{}", given.collect::<Vec<_>>().concat()));
    let timeouts = det44.timeouts();
    if timeouts != Timeouts::default() {
        let Timeouts { udp, tcp_established, tcp_transitory, icmp } = timeouts;
        line(format!(
            "set det44 timeouts udp {udp} tcp established {tcp_established} tcp transitory {tcp_transitory} icmp {icmp}"
        ));
    }
    for map in det44.maps() {
        line(format!("det44 add in {} out {}", map.inside, map.outside));
    }
    for (interface, sides) in det44.sides() {
        let Ok(name) = interfaces.name(interface) else { continue };
        for (on, side) in [(sides.inside, "inside"), (sides.outside, "outside")] {
            if on {
                line(format!("set interface det44 {side} {}", word(&name)));
            }
        }
    }
}
