//! The bookkeeping of shallow virtual reassembly: what the first fragment of a datagram says, and which later ones came
//! before it. Nothing is put together; bytes are counted to know when a datagram is through. One that is through stays
//! known until its time is over, as in VPP: copies that come late still go on. It is the first to give way to others.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::time::Duration;

use shoal_graph::clock::Time;
use shoal_infra::{Handle, Pool};

use crate::budget::Budget;
use crate::hash::Keyed;
use crate::l4::L4;
use crate::table::{Arrival, DatagramInfo, Items, Limits, ReleaseReason, WaitFor};

/// What a table has to ask of the code that gives it fragments.
pub trait Waiters<T>: Items<T> {
    /// A fragment that waited goes on: the first one came.
    fn go_on(&mut self, item: T, l4: L4);
}

/// What becomes of a fragment.
#[derive(Debug, PartialEq, Eq)]
pub enum SvOutcome<T> {
    /// It waits for the first, or was given to [`Items::gone`].
    Taken,
    /// It goes on, with what the first one says.
    Known(T, L4),
}

pub(crate) struct Context<K, T> {
    pub(crate) key: K,
    pub(crate) since: Time,
    pub(crate) older: Option<Handle<Context<K, T>>>,
    pub(crate) newer: Option<Handle<Context<K, T>>>,
    /// What the first fragment says, and where it ends.
    first: Option<(L4, u32)>,
    waiting: VecDeque<(Arrival, T)>,
    seen: u32,
    bytes: u32,
    len: Option<u32>,
    through: bool,
}

/// A datagram, or none.
pub(crate) type Aged<K, T> = Option<Handle<Context<K, T>>>;

/// Datagrams whose fragments pass, of one thread.
pub struct SvTable<K, T> {
    pub(crate) by_key: HashMap<K, Handle<Context<K, T>>, Keyed>,
    pub(crate) contexts: Pool<Context<K, T>>,
    pub(crate) oldest: Option<Handle<Context<K, T>>>,
    pub(crate) newest: Option<Handle<Context<K, T>>>,
    /// Queues of contexts that ended, so that new ones allocate nothing.
    spare: Vec<VecDeque<(Arrival, T)>>,
    /// Datagrams that are through, in that order; some are there no more.
    through: VecDeque<Handle<Context<K, T>>>,
    pub(crate) budget: Budget,
}

impl<K: Copy + Eq + Hash, T> SvTable<K, T> {
    /// Nothing in it.
    pub fn new(budget: Budget) -> Self {
        SvTable {
            by_key: HashMap::default(),
            contexts: Pool::new(),
            oldest: None,
            newest: None,
            spare: Vec::new(),
            through: VecDeque::new(),
            budget,
        }
    }

    /// Datagrams that are known.
    #[must_use]
    pub fn len(&self) -> usize {
        self.contexts.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.contexts.is_empty()
    }

    /// When the first fragment of the oldest datagram came.
    pub fn oldest(&self) -> Option<Time> {
        self.contexts.get(self.oldest?).map(|c| c.since)
    }

    /// Up to `most` datagrams, the oldest first.
    pub fn list(&self, most: usize) -> Vec<DatagramInfo<K>> {
        let mut all = Vec::new();
        let mut next = self.oldest;
        while let Some(c) = next.and_then(|h| self.contexts.get(h)).filter(|_| all.len() < most) {
            let Context { key, since, seen, bytes, len, .. } = *c;
            all.push(DatagramInfo { key, since, fragments: seen, bytes, len, given_up: false });
            next = c.newer;
        }
        all
    }

