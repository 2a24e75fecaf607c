//! What a host may send, by interface: written by the control plane, read by packets.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use shoal_infra::StableArena;
use shoal_interface::SwIfIndex;

/// Most interfaces, as many as there can be.
const MAX_INTERFACES: usize = 1 << 16;

/// How far apart packets of one host are, and how many may come at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Pace {
    /// Nanoseconds from one packet to the next.
    pub(crate) interval: u32,
    /// Nanoseconds by which packets may come early.
    pub(crate) early: u64,
}

/// Of all interfaces. Clones are the same.
#[derive(Clone)]
pub(crate) struct Limits(StableArena<AtomicU64>);

impl Limits {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Limits(StableArena::with_capacity(MAX_INTERFACES)?))
    }

    /// `None` where there is no limit.
    #[inline(always)]
    pub(crate) fn get(&self, interface: SwIfIndex) -> Option<Pace> {
        let word = self.0.get(interface.0 as usize)?.load(Ordering::Relaxed);
        let (interval, burst) = ((word >> 32) as u32, word as u32);
        // The first packet of a burst is not early.
        let early = u64::from(interval) * u64::from(burst.saturating_sub(1));
        (interval != 0).then_some(Pace { interval, early })
    }

    /// Sets both at once, in one word; an interval of 0: no limit.
    pub(crate) fn set(&self, interface: SwIfIndex, interval: u32, burst: u32) {
        if let Some(cell) = self.0.get(interface.0 as usize) {
            cell.store(u64::from(interval) << 32 | u64::from(burst), Ordering::Relaxed);
        }
    }
}
