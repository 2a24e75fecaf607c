//! Which table sources are looked up in, by interface: shared by both planes.

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};

use shoal_fib::FibIndex;
use shoal_infra::StableArena;
use shoal_interface::{MAX_INTERFACES, SwIfIndex};

/// One family's tables in one direction. Clones are the same.
#[derive(Clone)]
pub struct Tables(StableArena<AtomicU32>);

impl Tables {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Tables(StableArena::with_capacity(MAX_INTERFACES)?))
    }

    /// The table that was chosen for an interface; `None`: its own.
    #[inline(always)]
    pub(crate) fn get(&self, interface: SwIfIndex) -> Option<FibIndex> {
        // 0 is what memory begins with.
        let cell = self.0.get(interface.0 as usize)?;
        cell.load(Ordering::Relaxed).checked_sub(1).map(FibIndex)
    }

    pub(crate) fn set(&self, interface: SwIfIndex, table: Option<FibIndex>) {
        if let Some(cell) = self.0.get(interface.0 as usize) {
            cell.store(table.map_or(0, |t| t.0 + 1), Ordering::Relaxed);
        }
    }
}
