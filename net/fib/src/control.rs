//! The control plane of forwarding tables.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::rc::Rc;
use std::sync::Arc;

use shoal_adj::{AdjIndex, Adjacencies};
use shoal_buffer::SwIfIndex;
use shoal_graph::Graph;
use shoal_infra::{Mtrie4, Published};
use shoal_interface::{Event, Interfaces};
use shoal_module::{Control, InitError};
use shoal_wire::Ip4Prefix;

use crate::change::State;
use crate::data::FibTables;
use crate::list::{ListId, Lists};
use crate::{FibError, FibIndex, Path, Source};

mod show;
mod tables;

pub use show::{Entry, List, PathState};
pub use tables::TableInfo;

/// Most plies of table 0's trie: enough for ten million routes to hosts in different /24s never to be refused
/// before memory is. Address space only.
const DEFAULT_PLIES: usize = 1 << 22;

/// All forwarding tables.
///
/// What describes neighbours ([`Adjacencies::set_describe`]) is asked while a route is being added, so it must not
/// call back in here.
pub struct Fib {
    graph: Rc<Graph>,
    tables: FibTables,
    state: RefCell<State>,
}

/// Whether new paths take the place of a source's old ones.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Replace,
    Append,
}

impl Fib {
    /// Table 0 with its special entries.
    pub(crate) fn new(control: &Rc<Control>) -> Result<Rc<Self>, InitError> {
        let (trie, writer) = Mtrie4::new(DEFAULT_PLIES)?;
        let tables = FibTables { default: (*trie).clone(), others: Arc::new(Published::new(Vec::new())) };
        let interfaces = control.get::<Interfaces>()?;
        interfaces.subscribe(|control, event| {
            if let (Ok(fib), Event::Deleting(interface)) = (control.get::<Fib>(), event) {
                fib.forget_interface(interface);
            }
        });
        let state = State {
            interfaces,
            adjacencies: control.get::<Adjacencies>()?,
            published: tables.clone(),
            tables: Vec::new(),
            by_id: BTreeMap::new(),
            lists: Lists::default(),
            trackers: BTreeMap::new(),
        };
        let fib = Rc::new(Fib { graph: control.graph()?, tables, state: RefCell::new(state) });
        fib.enter(0, None, writer).map_err(|e| InitError::Other(e.to_string()))?;
        Ok(fib)
    }

    /// The tables packets read.
    pub fn tables(&self) -> FibTables {
        self.tables.clone()
    }

    /// A source gives an entry these paths instead of those it gave before. Bits of the prefix beyond its length
    /// do not matter.
    ///
    /// # Errors
    /// The table is not there or full, there is no path, or one cannot be.
    pub fn add(
        &self,
        fib: FibIndex,
        prefix: Ip4Prefix,
        source: Source,
        paths: &[Path],
    ) -> Result<(), FibError> {
        self.change_many(fib, [prefix], source, paths, Mode::Replace).map(drop)
    }

    /// Gives many entries the same paths; all of them or, on error, none. Returns how many.
    ///
    /// # Errors
    /// As [`Fib::add`].
    pub fn add_many(
        &self,
        fib: FibIndex,
        prefixes: impl IntoIterator<Item = Ip4Prefix>,
        source: Source,
        paths: &[Path],
    ) -> Result<usize, FibError> {
        self.change_many(fib, prefixes, source, paths, Mode::Replace)
    }

    /// Gives many entries these paths besides those that the source gave before; all of them or, on error, none.
    /// A path that is there already takes over the new weight and preference.
    ///
    /// # Errors
    /// As [`Fib::add`].
    pub fn add_paths(
        &self,
        fib: FibIndex,
        prefixes: impl IntoIterator<Item = Ip4Prefix>,
        source: Source,
        paths: &[Path],
    ) -> Result<usize, FibError> {
        self.change_many(fib, prefixes, source, paths, Mode::Append)
    }

    fn change_many(
        &self,
        fib: FibIndex,
        prefixes: impl IntoIterator<Item = Ip4Prefix>,
        source: Source,
        paths: &[Path],
        mode: Mode,
    ) -> Result<usize, FibError> {
        let mut state = self.state.borrow_mut();
        state.existing(fib)?;
        let paths = state.checked(paths)?;
        // Held while the change lasts, so that it is not made anew for each prefix; and given back whatever happens.
        let held = state.acquire(&paths)?;
        let mut undo: Vec<(Ip4Prefix, Option<ListId>)> = Vec::new();
        let mut failed = None;
        for prefix in prefixes {
            let prefix = prefix.normalized();
            match state.change_one(fib, prefix, source, &paths, mode) {
                Ok(old) => undo.push((prefix, old)),
                Err(e) => {
                    failed = Some(e);
                    break;
                }
            }
        }
        let count = undo.len();
        match failed {
            None => {
                for old in undo.into_iter().filter_map(|(_, old)| old) {
                    state.release(old);
                }
            }
            Some(_) => {
                for (prefix, old) in undo.into_iter().rev() {
                    state.put_back(fib, prefix, source, old);
                }
            }
        }
        state.release(held);
        failed.map_or(Ok(count), Err)
    }

