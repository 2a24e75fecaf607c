//! Changing tables: contributions come and go, lists follow, the trie is written.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use shoal_adj::{AdjIndex, Adjacencies};
use shoal_infra::mtrie4::UpdateError;
use shoal_infra::{Mtrie4, qsbr};
use shoal_interface::Interfaces;
use shoal_wire::Ip4Prefix;

use crate::data::{FibTables, Others};
use crate::list::{List, ListId, Lists, Tracked};
use crate::resolve::Tracker;
use crate::table::{Contribution, Slot, Table};
use crate::{FibError, FibIndex, Path, Source};

/// Everything the control plane knows.
pub(crate) struct State {
    pub interfaces: Rc<Interfaces>,
    pub adjacencies: Rc<Adjacencies>,
    pub published: FibTables,
    pub tables: Vec<Option<Table>>,
    pub by_id: BTreeMap<u32, FibIndex>,
    pub lists: Lists,
    pub trackers: BTreeMap<Tracked, Tracker>,
}

impl State {
    pub fn table(&self, fib: FibIndex) -> Option<&Table> {
        self.tables.get(fib.0 as usize)?.as_ref()
    }

    pub fn table_mut(&mut self, fib: FibIndex) -> Result<&mut Table, FibError> {
        self.tables.get_mut(fib.0 as usize).and_then(Option::as_mut).ok_or(FibError::NoIndex(fib))
    }

    pub fn existing(&self, fib: FibIndex) -> Result<&Table, FibError> {
        self.table(fib).ok_or(FibError::NoIndex(fib))
    }

    /// Tells packets which tables there are.
    pub fn publish(&self) {
        let trie = |t: &Option<Table>| -> Option<Arc<Mtrie4>> {
            t.as_ref().filter(|t| t.index != FibIndex::DEFAULT).map(|t| t.writer.trie())
        };
        let others: Others = self.tables.iter().map(trie).collect();
        self.published.others.replace(others);
    }

    /// The list of these paths with one user more. Resolved, its adjacency locked.
    pub fn acquire(&mut self, paths: &[Path]) -> Result<ListId, FibError> {
        let id = match self.lists.find(paths) {
            Some(id) => id,
            None => self.create(paths.into())?,
        };
        if let Some(list) = self.lists.get_mut(id) {
            list.users += 1;
        }
        Ok(id)
    }

