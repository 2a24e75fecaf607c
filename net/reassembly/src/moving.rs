//! Datagrams change threads: when a worker comes or goes, others own them. Fragments that are held go with them, and the
//! order of age stays.

use std::collections::BTreeMap;
use std::hash::Hash;

use shoal_infra::Handle;

use crate::sv_table::SvTable;
use crate::table::{Aged, Context, Items, ReleaseReason, Table};

impl<K: Copy + Eq + Hash, T> Table<K, T> {
    /// Takes out the datagrams that other threads than `here` own: a table for each of those threads.
    pub fn part(&mut self, here: Option<usize>, owner: impl Fn(&K) -> usize) -> BTreeMap<usize, Self> {
        let mut parts = BTreeMap::new();
        let mut next = self.oldest;
        while let Some((handle, context)) = next.and_then(|h| Some((h, self.contexts.get(h)?))) {
            next = context.newer;
            let to = owner(&context.key);
            if here != Some(to) {
                let part = parts.entry(to).or_insert_with(|| Table::new(self.budget.clone()));
                let newest = part.newest;
                self.move_to(part, handle, newest);
            }
        }
        parts
    }

    /// Takes in what was another thread's. A datagram that is here too, because fragments came while it was on its way, is
    /// lost.
    pub fn take_in(&mut self, mut other: Self, items: &mut (impl Items<T> + ?Sized)) {
        let (mut place, mut next) = (self.newest, other.newest);
        while let Some((handle, context)) = next.and_then(|h| Some((h, other.contexts.get(h)?))) {
            let (key, since) = (context.key, context.since);
            next = context.older;
            if self.by_key.contains_key(&key) {
                other.end(handle, ReleaseReason::Evicted, items);
                continue;
            }
            while let Some(here) = place.and_then(|h| self.contexts.get(h)).filter(|c| c.since > since) {
                place = here.older;
            }
            other.move_to(self, handle, place);
            // No room is left for so many: gone, as by the network.
            other.end(handle, ReleaseReason::Evicted, items);
        }
    }

    /// Moves a datagram behind another in the order of age. It stays where there is no room for it.
    fn move_to(&mut self, to: &mut Self, handle: Handle<Context<K, T>>, older: Aged<K, T>) {
        let Some(context) = self.contexts.get(handle) else { return };
        let (key, since, given_up) = (context.key, context.since, context.given_up);
        let Some(there) = to.enter(key, since, older) else { return };
        // The last one first, so that each is in front of those that are there.
        while let Some((arrival, item)) = self.lift_last(handle) {
            to.link(there, arrival, item);
        }
        if let Some(context) = to.contexts.get_mut(there) {
            context.given_up = given_up;
        }
        self.unlink(handle);
        self.contexts.remove(handle);
    }
}

impl<K: Copy + Eq + Hash, T> SvTable<K, T> {
    /// As [`Table::part`].
    pub fn part(&mut self, here: Option<usize>, owner: impl Fn(&K) -> usize) -> BTreeMap<usize, Self> {
        let mut parts = BTreeMap::new();
        let mut next = self.oldest;
        while let Some((handle, context)) = next.and_then(|h| Some((h, self.contexts.get(h)?))) {
            next = context.newer;
            let to = owner(&context.key);
            if here != Some(to)
                && let Some(context) = self.lift(handle)
            {
                let part = parts.entry(to).or_insert_with(|| SvTable::new(self.budget.clone()));
                let newest = part.newest;
                part.enter(context, newest);
            }
        }
        parts
    }

    /// As [`Table::take_in`].
    pub fn take_in(&mut self, mut other: Self, items: &mut (impl Items<T> + ?Sized)) {
        let (mut place, mut next) = (self.newest, other.newest);
        while let Some((handle, context)) = next.and_then(|h| Some((h, other.contexts.get(h)?))) {
            let (key, since) = (context.key, context.since);
            next = context.older;
            if self.by_key.contains_key(&key) {
                other.end(handle, ReleaseReason::Evicted, items);
                continue;
            }
            while let Some(here) = place.and_then(|h| self.contexts.get(h)).filter(|c| c.since > since) {
                place = here.older;
            }
            if let Some(context) = other.lift(handle) {
                self.enter(context, place);
            }
        }
    }
}
