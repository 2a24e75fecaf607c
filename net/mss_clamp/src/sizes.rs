//! How large segments may be, by interface: shared by both planes.

use std::io;
use std::sync::atomic::{AtomicU16, Ordering};

use shoal_infra::StableArena;
use shoal_interface::{MAX_INTERFACES, SwIfIndex};

/// One family's sizes. Clones are the same.
#[derive(Clone)]
pub struct Sizes(StableArena<AtomicU16>);

impl Sizes {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Sizes(StableArena::with_capacity(MAX_INTERFACES)?))
    }

    /// The largest segment on an interface; all sizes where none is set.
    #[inline(always)]
    pub(crate) fn get(&self, interface: SwIfIndex) -> u16 {
        match self.0.get(interface.0 as usize).map_or(0, |size| size.load(Ordering::Relaxed)) {
            0 => u16::MAX,
            size => size,
        }
    }

    pub(crate) fn set(&self, interface: SwIfIndex, size: u16) {
        if let Some(cell) = self.0.get(interface.0 as usize) {
            cell.store(size, Ordering::Relaxed);
        }
    }
}
