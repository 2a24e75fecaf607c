//! Routes by prefix, in many hash tables that grow one by one.
//!
//! A route is found in one or two cache lines; in a tree of a million routes it took seven, which was a third of all that a route costs. One
//! large hash table would move all of its routes at once when it grows, and the main thread would stand still meanwhile.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use crate::table::{Entry, Key};

/// How many tables.
const PIECES: usize = 256;
/// Bits of a hash that choose one of them: neither those that a table chooses a place by, nor those that it compares first.
const BITS: u32 = 40;

/// Routes by prefix.
#[derive(Debug)]
pub(crate) struct Pieces {
    tables: Vec<HashMap<Key, Entry>>,
    hasher: RandomState,
    count: usize,
}

impl Default for Pieces {
    fn default() -> Self {
        let hasher = RandomState::new();
        let table = || HashMap::with_hasher(hasher.clone());
        Pieces { tables: (0..PIECES).map(|_| table()).collect(), hasher, count: 0 }
    }
}

impl Pieces {
    fn place(&self, key: &Key) -> usize {
        (self.hasher.hash_one(key) >> BITS) as usize % PIECES
    }

    pub fn len(&self) -> usize {
        self.count
    }

    pub fn get(&self, key: &Key) -> Option<&Entry> {
        self.tables.get(self.place(key))?.get(key)
    }

    pub fn get_mut(&mut self, key: &Key) -> Option<&mut Entry> {
        let place = self.place(key);
        self.tables.get_mut(place)?.get_mut(key)
    }

    /// What was there before is returned.
    pub fn insert(&mut self, key: Key, entry: Entry) -> Option<Entry> {
        let place = self.place(&key);
        let before = self.tables.get_mut(place)?.insert(key, entry);
        self.count += usize::from(before.is_none());
        before
    }

    pub fn remove(&mut self, key: &Key) -> Option<Entry> {
        let place = self.place(key);
        let gone = self.tables.get_mut(place)?.remove(key);
        self.count -= usize::from(gone.is_some());
        gone
    }

    pub fn values(&self) -> impl Iterator<Item = &Entry> {
        self.tables.iter().flat_map(HashMap::values)
    }

    /// The routes of one table; `None` behind the last one. What is there from the first table to the last is met once.
    pub fn piece(&self, number: usize) -> Option<impl Iterator<Item = (&Key, &Entry)>> {
        self.tables.get(number).map(HashMap::iter)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use shoal_wire::IpPrefix;

    use super::*;
    use crate::netlink::RouteExit;

    fn key(n: u32) -> Key {
        let address = std::net::IpAddr::from((0xc612_0000 + n).to_be_bytes());
        (254, IpPrefix::new(address, 32).unwrap())
    }

    fn entry(id: u32) -> Entry {
        Entry { way: RouteExit::Id(id), generation: 1, installed: None, unanswered: None }
    }

    #[test]
    fn each_route_is_found_and_met_once_and_spread_over_the_tables() {
        let mut all = Pieces::default();
        for n in 0..10_000 {
            assert!(all.insert(key(n), entry(n)).is_none());
        }
        assert_eq!(all.insert(key(7), entry(70)).map(|before| before.way), Some(RouteExit::Id(7)));
        assert_eq!(all.remove(&key(8)).map(|gone| gone.way), Some(RouteExit::Id(8)));
        assert!(all.remove(&key(8)).is_none() && all.get(&key(8)).is_none());
        assert_eq!(all.get(&key(7)).map(|e| &e.way), Some(&RouteExit::Id(70)));
        assert_eq!((all.len(), all.values().count()), (9_999, 9_999));
        let mut met = BTreeSet::new();
        let mut number = 0;
        while let Some(piece) = all.piece(number) {
            let before = met.len();
            met.extend(piece.map(|(key, _)| *key));
            assert!((1..200).contains(&(met.len() - before)), "{} in one", met.len() - before);
            number += 1;
        }
        assert_eq!((met.len(), number), (9_999, PIECES));
    }
}
