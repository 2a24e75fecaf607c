//! Changing tables: contributions come and go, lists follow, the trie is written.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::rc::Rc;

use shoal_adj::{AdjIndex, Adjacencies, Family, Link};
use shoal_buffer::SwIfIndex;
use shoal_infra::mtrie::UpdateError;
use shoal_infra::{budget, qsbr};
use shoal_interface::Interfaces;
use shoal_wire::IpPrefix;

use crate::address;
use crate::control::Holds;
use crate::counts::Counts;
use crate::data::FibTables;
use crate::export::{Import, Importer};
use crate::list::{List, ListId, ListKey, Lists};
use crate::resolve::unspecified;
use crate::slot::{Contribution, Slot};
use crate::table::{Entries, Table, Taken};
use crate::track::Trackers;
use crate::{FibError, FibIndex, Path, Source};

/// Everything the control plane knows.
pub(crate) struct State {
    pub interfaces: Rc<Interfaces>,
    pub adjacencies: Rc<Adjacencies>,
    pub published: FibTables,
    /// By family and index.
    pub tables: [Vec<Option<Table>>; 2],
    pub by_id: BTreeMap<(Family, u32), FibIndex>,
    pub lists: Lists,
    pub trackers: Trackers,
    /// Next hops that were reported as unreachable.
    pub down: BTreeSet<(SwIfIndex, IpAddr)>,
    /// Next hops whose path was found not to work by what watches it: neighbours on interfaces, those several hops away without.
    pub failed: BTreeSet<(Option<SwIfIndex>, IpAddr)>,
    /// Routes to interfaces of other tables, and whose hosts they import.
    pub imports: BTreeMap<Importer, Import>,
    /// The tables of interfaces, where they ever were others than table 0.
    pub belongs: BTreeMap<(Family, SwIfIndex), FibIndex>,
    /// Which routes count.
    pub counts: Counts,
    /// Lists that no entry has.
    pub held: Holds,
    /// Changes of the tries so far.
    pub trie_writes: u64,
}

impl State {
    pub fn tables_of(&self, family: Family) -> &Vec<Option<Table>> {
        let [ip4, ip6] = &self.tables;
        match family {
            Family::Ip4 => ip4,
            Family::Ip6 => ip6,
        }
    }

    pub fn tables_of_mut(&mut self, family: Family) -> &mut Vec<Option<Table>> {
        let [ip4, ip6] = &mut self.tables;
        match family {
            Family::Ip4 => ip4,
            Family::Ip6 => ip6,
        }
    }

    pub fn all_tables(&self) -> impl Iterator<Item = &Table> {
        self.tables.iter().flatten().flatten()
    }

    pub fn table(&self, family: Family, fib: FibIndex) -> Option<&Table> {
        self.tables_of(family).get(fib.0 as usize)?.as_ref()
    }

    pub fn table_mut(&mut self, family: Family, fib: FibIndex) -> Result<&mut Table, FibError> {
        let table = self.tables_of_mut(family).get_mut(fib.0 as usize);
        table.and_then(Option::as_mut).ok_or(FibError::NoIndex(fib))
    }

    pub fn existing(&self, family: Family, fib: FibIndex) -> Result<&Table, FibError> {
        self.table(family, fib).ok_or(FibError::NoIndex(fib))
    }

    /// Tells packets which tables there are.
    pub fn publish(&self) {
        let [ip4, ip6] = &self.tables;
        let other = |t: &&Table| t.index != FibIndex::DEFAULT;
        let trie4 = |t: &Option<Table>| match &t.as_ref().filter(other)?.entries {
            Entries::Ip4(routes) => Some(routes.writer.trie()),
            Entries::Ip6(_) => None,
        };
        let trie6 = |t: &Option<Table>| match &t.as_ref().filter(other)?.entries {
            Entries::Ip6(routes) => Some(routes.writer.trie()),
            Entries::Ip4(_) => None,
        };
        self.published.ip4.others.replace(ip4.iter().map(trie4).collect());
        self.published.ip6.others.replace(ip6.iter().map(trie6).collect());
    }

