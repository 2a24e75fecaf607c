//! The control plane of forwarding tables.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use shoal_adj::{AdjIndex, Adjacencies, Counting, Family, MOST_BUCKETS};
use shoal_buffer::SwIfIndex;
use shoal_graph::Graph;
use shoal_infra::budget::Notes;
use shoal_infra::{Mtrie, Mtrie4, Mtrie6, Published, StableArena, qsbr};
use shoal_interface::{Event, Interfaces};
use shoal_module::{Control, InitError};
use shoal_wire::IpPrefix;

use crate::address::{self, Bits};
use crate::change::State;
use crate::counts::Counts;
use crate::data::{FibTables, MOST_TABLES, Tries};
use crate::list::{ListId, Lists};
use crate::path::of_host;
use crate::slot::Contribution;
use crate::table::{Entries, Routes};
use crate::track::Trackers;
use crate::{FibError, FibIndex, FlowFields, Path, Source, Via};

mod bulk;
mod check;
mod held;
mod reach;
pub(crate) mod show;
mod sources;
mod tables;
mod walk;

pub use bulk::Bulk;
pub(crate) use held::Holds;
pub use held::{HeldPathList, HeldPaths};
pub use show::{Entry, List, PathState};
pub use sources::ClientSource;
use sources::ClientSources;
pub use tables::{Capacity, TableInfo};
pub use walk::{Covering, InOrder, Route, Sweep, Walk};

/// Most plies of table 0's trie: enough for ten million routes to hosts in different /24s never to be refused
/// before memory is. Address space only.
const DEFAULT_PLIES: usize = 1 << 22;

/// Contributions looked for at a time, when many go.
const AT_A_TIME: usize = 1 << 16;

/// All forwarding tables.
///
/// What describes neighbours ([`Adjacencies::set_describe`]) is asked while a route is being added, so it must not
/// call back in here.
pub struct Fib {
    graph: Rc<Graph>,
    tables: FibTables,
    state: RefCell<State>,
    clients: RefCell<ClientSources>,
}

/// Whether a next hop can be reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reach {
    /// It can, as far as anybody knows.
    Up,
    /// It cannot.
    Down,
}

