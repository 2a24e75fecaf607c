//! What `show ip fib` is told.

use std::net::IpAddr;
use std::rc::Rc;

use shoal_adj::{AdjIndex, Family};
use shoal_wire::IpPrefix;

use super::Fib;
use crate::address;
use crate::change::State;
use crate::list::ListId;
use crate::slot::Slot;
use crate::{FibError, FibIndex, Path, Source};

/// What one path of a list does now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PathState {
    /// It leads somewhere.
    Resolved,
    /// The entries that cover its next hop lead nowhere.
    Unresolved,
    /// The entries that cover its next hop lead back to it.
    Loop,
}

/// A source's path list.
#[derive(Clone, Debug)]
pub struct List {
    /// Who contributes it.
    pub source: Source,
    /// Its number.
    pub index: u32,
    /// How many contributions share it.
    pub users: usize,
    /// Its paths, and what each does.
    pub paths: Rc<[Path]>,
    /// What the list as a whole does.
    pub state: PathState,
    /// The adjacency it leads to.
    pub adj: AdjIndex,
}

/// An entry of a table.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its prefix.
    pub prefix: IpPrefix,
    /// All contributions, the one that decides first.
    pub lists: Vec<List>,
    /// Packets and bytes it has counted; `None` when it does not count.
    pub counted: Option<(u64, u64)>,
}

impl Fib {
    /// Packets and bytes that an adjacency has counted; `None` when it does not count.
    pub fn counts(&self, adj: AdjIndex) -> Option<(u64, u64)> {
        self.state.borrow().adjacencies.counted_by(adj)
    }

    /// The entry of exactly this prefix.
    ///
    /// # Errors
    /// There is no such table or entry; the longest prefix that covers it is named.
    pub fn entry(&self, fib: FibIndex, prefix: impl Into<IpPrefix>) -> Result<Entry, FibError> {
        let (state, prefix) = (self.state.borrow(), prefix.into().normalized());
        let table = state.existing(address::family(&prefix), fib)?;
        let Some(slot) = table.get(&prefix) else {
            let nearest = table.longest(prefix.network(), prefix.len()).map(|(cover, _)| cover);
            return Err(FibError::NoEntry { prefix, table: table.id, nearest });
        };
        Ok(state.describe(fib, prefix, slot))
    }

    /// The entry of the longest prefix that covers an address.
    ///
    /// # Errors
    /// There is no such table.
    pub fn longest(&self, fib: FibIndex, addr: impl Into<IpAddr>) -> Result<Option<Entry>, FibError> {
        let (state, addr) = (self.state.borrow(), addr.into());
        let found = state.existing(Family::of(addr), fib)?.longest(addr, u8::MAX);
        Ok(found.map(|(prefix, slot)| state.describe(fib, prefix, slot)))
    }

    /// All entries of a table by address, then length.
    ///
    /// # Errors
    /// There is no such table.
    pub fn entries(&self, family: Family, fib: FibIndex) -> Result<Vec<Entry>, FibError> {
        let state = self.state.borrow();
        let mut all: Vec<(IpPrefix, Slot<'_>)> = Vec::new();
        state.existing(family, fib)?.each(|prefix, slot| all.push((prefix, slot)));
        all.sort_unstable_by_key(|(prefix, _)| *prefix);
        Ok(all.into_iter().map(|(prefix, slot)| state.describe(fib, prefix, slot)).collect())
    }
}

/// Who says what a configuration is written from; of both the first decides.
const SAID: [Source; 2] = [Source::Api, Source::Cli];

impl Fib {
    /// Prefixes of a length for which an operator or a client has said paths, by address: the first `most` behind
    /// `after`. A table is in no order, so all of it is looked at; what is kept and sorted of it is little.
    pub(crate) fn said(
        &self,
        (family, fib): (Family, FibIndex),
        len: u8,
        after: Option<IpPrefix>,
        most: usize,
    ) -> Vec<IpPrefix> {
        let state = self.state.borrow();
        let mut all: Vec<IpPrefix> = Vec::new();
        // No prefix from here on is among the first.
        let mut bound: Option<IpPrefix> = None;
        if let Some(table) = state.table(family, fib) {
            table.each_of_len(len, |prefix, slot| {
                let wanted =
                    after.is_none_or(|after| prefix > after) && bound.is_none_or(|bound| prefix < bound);
                if !wanted || !SAID.into_iter().any(|source| slot.of(source).is_some()) {
                    return;
                }
                all.push(prefix);
                if all.len() > 2 * most {
                    bound = Some(*all.select_nth_unstable(most).1);
                    all.truncate(most);
                }
            });
        }
        all.sort_unstable();
        all.truncate(most);
        all
    }

    /// The paths an operator or a client has said for a prefix.
    pub(crate) fn said_paths(&self, fib: FibIndex, prefix: &IpPrefix) -> Option<Rc<[Path]>> {
        let state = self.state.borrow();
        let slot = state.table(address::family(prefix), fib)?.get(prefix)?;
        let list = SAID.into_iter().find_map(|source| slot.of(source))?;
        state.lists.get(list).map(|list| Rc::clone(list.paths()))
    }

    /// Whether all routes of a table count, and which ones were asked to that are there.
    pub(crate) fn said_to_count(&self, family: Family, fib: FibIndex) -> (bool, Vec<IpPrefix>) {
        let state = self.state.borrow();
        let there = |prefix: &IpPrefix| state.table(family, fib).is_some_and(|t| t.get(prefix).is_some());
        let (all, mut wished) = state.counts.said(family, fib);
        wished.retain(there);
        (all, wished)
    }
}

impl State {
    fn describe(&self, fib: FibIndex, prefix: IpPrefix, slot: Slot<'_>) -> Entry {
        let lists = slot.all().filter_map(|c| self.describe_list(c.source, c.list)).collect();
        let counted = self.counts.of(fib, &prefix).and_then(|adj| self.adjacencies.route_counted(adj));
        Entry { prefix, lists, counted }
    }

    fn describe_list(&self, source: Source, id: ListId) -> Option<List> {
        let list = self.lists.get(id)?;
        let paths = Rc::clone(list.paths());
        Some(List { source, index: id.0, users: list.users, paths, state: list.state, adj: list.adj })
    }
}