    /// The list of these paths for a family's packets, with one user more. Resolved, its adjacency locked.
    pub fn acquire(&mut self, family: Family, paths: &[Path]) -> Result<ListId, FibError> {
        self.acquire_after(family, paths, None)
    }

    /// The same, in the place of a list: of resilient paths those that stay keep their flows.
    pub fn acquire_after(
        &mut self,
        family: Family,
        paths: &[Path],
        before: Option<ListId>,
    ) -> Result<ListId, FibError> {
        let id = if let Some(id) = self.lists.find(family, paths) {
            id
        } else {
            let key = ListKey { family, paths: paths.into() };
            if self.lists.is_full() {
                return Err(FibError::Paths(budget::refused()));
            }
            budget::take(List::bytes(&key.paths)).map_err(FibError::Paths)?;
            self.create(key, before)?
        };
        self.use_again(id);
        Ok(id)
    }

    /// One user of a list more.
    pub fn use_again(&mut self, id: ListId) {
        if let Some(list) = self.lists.get_mut(id) {
            list.users += 1;
        }
    }

    fn create(&mut self, key: ListKey, before: Option<ListId>) -> Result<ListId, FibError> {
        let tracked = List::tracked(&key.paths);
        let id = self.lists.create(key);
        for at in tracked {
            self.track(id, at);
        }
        self.begin(id, before).inspect_err(|_| self.destroy(id))?;
        Ok(id)
    }

    /// One user of a list less; the last one takes it with it.
    pub fn release(&mut self, id: ListId) {
        let Some(list) = self.lists.get_mut(id) else { return };
        list.users = list.users.saturating_sub(1);
        if list.users == 0 {
            self.destroy(id);
        }
    }

    fn destroy(&mut self, id: ListId) {
        let tracked = self.lists.get(id).map(|l| List::tracked(l.paths())).unwrap_or_default();
        for at in tracked {
            self.untrack(id, at);
        }
        if let Some(list) = self.lists.remove(id) {
            budget::give_back(List::bytes(list.paths()));
            self.unlock(list.adj);
        }
    }

    /// A source contributes a list, which the caller has acquired. Gives back what it contributed before, for the
    /// caller to release or to put back.
    ///
    /// # Errors
    /// The table is full or not there. Nothing was changed, and the list is still the caller's.
    pub fn put(
        &mut self,
        fib: FibIndex,
        prefix: &IpPrefix,
        source: Source,
        list: ListId,
    ) -> Result<Option<ListId>, FibError> {
        let adj = self.adj_of(list);
        let new = Contribution { source, list };
        let table = self.table_mut(address::family(prefix), fib)?;
        let best = table.get(prefix).map(|slot| slot.best());
        let decides = best.is_none_or(|b| source <= b.source);
        // Room first, then the trie: they alone can refuse.
        if best.is_none() {
            let (id, full) = (table.id, table.reserve(prefix));
            full.map_err(|why| FibError::NoMemory { prefix: *prefix, table: id, why })?;
        }
        let writes = decides && best.map(|b| b.list) != Some(list);
        if writes {
            self.write_leaf(fib, prefix, adj)?;
        }
        let table = self.table_mut(address::family(prefix), fib)?;
        // A table that was made for a feature is an operator's or a client's, once one of them has a use for it.
        if table.lent && [Source::Api, Source::Cli].contains(&source) {
            table.take_over();
        }
        let old = match best {
            Some(_) => table.put(prefix, new),
            None => table.put_first(prefix, new),
        };
        self.trie_writes += u64::from(writes);
        // What a path MTU stands before decides where next hops are, too.
        if writes || best.is_some_and(|b| b.source == Source::PathMtu) {
            let changed = self.covers_changed(fib, prefix);
            self.renew(changed);
            if source == Source::PathMtu || self.may_import(list) {
                self.export(fib, prefix);
            }
        }
        Ok(old)
    }

