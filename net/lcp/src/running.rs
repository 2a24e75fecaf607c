//! What rebuilds images of interfaces in Linux.

use shoal_interface::{HostLayer, Interfaces};
use shoal_module::{Control, Phase, Running, word};

use crate::{Lcp, Sync};

pub(crate) fn running(control: &Control, running: &mut Running) {
    let (Some(lcp), Some(interfaces)) = (running.part::<Lcp>(control), running.part::<Interfaces>(control))
    else {
        return;
    };
    // Behind the state of interfaces, with which their images begin. Linux makes its VLANs itself.
    for pair in lcp.list().into_iter().filter(|pair| !pair.is_vlan) {
        let Ok(phy) = interfaces.name(pair.phy) else { continue };
        let netns = pair.netns.map(|netns| format!(" netns {}", word(&netns))).unwrap_or_default();
        let tun = if pair.layer == HostLayer::Ip { " tun" } else { "" };
        let line = format!("lcp create {} host-if {}{netns}{tun}", word(&phy), word(&pair.name));
        running.line(Phase::State, line);
    }
    // Behind the images: one that names no namespace was made before.
    if lcp.default_netns() != lcp.default_netns_at_start() {
        let netns = lcp.default_netns().map(|netns| format!(" {}", word(&netns))).unwrap_or_default();
        running.line(Phase::State, format!("lcp default netns{netns}"));
    }
    if lcp.sync_unnumbered() == Sync::Off {
        running.line(Phase::State, "lcp lcp-sync-unnumbered off".to_owned());
    }
    if lcp.auto_subint() != lcp.auto_subint_at_start() {
        let auto = if lcp.auto_subint() == Sync::On { "on" } else { "off" };
        running.line(Phase::State, format!("lcp lcp-auto-subint {auto}"));
    }
    for kind in lcp.types() {
        running.line(Phase::State, format!("lcp ethertype enable 0x{:04x}", kind.0));
    }
    for protocol in lcp.osi_protocols() {
        running.line(Phase::State, format!("lcp osi-proto enable 0x{protocol:02x}"));
    }
    if lcp.sync() != lcp.sync_at_start() {
        let sync = if lcp.sync() == Sync::On { "on" } else { "off" };
        running.line(Phase::State, format!("lcp lcp-sync {sync}"));
    }
}
