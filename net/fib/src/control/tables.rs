//! Tables by id: they come, go, and are held.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use shoal_adj::{Family, Usage};
use shoal_infra::budget::{self, Remaining};
use shoal_infra::{Mtrie4, Mtrie6};
use shoal_wire::IpPrefix;

use super::{Fib, Sweep};
use crate::change::State;
use crate::data::MOST_TABLES;
use crate::list::ListId;
use crate::table::{Entries, Routes, Table};
use crate::{FibError, FibIndex, FlowFields, Path, Source, Via};

/// Most plies of another table's trie; address space only.
#[cfg(not(test))]
const OTHER_PLIES: usize = 1 << 20;
/// Few, so that a test can use them up.
#[cfg(test)]
const OTHER_PLIES: usize = 1 << 10;

/// A table as `show ip table` and `show ip fib summary` print it.
#[derive(Clone, Debug)]
pub struct TableInfo {
    /// Its family.
    pub family: Family,
    /// Its id, as operators say it.
    pub id: u32,
    /// Its index, as packets know it.
    pub index: FibIndex,
    /// Its name: `ipv4-VRF:<id>` or `ipv6-VRF:<id>` by default.
    pub name: String,
    /// The name somebody gave it.
    pub given_name: Option<String>,
    /// Who holds it and how often.
    pub locks: Vec<(Source, usize)>,
    /// Which fields choose among several paths.
    pub flow_fields: FlowFields,
    /// How many entries it has of each prefix length, 0 to 32 or 128.
    pub lengths: Vec<usize>,
    /// Plies of its trie.
    pub plies: usize,
    /// Bytes of its trie.
    pub trie_bytes: usize,
    /// Bytes of its entries.
    pub entry_bytes: usize,
}

/// How much there is and can be.
#[derive(Clone, Copy, Debug)]
pub struct Capacity {
    /// Tables of each family.
    pub tables: [usize; 2],
    /// Most tables of a family.
    pub most_tables: usize,
    /// Routes of each family.
    pub routes: [usize; 2],
    /// Plies of each family's table 0.
    pub plies: [usize; 2],
    /// Most plies of a table 0.
    pub most_plies: usize,
    /// Path lists.
    pub path_lists: usize,
    /// Routes that count their packets.
    pub counted: usize,
    /// Next hops that are looked up themselves.
    pub next_hops: usize,
    /// Adjacencies and balances.
    pub adjacencies: Usage,
    /// Bytes of tries and entries.
    pub bytes: usize,
    /// Bytes that tables of all kinds have taken.
    pub memory: u64,
    /// Bytes that they may still take, and what limits that.
    pub left: Remaining,
}

/// What every table has: the default route that says there is none, and the ranges that are never forwarded to:
/// RFC 1122 3.2.1.3 and RFC 1112 4; RFC 4291 2.5.2, 2.5.3, 2.5.6 and 2.7.
fn specials(family: Family) -> Vec<(IpPrefix, Source, Via)> {
    let ip4 = |a: u8, b: u8, len| (IpAddr::from(Ipv4Addr::new(a, b, b, b)), len);
    let ip6 = |first: u16, last: u16, len| (IpAddr::from(Ipv6Addr::new(first, 0, 0, 0, 0, 0, 0, last)), len);
    let (any, never) = match family {
        Family::Ip4 => (ip4(0, 0, 0), vec![ip4(0, 0, 32), ip4(224, 0, 4), ip4(240, 0, 4)]),
        Family::Ip6 => {
            (ip6(0, 0, 0), vec![ip6(0, 0, 128), ip6(0, 1, 128), ip6(0xfe80, 0, 10), ip6(0xff00, 0, 8)])
        }
    };
    let never = never.into_iter().map(|prefix| (prefix, Source::Special, Via::Drop));
    // A relay of DHCP has what is for all stations of a link delivered to this router.
    let all_stations = (family == Family::Ip4).then(|| (ip4(255, 255, 32), Source::DefaultRoute, Via::Drop));
    let all = std::iter::once((any, Source::DefaultRoute, Via::NoRoute)).chain(never).chain(all_stations);
    all.filter_map(|((addr, len), source, via)| Some((IpPrefix::new(addr, len).ok()?, source, via))).collect()
}

