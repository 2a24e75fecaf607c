//! Which interface is paired with which.

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};

use shoal_buffer::SwIfIndex;
use shoal_infra::StableArena;

/// Most interfaces; address space only.
const CAPACITY: usize = 1 << 20;

/// The other interface of each one that is paired, in both directions. Clones are the same table.
#[derive(Clone)]
pub struct Peers(StableArena<AtomicU32>);

impl Peers {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Peers(StableArena::with_capacity(CAPACITY)?))
    }

    /// The interface paired with this one.
    #[inline]
    pub fn of(&self, interface: SwIfIndex) -> Option<SwIfIndex> {
        let peer = self.0.get(interface.0 as usize)?.load(Ordering::Relaxed);
        peer.checked_sub(1).map(SwIfIndex)
    }

    fn set(&self, interface: SwIfIndex, peer: Option<SwIfIndex>) {
        if let Some(cell) = self.0.get(interface.0 as usize) {
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
}
