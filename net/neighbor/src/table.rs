//! The neighbour table: which station has an address, on each interface.
//!
//! One model for every address family: ARP keeps a `Table<Ipv4Addr>`, neighbour discovery keeps a
//! `Table<Ipv6Addr>`. Data only: no packets, no adjacencies, no clock of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::time::Duration;

use serde::Serialize;
use shoal_buffer::SwIfIndex;
use shoal_graph::clock::Time;
use shoal_wire::MacAddress;

/// Where an entry comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// The operator says so, whatever the network says.
    Static,
    /// From the neighbour's own messages.
    Dynamic,
}

/// Whether an entry brings a host route.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FibEntry {
    /// It does.
    Wanted,
    /// Only routes that name it as next hop use it.
    Unwanted,
}

/// How it is known that a station is there at all. A host on the link can claim that others are there; answers to our
/// own questions outlast such claims.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Proof {
    /// A claim of some host.
    Said,
    /// It answered a question of ours, or the operator entered it.
    Answered,
}

/// What is known of one neighbour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Neighbour {
    /// Its link-layer address.
    pub mac: MacAddress,
    /// Who says so.
    pub origin: Origin,
    /// Whether it brings a host route.
    pub fib_entry: FibEntry,
    /// How that is known.
    pub proof: Proof,
    /// When it was last confirmed.
    pub updated: Time,
}

/// What happens to a new neighbour when the table is full.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum WhenFull {
    /// It is refused, unless it answered a question of ours and there are others that never did.
    Refuse,
    /// A dynamic entry makes room: one that never answered, else the one that was confirmed longest ago.
    Recycle,
}

/// Bounds of a table. The defaults are VPP's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Most entries; 0: no limit.
    pub entries: usize,
    /// Most dynamic entries of one interface; 0: no limit but that of all.
    pub interface_entries: usize,
    /// A dynamic entry not confirmed for so long is asked for again, and removed without an answer; zero: never.
    pub age: Duration,
    /// What happens when it is full.
    pub when_full: WhenFull,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { entries: 50_000, interface_entries: 0, age: Duration::ZERO, when_full: WhenFull::Refuse }
    }
}

/// What names a neighbour.
pub type Key<A> = (SwIfIndex, A);

/// What became of a new fact.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stored<A> {
    /// It was known.
    Same,
    /// The neighbour was known otherwise.
    Changed,
    /// The neighbour was not known; which one had to go for it.
    New(Option<Key<A>>),
}

/// Why a fact was not stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refused {
    /// An operator says otherwise.
    Static,
    /// The table holds as many as it may.
    Full(usize),
}

/// All neighbours of one address family.
pub struct Table<A> {
    entries: BTreeMap<Key<A>, Neighbour>,
    /// Dynamic entries of each interface and proof, those confirmed longest ago first.
    by_age: BTreeMap<(SwIfIndex, Proof), BTreeSet<(Time, A)>>,
    limits: Limits,
}

impl<A: Ord + Copy> Default for Table<A> {
    fn default() -> Self {
        Table { entries: BTreeMap::new(), by_age: BTreeMap::new(), limits: Limits::default() }
    }
}

impl<A: Ord + Copy> Table<A> {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Its bounds.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Sets its bounds; entries beyond a smaller limit stay.
    pub fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// What is known of a neighbour.
    pub fn get(&self, key: Key<A>) -> Option<Neighbour> {
        self.entries.get(&key).copied()
    }