    /// Takes a fragment in; `l4` is what it says if it is the first.
    pub fn insert(
        &mut self,
        key: K,
        (arrival, l4): (Arrival, Option<L4>),
        item: T,
        (limits, now): (Limits, Time),
        items: &mut impl Waiters<T>,
    ) -> SvOutcome<T> {
        let mut known = self.by_key.get(&key).copied();
        if let Some(old) = known.filter(|h| l4.is_some() && self.is_through(*h)) {
            // Identifications are used again: a first fragment begins the next datagram.
            self.end(old, ReleaseReason::Timeout, items);
            known = None;
        }
        let Some(handle) = known.or_else(|| self.begin(key, limits, now, items)) else {
            items.gone(item, ReleaseReason::Evicted, false);
            return SvOutcome::Taken;
        };
        let first = self.contexts.get(handle).and_then(|c| c.first);
        let says = match (first, l4) {
            // RFC 3128: nothing may lie over what the first one says, nor may there be two that differ.
            (Some((old, end)), Some(new)) if (old, end) != (new, arrival.end) => Err(ReleaseReason::Overlap),
            (Some((_, end)), None) if arrival.start < end => Err(ReleaseReason::Overlap),
            (Some((l4, _)), _) | (None, Some(l4)) => Ok(l4),
            (None, None) => {
                self.hold(handle, arrival, item, limits, items);
                return SvOutcome::Taken;
            }
        };
        match says {
            Err(why) => {
                items.gone(item, why, false);
                SvOutcome::Taken
            }
            Ok(l4) if limits.until == WaitFor::Last && !self.knows_end(handle, arrival) => {
                if let Some(context) = self.contexts.get_mut(handle) {
                    context.first.get_or_insert((l4, arrival.end));
                }
                self.hold(handle, arrival, item, limits, items);
                SvOutcome::Taken
            }
            Ok(l4) => {
                self.note(handle, arrival);
                self.let_go(handle, (l4, first.map_or(arrival.end, |(_, end)| end)), items);
                self.see_if_through(handle);
                let later = arrival.start != 0;
                SvOutcome::Known(item, if later { l4.of_later() } else { l4 })
            }
        }
    }

    /// Whether the end of a datagram is known with this fragment.
    fn knows_end(&self, handle: Handle<Context<K, T>>, arrival: Arrival) -> bool {
        !arrival.more || self.contexts.get(handle).is_some_and(|c| c.len.is_some())
    }

    /// Counts a fragment.
    fn note(&mut self, handle: Handle<Context<K, T>>, arrival: Arrival) {
        let Some(context) = self.contexts.get_mut(handle) else { return };
        context.seen = context.seen.saturating_add(1);
        context.bytes = context.bytes.saturating_add(arrival.end - arrival.start);
        if !arrival.more {
            context.len = Some(arrival.end);
        }
    }

    fn hold(
        &mut self,
        handle: Handle<Context<K, T>>,
        arrival: Arrival,
        item: T,
        limits: Limits,
        items: &mut impl Waiters<T>,
    ) {
        if self.contexts.get(handle).is_some_and(|c| c.waiting.len() >= limits.fragments as usize) {
            return items.gone(item, ReleaseReason::TooMany, false);
        }
        while !self.budget.take(arrival.buffers) {
            let oldest = self.oldest.filter(|h| *h != handle);
            let Some(victim) = oldest.or_else(|| self.contexts.get(handle)?.newer) else {
                return items.gone(item, ReleaseReason::NoBuffers, false);
            };
            self.end(victim, ReleaseReason::NoBuffers, items);
        }
        self.note(handle, arrival);
        if let Some(context) = self.contexts.get_mut(handle) {
            context.waiting.push_back((arrival, item));
        }
    }

    /// What was waited for came: those that waited go on, but for those that lie over what the first one says.
    fn let_go(&mut self, handle: Handle<Context<K, T>>, (l4, end): (L4, u32), items: &mut impl Waiters<T>) {
        let Some(context) = self.contexts.get_mut(handle) else { return };
        context.first = Some((l4, end));
        while let Some((arrival, item)) = context.waiting.pop_front() {
            self.budget.give(arrival.buffers);
            match arrival.start {
                // The first one itself, which waited for the last.
                0 if arrival.end == end => items.go_on(item, l4),
                start if start < end => items.gone(item, ReleaseReason::Overlap, false),
                _ => items.go_on(item, l4.of_later()),
            }
        }
    }