    /// A source withdraws all its paths from an entry.
    ///
    /// # Errors
    /// It contributes nothing there.
    pub fn remove(&self, fib: FibIndex, prefix: Ip4Prefix, source: Source) -> Result<(), FibError> {
        self.remove_many(fib, [prefix], source).map(drop)
    }

    /// A source withdraws all its paths from many entries; returns from how many. On error those before the entry
    /// named are gone.
    ///
    /// # Errors
    /// It contributes nothing to one of them.
    pub fn remove_many(
        &self,
        fib: FibIndex,
        prefixes: impl IntoIterator<Item = Ip4Prefix>,
        source: Source,
    ) -> Result<usize, FibError> {
        let mut state = self.state.borrow_mut();
        state.existing(fib)?;
        let mut count = 0;
        for prefix in prefixes {
            let prefix = prefix.normalized();
            match state.take(fib, prefix, source)? {
                Some(list) => state.release(list),
                None => return Err(state.no_entry(fib, prefix, source)),
            }
            count += 1;
        }
        Ok(count)
    }

    /// A source withdraws some of its paths from many entries; an entry that is left without any loses the source.
    /// Paths are compared by where they lead. Nothing is changed on error.
    ///
    /// # Errors
    /// One of the entries has none of these paths.
    pub fn remove_paths(
        &self,
        fib: FibIndex,
        prefixes: impl IntoIterator<Item = Ip4Prefix>,
        source: Source,
        paths: &[Path],
    ) -> Result<usize, FibError> {
        let mut state = self.state.borrow_mut();
        let prefixes: Vec<Ip4Prefix> = prefixes.into_iter().map(|p| p.normalized()).collect();
        for prefix in &prefixes {
            state.check_paths(fib, *prefix, source, paths)?;
        }
        for prefix in &prefixes {
            state.drop_paths(fib, *prefix, source, |path| paths.iter().any(|p| p.via == path.via))?;
        }
        Ok(prefixes.len())
    }

    /// All entries lose the paths that name an interface which is about to go; counted and said in the event log.
    fn forget_interface(&self, interface: SwIfIndex) {
        let mut state = self.state.borrow_mut();
        let gone = |path: &Path| path.via.interface() == Some(interface);
        let lists: Vec<ListId> =
            state.lists.iter().filter(|(_, l)| l.paths.iter().any(gone)).map(|(id, _)| id).collect();
        if lists.is_empty() {
            return;
        }
        // Rare enough to look at all entries; keeping them by interface would cost each route memory.
        let mut hit: Vec<(FibIndex, Ip4Prefix, Source)> = Vec::new();
        for table in state.tables.iter().flatten() {
            for (prefix, slot) in table.entries() {
                let mine = slot.all().filter(|c| lists.contains(&c.list));
                hit.extend(mine.map(|c| (table.index, prefix, c.source)));
            }
        }
        let routes = hit.iter().filter(|(_, _, source)| *source != Source::Interface).count();
        for (fib, prefix, source) in hit {
            if let Err(e) = state.drop_paths(fib, prefix, source, gone) {
                tracing::warn!("{prefix} keeps a path through a deleted interface: {e}");
            }
        }
        if routes > 0 {
            let name = state.interfaces.name(interface).unwrap_or_default();
            self.graph.events().write(0, format!("{routes} routes withdrawn: {name} is deleted"));
            tracing::info!("{routes} routes withdrawn: {name} is deleted");
        }
    }

    /// Where a packet to `addr` goes now.
    pub fn lookup(&self, fib: FibIndex, addr: Ipv4Addr) -> AdjIndex {
        let state = self.state.borrow();
        let found = state.table(fib).and_then(|t| t.longest(addr, 33));
        found.and_then(|(_, slot)| state.lists.get(slot.best().list)).map_or(AdjIndex::NONE, |l| l.adj)
    }
}

/// `count` prefixes of one length, side by side, beginning with `first`.
///
/// # Errors
/// They end beyond the last address.
pub fn consecutive(
    first: Ip4Prefix,
    count: u32,
) -> Result<impl Iterator<Item = Ip4Prefix> + Clone, FibError> {
    let first = first.normalized();
    let step = 1u64 << (Ip4Prefix::MAX_LEN - first.len());
    let start = u64::from(first.network().to_bits());
    let most = ((1u64 << 32) - start) / step;
    if u64::from(count) > most {
        return Err(FibError::Count { first, count, most });
    }
    let at = move |i: u64| Ip4Prefix::new(Ipv4Addr::from_bits((start + i * step) as u32), first.len()).ok();
    Ok((0..u64::from(count)).filter_map(at))
}

