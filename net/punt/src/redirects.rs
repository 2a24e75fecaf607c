//! Where punted packets are redirected to, by the interface they came in by: shared by both planes.

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};

use shoal_adj::AdjIndex;
use shoal_infra::StableArena;
use shoal_interface::{MAX_INTERFACES, SwIfIndex};

/// The place of the entry for all other interfaces: `local0`, which receives nothing.
const ALL: SwIfIndex = SwIfIndex(0);

/// One family's ways. Clones are the same.
#[derive(Clone)]
pub(crate) struct RedirectTable(StableArena<AtomicU32>);

impl RedirectTable {
    pub fn new() -> io::Result<Self> {
        Ok(RedirectTable(StableArena::with_capacity(MAX_INTERFACES)?))
    }

    fn cell(&self, rx: SwIfIndex) -> Option<AdjIndex> {
        // 0 is what memory begins with.
        self.0.get(rx.0 as usize)?.load(Ordering::Acquire).checked_sub(1).map(AdjIndex)
    }

    /// The way of packets that an interface has received.
    pub fn of(&self, rx: SwIfIndex) -> Option<AdjIndex> {
        self.cell(rx).or_else(|| self.cell(ALL))
    }

    /// `None` stands for all interfaces without an entry of their own.
    pub fn set(&self, rx: Option<SwIfIndex>, way: Option<AdjIndex>) {
        if let Some(cell) = self.0.get(rx.unwrap_or(ALL).0 as usize) {
            cell.store(way.map_or(0, |adj| adj.0 + 1), Ordering::Release);
        }
    }
}
