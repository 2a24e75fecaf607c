//! Which bytes of which datagrams are there: the bookkeeping of full reassembly, without any packet. RFC 815 in
//! spirit: what is there is a list in order, and a datagram is whole when its bytes are as many as its last one says.
//!
//! A table belongs to one thread. Everything in it is bounded: datagrams, pieces of one datagram, and buffers, which
//! all tables draw from one [`Budget`]. What is too much costs the oldest datagram, so that a flood of fragments whose
//! rest never comes does not keep out those whose rest does.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

use shoal_graph::clock::Time;
use shoal_infra::{Handle, Pool};

use crate::budget::Budget;
use crate::hash::Keyed;

/// A fragment, as far as bookkeeping is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Its first byte's place in the datagram's payload.
    pub start: u32,
    /// The place behind its last byte; beyond `start`.
    pub end: u32,
    /// It is not the last.
    pub more: bool,
    /// Its two ECN bits.
    pub ecn: u8,
    /// Buffers it lies in.
    pub buffers: u32,
}

/// Why a fragment leaves a table other than in a whole datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReleaseReason {
    /// It came twice, byte by byte the same.
    Duplicate,
    /// It, or another of its datagram, lies over a third, or they do not agree where the datagram ends.
    Overlap,
    /// Its datagram has too many.
    TooMany,
    /// There were too many datagrams.
    Evicted,
    /// Buffers ran short.
    NoBuffers,
    /// Its datagram was given up before.
    GivenUp,
    /// The rest did not come in time.
    Timeout,
    /// Some fragments say that the sender does not know of congestion, others that there was some.
    Ecn,
}

/// What becomes of a fragment.
pub enum Outcome<K, T> {
    /// It waits for others.
    Held,
    /// With it the datagram is whole: take its fragments with [`Table::pop_last`].
    Whole(CompleteDatagram<K, T>),
    /// It was given to [`Items::gone`].
    Refused(ReleaseReason),
}

/// A datagram all of whose bytes are there.
pub struct CompleteDatagram<K, T> {
    context: Handle<Context<K, T>>,
    /// Bytes of its payload.
    pub len: u32,
    /// How many fragments it has.
    pub fragments: u32,
    /// The ECN bits it gets. RFC 3168, 5.3.
    pub ecn: u8,
}

/// What a table has to ask of the code that gives it fragments.
pub trait Items<T> {
    /// Whether two fragments of the same place carry the same bytes.
    fn same(&mut self, old: &mut T, new: &mut T) -> bool;

    /// Takes payload off both ends of a fragment, where others have it; false if that cannot be. RFC 791 lets fragments
    /// overlap, RFC 5722 does not.
    fn trim(&mut self, item: &mut T, front: u32, back: u32) -> bool {
        let _ = (item, front, back);
        false
    }

    /// A fragment leaves. `first` is its datagram's first when that one was there.
    fn gone(&mut self, item: T, why: ReleaseReason, first: bool);
}

/// Limits of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Datagrams at a time.
    pub datagrams: usize,
    /// Fragments of one.
    pub fragments: u32,
    /// What fragments wait for with shallow virtual reassembly.
    pub until: WaitFor,
}

/// What fragments wait for with shallow virtual reassembly before they go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum WaitFor {
    /// The first fragment, which says ports.
    #[default]
    First,
    /// The last one, too, which says how long the datagram is: VPP's extended reassembly.
    Last,
}

/// One datagram. Its fragments are in order, without overlaps.
pub(crate) struct Context<K, T> {
    pub(crate) key: K,
    pub(crate) since: Time,
    pub(crate) older: Option<Handle<Context<K, T>>>,
    pub(crate) newer: Option<Handle<Context<K, T>>>,
    pub(crate) first: Option<Handle<Piece<T>>>,
    pub(crate) last: Option<Handle<Piece<T>>>,
    pub(crate) pieces: u32,
    pub(crate) bytes: u32,
    /// Where it ends, once the last fragment is there.
    pub(crate) len: Option<u32>,
    /// A bit for each value of the ECN bits that was seen.
    ecn: u8,
    /// Nothing more is taken: what comes is dropped.
    pub(crate) given_up: bool,
}

/// A datagram as `show ... details` prints it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatagramInfo<K> {
    /// What names it.
    pub key: K,
    /// When its first fragment came.
    pub since: Time,
    /// Fragments there.
    pub fragments: u32,
    /// Bytes there.
    pub bytes: u32,
    /// Bytes it has, if that is known.
    pub len: Option<u32>,
    /// Its fragments did not fit together.
    pub given_up: bool,
}

