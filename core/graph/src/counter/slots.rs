//! The names, and what each stands for.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use super::{Entry, Kind};

/// What has a name. A router with ten thousand interfaces has two hundred thousand of these, so nothing here looks
/// through all of them for one.
#[derive(Debug, Default)]
pub(super) struct Slots {
    /// In order of creation; a place that became free is taken by the next that comes.
    places: Vec<Option<Entry>>,
    by_name: BTreeMap<Arc<str>, usize>,
    free: Vec<usize>,
}

impl Slots {
    pub(super) fn get(&self, name: &str) -> Option<&Entry> {
        self.places.get(*self.by_name.get(name)?)?.as_ref()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.places.iter().flatten()
    }

    /// The name as it is kept, if it is.
    pub(super) fn name(&self, name: &str) -> Option<Arc<str>> {
        self.by_name.get_key_value(name).map(|(name, _)| Arc::clone(name))
    }

    pub(super) fn put(&mut self, name: &str, kind: Kind) {
        let known = self.by_name.get_key_value(name).map(|(name, at)| (Arc::clone(name), *at));
        let (name, at) = known.unwrap_or_else(|| {
            let at = self.free.pop().unwrap_or(self.places.len());
            let name: Arc<str> = name.into();
            self.by_name.insert(Arc::clone(&name), at);
            (name, at)
        });
        if at == self.places.len() {
            self.places.push(None);
        }
        if let Some(slot) = self.places.get_mut(at) {
            *slot = Some(Entry { name, kind });
        }
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
                self.places.get_mut(at).map(Option::take);
                self.free.push(at);
            }
        }
        !gone.is_empty()
    }
}
