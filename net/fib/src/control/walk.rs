//! Large tables entry by entry, a few at a time, while they change: to tell what they hold, and to take away what a
//! client does not say any more.

use std::rc::Rc;

use shoal_adj::{AdjIndex, Family};
use shoal_wire::IpPrefix;

use super::Fib;
use crate::change::State;
use crate::slot::Slot;
use crate::table::Place;
use crate::{FibError, FibIndex, Path, Source};

/// A walk through a table, which ends when there is another table of its index.
#[derive(Clone, Copy, Debug)]
pub struct Walk {
    family: Family,
    table: FibIndex,
    id: u32,
    /// `None`: all was seen.
    next: Option<Place>,
}

/// Where packets of an entry go.
#[derive(Clone, Debug)]
pub struct Route {
    /// Its prefix.
    pub prefix: IpPrefix,
    /// Who contributes the paths.
    pub source: Source,
    /// The paths.
    pub paths: Rc<[Path]>,
    /// The adjacency that counts its packets, if they are counted.
    pub counter: Option<AdjIndex>,
}

/// A walk through a table in order of its prefixes, which ends when there is another table of its index.
#[derive(Clone, Copy, Debug)]
pub struct InOrder {
    pub(super) family: Family,
    pub(crate) table: FibIndex,
    id: u32,
    /// Where it goes on, an address; `None`: all was seen.
    next: Option<u128>,
}

impl InOrder {
    /// Whether there may be more.
    pub fn goes_on(&self) -> bool {
        self.next.is_some()
    }
}

impl Walk {
    /// Whether there may be more.
    pub fn goes_on(&self) -> bool {
        self.next.is_some()
    }
}

impl Fib {
    /// A walk from a table's first entry on.
    ///
    /// # Errors
    /// There is no such table.
    pub fn walk(&self, family: Family, table: FibIndex) -> Result<Walk, FibError> {
        Ok(Walk { family, table, id: self.id_of(family, table)?, next: Some(Place::default()) })
    }

    /// A walk in order of prefixes from a table's first entry on. It holds nothing of the table.
    ///
    /// # Errors
    /// There is no such table.
    pub fn in_order(&self, family: Family, table: FibIndex) -> Result<InOrder, FibError> {
        Ok(InOrder { family, table, id: self.id_of(family, table)?, next: Some(0) })
    }

    /// Some more entries; with a source, what that one contributes to those to which it does. Who stays while the walk
    /// lasts is met once. There are some dozens at a time, or none.
    pub fn walk_on(&self, walk: &mut Walk, source: Option<Source>, mut act: impl FnMut(Route)) {
        let (state, table) = (self.state.borrow(), walk.table);
        state.some(walk, |state, prefix, slot| {
            if let Some(route) = state.route(table, prefix, slot, source) {
                act(route);
            }
        });
    }

    /// Where packets of the entry of exactly this prefix go, or of the longest that covers it.
    ///
    /// # Errors
    /// There is no such table or entry.
    pub fn route(&self, fib: FibIndex, prefix: IpPrefix, of: Covering) -> Result<Route, FibError> {
        let (state, prefix) = (self.state.borrow(), prefix.normalized());
        let table = state.existing(crate::address::family(&prefix), fib)?;
        let found = match of {
            Covering::Itself => table.get(&prefix).map(|slot| (prefix, slot)),
            Covering::Longest => table.longest(prefix.network(), prefix.len() + 1),
        };
        let route = found.and_then(|(prefix, slot)| state.route(fib, prefix, slot, None));
        route.ok_or(FibError::NoEntry { prefix, table: table.id, nearest: None })
    }

    /// The adjacency that counts an entry's packets, if they are counted.
    pub fn counter(&self, fib: FibIndex, prefix: &IpPrefix) -> Option<AdjIndex> {
        self.state.borrow().counts.of(fib, &prefix.normalized())
    }

    /// Marks some more of what the API contributes: it goes with [`Fib::sweep`] unless a client adds it again before.
    pub fn mark(&self, walk: &mut Walk) {
        let mut state = self.state.borrow_mut();
        let mut mine = Vec::new();
        let here = *walk;
        state.some(walk, |_, prefix, slot| mine.extend(slot.of(Source::Api).map(|_| prefix)));
        if let Ok(table) = state.table_mut(here.family, here.table) {
            for prefix in &mine {
                table.mark(prefix);
            }
        }
    }

    /// Takes away some more of what the API contributes: all of it, or what is marked.
    ///
    /// # Errors
    /// The trie refuses; what was to come is still there.
    pub fn sweep(&self, walk: &mut Walk, what: Sweep) -> Result<(), FibError> {
        let mut state = self.state.borrow_mut();
        let mut gone = Vec::new();
        let table = walk.table;
        state.some(walk, |_, prefix, slot| {
            let goes = what == Sweep::All || slot.is_marked();
            gone.extend(slot.of(Source::Api).filter(|_| goes).map(|_| prefix));
        });
        for prefix in &gone {
            if let Some(list) = state.take(table, prefix, Source::Api)? {
                state.release(list);
            }
        }
        Ok(())
    }
}

/// Which entry is meant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Covering {
    /// The one of the prefix itself.
    Itself,
    /// The longest that covers it.
    Longest,
}

/// What is taken away.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sweep {
    /// All that the API contributes.
    All,
    /// Paths that a client has not added again since they were marked.
    Marked,
}

impl State {
    /// The next few entries in order, or none after some steps of a search for them.
    pub(super) fn next_in_order(&self, walk: &mut InOrder, act: impl FnMut(IpPrefix, Slot<'_>)) {
        let table = self.table(walk.family, walk.table).filter(|table| table.id == walk.id);
        let (Some(table), Some(from)) = (table, walk.next) else {
            walk.next = None;
            return;
        };
        walk.next = table.in_order(from, act);
    }

    fn some(&self, walk: &mut Walk, mut act: impl FnMut(&State, IpPrefix, Slot<'_>)) {
        let table = self.table(walk.family, walk.table).filter(|table| table.id == walk.id);
        let (Some(table), Some(from)) = (table, walk.next) else {
            walk.next = None;
            return;
        };
        walk.next = table.some(from, |prefix, slot| act(self, prefix, slot));
    }

    fn route(&self, fib: FibIndex, prefix: IpPrefix, slot: Slot<'_>, of: Option<Source>) -> Option<Route> {
        let (source, list) = match of {
            Some(source) => (source, slot.of(source)?),
            // A path MTU says nothing of where packets go, if anybody else does.
            None => slot.deciding(),
        };
        let paths = Rc::clone(self.lists.get(list)?.paths());
        Some(Route { prefix, source, paths, counter: self.counts.of(fib, &prefix) })
    }
}
