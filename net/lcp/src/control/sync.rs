//! What the router's interfaces are, passed on to their images: state, MTU, addresses.
// A namespace is a key of maps, `None` for the router's own: it is handed on as it is there.
#![allow(clippy::ref_option)]

use shoal_wire::IpPrefix;

use super::*;

impl Lcp {
    /// Whether changes are passed on to the kernel.
    pub fn sync(&self) -> Sync {
        self.sync.get()
    }

    /// Tells the kernel of changes from now on, and of what there is; or no longer.
    pub fn set_sync(&self, sync: Sync) {
        self.sync.set(sync);
        if sync == Sync::On {
            let all: Vec<SwIfIndex> = self.pairs.borrow().keys().copied().collect();
            for phy in all {
                self.sync_mtu(phy);
                self.sync_admin(phy);
                self.sync_addresses(phy);
            }
        }
    }

    pub(super) fn warn(&self, phy: SwIfIndex, what: &str, done: Result<(), String>) {
        if let Err(e) = done {
            let name = self.interfaces.name(phy).unwrap_or_default();
            tracing::warn!("linux-cp: {name}: {what} not mirrored: {e}");
        }
    }

    /// Changes the image of an interface, which may be a VLAN of Linux on that of its port; whether that was possible.
    pub(super) fn tell_linux(&self, phy: SwIfIndex, change: HostChange) -> bool {
        let pair = |pairs: &BTreeMap<SwIfIndex, Pair>| {
            pairs.get(&phy).map(|pair| (pair.host, pair.vlan.as_ref().map(|_| pair.host_index)))
        };
        let (Some((host, vlan)), Ok(side)) = (pair(&self.pairs.borrow()), self.host_side()) else {
            return false;
        };
        let (what, done) = match (change, vlan) {
            (HostChange::Up(_), Some(link)) => ("state", side.change_link(host, link, change)),
            (HostChange::Mtu(_), Some(link)) => ("MTU", side.change_link(host, link, change)),
            (HostChange::Address(..), Some(link)) => ("address", side.change_link(host, link, change)),
            (HostChange::Up(up), None) => ("state", side.set_up(host, up)),
            (HostChange::Mtu(mtu), None) => ("MTU", side.set_mtu(host, mtu)),
            (HostChange::Address(address, present), None) => {
                ("address", side.set_address(host, address, present))
            }
        };
        let is_done = done.is_ok();
        self.warn(phy, what, done);
        is_done
    }

    /// Gives the kernel an address of an interface or takes it away; that it says so is expected.
    fn tell_address(&self, phy: SwIfIndex, address: (IpAddr, u8), present: bool) {
        if self.tell_linux(phy, HostChange::Address(address, present))
            && let Some(pair) = self.pairs.borrow_mut().get_mut(&phy)
            && self.mirrors.borrow().contains_key(&pair.netns)
        {
            pair.expected.push((address, present));
        }
    }

    /// Whether the kernel says only that it has done with an address what it was told: the router may have changed it again since. What it
    /// says beside that is another party's, and ends what was expected of the address.
    pub(super) fn is_expected(&self, phy: SwIfIndex, address: (IpAddr, u8), present: bool) -> bool {
        let mut pairs = self.pairs.borrow_mut();
        let Some(pair) = pairs.get_mut(&phy) else { return false };
        let first = pair.expected.iter().position(|(of, _)| *of == address);
        let is_it = first.and_then(|at| pair.expected.get(at)).is_some_and(|(_, told)| *told == present);
        match first {
            Some(at) if is_it => drop(pair.expected.remove(at)),
            _ => pair.expected.retain(|(of, _)| *of != address),
        }
        is_it
    }

