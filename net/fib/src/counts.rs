//! Which routes count their packets. A route does not by default: a counter costs an adjacency and a number for each
//! thread, and packets that are counted do not take a superpath.

use std::collections::{BTreeMap, BTreeSet};

use shoal_adj::{AdjIndex, Counting, Family};
use shoal_infra::budget;
use shoal_wire::IpPrefix;

use crate::change::State;
use crate::{FibError, FibIndex, address};

/// Bytes of a counter in the control plane, rather too many.
const BYTES: usize = 512;

/// Which routes count.
#[derive(Default)]
pub(crate) struct Counts {
    /// Entries that count, and by which adjacency.
    by_entry: BTreeMap<(FibIndex, IpPrefix), AdjIndex>,
    /// Prefixes that count whenever there is an entry.
    wished: BTreeSet<(FibIndex, IpPrefix)>,
    /// Tables of which all entries do.
    all: BTreeSet<(Family, FibIndex)>,
}

impl Counts {
    pub fn of(&self, fib: FibIndex, prefix: &IpPrefix) -> Option<AdjIndex> {
        if self.by_entry.is_empty() { None } else { self.by_entry.get(&(fib, *prefix)).copied() }
    }

    pub fn len(&self) -> usize {
        self.by_entry.len()
    }

    fn wants(&self, fib: FibIndex, prefix: &IpPrefix) -> bool {
        let family = address::family(prefix);
        (!self.all.is_empty() && self.all.contains(&(family, fib)))
            || (!self.wished.is_empty() && self.wished.contains(&(fib, *prefix)))
    }

    /// Whether all entries of a table are to count, and which ones are by themselves.
    pub fn said(&self, family: Family, fib: FibIndex) -> (bool, Vec<IpPrefix>) {
        let mine = |(f, prefix): &&(FibIndex, IpPrefix)| *f == fib && address::family(prefix) == family;
        (self.all.contains(&(family, fib)), self.wished.iter().filter(mine).map(|(_, p)| *p).collect())
    }

    pub fn forget_table(&mut self, family: Family, fib: FibIndex) {
        self.all.remove(&(family, fib));
        self.wished.retain(|(f, prefix)| *f != fib || address::family(prefix) != family);
    }
}

impl State {
    /// What the leaf of an entry that leads to `adj` holds: its counter, if it counts.
    pub(crate) fn leaf(&self, fib: FibIndex, prefix: &IpPrefix, adj: AdjIndex) -> AdjIndex {
        self.counts.of(fib, prefix).unwrap_or(adj)
    }

    /// Makes an entry's place in the trie lead to an adjacency, by way of its counter if it counts.
    pub(crate) fn write_leaf(
        &mut self,
        fib: FibIndex,
        prefix: &IpPrefix,
        adj: AdjIndex,
    ) -> Result<(), FibError> {
        if let Some(counter) = self.counts.of(fib, prefix) {
            if adj != AdjIndex::NONE {
                self.adjacencies.set_route_counter(counter, adj);
                return Ok(());
            }
            // Where there is no route there is nothing to count.
            self.write(fib, prefix, adj)?;
            self.end_count(fib, prefix);
            return Ok(());
        }
        let counts = adj != AdjIndex::NONE && self.counts.wants(fib, prefix);
        if !counts {
            return self.write(fib, prefix, adj);
        }
        // A route is worth more than its count.
        let counted = self.begin_count(fib, prefix, adj);
        if let Err(why) = &counted {
            tracing::warn!("{prefix} does not count: {why}");
        }
        let leaf = counted.unwrap_or(adj);
        self.write(fib, prefix, leaf).inspect_err(|_| self.end_count(fib, prefix))
    }

    fn begin_count(&mut self, fib: FibIndex, prefix: &IpPrefix, adj: AdjIndex) -> Result<AdjIndex, FibError> {
        budget::take(BYTES).map_err(FibError::Counter)?;
        let made = self.adjacencies.create_route_counter(adj);
        let counter = made.inspect_err(|_| budget::give_back(BYTES))?;
        self.counts.by_entry.insert((fib, *prefix), counter);
        Ok(counter)
    }