/// A datagram, or none.
pub(crate) type Aged<K, T> = Option<Handle<Context<K, T>>>;

/// One piece, or none.
pub(crate) type Link<T> = Option<Handle<Piece<T>>>;

pub(crate) struct Piece<T> {
    pub(crate) arrival: Arrival,
    pub(crate) before: Link<T>,
    pub(crate) after: Link<T>,
    pub(crate) item: Option<T>,
}

/// Datagrams that are not whole yet, of one thread.
pub struct Table<K, T> {
    pub(crate) by_key: HashMap<K, Handle<Context<K, T>>, Keyed>,
    pub(crate) contexts: Pool<Context<K, T>>,
    pub(crate) oldest: Option<Handle<Context<K, T>>>,
    pub(crate) newest: Option<Handle<Context<K, T>>>,
    pub(crate) pieces: Pool<Piece<T>>,
    pub(crate) budget: Budget,
}

/// What the ECN bits of a datagram's fragments, a bit for each value seen, make for the whole. RFC 3168, 5.3.
fn merged_ecn(seen: u8) -> Option<u8> {
    const NOT_ECT: u8 = 1;
    const ECT_0: u8 = 1 << 2;
    const CE: u8 = 1 << 3;
    match seen {
        _ if seen & CE != 0 && seen & NOT_ECT != 0 => None,
        _ if seen & CE != 0 => Some(3),
        _ if seen & NOT_ECT != 0 => Some(0),
        _ if seen & ECT_0 != 0 => Some(2),
        _ => Some(1),
    }
}

impl<K: Copy + Eq + Hash, T> Table<K, T> {
    /// Nothing in it.
    pub fn new(budget: Budget) -> Self {
        Table {
            by_key: HashMap::default(),
            contexts: Pool::new(),
            oldest: None,
            newest: None,
            pieces: Pool::new(),
            budget,
        }
    }

    /// Datagrams that are not whole.
    #[must_use]
    pub fn len(&self) -> usize {
        self.contexts.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.contexts.is_empty()
    }

    /// Fragments that wait.
    pub fn fragments(&self) -> usize {
        self.pieces.len()
    }

    /// When the first fragment of the oldest datagram came.
    pub fn oldest(&self) -> Option<Time> {
        self.contexts.get(self.oldest?).map(|c| c.since)
    }

    /// Up to `most` datagrams, the oldest first.
    pub fn list(&self, most: usize) -> Vec<DatagramInfo<K>> {
        let mut all = Vec::new();
        let mut next = self.oldest;
        while let Some(context) = next.and_then(|h| self.contexts.get(h)).filter(|_| all.len() < most) {
            all.push(DatagramInfo {
                key: context.key,
                since: context.since,
                fragments: context.pieces,
                bytes: context.bytes,
                len: context.len,
                given_up: context.given_up,
            });
            next = context.newer;
        }
        all
    }

    /// Takes a fragment in.
    pub fn insert(
        &mut self,
        key: K,
        mut arrival: Arrival,
        mut item: T,
        (limits, now): (Limits, Time),
        items: &mut (impl Items<T> + ?Sized),
    ) -> Outcome<K, T> {
        let known = self.by_key.get(&key).copied();
        if let Some(context) = known.filter(|c| self.contexts.get(*c).is_some_and(|c| !c.given_up))
            && let Some(why) = self.make_fit(context, &mut arrival, &mut item, items)
        {
            items.gone(item, why, false);
            return Outcome::Refused(why);
        }
        let refused = known.and_then(|context| self.misfit(context, arrival, limits, &mut item, items));
        if let Some(why) = refused {
            items.gone(item, why, false);
            if let Some(context) =
                known.filter(|_| matches!(why, ReleaseReason::Overlap | ReleaseReason::TooMany))
            {
                // RFC 5722: the whole datagram goes, with fragments that are still to come. One counts for the reason.
                self.give_up(context, ReleaseReason::GivenUp, items);
            }
            return Outcome::Refused(why);
        }
        if !self.reserve(arrival.buffers, known, items) {
            items.gone(item, ReleaseReason::NoBuffers, false);
            return Outcome::Refused(ReleaseReason::NoBuffers);
        }
        let Some(context) = known.or_else(|| self.begin(key, limits, now, items)) else {
            self.budget.give(arrival.buffers);
            items.gone(item, ReleaseReason::Evicted, false);
            return Outcome::Refused(ReleaseReason::Evicted);
        };
        self.link(context, arrival, item);
        self.judge(context, items)
    }

