//! Tables by id: they come, go, and are held.

use shoal_infra::{Mtrie4, Mtrie4Writer};
use shoal_wire::Ip4Prefix;

use super::Fib;
use crate::change::State;
use crate::table::Table;
use crate::{FibError, FibIndex, Path, Source, Via};

/// Most plies of another table's trie; address space only.
#[cfg(not(test))]
const OTHER_PLIES: usize = 1 << 20;
/// Few, so that a test can use them up.
#[cfg(test)]
const OTHER_PLIES: usize = 1 << 10;

/// A table as `show ip table` and `show ip fib summary` print it.
#[derive(Clone, Debug)]
pub struct TableInfo {
    /// Its id, as operators say it.
    pub id: u32,
    /// Its index, as packets know it.
    pub index: FibIndex,
    /// Its name: `ipv4-VRF:<id>`, if nobody gave it another.
    pub name: String,
    /// Who holds it and how often.
    pub locks: Vec<(Source, usize)>,
    /// How many entries it has of each prefix length, 0 to 32.
    pub lengths: Vec<usize>,
    /// Bytes of its trie.
    pub trie_bytes: usize,
    /// Bytes of its entries.
    pub entry_bytes: usize,
}

/// What every table has: the default route that says there is none, and the ranges that are never forwarded to
/// (RFC 1122 3.2.1.3, RFC 1112 4).
fn specials() -> Vec<(Ip4Prefix, Source, Via)> {
    let prefix = |a: u8, b: u8, len| Ip4Prefix::new([a, b, b, b].into(), len).ok();
    [
        (prefix(0, 0, 0), Source::DefaultRoute, Via::NoRoute),
        (prefix(0, 0, 32), Source::Special, Via::Drop),
        (prefix(224, 0, 4), Source::Special, Via::Drop),
        (prefix(240, 0, 4), Source::Special, Via::Drop),
        (prefix(255, 255, 32), Source::Special, Via::Drop),
    ]
    .into_iter()
    .filter_map(|(prefix, source, via)| Some((prefix?, source, via)))
    .collect()
}

impl Fib {
    /// A new table.
    ///
    /// # Errors
    /// The id or the name is taken, or there is no memory.
    pub fn add_table(&self, id: u32, name: Option<&str>) -> Result<FibIndex, FibError> {
        {
            let state = self.state.borrow();
            if state.by_id.contains_key(&id) {
                return Err(FibError::TableExists(id));
            }
            let taken = |t: &&Table| name.is_some() && t.name.as_deref() == name;
            if let (Some(name), Some(other)) = (name, state.tables.iter().flatten().find(taken)) {
                return Err(FibError::NameTaken(name.to_owned(), other.id));
            }
        }
        let (_, writer) = Mtrie4::new(OTHER_PLIES).map_err(|e| FibError::Memory(id, e.to_string()))?;
        self.enter(id, name, writer)
    }

    pub(super) fn enter(
        &self,
        id: u32,
        name: Option<&str>,
        writer: Mtrie4Writer,
    ) -> Result<FibIndex, FibError> {
        let index = {
            let mut state = self.state.borrow_mut();
            let free = state.tables.iter().position(Option::is_none).unwrap_or(state.tables.len());
            if free == state.tables.len() {
                state.tables.push(None);
            }
            let index = FibIndex(free as u32);
            let mut table = Table::new(id, index, name.map(str::to_owned), writer);
            table.locks.insert(Source::DefaultRoute, 1);
            if let Some(place) = state.tables.get_mut(free) {
                *place = Some(table);
            }
            state.by_id.insert(id, index);
            index
        };
        for (prefix, source, via) in specials() {
            if let Err(e) = self.add(index, prefix, source, &[Path::from(via)]) {
                self.state.borrow_mut().leave(index);
                return Err(e);
            }
        }
        self.state.borrow().publish();
        Ok(index)
    }

    /// A table goes, with all its routes.
    ///
    /// # Errors
    /// It is not there, is table 0, or interfaces or other tables' routes need it.
    pub fn del_table(&self, id: u32) -> Result<(), FibError> {
        let index = self.index_of(id)?;
        if index == FibIndex::DEFAULT {
            return Err(FibError::DefaultTable);
        }
        let mut state = self.state.borrow_mut();
        if let Some(by) = state.users_of(index) {
            return Err(FibError::TableInUse { id, by });
        }
        state.leave(index);
        state.publish();
        Ok(())
    }

    /// The index of a table.
    ///
    /// # Errors
    /// There is none of this id; the nearest id is named.
    pub fn index_of(&self, id: u32) -> Result<FibIndex, FibError> {
        let state = self.state.borrow();
        state.by_id.get(&id).copied().ok_or_else(|| {
            let nearest = state.by_id.keys().copied().min_by_key(|n| n.abs_diff(id)).unwrap_or(0);
            FibError::NoTable { id, nearest }
        })
    }