    /// All neighbours, by interface and address.
    pub fn iter(&self) -> impl Iterator<Item = (Key<A>, Neighbour)> + '_ {
        self.iter_after(None)
    }

    /// The neighbours behind one, by interface and address; all for `None`.
    pub fn iter_after(&self, after: Option<Key<A>>) -> impl Iterator<Item = (Key<A>, Neighbour)> + '_ {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        self.entries.range((from, Bound::Unbounded)).map(|(key, neighbour)| (*key, *neighbour))
    }

    /// Stores the facts of a neighbour.
    ///
    /// # Errors
    /// The entry is static and the fact is not, or there is no room; nothing is changed then.
    pub fn store(&mut self, key: Key<A>, mut neighbour: Neighbour) -> Result<Stored<A>, Refused> {
        let old = self.get(key);
        if let Some(old) = old.filter(|old| old.mac == neighbour.mac) {
            neighbour.proof = neighbour.proof.max(old.proof);
        }
        let stored = match old {
            Some(old) if old.origin == Origin::Static && neighbour.origin == Origin::Dynamic => {
                return Err(Refused::Static);
            }
            Some(old) if Neighbour { updated: old.updated, proof: old.proof, ..neighbour } == old => {
                Stored::Same
            }
            Some(_) => Stored::Changed,
            None => Stored::New(self.make_room(key.0, &neighbour)?),
        };
        self.remove(key);
        if neighbour.origin == Origin::Dynamic {
            let ages = self.by_age.entry((key.0, neighbour.proof)).or_default();
            ages.insert((neighbour.updated, key.1));
        }
        self.entries.insert(key, neighbour);
        Ok(stored)
    }

    /// Makes room for one entry on an interface, at the cost of the interface itself if possible: a flood on one
    /// link must not make the router forget the stations on others. Entries that never answered go first, so that a
    /// host that makes up stations drives out those that it made up.
    fn make_room(&mut self, interface: SwIfIndex, new: &Neighbour) -> Result<Option<Key<A>>, Refused> {
        let Limits { entries, interface_entries, when_full, .. } = self.limits;
        let full = entries != 0 && self.entries.len() >= entries;
        let own = self.count(interface, Proof::Said) + self.count(interface, Proof::Answered);
        let full_here = new.origin == Origin::Dynamic && interface_entries != 0 && own >= interface_entries;
        if !full && !full_here {
            return Ok(None);
        }
        let limit = if full_here { interface_entries } else { entries };
        let first = |interface: SwIfIndex, proof: Proof| {
            let ages = self.by_age.get(&(interface, proof))?;
            ages.first().map(|(_, address)| (interface, *address))
        };
        let elsewhere = || if full_here { None } else { Some(self.most_said()?) };
        let unproven = || first(interface, Proof::Said).or_else(|| first(elsewhere()?, Proof::Said));
        let victim = match (when_full, new.proof) {
            (WhenFull::Refuse, Proof::Said) => None,
            (WhenFull::Refuse, Proof::Answered) => unproven(),
            (WhenFull::Recycle, Proof::Said) => {
                first(interface, Proof::Said).or_else(|| first(interface, Proof::Answered)).or_else(unproven)
            }
            (WhenFull::Recycle, Proof::Answered) => unproven().or_else(|| first(interface, Proof::Answered)),
        };
        let any = || if full_here || when_full == WhenFull::Refuse { None } else { Some(self.oldest()?.1) };
        let victim = victim.or_else(any).ok_or(Refused::Full(limit))?;
        self.remove(victim);
        Ok(Some(victim))
    }

    fn count(&self, interface: SwIfIndex, proof: Proof) -> usize {
        self.by_age.get(&(interface, proof)).map_or(0, BTreeSet::len)
    }

    /// The interface with most entries that never answered.
    fn most_said(&self) -> Option<SwIfIndex> {
        let said = self.by_age.iter().filter(|((_, proof), _)| *proof == Proof::Said);
        said.max_by_key(|(_, ages)| ages.len()).map(|((interface, _), _)| *interface)
    }

    /// Forgets a neighbour; tells what was known of it.
    pub fn remove(&mut self, key: Key<A>) -> Option<Neighbour> {
        let old = self.entries.remove(&key)?;
        let at = (key.0, old.proof);
        if let Some(ages) = self.by_age.get_mut(&at) {
            ages.remove(&(old.updated, key.1));
            if ages.is_empty() {
                self.by_age.remove(&at);
            }
        }
        Some(old)
    }

    /// The dynamic entry that was confirmed longest ago, and when.
    pub fn oldest(&self) -> Option<(Time, Key<A>)> {
        let firsts =
            self.by_age.iter().filter_map(|((i, _), ages)| ages.first().map(|(t, a)| (*t, (*i, *a))));
        firsts.min()
    }

    /// Dynamic entries that were last confirmed more than the age limit ago.
    pub fn aged(&self, now: Time) -> impl Iterator<Item = Key<A>> + '_ {
        let age = self.limits.age;
        let old = move |t: Time| age > Duration::ZERO && now.since(t) >= age;
        self.by_age.iter().flat_map(move |((i, _), ages)| {
            ages.iter().take_while(move |(t, _)| old(*t)).map(|(_, a)| (*i, *a))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEW: Origin = Origin::Dynamic;

    fn said(mac: u8, at: u64, origin: Origin) -> Neighbour {
        let updated = Time(at * 1_000_000_000);
        let mac = MacAddress([2, 0, 0, 0, 0, mac]);
        Neighbour { mac, origin, fib_entry: FibEntry::Wanted, proof: Proof::Said, updated }
    }

    /// The same of one that answered.
    fn answered(mac: u8, at: u64) -> Neighbour {
        Neighbour { proof: Proof::Answered, ..said(mac, at, NEW) }
    }

    fn key(interface: u32, address: u32) -> Key<u32> {
        (SwIfIndex(interface), address)
    }

    fn bounded(entries: usize, when_full: WhenFull) -> Table<u32> {
        let mut table = Table::default();
        let age = Duration::from_secs(10);
        table.set_limits(Limits { entries, age, when_full, ..Limits::default() });
        table
    }

    #[test]
    fn tells_new_same_and_changed_apart() {
        let mut table = Table::default();
        assert_eq!(table.store(key(1, 5), said(1, 0, NEW)), Ok(Stored::New(None)));
        assert_eq!(table.store(key(1, 5), said(1, 9, NEW)), Ok(Stored::Same));
        assert_eq!(table.store(key(1, 5), said(2, 9, NEW)), Ok(Stored::Changed));
        assert_eq!(table.get(key(1, 5)).unwrap().updated, Time(9_000_000_000));
        assert_eq!((table.len(), table.get(key(2, 5))), (1, None));
    }

    #[test]
    fn a_static_entry_is_not_changed_by_the_network() {
        let mut table = Table::default();
        table.store(key(1, 5), said(1, 0, Origin::Static)).unwrap();
        assert_eq!(table.store(key(1, 5), said(2, 1, NEW)), Err(Refused::Static));
        assert_eq!(table.get(key(1, 5)), Some(said(1, 0, Origin::Static)));
        assert_eq!(table.store(key(1, 5), said(2, 1, Origin::Static)), Ok(Stored::Changed));
    }

    #[test]
    fn a_full_table_refuses_or_recycles() {
        let mut table = bounded(2, WhenFull::Refuse);
        table.store(key(1, 1), said(1, 0, NEW)).unwrap();
        table.store(key(1, 2), said(1, 1, NEW)).unwrap();
        assert_eq!(table.store(key(1, 3), said(1, 2, NEW)), Err(Refused::Full(2)));
        assert_eq!(table.store(key(1, 1), said(1, 3, NEW)), Ok(Stored::Same), "known ones are confirmed");
        table.set_limits(Limits { when_full: WhenFull::Recycle, ..table.limits() });
        assert_eq!(table.store(key(1, 3), said(1, 4, NEW)), Ok(Stored::New(Some(key(1, 2)))));
        assert_eq!(table.len(), 2);
    }

    #[test]
    fn a_flood_recycles_entries_of_its_own_interface_first() {
        let mut table = bounded(3, WhenFull::Recycle);
        table.store(key(1, 1), said(1, 0, NEW)).unwrap();
        table.store(key(2, 1), said(1, 1, NEW)).unwrap();
        table.store(key(2, 2), said(1, 2, NEW)).unwrap();
        assert_eq!(table.store(key(2, 3), said(1, 3, NEW)), Ok(Stored::New(Some(key(2, 1)))));
        // An interface without any takes from the one that has most.
        assert_eq!(table.store(key(3, 1), said(1, 3, NEW)), Ok(Stored::New(Some(key(2, 2)))));
    }

    #[test]
    fn stations_that_were_made_up_drive_out_each_other() {
        for when_full in [WhenFull::Recycle, WhenFull::Refuse] {
            let mut table = bounded(20, when_full);
            (0..10).for_each(|n| assert!(table.store(key(1, n), answered(1, 0)).is_ok()));
            table.store(key(1, 10), said(1, 0, Origin::Static)).unwrap();
            for n in 100..5000 {
                let _ = table.store(key(1, n), said(1, u64::from(n), NEW));
            }
            assert_eq!(table.len(), 20);
            assert!((0..=10).all(|n| table.get(key(1, n)).is_some()), "{when_full:?}");
            // Neither do they keep out one that answers, on their link or on another.
            assert!(matches!(table.store(key(1, 11), answered(1, 6000)), Ok(Stored::New(Some(_)))));
            assert!(matches!(
                table.store(key(2, 12), answered(1, 6000)),
                Ok(Stored::New(Some((SwIfIndex(1), _))))
            ));
            assert!((0..=11).all(|n| table.get(key(1, n)).is_some()), "{when_full:?}");
        }
    }

    #[test]
    fn an_interface_has_its_own_limit() {
        let mut table = bounded(0, WhenFull::Refuse);
        table.set_limits(Limits { interface_entries: 2, ..table.limits() });
        table.store(key(1, 1), answered(1, 0)).unwrap();
        table.store(key(1, 2), said(1, 0, NEW)).unwrap();
        assert_eq!(table.store(key(1, 3), said(1, 0, NEW)), Err(Refused::Full(2)));
        assert_eq!(table.store(key(2, 3), said(1, 0, NEW)), Ok(Stored::New(None)));
        assert_eq!(table.store(key(1, 4), answered(1, 0)), Ok(Stored::New(Some(key(1, 2)))));
        assert_eq!(table.store(key(1, 5), answered(1, 0)), Err(Refused::Full(2)));
        assert_eq!(
            table.store(key(1, 6), said(1, 0, Origin::Static)),
            Ok(Stored::New(None)),
            "operators may"
        );
    }

    #[test]
    fn another_station_proves_itself_again() {
        let mut table = Table::default();
        table.store(key(1, 1), answered(1, 0)).unwrap();
        table.store(key(1, 1), said(1, 1, NEW)).unwrap();
        assert_eq!(table.get(key(1, 1)).unwrap().proof, Proof::Answered);
        table.store(key(1, 1), said(2, 2, NEW)).unwrap();
        assert_eq!(table.get(key(1, 1)).unwrap().proof, Proof::Said);
    }

    #[test]
    fn static_entries_are_never_recycled_or_aged() {
        let mut table = bounded(1, WhenFull::Recycle);
        table.store(key(1, 1), said(1, 0, Origin::Static)).unwrap();
        assert_eq!(table.store(key(1, 2), said(1, 0, NEW)), Err(Refused::Full(1)));
        assert_eq!(table.aged(Time(u64::MAX)).count(), 0);
    }

    #[test]
    fn entries_age_from_their_last_confirmation() {
        let mut table = bounded(0, WhenFull::Refuse);
        table.store(key(1, 1), said(1, 0, NEW)).unwrap();
        table.store(key(1, 2), said(1, 5, NEW)).unwrap();
        table.store(key(2, 1), said(1, 0, NEW)).unwrap();
        table.store(key(2, 1), said(1, 8, NEW)).unwrap();
        assert_eq!(table.aged(Time(9_999_999_999)).count(), 0);
        assert_eq!(table.aged(Time(15_000_000_000)).collect::<Vec<_>>(), [key(1, 1), key(1, 2)]);
        assert_eq!(table.oldest(), Some((Time(0), key(1, 1))));
        table.remove(key(1, 1));
        assert_eq!(table.oldest(), Some((Time(5_000_000_000), key(1, 2))));
    }
}