impl Fib {
    /// A new table of a family.
    ///
    /// # Errors
    /// The id or the name is taken, or there is no memory.
    pub fn add_table(&self, family: Family, id: u32, name: Option<&str>) -> Result<FibIndex, FibError> {
        {
            let mut state = self.state.borrow_mut();
            let there = state.by_id.get(&(family, id)).copied();
            if there.is_some_and(|index| state.table(family, index).is_none_or(|table| !table.lent)) {
                return Err(FibError::TableExists(id));
            }
            let mut tables = state.tables_of(family).iter().flatten();
            let taken = |t: &&Table| name.is_some() && t.name.as_deref() == name;
            if let (Some(name), Some(other)) = (name, tables.find(taken)) {
                return Err(FibError::NameTaken(name.to_owned(), other.id));
            }
            if let Some(index) = there {
                // One that was there for a feature only stays from now on.
                let table = state.table_mut(family, index)?;
                table.take_over();
                table.name = name.map(str::to_owned);
                return Ok(index);
            }
            if state.tables_of(family).iter().flatten().count() >= MOST_TABLES {
                return Err(FibError::TooManyTables(MOST_TABLES));
            }
        }
        let entries = match family {
            Family::Ip4 => Mtrie4::new(OTHER_PLIES).map(|(_, writer)| Entries::Ip4(Routes::new(writer))),
            Family::Ip6 => Mtrie6::new(OTHER_PLIES).map(|(_, writer)| Entries::Ip6(Routes::new(writer))),
        };
        self.enter(id, name, entries.map_err(|e| FibError::Memory(id, e.to_string()))?)
    }

    pub(super) fn enter(&self, id: u32, name: Option<&str>, entries: Entries) -> Result<FibIndex, FibError> {
        let mut table = Table::new(id, FibIndex::DEFAULT, name.map(str::to_owned), entries);
        let family = table.family();
        table.locks.insert(Source::DefaultRoute, 1);
        let index = {
            let mut state = self.state.borrow_mut();
            let tables = state.tables_of_mut(family);
            let free = tables.iter().position(Option::is_none).unwrap_or(tables.len());
            if free == tables.len() {
                tables.push(None);
            }
            let index = FibIndex(free as u32);
            table.index = index;
            if let Some(place) = tables.get_mut(free) {
                *place = Some(table);
            }
            state.by_id.insert((family, id), index);
            index
        };
        for (prefix, source, via) in specials(family) {
            if let Err(e) = self.add(index, prefix, source, &[Path::from(via)]) {
                self.state.borrow_mut().leave(family, index);
                return Err(e);
            }
        }
        // An index may have been another table's before.
        self.set_flow_fields(family, index, FlowFields::DEFAULT)?;
        self.state.borrow().publish();
        Ok(index)
    }

    /// A table goes, with all its routes.
    ///
    /// # Errors
    /// It is not there, is table 0, or interfaces or other tables' routes need it.
    pub fn del_table(&self, family: Family, id: u32) -> Result<(), FibError> {
        let index = self.index_of(family, id)?;
        if index == FibIndex::DEFAULT {
            return Err(FibError::DefaultTable);
        }
        let mut state = self.state.borrow_mut();
        if let Some(by) = state.users_of(family, index) {
            return Err(FibError::TableInUse { id, by });
        }
        state.leave(family, index);
        state.publish();
        Ok(())
    }

    /// A client wants a table: it is made unless it is there.
    ///
    /// # Errors
    /// The name is taken, or there is no memory.
    pub fn want_table(&self, family: Family, id: u32, name: Option<&str>) -> Result<FibIndex, FibError> {
        match self.index_of(family, id) {
            Ok(index) => {
                if let Ok(table) = self.state.borrow_mut().table_mut(family, index) {
                    table.take_over();
                    table.leaving = false;
                }
                Ok(index)
            }
            Err(_) => self.add_table(family, id, name),
        }
    }

    /// A client wants a table no more. What the API contributes goes, and the table with its last user, which may be
    /// now. Table 0 stays as it is.
    ///
    /// # Errors
    /// There is no such table.
    pub fn unwant_table(&self, family: Family, id: u32) -> Result<(), FibError> {
        let index = self.index_of(family, id)?;
        if index == FibIndex::DEFAULT {
            return Ok(());
        }
        let mut walk = self.walk(family, index)?;
        while walk.goes_on() {
            self.sweep(&mut walk, Sweep::All)?;
        }
        if let Ok(table) = self.state.borrow_mut().table_mut(family, index) {
            table.leaving = true;
        }
        self.forget_unwanted();
        Ok(())
    }