    /// A source contributes nothing any more; gives back what it did, for the caller to release.
    pub fn take(
        &mut self,
        fib: FibIndex,
        prefix: &IpPrefix,
        source: Source,
    ) -> Result<Option<ListId>, FibError> {
        let family = address::family(prefix);
        let table = self.table_mut(family, fib)?;
        let Some(Taken { list: old, before, after }) = table.take(prefix, source) else { return Ok(None) };
        if after == Some(before) {
            if before.source == Source::PathMtu {
                self.decided(fib, prefix);
            }
            return Ok(Some(old));
        }
        if let Some(Contribution { list, .. }) = after {
            let adj = self.adj_of(list);
            self.write_leaf(fib, prefix, adj)?;
        } else {
            self.erase(fib, prefix)?;
            self.end_count(fib, prefix);
        }
        self.trie_writes += 1;
        self.decided(fib, prefix);
        Ok(Some(old))
    }

    pub fn adj_of(&self, list: ListId) -> AdjIndex {
        self.lists.get(list).map_or(AdjIndex::NONE, |l| l.adj)
    }

    /// Gives an entry's place in the trie to the entry that covers it.
    fn erase(&mut self, fib: FibIndex, prefix: &IpPrefix) -> Result<(), FibError> {
        let family = address::family(prefix);
        let cover = self.table(family, fib).and_then(|t| t.cover(prefix));
        let leaf = |cover: &IpPrefix, slot: Slot<'_>| self.leaf(fib, cover, self.adj_of(slot.best().list)).0;
        let cover = cover.map(|(cover, slot)| (leaf(&cover, slot), cover.len()));
        let table = self.table_mut(family, fib)?;
        let removed = table.erase(prefix, cover);
        removed.map_err(|why| FibError::Full { prefix: *prefix, table: table.id, why })
    }

    /// Another list decides an entry now: what resolves through the entry is resolved again.
    fn decided(&mut self, fib: FibIndex, prefix: &IpPrefix) {
        let changed = self.covers_changed(fib, prefix);
        self.renew(changed);
        self.export(fib, prefix);
    }

    /// An interface, or a next hop on it, went up or down: its lists share out their flows again.
    pub fn reachability_changed(&mut self, interface: SwIfIndex) {
        // Whatever goes out of an interface leads through a list that names it.
        let mine = self.lists.naming(interface).map(|(id, _)| id).collect();
        self.renew(mine);
    }

    /// A neighbour on an interface is reached, or no longer. Lists that name others there do not depend on it.
    pub fn neighbour_changed(&mut self, interface: SwIfIndex, next_hop: IpAddr) {
        let mine = self.lists.leading_to(interface, next_hop);
        self.renew(mine.into_iter().collect());
    }

    /// The path to a next hop several hops away works, or works no longer.
    pub fn far_reachability_changed(&mut self, next_hop: IpAddr) {
        let lists = self.lists.looking_up(next_hop);
        self.renew(lists.into_iter().collect());
    }

    /// Forgets what is known of next hops on an interface.
    pub fn forget_next_hops(&mut self, interface: SwIfIndex) {
        let first = (interface, IpAddr::from([0; 4]));
        while let Some(down) = self.down.range(first..).next().filter(|(i, _)| *i == interface).copied() {
            self.down.remove(&down);
        }
        let gone = |(i, _): &(Option<SwIfIndex>, IpAddr)| *i == Some(interface);
        for (_, next_hop) in self.failed.extract_if(.., gone) {
            self.adjacencies.set_open(interface, next_hop, true);
        }
    }

    /// Closes a neighbour to all but probes, or opens it again: routes by it alone lead straight to its adjacency.
    pub fn set_open(&self, interface: SwIfIndex, next_hop: IpAddr, open: bool) {
        let alone = !self.has_neighbours(interface);
        let neighbour = if alone { unspecified(Link::from(Family::of(next_hop))) } else { next_hop };
        self.adjacencies.set_open(interface, neighbour, open);
    }

    /// Makes an entry's place in the trie lead to an adjacency.
    pub fn write(&mut self, fib: FibIndex, prefix: &IpPrefix, leaf: AdjIndex) -> Result<(), FibError> {
        let table = self.table_mut(address::family(prefix), fib)?;
        let mut done = table.write(prefix, leaf.0);
        if matches!(done, Err(UpdateError::Full { .. })) && qsbr::reclaim() > 0 {
            done = table.write(prefix, leaf.0);
        }
        done.map_err(|why| FibError::Full { prefix: *prefix, table: table.id, why })
    }
}
