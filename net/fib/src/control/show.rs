//! The arguments of `show ip fib`.

use std::net::IpAddr;
use std::rc::Rc;

use shoal_adj::{AdjIndex, Family};
use shoal_wire::IpPrefix;

use super::{Fib, InOrder};
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

/// A path list that some entries share.
#[derive(Clone, Debug)]
pub(crate) struct PathList {
    pub index: u32,
    pub family: Family,
    pub list: List,
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
    /// The first path list of a number from `from` on.
    pub(crate) fn path_list(&self, from: u32) -> Option<PathList> {
        let state = self.state.borrow();
        let (id, found) = state.lists.from(ListId(from))?;
        let list = List {
            source: Source::Special,
            index: id.0,
            users: found.users,
            paths: Rc::clone(found.paths()),
            state: found.state,
            adj: found.adj,
        };
        Some(PathList { index: id.0, family: found.key.family, list })
    }

    /// Packets and bytes that an adjacency has counted; `None` when it does not count.
    pub fn counts(&self, adj: AdjIndex) -> Option<(u64, u64)> {
        self.state.borrow().adjacencies.counted_by(adj)
    }

    /// The node that an adjacency leads to.
    pub(crate) fn node_of(&self, adj: AdjIndex) -> &'static str {
        self.state.borrow().adjacencies.node_of(adj).unwrap_or("node")
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

    /// All entries of a table by address, then length. Of a table that may be large, [`next_entries`](Self::next_entries)
    /// tells a few at a time.
    ///
    /// # Errors
    /// There is no such table.
    pub fn entries(&self, family: Family, fib: FibIndex) -> Result<Vec<Entry>, FibError> {
        let (mut walk, mut all) = (self.in_order(family, fib)?, Vec::new());
        while walk.goes_on() {
            all.extend(self.next_entries(&mut walk));
        }
        Ok(all)
    }

    /// The next few entries of a walk: those of the next address, or none after some steps of a search for it.
    pub fn next_entries(&self, walk: &mut InOrder) -> Vec<Entry> {
        let (state, fib, mut some) = (self.state.borrow(), walk.table, Vec::new());
        state.next_in_order(walk, |prefix, slot| some.push(state.describe(fib, prefix, slot)));
        some
    }
}

/// Who says what a configuration is written from; of both the first decides.
const CONFIG_SOURCES: [Source; 2] = [Source::Api, Source::Cli];

impl Fib {
    /// The next few prefixes of a walk for which an operator or a client has set paths, and those.
    pub(crate) fn next_said(&self, walk: &mut InOrder, mut act: impl FnMut(IpPrefix, Rc<[Path]>)) {
        let state = self.state.borrow();
        state.next_in_order(walk, |prefix, slot| {
            let list = CONFIG_SOURCES.into_iter().find_map(|source| slot.of(source));
            if let Some(list) = list.and_then(|list| state.lists.get(list)) {
                act(prefix, Rc::clone(list.paths()));
            }
        });
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
