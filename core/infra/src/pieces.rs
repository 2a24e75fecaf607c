//! A map of millions of entries: many hash tables that grow one by one.
//!
//! An entry is found in one or two cache lines; in a tree of a million it takes seven. One large hash table would move all of its
//! entries at once when it grows, and the main thread would stand still meanwhile. A walk over all of them can pause between
//! the tables.

use std::hash::{BuildHasher, Hash, RandomState};

use hashbrown::HashTable;
use hashbrown::hash_table::{Entry, OccupiedEntry};

/// How many tables.
const PIECES: usize = 256;
/// Bits of a hash that choose one of them: neither those that a table chooses a place by, nor those that it compares first.
const BITS: u32 = 40;

/// Values by key. A key is hashed once for each call, by a secret of this map.
///
/// ```
/// let mut all = shoal_infra::Pieces::default();
/// assert_eq!(all.insert("a", 1), None);
/// assert_eq!(all.insert("a", 2), Some(1));
/// assert_eq!((all.get(&"a"), all.len()), (Some(&2), 1));
/// ```
#[derive(Debug, Clone)]
pub struct Pieces<K, V> {
    tables: Vec<HashTable<(K, V)>>,
    hasher: RandomState,
    count: usize,
}

impl<K, V> Default for Pieces<K, V> {
    fn default() -> Self {
        let tables = (0..PIECES).map(|_| HashTable::new()).collect();
        Pieces { tables, hasher: RandomState::new(), count: 0 }
    }
}

/// Which table has the key of a hash.
fn place(hash: u64) -> usize {
    (hash >> BITS) as usize % PIECES
}

impl<K: Hash + Eq, V> Pieces<K, V> {
    fn hash(&self, key: &K) -> u64 {
        self.hasher.hash_one(key)
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
        let hash = self.hash(key);
        let found = self.tables.get(place(hash))?.find(hash, |(there, _)| there == key);
        found.map(|(_, value)| value)
    }

    /// The value of a key, to be changed.
    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        let hash = self.hash(key);
        let found = self.tables.get_mut(place(hash))?.find_mut(hash, |(there, _)| there == key);
        found.map(|(_, value)| value)
    }

    /// Where a key is, if it is there.
    fn found(&mut self, key: &K) -> Option<OccupiedEntry<'_, (K, V)>> {
        let hash = self.hash(key);
        self.tables.get_mut(place(hash))?.find_entry(hash, |(there, _)| there == key).ok()
    }

    /// Where a key is, or may be put.
    fn entry(&mut self, key: &K) -> Entry<'_, (K, V)> {
        let Pieces { tables, hasher, .. } = self;
        let hash = hasher.hash_one(key);
        let Some(table) = tables.get_mut(place(hash)) else {
            unreachable!("the remainder is less than PIECES")
        };
        table.entry(hash, |(there, _)| there == key, |(there, _)| hasher.hash_one(there))
    }

    /// Gives a key a value; what was there before is returned.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        match self.entry(&key) {
            Entry::Occupied(mut entry) => Some(std::mem::replace(&mut entry.get_mut().1, value)),
            Entry::Vacant(free) => {
                free.insert((key, value));
                self.count += 1;
                None
            }
        }
    }

    /// Calls with the value of a key, which is made first if there is none.
    pub fn with_or_default<T>(&mut self, key: K, f: impl FnOnce(&mut V) -> T) -> T
    where
        V: Default,
    {
        match self.entry(&key) {
            Entry::Occupied(mut entry) => f(&mut entry.get_mut().1),
            Entry::Vacant(free) => {
                let mut value = V::default();
                let result = f(&mut value);
                free.insert((key, value));
                self.count += 1;
                result
            }
        }
    }

    /// Calls with the value of a key, if there is one, and takes the entry out if that says so.
    pub fn with_or_remove<T>(&mut self, key: &K, f: impl FnOnce(&mut V) -> (bool, T)) -> Option<T> {
        let mut entry = self.found(key)?;
        let (goes, result) = f(&mut entry.get_mut().1);
        if goes {
            entry.remove();
            self.count -= 1;
        }
        Some(result)
    }

    /// Takes an entry out.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        let ((_, value), _) = self.found(key)?.remove();
        self.count -= 1;
        Some(value)
    }

    /// All entries, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.tables.iter().flatten().map(|(key, value)| (key, value))
    }

    /// All values, in no order.
    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.iter().map(|(_, value)| value)
    }

    /// The entries of one table; `None` behind the last one. What is there from the first table to the last is met once.
    pub fn piece(&self, number: usize) -> Option<impl Iterator<Item = (&K, &V)>> {
        Some(self.tables.get(number)?.iter().map(|(key, value)| (key, value)))
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
        assert_eq!(all.with_or_remove(&9, |value| (false, *value)), Some(10));
        assert_eq!(all.with_or_remove(&9, |value| (true, *value)), Some(10));
        assert!(all.with_or_remove(&9, |_| (true, ())).is_none() && all.len() == 9_999);
        assert!(all.insert(9, 10).is_none());
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