/// Table 0 of a family, as packets will see it.
fn tries<A: Send + Sync + 'static>(trie: &Mtrie<A>) -> std::io::Result<Tries<Mtrie<A>>>
where
    Mtrie<A>: Clone + Send + Sync,
{
    let others = Arc::new(Published::new(Vec::new()));
    Ok(Tries { default: trie.clone(), others, fields: StableArena::with_capacity(MOST_TABLES)? })
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
        let ((trie4, ip4), (trie6, ip6)) = (Mtrie4::new(DEFAULT_PLIES)?, Mtrie6::new(DEFAULT_PLIES)?);
        let tables = FibTables {
            ip4: tries(&trie4)?,
            ip6: tries(&trie6)?,
            seed: Arc::new(AtomicU64::new(std::hash::BuildHasher::hash_one(
                &std::hash::RandomState::new(),
                0u8,
            ))),
        };
        let interfaces = control.get::<Interfaces>()?;
        interfaces.subscribe(|control, event| match (control.get::<Fib>(), event) {
            (Ok(fib), Event::Deleting(interface)) => fib.forget_interface(interface),
            (Ok(fib), Event::Admin(interface, _) | Event::Link(interface, _)) => {
                fib.state.borrow_mut().reachability_changed(interface);
            }
            (Ok(fib), Event::Ip4(interface, _)) => {
                fib.state.borrow_mut().interface_moved(Family::Ip4, interface);
            }
            (Ok(fib), Event::Ip6(interface, _)) => {
                fib.state.borrow_mut().interface_moved(Family::Ip6, interface);
            }
            _ => {}
        });
        let state = State {
            interfaces,
            adjacencies: control.get::<Adjacencies>()?,
            published: tables.clone(),
            tables: Default::default(),
            by_id: BTreeMap::new(),
            lists: Lists::default(),
            trackers: Trackers::default(),
            down: BTreeSet::new(),
            failed: BTreeSet::new(),
            imports: BTreeMap::new(),
            counts: Counts::default(),
            belongs: BTreeMap::new(),
            held: Holds::new(),
            trie_writes: 0,
        };
        let fib = Rc::new(Fib {
            graph: control.graph()?,
            tables,
            state: RefCell::new(state),
            clients: RefCell::default(),
        });
        for entries in [Entries::Ip4(Routes::new(ip4)), Entries::Ip6(Routes::new(ip6))] {
            fib.enter(0, None, entries).map_err(|e| InitError::Other(e.to_string()))?;
        }
        Ok(fib)
    }

    /// Which fields choose among several paths in a table.
    ///
    /// # Errors
    /// There is no such table.
    pub fn set_flow_fields(&self, family: Family, fib: FibIndex, fields: FlowFields) -> Result<(), FibError> {
        self.state.borrow().existing(family, fib)?;
        let all = match family {
            Family::Ip4 => &self.tables.ip4.fields,
            Family::Ip6 => &self.tables.ip6.fields,
        };
        if let Some(cell) = all.get(fib.0 as usize) {
            cell.store(fields.bits(), Ordering::Relaxed);
        }
        Ok(())
    }

    /// What flow hashes begin with. It is random, so that routers in a row choose independently of each other; tests
    /// set it.
    pub fn set_flow_seed(&self, seed: u64) {
        self.tables.seed.store(seed, Ordering::Relaxed);
    }

    /// Words written to what packets read since the start: changes of the tries, and records and buckets of
    /// adjacencies.
    pub fn writes(&self) -> (u64, u64) {
        let state = self.state.borrow();
        (state.trie_writes, state.adjacencies.stores())
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
        prefix: impl Into<IpPrefix>,
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
        prefixes: impl IntoIterator<Item = impl Into<IpPrefix>>,
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
        prefixes: impl IntoIterator<Item = impl Into<IpPrefix>>,
        source: Source,
        paths: &[Path],
    ) -> Result<usize, FibError> {
        self.change_many(fib, prefixes, source, paths, Mode::Append)
    }

    /// A source withdraws all its paths from an entry.
    ///
    /// # Errors
    /// It contributes nothing there.
    pub fn remove(&self, fib: FibIndex, prefix: impl Into<IpPrefix>, source: Source) -> Result<(), FibError> {
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
        prefixes: impl IntoIterator<Item = impl Into<IpPrefix>>,
        source: Source,
    ) -> Result<usize, FibError> {
        let mut state = self.state.borrow_mut();
        let mut count = 0;
        for prefix in prefixes {
            qsbr::admit()?;
            let prefix = prefix.into().normalized();
            match state.take(fib, &prefix, source)? {
                Some(list) => state.release(list),
                None => return Err(state.no_entry(fib, &prefix, source)),
            }
            count += 1;
        }
        Ok(count)
    }

    /// Whether a source contributes these paths, or any if there are none, to many entries.
    ///
    /// # Errors
    /// One of the entries has not all of these paths from it.
    pub fn has_paths(
        &self,
        fib: FibIndex,
        prefixes: impl IntoIterator<Item = impl Into<IpPrefix>>,
        source: Source,
        paths: &[Path],
    ) -> Result<(), FibError> {
        let state = self.state.borrow();
        let mut prefixes = prefixes.into_iter().map(|p| p.into().normalized());
        prefixes.try_for_each(|prefix| state.check_paths(fib, &prefix, source, paths))
    }

    /// A source withdraws some of its paths from many entries; an entry that is left without any loses the source.
    /// Paths are compared by where they lead. Nothing is changed on error.
    ///
    /// # Errors
    /// One of the entries has none of these paths.
    pub fn remove_paths(
        &self,
        fib: FibIndex,
        prefixes: impl IntoIterator<Item = impl Into<IpPrefix>>,
        source: Source,
        paths: &[Path],
    ) -> Result<usize, FibError> {
        let mut state = self.state.borrow_mut();
        qsbr::admit()?;
        let mut all: Notes<IpPrefix> = Notes::default();
        for prefix in prefixes {
            let prefix = prefix.into().normalized();
            let own = of_host(&prefix, source, paths);
            state.check_paths(fib, &prefix, source, own.as_deref().unwrap_or(paths))?;
            all.reserve().map_err(|why| FibError::Bulk { fit: all.len(), why })?;
            all.push(prefix);
        }
        for prefix in all.items() {
            let own = of_host(prefix, source, paths);
            let gone = own.as_deref().unwrap_or(paths);
            state.drop_paths(fib, prefix, source, |path| gone.iter().any(|p| p.via == path.via))?;
        }
        Ok(all.len())
    }

    /// All entries lose the paths that name an interface which is about to go; counted, with an entry in the event log.
    fn forget_interface(&self, interface: SwIfIndex) {
        let mut state = self.state.borrow_mut();
        state.forget_next_hops(interface);
        state.forget_table_of(interface);
        let gone = |path: &Path| path.via.interface() == Some(interface);
        let lists: HashSet<ListId> = state.lists.naming(interface).map(|(id, _)| id).collect();
        if lists.is_empty() {
            return;
        }
        // Rare enough to look at all entries; keeping them by interface would cost each route memory. Some at a time,
        // because a list of all of them could be as large as the table.
        let mut routes = 0;
        loop {
            let mut hit: Vec<(FibIndex, IpPrefix, Source)> = Vec::new();
            for table in state.all_tables() {
                let mine = |c: &Contribution| lists.contains(&c.list);
                let of_table = table.contributions(mine, AT_A_TIME - hit.len());
                hit.extend(of_table.into_iter().map(|(prefix, source)| (table.index, prefix, source)));
            }
            routes += hit.iter().filter(|(_, _, source)| *source != Source::Interface).count();
            let mut stuck = false;
            for (fib, prefix, source) in &hit {
                if let Err(e) = state.drop_paths(*fib, prefix, *source, gone) {
                    tracing::warn!("{prefix} keeps a path through a deleted interface: {e}");
                    stuck = true;
                }
            }
            if hit.len() < AT_A_TIME || stuck {
                break;
            }
        }
        if routes > 0 {
            let name = state.interfaces.name(interface).unwrap_or_default();
            self.graph.events().write(0, format!("{routes} routes withdrawn: {name} is deleted"));
            tracing::info!("{routes} routes withdrawn: {name} is deleted");
        }
    }

    /// Lets a route count its packets and bytes from zero on, also when it goes and comes again, or no more.
    ///
    /// # Errors
    /// There is no such route or no room for a counter, or all routes of the table count; nothing is changed then.
    pub fn count_route(
        &self,
        fib: FibIndex,
        prefix: impl Into<IpPrefix>,
        counting: Counting,
    ) -> Result<(), FibError> {
        self.state.borrow_mut().count_entry(fib, &prefix.into().normalized(), counting)
    }

    /// Lets all routes of a table count, those to come included, or none any more.
    ///
    /// # Errors
    /// There is no such table, or no room for so many counters; as many count then as before.
    pub fn count_routes(&self, family: Family, fib: FibIndex, counting: Counting) -> Result<(), FibError> {
        self.state.borrow_mut().count_table(family, fib, counting)
    }

    /// Where a packet to `addr` goes now; one of many ways is told by the index of all.
    pub fn lookup(&self, fib: FibIndex, addr: impl Into<IpAddr>) -> AdjIndex {
        let (state, addr) = (self.state.borrow(), addr.into());
        let found = state.table(Family::of(addr), fib).and_then(|t| t.longest(addr, u8::MAX));
        found.map_or(AdjIndex::NONE, |(_, slot)| state.adj_of(slot.best().list))
    }
}

