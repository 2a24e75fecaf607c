//! Which interface is paired with which.

use std::io;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use shoal_buffer::{Packet, SwIfIndex};
use shoal_infra::{Guard, StableArena};
use shoal_interface::IfTable;
use shoal_wire::MacAddress;

/// Most interfaces; address space only.
const CAPACITY: usize = 1 << 20;

/// The other interface of each one that is paired, in both directions. Of a sub-interface whose image is a VLAN of Linux it is the
/// image of its port, in one direction. Clones are the same table.
#[derive(Clone)]
pub struct Peers {
    others: StableArena<AtomicU32>,
    /// Ethernet addresses of such VLANs, where they are not the port's; 0 if they are.
    macs: StableArena<AtomicU64>,
}

impl Peers {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Peers {
            others: StableArena::with_capacity(CAPACITY)?,
            macs: StableArena::with_capacity(CAPACITY)?,
        })
    }

    /// The interface paired with this one.
    #[inline]
    pub fn of(&self, interface: SwIfIndex) -> Option<SwIfIndex> {
        let peer = self.others.get(interface.0 as usize)?.load(Ordering::Relaxed);
        peer.checked_sub(1).map(SwIfIndex)
    }

    fn set(&self, interface: SwIfIndex, peer: Option<SwIfIndex>) {
        if let Some(cell) = self.others.get(interface.0 as usize) {
            cell.store(peer.map_or(0, |p| p.0 + 1), Ordering::Relaxed);
        }
    }

    pub(crate) fn join(&self, phy: SwIfIndex, host: SwIfIndex) {
        self.set(phy, Some(host));
        self.set(host, Some(phy));
    }

    pub(crate) fn part(&self, phy: SwIfIndex, host: SwIfIndex) {
        self.set(phy, None);
        self.set(host, None);
    }

    /// What a sub-interface receives for Linux goes to the image of its port.
    pub(crate) fn lead(&self, sub: SwIfIndex, host: SwIfIndex) {
        self.set(sub, Some(host));
    }

    /// It does so no longer.
    pub(crate) fn leave(&self, sub: SwIfIndex) {
        self.set(sub, None);
        self.set_mac(sub, None);
    }

    /// Frames of a sub-interface for Linux have this address.
    pub(crate) fn set_mac(&self, sub: SwIfIndex, mac: Option<MacAddress>) {
        if let Some(cell) = self.macs.get(sub.0 as usize) {
            cell.store(mac.map_or(0, MacAddress::to_u64), Ordering::Relaxed);
        }
    }

    /// The address that frames of a sub-interface for Linux have, if it is not the port's.
    pub(crate) fn mac(&self, sub: SwIfIndex) -> Option<MacAddress> {
        let word = self.macs.get(sub.0 as usize)?.load(Ordering::Relaxed);
        (word != 0).then(|| MacAddress::from_u64(word))
    }

    /// Puts the tags into a frame without that it needs on its way from one interface to its peer: those of a sub-interface
    /// whose image is a TAP of its own on the way out, those of one whose image is a VLAN of Linux on the way there. `None`
    /// if there is no room for them.
    pub(crate) fn tag(
        &self,
        interfaces: &IfTable,
        (rx, tx): (SwIfIndex, SwIfIndex),
        pkt: &mut Packet<'_>,
        guard: Guard<'_>,
    ) -> Option<()> {
        let whose = if self.of(tx) == Some(rx) { tx } else { rx };
        interfaces.get(whose, guard).tag(pkt)
    }
}