impl State {
    /// Paths that can be, in the order lists keep them.
    fn checked(&self, paths: &[Path]) -> Result<Vec<Path>, FibError> {
        for path in paths {
            if path.weight == 0 {
                return Err(FibError::Weight);
            }
            if let Some(address) = path.via.address()
                && (address.is_unspecified() || address.is_multicast() || address.is_broadcast())
            {
                return Err(FibError::NextHop(address));
            }
            if let Some(fib) = path.via.table() {
                self.existing(fib)?;
            }
            if let Some(interface) = path.via.interface() {
                self.interfaces.data(interface).map_err(shoal_adj::AdjError::from)?;
            }
        }
        if paths.is_empty() {
            return Err(FibError::NoPaths);
        }
        Ok(merged(&[], paths))
    }

    fn change_one(
        &mut self,
        fib: FibIndex,
        prefix: Ip4Prefix,
        source: Source,
        paths: &[Path],
        mode: Mode,
    ) -> Result<Option<ListId>, FibError> {
        let old = match mode {
            Mode::Append => self.paths_of(fib, prefix, source),
            Mode::Replace => None,
        };
        let list = match old {
            Some(old) => self.acquire(&merged(&old, paths))?,
            None => self.acquire(paths)?,
        };
        self.put(fib, prefix, source, list).inspect_err(|_| self.release(list))
    }

    fn put_back(&mut self, fib: FibIndex, prefix: Ip4Prefix, source: Source, old: Option<ListId>) {
        let undone = match old {
            Some(old) => self.put(fib, prefix, source, old),
            None => self.take(fib, prefix, source),
        };
        match undone {
            Ok(Some(list)) => self.release(list),
            Ok(None) => {}
            Err(e) => tracing::warn!("{prefix} cannot be put back: {e}"),
        }
    }

    fn paths_of(&self, fib: FibIndex, prefix: Ip4Prefix, source: Source) -> Option<Rc<[Path]>> {
        let list = self.table(fib)?.get(prefix)?.of(source)?;
        self.lists.get(list).map(|l| Rc::clone(&l.paths))
    }

    fn check_paths(
        &self,
        fib: FibIndex,
        prefix: Ip4Prefix,
        source: Source,
        paths: &[Path],
    ) -> Result<(), FibError> {
        let table = self.existing(fib)?.id;
        let there = self.paths_of(fib, prefix, source).ok_or_else(|| self.no_entry(fib, prefix, source))?;
        if paths.iter().all(|p| there.iter().any(|t| t.via == p.via)) {
            return Ok(());
        }
        Err(FibError::NoPath { prefix, table, by: source, count: there.len() })
    }

    fn drop_paths(
        &mut self,
        fib: FibIndex,
        prefix: Ip4Prefix,
        source: Source,
        gone: impl Fn(&Path) -> bool,
    ) -> Result<(), FibError> {
        let Some(there) = self.paths_of(fib, prefix, source) else { return Ok(()) };
        let left: Vec<Path> = there.iter().filter(|p| !gone(p)).copied().collect();
        let old = if left.is_empty() {
            self.take(fib, prefix, source)?
        } else {
            let list = self.acquire(&left)?;
            self.put(fib, prefix, source, list).inspect_err(|_| self.release(list))?
        };
        if let Some(old) = old {
            self.release(old);
        }
        Ok(())
    }

    fn no_entry(&self, fib: FibIndex, prefix: Ip4Prefix, source: Source) -> FibError {
        let Some(table) = self.table(fib) else { return FibError::NoIndex(fib) };
        if let Some(slot) = table.get(prefix) {
            return FibError::OtherSource { prefix, table: table.id, by: source, from: slot.best().source };
        }
        let covers = table.covers(prefix.network(), 33);
        let nearest = covers.filter(|(_, slot)| slot.of(source).is_some()).map(|(cover, _)| cover).next();
        FibError::NoEntry { prefix, table: table.id, nearest }
    }
}

/// Old and new paths together: sorted, and of two that lead to the same the newer one.
fn merged(old: &[Path], new: &[Path]) -> Vec<Path> {
    let mut all: Vec<Path> = Vec::with_capacity(old.len() + new.len());
    for path in old.iter().chain(new) {
        match all.iter_mut().find(|p| p.via == path.via) {
            Some(same) => *same = *path,
            None => all.push(*path),
        }
    }
    all.sort_unstable();
    all
}