    /// An entry counts no more, nor does its leaf lead to the counter.
    pub(crate) fn end_count(&mut self, fib: FibIndex, prefix: &IpPrefix) {
        if self.counts.by_entry.is_empty() {
            return;
        }
        if let Some(counter) = self.counts.by_entry.remove(&(fib, *prefix)) {
            budget::give_back(BYTES);
            self.adjacencies.unlock(counter);
        }
    }

    /// Lets one entry count, or no more.
    pub(crate) fn count_entry(
        &mut self,
        fib: FibIndex,
        prefix: &IpPrefix,
        counting: Counting,
    ) -> Result<(), FibError> {
        let on = counting == Counting::On;
        let there = self.existing(address::family(prefix), fib)?.get(prefix).is_some();
        // The wish outlives the route.
        if !on && !there && self.counts.wished.remove(&(fib, *prefix)) {
            return Ok(());
        }
        let table = self.existing(address::family(prefix), fib)?;
        let Some(slot) = table.get(prefix) else {
            let nearest = table.longest(prefix.network(), prefix.len()).map(|(cover, _)| cover);
            return Err(FibError::NoEntry { prefix: *prefix, table: table.id, nearest });
        };
        let adj = self.adj_of(slot.best().list);
        if !on {
            let (family, id) = (address::family(prefix), table.id);
            if self.counts.all.contains(&(family, fib)) {
                return Err(FibError::AllCount { prefix: *prefix, table: id });
            }
            self.counts.wished.remove(&(fib, *prefix));
            return self.uncount(fib, prefix, adj);
        }
        self.begin_counting(fib, prefix, adj)?;
        self.counts.wished.insert((fib, *prefix));
        Ok(())
    }

    fn begin_counting(&mut self, fib: FibIndex, prefix: &IpPrefix, adj: AdjIndex) -> Result<(), FibError> {
        if adj == AdjIndex::NONE || self.counts.of(fib, prefix).is_some() {
            return Ok(());
        }
        let counter = self.begin_count(fib, prefix, adj)?;
        self.write(fib, prefix, counter).inspect_err(|_| self.end_count(fib, prefix))
    }

    fn uncount(&mut self, fib: FibIndex, prefix: &IpPrefix, adj: AdjIndex) -> Result<(), FibError> {
        if self.counts.of(fib, prefix).is_none() {
            return Ok(());
        }
        self.write(fib, prefix, adj)?;
        self.end_count(fib, prefix);
        Ok(())
    }

    /// Lets all entries of a table count, those to come included, or none any more. On error as many count as before.
    pub(crate) fn count_table(
        &mut self,
        family: Family,
        fib: FibIndex,
        counting: Counting,
    ) -> Result<(), FibError> {
        let mut all: Vec<IpPrefix> = Vec::new();
        self.existing(family, fib)?.each(|prefix, _| all.push(prefix));
        let adj = |state: &State, prefix: &IpPrefix| {
            let slot = state.table(family, fib).and_then(|t| t.get(prefix));
            slot.map_or(AdjIndex::NONE, |slot| state.adj_of(slot.best().list))
        };
        if counting == Counting::Off {
            self.counts.forget_table(family, fib);
            return all.iter().try_for_each(|prefix| self.uncount(fib, prefix, adj(self, prefix)));
        }
        for (done, prefix) in all.iter().enumerate() {
            if self.counts.of(fib, prefix).is_some() {
                continue;
            }
            if let Err(why) = self.begin_counting(fib, prefix, adj(self, prefix)) {
                for prefix in all.iter().take(done) {
                    if !self.counts.wants(fib, prefix) {
                        let _ = self.uncount(fib, prefix, adj(self, prefix));
                    }
                }
                return Err(why);
            }
        }
        self.counts.all.insert((family, fib));
        Ok(())
    }

    /// Looks for counters that lead elsewhere than their entries; each is a line.
    pub(crate) fn check_counts(&self, broken: &mut Vec<String>) {
        for ((fib, prefix), counter) in &self.counts.by_entry {
            let slot = self.table(address::family(prefix), *fib).and_then(|t| t.get(prefix));
            let wanted = slot.map(|slot| self.adj_of(slot.best().list));
            let found = self.adjacencies.get(*counter).behind();
            if wanted != Some(found) {
                broken.push(format!(
                    "the counter of {prefix} in table index {fib} leads to {found}, not {wanted:?}"
                ));
            }
        }
    }
}