    /// A feature needs a table until [`Fib::unlock`]: it is made unless it is there. One that no operator or client asks for goes with its
    /// last user, once no routes of others are in it.
    ///
    /// # Errors
    /// There is no memory, or no room for another table.
    pub fn hold_table(&self, family: Family, id: u32, by: Source) -> Result<FibIndex, FibError> {
        let index = if let Ok(index) = self.index_of(family, id) {
            index
        } else {
            let index = self.add_table(family, id, None)?;
            let mut state = self.state.borrow_mut();
            let table = state.table_mut(family, index)?;
            (table.lent, table.leaving) = (true, true);
            index
        };
        self.lock(family, index, by)?;
        Ok(index)
    }

    /// A user asks for a table: one that was made for a feature stays from now on.
    pub fn ask_for(&self, family: Family, index: FibIndex) {
        if let Ok(table) = self.state.borrow_mut().table_mut(family, index) {
            table.take_over();
        }
    }

    /// Whether a table is there for a feature only: that makes it again when it needs it.
    pub fn is_lent(&self, family: Family, index: FibIndex) -> bool {
        self.state.borrow().table(family, index).is_some_and(|table| table.lent)
    }

    /// Removes released tables without users.
    pub fn forget_unwanted(&self) {
        let mut state = self.state.borrow_mut();
        for family in Family::ALL {
            let leaving = state.tables_of(family).iter().flatten().filter(|table| table.leaving);
            let leaving: Vec<FibIndex> = leaving.map(|table| table.index).collect();
            for index in leaving {
                let goes = state.table(family, index).is_some_and(|table| !table.lent || table.is_empty());
                if goes && state.users_of(family, index).is_none() {
                    state.leave(family, index);
                    state.publish();
                }
            }
        }
    }

    /// The lowest id above 0 that no table of a family has.
    pub fn unused_id(&self, family: Family) -> u32 {
        let state = self.state.borrow();
        let ids = state.by_id.range((family, 1)..=(family, u32::MAX)).map(|((_, id), _)| *id);
        (1..).zip(ids).find(|(free, id)| free != id).map_or_else(
            || state.by_id.keys().filter(|(f, _)| *f == family).count().max(1) as u32,
            |(free, _)| free,
        )
    }

    /// The index of a table.
    ///
    /// # Errors
    /// There is none of this id; the nearest id is named.
    pub fn index_of(&self, family: Family, id: u32) -> Result<FibIndex, FibError> {
        let state = self.state.borrow();
        state.by_id.get(&(family, id)).copied().ok_or_else(|| {
            let ids = state.by_id.keys().filter(|(f, _)| *f == family).map(|(_, id)| *id);
            FibError::NoTable { id, nearest: ids.min_by_key(|n| n.abs_diff(id)).unwrap_or(0) }
        })
    }

    /// The id of a table.
    ///
    /// # Errors
    /// There is none of this index.
    pub fn id_of(&self, family: Family, index: FibIndex) -> Result<u32, FibError> {
        self.state.borrow().existing(family, index).map(|t| t.id)
    }

    /// The name of a table, if it is there.
    pub fn name_of(&self, family: Family, id: u32) -> Option<String> {
        let state = self.state.borrow();
        let index = state.by_id.get(&(family, id))?;
        state.table(family, *index).map(Table::shown_name)
    }

    /// The ids of a family's tables, lowest first.
    pub fn ids(&self, family: Family) -> Vec<u32> {
        self.state.borrow().by_id.keys().filter(|(f, _)| *f == family).map(|(_, id)| *id).collect()
    }

    /// Somebody needs a table: it cannot go before [`Fib::unlock`].
    ///
    /// # Errors
    /// There is no such table.
    pub fn lock(&self, family: Family, index: FibIndex, by: Source) -> Result<(), FibError> {
        *self.state.borrow_mut().table_mut(family, index)?.locks.entry(by).or_default() += 1;
        Ok(())
    }

