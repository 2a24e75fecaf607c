//! MTU and Ethernet address of images, which are those of their interfaces. Linux changes them: the router follows, or puts them back.
//!
//! What Linux says may be past already, because the router has changed it since and told Linux. So Linux is not told again what it has
//! just said: the last change wins on both sides.
// A namespace is a key of maps, `None` for the router's own: it is handed on as it is there.
#![allow(clippy::ref_option)]

use shoal_interface::{HostChange, MtuLayer};
use shoal_wire::MacAddress;

use super::*;

/// What Linux has said last of an image, or what it began with.
#[derive(Clone, Copy, Default)]
pub(super) struct ImageFacts {
    mtu: u32,
    mac: Option<MacAddress>,
    /// The address of its own that frames of a sub-interface have, where it is not the port's.
    own_mac: Option<MacAddress>,
}

impl ImageFacts {
    pub fn of(mtu: u16, mac: MacAddress) -> Self {
        ImageFacts { mtu: mtu.into(), mac: Some(mac), own_mac: None }
    }
}

impl Lcp {
    /// Changes an interface because Linux has changed its image: Linux is not told.
    pub(super) fn as_linux<T>(&self, phy: SwIfIndex, change: impl FnOnce() -> T) -> T {
        let before = self.told_by_linux.replace(Some(phy));
        let done = change();
        self.told_by_linux.set(before);
        done
    }

    /// Linux says what an image is like. That of a VLAN is looked at elsewhere.
    pub(super) fn follow_image(&self, netns: &Option<String>, host_index: u32) {
        let phy = self.phy_of(netns, host_index).filter(|phy| !self.is_vlan(*phy));
        let link = self.with(netns, |mirror| mirror.links.get(&host_index).cloned()).flatten();
        let (Some(phy), Some(link)) = (phy, link) else { return };
        let mac = link.mac.filter(|mac| !mac.is_zero());
        let Some(before) = self.pairs.borrow_mut().get_mut(&phy).map(|pair| {
            let before = pair.image;
            let mtu = if link.mtu == 0 { before.mtu } else { link.mtu };
            pair.image = ImageFacts { mtu, mac: mac.or(before.mac), ..before };
            before
        }) else {
            return;
        };
        if link.mtu != 0 && link.mtu != before.mtu {
            self.take_mtu(netns, phy, link.mtu);
        }
        if let Some(mac) = mac.filter(|mac| Some(*mac) != before.mac) {
            self.take_mac(netns, phy, mac);
        }
    }

    fn take_mtu(&self, netns: &Option<String>, phy: SwIfIndex, mtu: u32) {
        let port = self.interfaces.port_of(phy);
        let (Ok(data), Ok(of_port)) = (self.interfaces.data(phy), self.interfaces.data(port)) else { return };
        if u32::from(data.mtu) == mtu {
            return;
        }
        let done = if port != phy && mtu > of_port.mtu.into() {
            Err(format!("{mtu} is more than {}, that of its port", of_port.mtu))
        } else {
            let set = || self.interfaces.set_mtu(phy, MtuLayer::L3, mtu);
            self.as_linux(phy, set).map_err(|e| e.to_string())
        };
        if done.is_err() && self.sync.get() == Sync::On {
            self.tell_linux(phy, HostChange::Mtu(data.mtu));
        }
        self.count_refusal(netns, phy, "MTU of its image", done);
    }

    fn take_mac(&self, netns: &Option<String>, phy: SwIfIndex, mac: MacAddress) {
        let Ok(data) = self.interfaces.data(phy) else { return };
        let done = if self.interfaces.port_of(phy) != phy {
            self.take_own_mac(phy, Some(mac).filter(|mac| *mac != data.mac()))
        } else if mac == data.mac() {
            Ok(())
        } else {
            self.as_linux(phy, || self.interfaces.set_mac(phy, mac)).map_err(|e| e.to_string())
        };
        if done.is_err()
            && let (Some(host), Ok(side)) = (self.host_of(phy), self.host_side())
        {
            self.warn(phy, "MAC address", side.set_mac(host, data.mac()));
        }
        self.count_refusal(netns, phy, "MAC address of its image", done);
    }

    /// The image of a sub-interface has an address of its own, or that of the port.
    fn take_own_mac(&self, sub: SwIfIndex, now: Option<MacAddress>) -> Result<(), String> {
        let before = self.pairs.borrow().get(&sub).and_then(|pair| pair.image.own_mac);
        if before == now {
            return Ok(());
        }
        if let Some(now) = now {
            self.interfaces.add_mac(sub, now).map_err(|e| e.to_string())?;
        }
        if let Some(before) = before {
            let _ = self.interfaces.del_mac(sub, before);
        }
        self.peers.set_mac(sub, now);
        if let Some(pair) = self.pairs.borrow_mut().get_mut(&sub) {
            pair.image.own_mac = now;
        }
        Ok(())
    }

    /// A pair goes: its port takes no frames for the image's own address any more.
    pub(super) fn forget_own_mac(&self, sub: SwIfIndex, pair: &Pair) {
        if let Some(mac) = pair.image.own_mac {
            let _ = self.interfaces.del_mac(sub, mac);
            self.peers.set_mac(sub, None);
        }
    }

    fn count_refusal(&self, netns: &Option<String>, phy: SwIfIndex, what: &str, done: Result<(), String>) {
        if done.is_err() {
            self.with(netns, |mirror| mirror.refusals += 1);
        }
        self.warn(phy, what, done);
    }
}