    /// What is wrong with a fragment, compared with those of its datagram that are there.
    fn misfit(
        &mut self,
        context: Handle<Context<K, T>>,
        arrival: Arrival,
        limits: Limits,
        item: &mut T,
        items: &mut (impl Items<T> + ?Sized),
    ) -> Option<ReleaseReason> {
        let (before, after) = self.neighbours(context, arrival.start);
        let context = self.contexts.get(context)?;
        if context.given_up {
            return Some(ReleaseReason::GivenUp);
        }
        if let Some(old) = before.and_then(|h| self.pieces.get_mut(h)) {
            let place = |a: Arrival| (a.start, a.end, a.more);
            if place(old.arrival) == place(arrival) {
                // RFC 8200, 4.5: one that is there already, byte by byte, may be passed over.
                let same = old.item.as_mut().is_some_and(|old| items.same(old, item));
                return Some(if same { ReleaseReason::Duplicate } else { ReleaseReason::Overlap });
            }
            if old.arrival.end > arrival.start {
                return Some(ReleaseReason::Overlap);
            }
        }
        if after.and_then(|h| self.pieces.get(h)).is_some_and(|next| next.arrival.start < arrival.end) {
            return Some(ReleaseReason::Overlap);
        }
        let last_end = context.last.and_then(|h| self.pieces.get(h)).map_or(0, |last| last.arrival.end);
        let disagrees = match context.len {
            Some(len) => arrival.end > len || !arrival.more,
            None => !arrival.more && last_end > arrival.end,
        };
        if disagrees {
            return Some(ReleaseReason::Overlap);
        }
        (context.pieces >= limits.fragments).then_some(ReleaseReason::TooMany)
    }

    /// The pieces between which one that begins at `start` belongs: the last that does not begin behind it, and the one
    /// after that. Most come in order, so the search is from the end.
    pub(crate) fn neighbours(&self, context: Handle<Context<K, T>>, start: u32) -> (Link<T>, Link<T>) {
        let (mut before, mut after) = (self.contexts.get(context).and_then(|c| c.last), None);
        while let Some(piece) = before.and_then(|h| self.pieces.get(h)) {
            if piece.arrival.start <= start {
                break;
            }
            (after, before) = (before, piece.before);
        }
        (before, after)
    }

    /// Gets leave to hold buffers; what is oldest gives way, but not the datagram in hand.
    fn reserve(
        &mut self,
        buffers: u32,
        spare: Option<Handle<Context<K, T>>>,
        items: &mut (impl Items<T> + ?Sized),
    ) -> bool {
        while !self.budget.take(buffers) {
            let oldest = self.oldest;
            let victim = if oldest == spare {
                oldest.and_then(|h| self.contexts.get(h)).and_then(|c| c.newer)
            } else {
                oldest
            };
            let Some(victim) = victim else { return false };
            self.end(victim, ReleaseReason::NoBuffers, items);
        }
        true
    }

    fn begin(
        &mut self,
        key: K,
        limits: Limits,
        now: Time,
        items: &mut (impl Items<T> + ?Sized),
    ) -> Option<Handle<Context<K, T>>> {
        while self.contexts.len() >= limits.datagrams {
            let oldest = self.oldest?;
            self.end(oldest, ReleaseReason::Evicted, items);
        }
        self.enter(key, now, self.newest)
    }

