//! A table of many entries that is published as a whole: a copy shares all parts but those that change.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

use foldhash::fast::RandomState;

/// Parts. A change copies one of them and a list of this length.
const SHARDS: usize = 256;

/// Entries by key. A clone is cheap, and so is a change of it: packets read one version while the next is made. What is in it comes
/// from the configuration, so the hash may be a fast one: packets cannot put keys in.
#[derive(Clone, Debug)]
pub struct Shards<K, V> {
    parts: Vec<Arc<HashMap<K, V, RandomState>>>,
    hasher: RandomState,
    len: usize,
}

impl<K, V> Default for Shards<K, V> {
    fn default() -> Self {
        Shards { parts: Vec::new(), hasher: RandomState::default(), len: 0 }
    }
}

impl<K: Eq + Hash + Clone, V: Clone> Shards<K, V> {
    fn at(&self, key: &K) -> usize {
        (self.hasher.hash_one(key) >> 40) as usize % SHARDS
    }

    /// The entry of a key.
    pub fn get(&self, key: &K) -> Option<&V> {
        if self.len == 0 {
            return None;
        }
        self.parts.get(self.at(key))?.get(key)
    }

    /// Puts an entry in; gives the one that was there.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        if self.parts.is_empty() {
            self.parts.resize_with(SHARDS, Arc::default);
        }
        let at = self.at(&key);
        let old = Arc::make_mut(self.parts.get_mut(at)?).insert(key, value);
        self.len += usize::from(old.is_none());
        old
    }

    /// Takes an entry out.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        let at = self.at(key);
        let old = Arc::make_mut(self.parts.get_mut(at)?).remove(key);
        self.len -= usize::from(old.is_some());
        old
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}