/// `count` prefixes of one length, side by side, beginning with `first`.
///
/// # Errors
/// They end beyond the last address.
pub fn consecutive(
    first: impl Into<IpPrefix>,
    count: u32,
) -> Result<impl Iterator<Item = IpPrefix> + Clone, FibError> {
    let first = first.into().normalized();
    let family = address::family(&first);
    let below = family.max_len() - first.len();
    let start = match first.network() {
        IpAddr::V4(addr) => u128::from(addr.to_bits()),
        IpAddr::V6(addr) => addr.to_bits(),
    };
    // How many more there are after the first.
    let highest = u128::MAX.checked_shr(u32::from(128 - family.max_len())).unwrap_or(u128::MAX);
    let more = (highest - start).checked_shr(u32::from(below)).unwrap_or(0);
    if u128::from(count) > more.saturating_add(1) {
        let most = u64::try_from(more.saturating_add(1)).unwrap_or(u64::MAX);
        return Err(FibError::Count { first, count, most });
    }
    let at = move |i: u32| {
        let addr = start + u128::from(i).checked_shl(u32::from(below)).unwrap_or(0);
        match family {
            Family::Ip4 => (addr as u32).prefix(first.len()),
            Family::Ip6 => addr.prefix(first.len()),
        }
    };
    Ok((0..count).filter_map(at))
}

