//! Packets and bytes by adjacency, for those who ask.
//!
//! A record that is counted says so in a bit of its rewrite's length, so that it is no plain Ethernet rewrite: the
//! short way of the rewrite nodes and superpaths never sees it, and has nothing to ask. Counting is done on their long
//! way. The counter is made when it is first asked for.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use shoal_graph::counter::Combined;

use super::{AdjError, Adjacencies, CAPACITY, Key};
use crate::{Adj, AdjIndex};

/// The counter's name, VPP's.
const NAME: &str = "/net/adjacency";

/// Which adjacencies count their packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Counted {
    /// All there are and will be.
    All,
    /// One of them.
    One(AdjIndex),
}

/// Whether they do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Counting {
    /// From now on.
    On,
    /// No more; what was counted is kept until counting restarts.
    Off,
}

/// Who counts.
#[derive(Default)]
pub(super) struct Counts {
    all: bool,
    some: BTreeSet<AdjIndex>,
}

impl Counts {
    fn of(&self, index: AdjIndex) -> bool {
        self.all || self.some.contains(&index)
    }
}

impl Adjacencies {
    /// Lets adjacencies count packets and bytes, or no more. One that begins, begins at zero.
    ///
    /// # Errors
    /// There is no such adjacency, it is a path list's or leads to no neighbour, or the stats segment has no room for the counter; nothing is changed then.
    pub fn count(&self, which: Counted, counting: Counting) -> Result<(), AdjError> {
        let on = counting == Counting::On;
        if let Counted::One(index) = which
            && !self.is_entered(index)
        {
            let all = self.entries.borrow();
            let nearest = all.keys().min_by_key(|i| i.0.abs_diff(index.0)).copied().unwrap_or_default();
            return Err(AdjError::NoAdjacency { index, nearest });
        }
        if let Counted::One(index) = which
            && self.entries.borrow().get(&index).is_none_or(|e| e.key.interface().is_none())
        {
            return Err(AdjError::NoHeader(index));
        }
        if on {
            self.make_counter()?;
        }
        {
            let mut counts = self.counts.borrow_mut();
            match which {
                Counted::All => *counts = Counts { all: on, some: BTreeSet::new() },
                Counted::One(index) if on => drop(counts.some.insert(index)),
                Counted::One(index) => {
                    if counts.all {
                        return Err(AdjError::AllCount(index));
                    }
                    counts.some.remove(&index);
                }
            }
        }
        self.recount();
        Ok(())
    }

    /// Whether all adjacencies count.
    pub fn all_count(&self) -> bool {
        self.counts.borrow().all
    }

    fn make_counter(&self) -> Result<(), AdjError> {
        if self.table.counter.get().is_none() {
            let made = self.graph.counters().combined(NAME, CAPACITY);
            let made: Combined = made.map_err(|e| AdjError::NoCounter(e.to_string()))?;
            let _ = OnceLock::set(&self.table.counter, made);
        }
        self.make_room();
        Ok(())
    }

    /// The counter has a place for every index there is.
    fn make_room(&self) {
        if let Some(counter) = self.table.counter.get() {
            counter.ensure(self.next.get() as usize);
        }
    }

    /// Rewrites the records whose packets are counted from now on, or no more.
    fn recount(&self) {
        let all: Vec<(AdjIndex, Key)> = self.entries.borrow().iter().map(|(i, e)| (*i, e.key)).collect();
        for (index, key) in all {
            let old = self.get(index);
            // Copies follow their originals.
            if matches!(key, Key::Own(_)) || old.is_counted() == self.counted(index, old).is_counted() {
                continue;
            }
            if !old.is_counted() {
                self.begin_count(index);
            }
            self.renew(index, key);
        }
    }

    fn begin_count(&self, index: AdjIndex) {
        if let Some(counter) = self.table.counter.get() {
            counter.zero(index.0 as usize);
        }
    }

    /// A record as it is to be written: counted, if it is one that can be and is to be.
    pub(super) fn counted(&self, index: AdjIndex, adj: Adj) -> Adj {
        adj.with_count(adj.is_rewrite() && self.counts.borrow().of(index))
    }

    /// A new adjacency's count begins.
    pub(super) fn begin(&self, index: AdjIndex) {
        if self.table.counter.get().is_some() {
            self.make_room();
            self.begin_count(index);
            // The adjacency that had the index before was counted, not this one.
            self.counts.borrow_mut().some.remove(&index);
        }
    }

    /// What an adjacency has counted, packets and bytes with the new header; `None` when it does not count.
    pub fn counted_by(&self, index: AdjIndex) -> Option<(u64, u64)> {
        let counter = self.table.counter.get().filter(|_| self.get(index).is_counted())?;
        Some(counter.sum(index.0 as usize))
    }
}