    /// Somebody needs a table no longer.
    pub fn unlock(&self, family: Family, index: FibIndex, by: Source) {
        let mut is_free = false;
        if let Ok(table) = self.state.borrow_mut().table_mut(family, index)
            && let Some(locks) = table.locks.get_mut(&by)
        {
            *locks = locks.saturating_sub(1);
            if *locks == 0 {
                table.locks.remove(&by);
                is_free = table.leaving;
            }
        }
        if is_free {
            self.forget_unwanted();
        }
    }

    /// A table's facts.
    ///
    /// # Errors
    /// There is no such table.
    pub fn table(&self, family: Family, index: FibIndex) -> Result<TableInfo, FibError> {
        Ok(self.info(self.state.borrow().existing(family, index)?))
    }

    /// A family's tables' facts, by id.
    pub fn list_tables(&self, family: Family) -> Vec<TableInfo> {
        let state = self.state.borrow();
        let indices = state.by_id.iter().filter(|((f, _), _)| *f == family).map(|(_, index)| *index);
        indices.filter_map(|index| state.table(family, index)).map(|t| self.info(t)).collect()
    }

    fn info(&self, table: &Table) -> TableInfo {
        let family = table.family();
        TableInfo {
            family,
            id: table.id,
            index: table.index,
            name: table.shown_name(),
            given_name: table.name.clone(),
            locks: table.locks.iter().map(|(source, n)| (*source, *n)).collect(),
            flow_fields: self.tables.flow_fields(family, table.index),
            lengths: table.lengths(),
            plies: table.plies(),
            trie_bytes: table.trie_bytes(),
            entry_bytes: table.entry_bytes(),
        }
    }

    /// How much there is and can be.
    pub fn capacity(&self) -> Capacity {
        let all = Family::ALL.map(|family| self.list_tables(family));
        let state = self.state.borrow();
        let bytes = all.iter().flatten().map(|t| t.trie_bytes + t.entry_bytes).sum();
        Capacity {
            tables: all.each_ref().map(Vec::len),
            most_tables: MOST_TABLES,
            routes: all.each_ref().map(|tables| tables.iter().flat_map(|t| &t.lengths).sum()),
            plies: all.each_ref().map(|tables| tables.first().map_or(0, |t| t.plies)),
            most_plies: super::DEFAULT_PLIES,
            path_lists: state.lists.iter().count(),
            counted: state.counts.len(),
            next_hops: state.trackers.len(),
            adjacencies: state.adjacencies.usage(),
            bytes,
            memory: budget::taken(),
            left: budget::left(),
        }
    }
}

impl State {
    /// Who but the table itself needs it, in words.
    fn users_of(&self, family: Family, index: FibIndex) -> Option<String> {
        let table = self.table(family, index)?;
        let locks = table.locks.iter().filter(|(source, _)| **source != Source::DefaultRoute);
        let mut by: Vec<String> = locks.map(|(source, n)| format!("{source}:{n}")).collect();
        let mut lists: Vec<ListId> = Vec::new();
        for (id, list) in self.lists.iter() {
            let needs = |p: &Path| p.via.table(list.key.family) == Some((family, index));
            if list.paths().iter().any(needs) {
                lists.push(id);
            }
        }
        if !lists.is_empty() {
            for other in self.all_tables().filter(|t| (t.family(), t.index) != (family, index)) {
                let mut user = None;
                other.each(|prefix, slot| {
                    if user.is_none() && slot.all().any(|c| lists.contains(&c.list)) {
                        user = Some(format!("{prefix} in table {}", other.id));
                    }
                });
                by.extend(user);
            }
        }
        if by.is_empty() { None } else { Some(by.join(", ")) }
    }

