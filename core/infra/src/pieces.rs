//! A map of millions of entries: many hash tables that grow one by one.
//!
//! An entry is found in one or two cache lines; in a tree of a million it takes seven. One large hash table would move all of its
//! entries at once when it grows, and the main thread would stand still meanwhile. A walk over all of them can pause between
//! the tables.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasher, Hash, RandomState};

/// How many tables.
const PIECES: usize = 256;
/// Bits of a hash that choose one of them: neither those that a table chooses a place by, nor those that it compares first.
const BITS: u32 = 40;

/// Values by key.
///
/// ```
/// let mut all = shoal_infra::Pieces::default();
/// assert_eq!(all.insert("a", 1), None);
/// assert_eq!(all.insert("a", 2), Some(1));
/// assert_eq!((all.get(&"a"), all.len()), (Some(&2), 1));
/// ```
#[derive(Debug, Clone)]
pub struct Pieces<K, V> {
    tables: Vec<HashMap<K, V>>,
    hasher: RandomState,
    count: usize,
}

impl<K, V> Default for Pieces<K, V> {
    fn default() -> Self {
        let hasher = RandomState::new();
        let table = || HashMap::with_hasher(hasher.clone());
        Pieces { tables: (0..PIECES).map(|_| table()).collect(), hasher, count: 0 }
    }
}

impl<K: Hash + Eq, V> Pieces<K, V> {
    fn place(&self, key: &K) -> usize {
        (self.hasher.hash_one(key) >> BITS) as usize % PIECES
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The value of a key.
    pub fn get(&self, key: &K) -> Option<&V> {
        self.tables.get(self.place(key))?.get(key)
    }

    /// The value of a key, to be changed.
    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        let place = self.place(key);
        self.tables.get_mut(place)?.get_mut(key)
    }

    /// Gives a key a value; what was there before is returned.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        let place = self.place(&key);
        let before = self.tables.get_mut(place)?.insert(key, value);
        self.count += usize::from(before.is_none());
        before
    }

    /// Calls with the value of a key, which is made first if there is none.
    pub fn with_or_default<T>(&mut self, key: K, f: impl FnOnce(&mut V) -> T) -> T
    where
        V: Default,
    {
        let place = self.place(&key);
        let Some(table) = self.tables.get_mut(place) else {
            unreachable!("the remainder is less than PIECES")
        };
        match table.entry(key) {
            Entry::Occupied(mut entry) => f(entry.get_mut()),
            Entry::Vacant(free) => {
                self.count += 1;
                f(free.insert(V::default()))
            }
        }
    }

    /// Takes an entry out.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        let place = self.place(key);
        let gone = self.tables.get_mut(place)?.remove(key);
        self.count -= usize::from(gone.is_some());
        gone
    }

    /// All entries, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.tables.iter().flat_map(HashMap::iter)
    }

    /// All values, in no order.
    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.tables.iter().flat_map(HashMap::values)
    }

    /// The entries of one table; `None` behind the last one. What is there from the first table to the last is met once.
    pub fn piece(&self, number: usize) -> Option<impl Iterator<Item = (&K, &V)>> {
        self.tables.get(number).map(HashMap::iter)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_entry_is_found_and_met_once_and_spread_over_the_tables() {
        let mut all = Pieces::default();
        for n in 0..10_000_u32 {
            assert!(all.insert(n, n).is_none());
        }
        assert_eq!(all.insert(7, 70), Some(7));
        assert_eq!(all.remove(&8), Some(8));
        assert!(all.remove(&8).is_none() && all.get(&8).is_none());
        assert_eq!(all.get(&7), Some(&70));
        all.with_or_default(9, |value| *value += 1);
        assert_eq!((all.len(), all.values().count(), all.iter().count()), (9_999, 9_999, 9_999));
        assert_eq!(all.with_or_default(8, |value| *value), 0);
        assert_eq!((all.len(), all.get(&9)), (10_000, Some(&10)));
        let mut met = BTreeSet::new();
        let mut number = 0;
        while let Some(piece) = all.piece(number) {
            let before = met.len();
            met.extend(piece.map(|(key, _)| *key));
            assert!((1..200).contains(&(met.len() - before)), "{} in one", met.len() - before);
            number += 1;
        }
        assert_eq!((met.len(), number), (10_000, PIECES));
    }
}