    /// A datagram without fragments, in the order of age behind another.
    pub(crate) fn enter(&mut self, key: K, since: Time, older: Aged<K, T>) -> Aged<K, T> {
        let newer = match older {
            Some(older) => self.contexts.get(older).and_then(|c| c.newer),
            None => self.oldest,
        };
        let context = Context {
            key,
            since,
            older,
            newer,
            first: None,
            last: None,
            pieces: 0,
            bytes: 0,
            len: None,
            ecn: 0,
            given_up: false,
        };
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

    pub(crate) fn link(&mut self, handle: Handle<Context<K, T>>, arrival: Arrival, item: T) {
        let (before, after) = self.neighbours(handle, arrival.start);
        let Ok(piece) = self.pieces.insert(Piece { arrival, before, after, item: Some(item) }) else {
            return;
        };
        if let Some(before) = before.and_then(|h| self.pieces.get_mut(h)) {
            before.after = Some(piece);
        }
        if let Some(after) = after.and_then(|h| self.pieces.get_mut(h)) {
            after.before = Some(piece);
        }
        let Some(context) = self.contexts.get_mut(handle) else { return };
        if before.is_none() {
            context.first = Some(piece);
        }
        if after.is_none() {
            context.last = Some(piece);
        }
        context.pieces += 1;
        context.bytes += arrival.end - arrival.start;
        context.ecn |= 1 << (arrival.ecn & 3);
        if !arrival.more {
            context.len = Some(arrival.end);
        }
    }

    /// Whether a datagram is whole.
    fn judge(
        &mut self,
        handle: Handle<Context<K, T>>,
        items: &mut (impl Items<T> + ?Sized),
    ) -> Outcome<K, T> {
        let Some(context) = self.contexts.get(handle) else { return Outcome::Held };
        let (fragments, bytes) = (context.pieces, context.bytes);
        // Pieces do not overlap, so that as many bytes as there are means all of them.
        if context.len != Some(bytes) {
            return Outcome::Held;
        }
        let Some(ecn) = merged_ecn(context.ecn) else {
            self.end(handle, ReleaseReason::Ecn, items);
            return Outcome::Refused(ReleaseReason::Ecn);
        };
        self.unlink(handle);
        Outcome::Whole(CompleteDatagram { context: handle, len: bytes, fragments, ecn })
    }

    /// Takes the last fragment of a whole datagram; `None` when all were taken, which is when it is forgotten. Take
    /// all.
    pub fn pop_last(&mut self, whole: &CompleteDatagram<K, T>) -> Option<T> {
        let taken = self.take_last(whole.context);
        if taken.is_none() {
            self.contexts.remove(whole.context);
        }
        taken.map(|(item, _)| item)
    }

    /// The last fragment of a datagram, and whether it begins where the datagram does.
    fn take_last(&mut self, handle: Handle<Context<K, T>>) -> Option<(T, bool)> {
        let (arrival, item) = self.lift_last(handle)?;
        self.budget.give(arrival.buffers);
        Some((item, arrival.start == 0))
    }

    /// The last fragment of a datagram, whose buffers are held as before.
    pub(crate) fn lift_last(&mut self, handle: Handle<Context<K, T>>) -> Option<(Arrival, T)> {
        let context = self.contexts.get_mut(handle)?;
        let piece = self.pieces.remove(context.last?)?;
        context.last = piece.before;
        if piece.before.is_none() {
            context.first = None;
        }
        context.pieces -= 1;
        if let Some(before) = piece.before.and_then(|h| self.pieces.get_mut(h)) {
            before.after = None;
        }
        Some((piece.arrival, piece.item?))
    }

    /// Takes a datagram out of the order of age and out of reach of fragments.
    pub(crate) fn unlink(&mut self, handle: Handle<Context<K, T>>) {
        let Some(context) = self.contexts.get(handle) else { return };
        let (key, older, newer) = (context.key, context.older, context.newer);
        match older.and_then(|h| self.contexts.get_mut(h)) {
            Some(older) => older.newer = newer,
            None => self.oldest = newer,
        }
        match newer.and_then(|h| self.contexts.get_mut(h)) {
            Some(newer) => newer.older = older,
            None => self.newest = older,
        }
        self.by_key.remove(&key);
    }

    fn release(
        &mut self,
        handle: Handle<Context<K, T>>,
        why: ReleaseReason,
        items: &mut (impl Items<T> + ?Sized),
    ) {
        while let Some((item, first)) = self.take_last(handle) {
            items.gone(item, why, first);
        }
    }

    fn give_up(
        &mut self,
        handle: Handle<Context<K, T>>,
        why: ReleaseReason,
        items: &mut (impl Items<T> + ?Sized),
    ) {
        self.release(handle, why, items);
        if let Some(context) = self.contexts.get_mut(handle) {
            (context.given_up, context.bytes) = (true, 0);
        }
    }

    pub(crate) fn end(
        &mut self,
        handle: Handle<Context<K, T>>,
        why: ReleaseReason,
        items: &mut (impl Items<T> + ?Sized),
    ) {
        self.release(handle, why, items);
        self.unlink(handle);
        self.contexts.remove(handle);
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