    fn is_through(&self, handle: Handle<Context<K, T>>) -> bool {
        self.contexts.get(handle).is_some_and(|c| c.through)
    }

    fn see_if_through(&mut self, handle: Handle<Context<K, T>>) {
        let Some(context) = self.contexts.get_mut(handle) else { return };
        if context.through || context.len.is_none_or(|len| context.bytes < len) {
            return;
        }
        context.through = true;
        if self.through.len() > 2 * self.contexts.len() {
            let contexts = &self.contexts;
            self.through.retain(|h| contexts.get(*h).is_some());
        }
        self.through.push_back(handle);
    }

    /// The datagram that gives way to another: one that is through, or the oldest.
    fn victim(&mut self) -> Aged<K, T> {
        while let Some(handle) = self.through.pop_front() {
            if self.is_through(handle) {
                return Some(handle);
            }
        }
        self.oldest
    }

    fn begin(
        &mut self,
        key: K,
        limits: Limits,
        now: Time,
        items: &mut impl Waiters<T>,
    ) -> Option<Handle<Context<K, T>>> {
        while self.contexts.len() >= limits.datagrams {
            let victim = self.victim()?;
            self.end(victim, ReleaseReason::Evicted, items);
        }
        let context = Context {
            key,
            since: now,
            older: None,
            newer: None,
            first: None,
            waiting: self.spare.pop().unwrap_or_default(),
            seen: 0,
            bytes: 0,
            len: None,
            through: false,
        };
        self.enter(context, self.newest)
    }

    /// Takes a datagram in, in the order of age behind another.
    pub(crate) fn enter(&mut self, mut context: Context<K, T>, older: Aged<K, T>) -> Aged<K, T> {
        let newer = match older {
            Some(older) => self.contexts.get(older).and_then(|c| c.newer),
            None => self.oldest,
        };
        (context.older, context.newer) = (older, newer);
        let key = context.key;
        let handle = self.contexts.insert(context).ok()?;
        match older.and_then(|h| self.contexts.get_mut(h)) {
            Some(older) => older.newer = Some(handle),
            None => self.oldest = Some(handle),
        }
        match newer.and_then(|h| self.contexts.get_mut(h)) {
            Some(newer) => newer.older = Some(handle),
            None => self.newest = Some(handle),
        }
        self.by_key.insert(key, handle);
        Some(handle)
    }

    pub(crate) fn end(
        &mut self,
        handle: Handle<Context<K, T>>,
        why: ReleaseReason,
        items: &mut (impl Items<T> + ?Sized),
    ) {
        let Some(mut context) = self.lift(handle) else { return };
        while let Some((arrival, item)) = context.waiting.pop_front() {
            self.budget.give(arrival.buffers);
            items.gone(item, why, false);
        }
        self.spare.push(context.waiting);
    }

    /// Takes a datagram out, with the fragments that wait.
    pub(crate) fn lift(&mut self, handle: Handle<Context<K, T>>) -> Option<Context<K, T>> {
        let context = self.contexts.remove(handle)?;
        let (older, newer) = (context.older, context.newer);
        match older.and_then(|h| self.contexts.get_mut(h)) {
            Some(older) => older.newer = newer,
            None => self.oldest = newer,
        }
        match newer.and_then(|h| self.contexts.get_mut(h)) {
            Some(newer) => newer.older = older,
            None => self.newest = older,
        }
        self.by_key.remove(&context.key);
        Some(context)
    }

    /// Ends up to `most` datagrams whose time is over; tells how many.
    pub fn expire(
        &mut self,
        now: Time,
        timeout: Duration,
        most: usize,
        items: &mut (impl Items<T> + ?Sized),
    ) -> usize {
        let mut ended = 0;
        while let Some(oldest) = self.oldest.filter(|_| ended < most) {
            if self.contexts.get(oldest).is_some_and(|c| c.since.after(timeout) > now) {
                break;
            }
            self.end(oldest, ReleaseReason::Timeout, items);
            ended += 1;
        }
        ended
    }
}
