//! What the router's interfaces are, passed on to their images: state, MTU, addresses.

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

    /// Changes the image of an interface, which may be a VLAN of Linux on that of its port.
    fn tell_linux(&self, phy: SwIfIndex, change: HostChange) {
        let pair = |pairs: &BTreeMap<SwIfIndex, Pair>| {
            pairs.get(&phy).map(|pair| (pair.host, pair.vlan.as_ref().map(|_| pair.host_index)))
        };
        let (Some((host, vlan)), Ok(side)) = (pair(&self.pairs.borrow()), self.host_side()) else { return };
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
        self.warn(phy, what, done);
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
        if let Ok(data) = self.interfaces.data(phy) {
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
            self.tell_linux(phy, HostChange::Address(*gone, false));
        }
        for new in now.iter().filter(|a| !before.contains(a)) {
            self.tell_linux(phy, HostChange::Address(*new, true));
        }
    }
}