impl State {
    /// Paths that can be for packets of a family, in the order lists keep them.
    fn checked<'p>(&self, family: Family, paths: &'p [Path]) -> Result<Cow<'p, [Path]>, FibError> {
        for path in paths {
            if path.weight == 0 {
                return Err(FibError::Weight);
            }
            if let Some(address) = path.via.address()
                && !address::is_one_host(address)
            {
                return Err(FibError::NextHop(address));
            }
            if let Via::Recursive { next_hop, .. } = path.via
                && address::is_link_local(next_hop)
            {
                return Err(FibError::LinkLocal(next_hop));
            }
            if let (Family::Ip6, Via::Broadcast { .. }) = (family, path.via) {
                return Err(FibError::Broadcast);
            }
            if let Some((family, fib)) = path.via.table(family) {
                self.existing(family, fib)?;
            }
            if let Some(interface) = path.via.interface() {
                self.interfaces.data(interface).map_err(shoal_adj::AdjError::from)?;
            }
        }
        if let [_] = paths { Ok(Cow::Borrowed(paths)) } else { merged(&[], paths).map(Cow::Owned) }
    }

    /// A source gives one entry paths.
    fn change_alone(
        &mut self,
        fib: FibIndex,
        prefix: &IpPrefix,
        source: Source,
        given: &[Path],
        mode: Mode,
    ) -> Result<(), FibError> {
        let family = address::family(prefix);
        self.existing(family, fib)?;
        let old = if let Some(own) = of_host(prefix, source, given) {
            self.checked(family, given)?;
            self.change_own(fib, prefix, source, &own, mode)?
        } else {
            self.change_own(fib, prefix, source, given, mode)?
        };
        if let Some(old) = old {
            self.release(old);
        }
        Ok(())
    }

    fn change_one(
        &mut self,
        fib: FibIndex,
        prefix: &IpPrefix,
        source: Source,
        (paths, held): (&[Path], ListId),
        mode: Mode,
    ) -> Result<Option<ListId>, FibError> {
        let old = match mode {
            Mode::Append => self.paths_of(fib, prefix, source),
            Mode::Replace => None,
        };
        let list = if let Some(old) = old {
            let before = self.list_of(fib, prefix, source);
            self.acquire_after(address::family(prefix), &merged(&old, paths)?, before)?
        } else {
            self.use_again(held);
            held
        };
        self.put(fib, prefix, source, list).inspect_err(|_| self.release(list))
    }

    /// The same with paths that no list is held of.
    fn change_own(
        &mut self,
        fib: FibIndex,
        prefix: &IpPrefix,
        source: Source,
        paths: &[Path],
        mode: Mode,
    ) -> Result<Option<ListId>, FibError> {
        let family = address::family(prefix);
        let paths = self.checked(family, paths)?;
        let before = self.list_of(fib, prefix, source);
        let held = self.acquire_after(family, &paths, before)?;
        let done = self.change_one(fib, prefix, source, (&paths, held), mode);
        self.release(held);
        done
    }

    fn put_back(&mut self, fib: FibIndex, prefix: &IpPrefix, source: Source, old: Option<ListId>) {
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

    /// The list that a source contributes.
    fn list_of(&self, fib: FibIndex, prefix: &IpPrefix, source: Source) -> Option<ListId> {
        self.table(address::family(prefix), fib)?.get(prefix)?.of(source)
    }

    fn paths_of(&self, fib: FibIndex, prefix: &IpPrefix, source: Source) -> Option<Rc<[Path]>> {
        let list = self.list_of(fib, prefix, source)?;
        self.lists.get(list).map(|l| Rc::clone(l.paths()))
    }

    fn check_paths(
        &self,
        fib: FibIndex,
        prefix: &IpPrefix,
        source: Source,
        paths: &[Path],
    ) -> Result<(), FibError> {
        let table = self.existing(address::family(prefix), fib)?.id;
        let there = self.paths_of(fib, prefix, source).ok_or_else(|| self.no_entry(fib, prefix, source))?;
        if paths.iter().all(|p| there.iter().any(|t| t.via == p.via)) {
            return Ok(());
        }
        Err(FibError::NoPath { prefix: *prefix, table, by: source, count: there.len() })
    }

    fn drop_paths(
        &mut self,
        fib: FibIndex,
        prefix: &IpPrefix,
        source: Source,
        gone: impl Fn(&Path) -> bool,
    ) -> Result<(), FibError> {
        let Some(there) = self.paths_of(fib, prefix, source) else { return Ok(()) };
        let left: Vec<Path> = there.iter().filter(|p| !gone(p)).copied().collect();
        let old = if left.is_empty() {
            self.take(fib, prefix, source)?
        } else {
            let before = self.list_of(fib, prefix, source);
            let list = self.acquire_after(address::family(prefix), &left, before)?;
            self.put(fib, prefix, source, list).inspect_err(|_| self.release(list))?
        };
        if let Some(old) = old {
            self.release(old);
        }
        Ok(())
    }

    fn no_entry(&self, fib: FibIndex, prefix: &IpPrefix, source: Source) -> FibError {
        let Some(table) = self.table(address::family(prefix), fib) else { return FibError::NoIndex(fib) };
        let (prefix, id) = (*prefix, table.id);
        if let Some(slot) = table.get(&prefix) {
            return FibError::OtherSource { prefix, table: id, by: source, from: slot.best().source };
        }
        let covers = table.covers(prefix.network(), u8::MAX).into_iter();
        let nearest = covers.filter(|(_, slot)| slot.of(source).is_some()).map(|(cover, _)| cover).next();
        FibError::NoEntry { prefix, table: id, nearest }
    }
}

/// Old and new paths together: sorted, and of two that lead to the same the newer one.
fn merged(old: &[Path], new: &[Path]) -> Result<Vec<Path>, FibError> {
    if let ([], [only]) = (old, new) {
        return Ok(vec![*only]);
    }
    let mut all: BTreeMap<Via, Path> = BTreeMap::new();
    all.extend(old.iter().chain(new).map(|path| (path.via, *path)));
    match all.len() {
        0 => return Err(FibError::NoPaths),
        n if n > MOST_BUCKETS => return Err(FibError::TooManyPaths(n)),
        _ => {}
    }
    let mut all: Vec<Path> = all.into_values().collect();
    all.sort_unstable();
    Ok(all)
}