    /// Linux has done with an address what it was told: one that it has no more, and is not to get again, it brings no more.
    pub(super) fn forget_brought(&self, phy: SwIfIndex, address: (IpAddr, u8)) {
        let has_gone = self.pairs.borrow_mut().get_mut(&phy).is_some_and(|pair| {
            let stays =
                pair.addresses.contains(&address) || pair.expected.iter().any(|(of, _)| *of == address);
            !stays && pair.from_linux.remove(&address)
        });
        if has_gone {
            self.mark_brought(phy, address, false);
        }
    }

    /// Says whether Linux has brought an address.
    pub(super) fn mark_brought(&self, phy: SwIfIndex, (address, len): (IpAddr, u8), by_linux: bool) {
        let Some(control) = self.control.upgrade() else { return };
        match IpPrefix::new(address, len) {
            Ok(IpPrefix::Ip4(own)) => {
                if let Ok(ip4) = control.get::<Ip4>() {
                    ip4.set_brought(phy, own, by_linux);
                }
            }
            Ok(IpPrefix::Ip6(own)) => {
                if let Ok(ip6) = control.get::<Ip6>() {
                    ip6.set_brought(phy, own.addr(), by_linux);
                }
            }
            Err(_) => {}
        }
    }

    /// All was listed: nothing that was announced before is still to come.
    pub(super) fn expect_nothing(&self, netns: &Option<String>) {
        let mut pairs = self.pairs.borrow_mut();
        pairs.values_mut().filter(|pair| pair.netns == *netns).for_each(|pair| pair.expected.clear());
    }

    /// Lets the kernel use the image as long as the interface is up.
    pub(super) fn sync_admin(&self, phy: SwIfIndex) {
        let Ok(data) = self.interfaces.data(phy) else { return };
        // What Linux has just said may be past already: it is not told the same.
        if self.told_by_linux.get() != Some(phy) {
            self.tell_linux(phy, HostChange::Up(data.is_up()));
        }
        if data.is_up() {
            // The kernel has taken IPv6 addresses away when the image went down.
            if let Some(pair) = self.pairs.borrow_mut().get_mut(&phy) {
                pair.addresses.retain(|(address, _)| address.is_ipv4());
            }
            self.sync_addresses(phy);
        }
    }

    pub(super) fn sync_mtu(&self, phy: SwIfIndex) {
        if let Ok(data) = self.interfaces.data(phy)
            && self.told_by_linux.get() != Some(phy)
        {
            self.tell_linux(phy, HostChange::Mtu(data.mtu));
        }
    }

    pub(super) fn own_addresses(&self, phy: SwIfIndex) -> Vec<(IpAddr, u8)> {
        let Some(control) = self.control.upgrade() else { return Vec::new() };
        let ip4 = control.get::<Ip4>().map(|ip4| ip4.addresses(phy)).unwrap_or_default();
        let ip6 = control.get::<Ip6>().map(|ip6| ip6.addresses(phy)).unwrap_or_default();
        let borrowed = self.borrowed_addresses(&control, phy);
        let ip4 = ip4.iter().map(|p| (IpAddr::V4(p.addr()), p.len()));
        // The kernel has a link-local address of its own.
        let ip6 = ip6.iter().filter(|p| !p.addr().is_unicast_link_local());
        ip4.chain(ip6.map(|p| (IpAddr::V6(p.addr()), p.len()))).chain(borrowed).collect()
    }

    /// Makes the kernel's addresses those of the interface; it keeps those that others gave it.
    pub(crate) fn sync_addresses(&self, phy: SwIfIndex) {
        // Those of an interface that moves to another table are the same afterwards.
        if self.sync.get() == Sync::Off || self.moving.get() == Some(phy) {
            return;
        }
        let now = self.own_addresses(phy);
        let before = match self.pairs.borrow_mut().get_mut(&phy) {
            Some(pair) => std::mem::replace(&mut pair.addresses, now.clone()),
            None => return,
        };
        for gone in before.iter().filter(|a| !now.contains(a)) {
            self.tell_address(phy, *gone, false);
        }
        for new in now.iter().filter(|a| !before.contains(a)) {
            self.tell_address(phy, *new, true);
        }
    }
}