    fn create(&mut self, paths: Rc<[Path]>) -> Result<ListId, FibError> {
        let tracked = List::tracked(&paths);
        let id = self.lists.create(paths);
        for at in tracked {
            self.track(id, at);
        }
        let target = self.resolve(id);
        match self.lock(target) {
            Ok(adj) => {
                if let Some(list) = self.lists.get_mut(id) {
                    (list.target, list.adj) = (target, adj);
                }
                Ok(id)
            }
            Err(e) => {
                self.destroy(id);
                Err(e)
            }
        }
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
        let tracked = self.lists.get(id).map(|l| List::tracked(&l.paths)).unwrap_or_default();
        for at in tracked {
            self.untrack(id, at);
        }
        if let Some(list) = self.lists.remove(id) {
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
        prefix: Ip4Prefix,
        source: Source,
        list: ListId,
    ) -> Result<Option<ListId>, FibError> {
        let adj = self.lists.get(list).map_or(AdjIndex::NONE, |l| l.adj);
        let new = Contribution { source, list };
        let table = self.table_mut(fib)?;
        let best = table.get(prefix).map(Slot::best);
        let decides = best.is_none_or(|b| source <= b.source);
        // The trie first, because it alone can refuse.
        if decides && best.map(|b| b.list) != Some(list) {
            write(table, prefix, adj)?;
        }
        let old = if let Some(slot) = table.get_mut(prefix) {
            slot.put(new)
        } else {
            table.insert(prefix, Slot::new(new));
            None
        };
        if decides {
            self.decided(fib, prefix, best.map(|b| b.list), Some(list));
        }
        Ok(old)
    }

    /// A source contributes nothing any more; gives back what it did, for the caller to release.
    pub fn take(
        &mut self,
        fib: FibIndex,
        prefix: Ip4Prefix,
        source: Source,
    ) -> Result<Option<ListId>, FibError> {
        let table = self.table_mut(fib)?;
        let Some(slot) = table.get_mut(prefix) else { return Ok(None) };
        let Some(old) = slot.of(source) else { return Ok(None) };
        let before = slot.best();
        let left = slot.take(source);
        let after = left.then(|| slot.best());
        if !left {
            table.remove(prefix);
        }
        if after == Some(before) {
            return Ok(Some(old));
        }
        match after {
            Some(Contribution { list, .. }) => {
                let adj = self.lists.get(list).map_or(AdjIndex::NONE, |l| l.adj);
                write(self.table_mut(fib)?, prefix, adj)?;
            }
            None => self.erase(fib, prefix)?,
        }
        self.decided(fib, prefix, Some(before.list), after.map(|c| c.list));
        Ok(Some(old))
    }

    /// Gives an entry's place in the trie to the entry that covers it.
    fn erase(&mut self, fib: FibIndex, prefix: Ip4Prefix) -> Result<(), FibError> {
        let cover = self.table(fib).and_then(|t| t.longest(prefix.network(), prefix.len()));
        let cover = cover.map(|(cover, slot)| (cover.len(), slot.best().list));
        let adj = |id| self.lists.get(id).map_or(AdjIndex::NONE, |l| l.adj);
        // A default route without a way is no leaf, so that a new table does not touch the whole trie.
        let cover = cover.map(|(len, list)| (adj(list).0, len)).filter(|c| *c != (AdjIndex::NONE.0, 0));
        let table = self.table_mut(fib)?;
        let removed = table.writer.remove(prefix.network().to_bits(), prefix.len(), cover);
        removed.map_err(|why| FibError::Full { prefix, table: table.id, why })
    }

    /// Another list decides an entry now: what resolves through the entry is resolved anew.
    fn decided(&mut self, fib: FibIndex, prefix: Ip4Prefix, old: Option<ListId>, new: Option<ListId>) {
        if old == new {
            return;
        }
        if let Some(list) = old.and_then(|id| self.lists.get_mut(id)) {
            list.entries.remove(&(fib, prefix));
        }
        if let Some(list) = new.and_then(|id| self.lists.get_mut(id)).filter(|l| l.is_recursive()) {
            list.entries.insert((fib, prefix));
        }
        for id in self.covers_changed(fib, prefix) {
            self.renew(id);
        }
    }

    /// Resolves a list anew and writes the entries it decides, if it leads elsewhere now.
    fn renew(&mut self, id: ListId) {
        let target = self.resolve(id);
        let Some(list) = self.lists.get(id) else { return };
        if list.target == target {
            return;
        }
        let adj = match self.lock(target) {
            Ok(adj) => adj,
            Err(e) => {
                tracing::warn!("routes keep their old way: {e}");
                return;
            }
        };
        let Some(list) = self.lists.get_mut(id) else { return };
        let old = std::mem::replace(&mut list.adj, adj);
        list.target = target;
        let entries: Vec<(FibIndex, Ip4Prefix)> = list.entries.iter().copied().collect();
        for (fib, prefix) in entries {
            // The leaf is there already, so this needs no memory.
            if let Err(e) = self.table_mut(fib).and_then(|table| write(table, prefix, adj)) {
                tracing::warn!("route keeps its old way: {e}");
            }
        }
        self.unlock(old);
    }
}

/// Makes an entry's place in the trie lead to an adjacency.
fn write(table: &mut Table, prefix: Ip4Prefix, adj: AdjIndex) -> Result<(), FibError> {
    let (addr, len) = (prefix.network().to_bits(), prefix.len());
    let mut insert = || {
        if len == 0 && adj == AdjIndex::NONE {
            // See `erase`.
            return table.writer.remove(0, 0, None);
        }
        table.writer.insert(addr, len, adj.0)
    };
    let mut done = insert();
    if matches!(done, Err(UpdateError::Full { .. })) && qsbr::reclaim() > 0 {
        done = insert();
    }
    done.map_err(|why| FibError::Full { prefix, table: table.id, why })
}
