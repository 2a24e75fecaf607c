//! Links of Linux: whether images are up, and what other links mean for them.
// A namespace is a key of maps, `None` for the router's own: it is handed on as it is there.
#![allow(clippy::ref_option)]

use shoal_interface::{EventOrigin, HostLink, HostLinkKind, HostPath, HostRoute, HostWay};

use super::slices::{Change, Fate};
use super::*;

impl mirror::Mirror {
    /// Something of Linux cannot be followed; whether that is news.
    pub(super) fn refuse(&mut self, host_index: u32, why: &str) -> bool {
        let is_new = self.refused.insert(host_index, why.to_owned()).as_deref() != Some(why);
        self.refusals += u64::from(is_new);
        is_new
    }
}

impl Lcp {
    /// A link is there, or another one than before.
    pub(super) fn hear_link(&self, netns: &Option<String>, told: EventOrigin, link: HostLink) {
        let (host_index, up) = (link.host_index, link.up);
        let (kind, master) = (link.kind, link.master);
        if !link.up || !link.carrier {
            self.forget_next_hops_by(netns, host_index);
        }
        let before = self.with(netns, |mirror| {
            mirror.seen.iter_mut().for_each(|seen| seen.links.extend([host_index]));
            mirror.links.insert(host_index, link)
        });
        let before = before.flatten();
        let was = before.as_ref().map(|before| before.kind);
        let is_vrf = |kind: &HostLinkKind| matches!(kind, HostLinkKind::Vrf { .. });
        // A number may be another link's after announcements were lost.
        if was.is_some_and(|was| was != kind) && self.vlan_by(netns, host_index).is_some() {
            self.vlan_gone(netns, host_index);
        }
        if was != Some(kind) && (is_vrf(&kind) || was.as_ref().is_some_and(is_vrf)) {
            self.vrf_changed(netns, host_index);
        }
        self.follow_vlan(netns, host_index);
        if before.is_some_and(|before| before.master != master) {
            self.master_changed(netns, told, host_index);
        } else if let Some(phy) = self.phy_of(netns, host_index) {
            self.follow_vrf(phy);
        }
        self.follow_image(netns, host_index);
        self.hear_state(netns, host_index, up);
    }

    /// There is no such link any more.
    pub(super) fn hear_gone(&self, netns: &Option<String>, host_index: u32) {
        let gone = self.with(netns, |mirror| {
            mirror.down.remove(&host_index);
            mirror.moved.remove(&host_index);
            mirror.settling.remove(&host_index);
            mirror.refused.remove(&host_index);
            mirror.dropped.retain(|(on, _)| *on != host_index);
            mirror.links.remove(&host_index)
        });
        self.forget_next_hops_by(netns, host_index);
        self.flush(netns, host_index);
        if let Some(HostLink { kind: HostLinkKind::Vrf { .. }, .. }) = gone.flatten() {
            self.vrf_changed(netns, host_index);
        }
        self.vlan_gone(netns, host_index);
    }

    fn hear_state(&self, netns: &Option<String>, host_index: u32, up: bool) {
        let changed = self.with(netns, |mirror| {
            if up { mirror.down.remove(&host_index) } else { mirror.down.insert(host_index) }
        });
        if changed != Some(true) {
            return;
        }
        if let Some(phy) = self.phy_of(netns, host_index) {
            self.set_as_linux(phy, up);
        }
        if !up {
            self.flush(netns, host_index);
        }
    }

    /// Sets an interface up or down as its image is.
    pub(super) fn set_as_linux(&self, phy: SwIfIndex, up: bool) {
        let done = self.as_linux(phy, || self.interfaces.set_admin(phy, up)).map_err(|e| e.to_string());
        self.warn(phy, "state of its image", done);
    }

    /// An interface is down or gone: the kernel takes its IPv4 routes by it away without a word.
    pub(super) fn flush(&self, netns: &Option<String>, host_index: u32) {
        self.change_routes(netns, Flushed(host_index));
    }
}

/// IPv4 routes by an interface that is down or gone.
struct Flushed(u32);

impl Change for Flushed {
    fn concerns(&self, _: &mirror::Mirror, route: &HostRoute) -> bool {
        let leads = |paths: &[HostPath]| paths.iter().any(|path| path.host_index == self.0);
        route.prefix.0.is_ipv4() && matches!(&route.way, HostWay::Via(paths) if leads(paths))
    }

    fn change(&self, route: &mut HostRoute) -> Fate {
        let HostWay::Via(paths) = &mut route.way else { return Fate::Stays };
        let before = paths.len();
        paths.retain(|path| path.host_index != self.0);
        match paths.len() {
            0 if before > 0 => Fate::Goes,
            left if left < before => Fate::Changes,
            _ => Fate::Stays,
        }
    }
}