    /// Takes a table out with all its entries.
    fn leave(&mut self, family: Family, index: FibIndex) {
        self.by_id.retain(|(f, _), i| *f != family || *i != index);
        loop {
            let all = self.table(family, index).map(|table| table.contributions(|_| true, super::AT_A_TIME));
            let all = all.unwrap_or_default();
            let mut stuck = false;
            for (prefix, source) in &all {
                match self.take(index, prefix, *source) {
                    Ok(Some(list)) => self.release(list),
                    Ok(None) => {}
                    Err(e) => {
                        tracing::warn!("{prefix} stays in a table that goes: {e}");
                        stuck = true;
                    }
                }
            }
            if all.len() < super::AT_A_TIME || stuck {
                break;
            }
        }
        self.counts.forget_table(family, index);
        if let Some(place) = self.tables_of_mut(family).get_mut(index.0 as usize) {
            *place = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use shoal_wire::Ip4Prefix;

    use super::*;
    use crate::router::{ip, router};

    #[test]
    fn a_table_made_for_a_feature_goes_with_its_last_user_unless_it_is_asked_for() {
        let router = router(1);
        let fib = &router.fib;
        let is_there = |id| fib.index_of(Family::Ip4, id).is_ok();
        let hold = |id| fib.hold_table(Family::Ip4, id, Source::LcpRt).unwrap();
        let first = hold(9);
        assert_eq!(hold(9), first);
        fib.unlock(Family::Ip4, first, Source::LcpRt);
        assert!(is_there(9));
        fib.unlock(Family::Ip4, first, Source::LcpRt);
        assert!(!is_there(9));
        // Another feature's route, and a route in another table that leads there.
        let index = hold(10);
        let prefix: IpPrefix = "198.51.100.0/24".parse().unwrap();
        fib.add(index, prefix, Source::Fpm, &[Via::Drop.into()]).unwrap();
        fib.add(FibIndex::DEFAULT, prefix, Source::Cli, &[Via::Lookup(index).into()]).unwrap();
        fib.unlock(Family::Ip4, index, Source::LcpRt);
        assert!(fib.is_lent(Family::Ip4, index));
        fib.remove(index, prefix, Source::Fpm).unwrap();
        fib.forget_unwanted();
        assert!(is_there(10), "the other table's route needs it");
        fib.remove(FibIndex::DEFAULT, prefix, Source::Cli).unwrap();
        fib.forget_unwanted();
        assert!(!is_there(10));
        // An operator asks for one that is there, by name, and for one that a client wants.
        let (named, wanted) = (hold(11), hold(12));
        assert_eq!(fib.add_table(Family::Ip4, 11, Some("red")), Ok(named));
        assert!(fib.add_table(Family::Ip4, 11, None).is_err());
        assert!(fib.add_table(Family::Ip4, 12, Some("red")).is_err(), "the name is taken");
        assert_eq!(fib.want_table(Family::Ip4, 12, None), Ok(wanted));
        // An operator's route in one asks for it, too.
        let routed = hold(13);
        fib.add(routed, prefix, Source::Cli, &[Via::Drop.into()]).unwrap();
        fib.remove(routed, prefix, Source::Cli).unwrap();
        for index in [named, wanted, routed] {
            fib.unlock(Family::Ip4, index, Source::LcpRt);
        }
        assert!(is_there(11) && is_there(12) && is_there(13));
        assert_eq!(fib.check(), Vec::<String>::new());
    }

    #[test]
    fn a_full_trie_refuses_all_of_a_bulk() {
        let router = router(1);
        let fib = router.fib.add_table(Family::Ip4, 9, None).unwrap();
        let before = router.locks();
        let path = Path::next_hop(ip("192.0.2.1"), shoal_buffer::SwIfIndex(1));
        // Each host in a /24 of its own needs a ply of its own.
        let hosts = (0..1u32 << 10).map(|n| Ip4Prefix::host(Ipv4Addr::from_bits(0x0a00_0000 + n * 256 + 1)));
        let full = router.fib.add_many(fib, hosts.clone(), Source::Cli, &[path]).unwrap_err();
        assert!(matches!(full, FibError::Full { table: 9, .. }), "{full}");
        assert_eq!((router.fib.entries(Family::Ip4, fib).unwrap().len(), router.locks()), (5, before));
        assert_eq!(router.way_in(fib, "10.0.0.1"), "None");
        assert_eq!(router.fib.add_many(fib, hosts.take(900), Source::Cli, &[path]), Ok(900));
        let fib = router.fib.add_table(Family::Ip6, 9, None).unwrap();
        let hosts = (0..1u32 << 10)
            .map(|n| IpPrefix::host(Ipv6Addr::from_bits(1 << 125 | u128::from(n) << 64).into()));
        let full = router.fib.add_many(fib, hosts, Source::Cli, &[path]).unwrap_err();
        assert!(matches!(full, FibError::Full { table: 9, .. }), "{full}");
        assert_eq!(router.fib.entries(Family::Ip6, fib).unwrap().len(), 5);
        assert_eq!(router.fib.check(), Vec::<String>::new());
    }
}