    /// The id of a table.
    ///
    /// # Errors
    /// There is none of this index.
    pub fn id_of(&self, index: FibIndex) -> Result<u32, FibError> {
        self.state.borrow().existing(index).map(|t| t.id)
    }

    /// The ids of all tables, lowest first.
    pub fn ids(&self) -> Vec<u32> {
        self.state.borrow().by_id.keys().copied().collect()
    }

    /// Somebody needs a table: it cannot go before [`Fib::unlock`].
    ///
    /// # Errors
    /// There is no such table.
    pub fn lock(&self, index: FibIndex, by: Source) -> Result<(), FibError> {
        *self.state.borrow_mut().table_mut(index)?.locks.entry(by).or_default() += 1;
        Ok(())
    }

    /// Somebody needs a table no longer.
    pub fn unlock(&self, index: FibIndex, by: Source) {
        if let Ok(table) = self.state.borrow_mut().table_mut(index)
            && let Some(locks) = table.locks.get_mut(&by)
        {
            *locks = locks.saturating_sub(1);
            if *locks == 0 {
                table.locks.remove(&by);
            }
        }
    }

    /// A table's facts.
    ///
    /// # Errors
    /// There is no such table.
    pub fn table(&self, index: FibIndex) -> Result<TableInfo, FibError> {
        Ok(info(self.state.borrow().existing(index)?))
    }

    /// All tables' facts, by id.
    pub fn list_tables(&self) -> Vec<TableInfo> {
        let state = self.state.borrow();
        state.by_id.values().filter_map(|index| state.table(*index)).map(info).collect()
    }
}

fn info(table: &Table) -> TableInfo {
    TableInfo {
        id: table.id,
        index: table.index,
        name: table.name.clone().unwrap_or_else(|| format!("ipv4-VRF:{}", table.id)),
        locks: table.locks.iter().map(|(source, n)| (*source, *n)).collect(),
        lengths: table.lengths(),
        trie_bytes: table.writer.bytes(),
        entry_bytes: table.entry_bytes(),
    }
}

impl State {
    /// Who but the table itself needs it, in words.
    fn users_of(&self, index: FibIndex) -> Option<String> {
        let table = self.table(index)?;
        let locks = table.locks.iter().filter(|(source, _)| **source != Source::DefaultRoute);
        let mut by: Vec<String> = locks.map(|(source, n)| format!("{source}:{n}")).collect();
        let needs = |p: &Path| p.via.table() == Some(index);
        let lists: Vec<_> =
            self.lists.iter().filter(|(_, l)| l.paths.iter().any(needs)).map(|(id, _)| id).collect();
        if !lists.is_empty() {
            for other in self.tables.iter().flatten().filter(|t| t.index != index) {
                let uses = other.entries().filter(|(_, slot)| slot.all().any(|c| lists.contains(&c.list)));
                by.extend(uses.map(|(prefix, _)| format!("{prefix} in table {}", other.id)).take(1));
            }
        }
        if by.is_empty() { None } else { Some(by.join(", ")) }
    }

    /// Takes a table out with all its entries.
    fn leave(&mut self, index: FibIndex) {
        self.by_id.retain(|_, i| *i != index);
        let all: Vec<_> = self
            .table(index)
            .iter()
            .flat_map(|table| table.entries())
            .flat_map(|(prefix, slot)| slot.all().map(move |c| (prefix, c.source)).collect::<Vec<_>>())
            .collect();
        for (prefix, source) in all {
            match self.take(index, prefix, source) {
                Ok(Some(list)) => self.release(list),
                Ok(None) => {}
                Err(e) => tracing::warn!("{prefix} stays in a table that goes: {e}"),
            }
        }
        if let Some(place) = self.tables.get_mut(index.0 as usize) {
            *place = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;
    use crate::router::{ip, router};

    #[test]
    fn a_full_trie_refuses_all_of_a_bulk() {
        let router = router(1);
        let fib = router.fib.add_table(9, None).unwrap();
        let before = router.locks();
        let path = Path::next_hop(ip("192.0.2.1"), shoal_buffer::SwIfIndex(1));
        // Each host in a /24 of its own needs a ply of its own.
        let hosts = (0..1u32 << 10).map(|n| Ip4Prefix::host(Ipv4Addr::from_bits(0x0a00_0000 + n * 256 + 1)));
        let full = router.fib.add_many(fib, hosts.clone(), Source::Cli, &[path]).unwrap_err();
        assert!(matches!(full, FibError::Full { table: 9, .. }), "{full}");
        assert_eq!((router.fib.entries(fib).unwrap().len(), router.locks()), (5, before));
        assert_eq!(router.way_in(fib, "10.0.0.1"), "None");
        assert_eq!(router.fib.add_many(fib, hosts.take(900), Source::Cli, &[path]), Ok(900));
    }
}
