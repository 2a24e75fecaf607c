//! The names, and what each stands for.

use std::collections::BTreeMap;
use std::iter::repeat_n;
use std::ops::Bound;
use std::sync::Arc;

use super::{Entry, Kind};

/// Entries that are copied together when one of them changes that somebody still looks at.
const CHUNK: usize = 64;

type Chunk = Vec<Option<Entry>>;

/// The directory as it was at one moment. To take it costs a word for each 64 names, whatever becomes of them.
#[derive(Clone, Debug, Default)]
pub struct Directory {
    chunks: Vec<Arc<Chunk>>,
    len: usize,
}

impl Directory {
    /// How many names there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// All entries. The names a router begins with stand first, in order of creation.
    pub fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.chunks.iter().flat_map(|chunk| chunk.iter().flatten())
    }

    fn get(&self, at: usize) -> Option<&Entry> {
        self.chunks.get(at / CHUNK)?.get(at % CHUNK)?.as_ref()
    }

    fn set(&mut self, at: usize, entry: Option<Entry>) {
        while self.chunks.len() <= at / CHUNK {
            self.chunks.push(Arc::new(repeat_n(None, CHUNK).collect()));
        }
        let chunk = self.chunks.get_mut(at / CHUNK).map(Arc::make_mut);
        if let Some(slot) = chunk.and_then(|chunk| chunk.get_mut(at % CHUNK)) {
            self.len = self.len + usize::from(entry.is_some()) - usize::from(slot.is_some());
            *slot = entry;
        }
    }
}

/// What has a name. A router with ten thousand interfaces has two hundred thousand of these, so nothing here looks
/// through all of them for one.
#[derive(Debug, Default)]
pub(super) struct Slots {
    /// In order of creation; a place that became free is taken by the next that comes.
    places: Directory,
    /// Places there ever were.
    next: usize,
    by_name: BTreeMap<Arc<str>, usize>,
    free: Vec<usize>,
}

impl Slots {
    pub(super) fn get(&self, name: &str) -> Option<&Entry> {
        self.places.get(*self.by_name.get(name)?)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.places.iter()
    }

    pub(super) fn directory(&self) -> Directory {
        self.places.clone()
    }

    /// The name as it is kept, if it is.
    pub(super) fn name(&self, name: &str) -> Option<Arc<str>> {
        self.by_name.get_key_value(name).map(|(name, _)| Arc::clone(name))
    }

    pub(super) fn put(&mut self, name: &str, kind: Kind) {
        let known = self.by_name.get_key_value(name).map(|(name, at)| (Arc::clone(name), *at));
        let (name, at) = known.unwrap_or_else(|| {
            let at = self.free.pop().unwrap_or(self.next);
            self.next = self.next.max(at + 1);
            let name: Arc<str> = name.into();
            self.by_name.insert(Arc::clone(&name), at);
            (name, at)
        });
        self.places.set(at, Some(Entry { name, kind }));
    }

    /// Takes away all names that begin with `prefix`; whether there were any.
    pub(super) fn remove_prefix(&mut self, prefix: &str) -> bool {
        let from = (Bound::Included(prefix), Bound::Unbounded);
        let gone: Vec<Arc<str>> = (self.by_name.range::<str, _>(from))
            .map(|(name, _)| Arc::clone(name))
            .take_while(|name| name.starts_with(prefix))
            .collect();
        for name in &gone {
            if let Some(at) = self.by_name.remove(name) {
                self.places.set(at, None);
                self.free.push(at);
            }
        }
        !gone.is_empty()
    }
}
