//! Lookups of several packets side by side, in parts between which there is time for something else.

use std::sync::atomic::{AtomicU32, Ordering};

use super::address::{Address, WIDE_LEVELS};
use super::{Entry, LINE, Mtrie, bucket, first_slot};

/// A lookup on its way through a trie, for [`Mtrie::seek`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Search<A> {
    addr: A,
    entry: Entry,
}

impl<A: Address> Search<A> {
    /// A lookup of this address (host order).
    #[inline(always)]
    pub fn of(addr: A) -> Self {
        Search { addr, entry: Entry::NONE }
    }

    /// Whether it is for this address.
    #[inline(always)]
    pub fn is_for(&self, addr: A) -> bool {
        self.addr == addr
    }

    /// What [`Mtrie::seek`] found, as [`Mtrie::lookup`] tells it.
    #[inline(always)]
    pub fn value(&self) -> u32 {
        self.entry.value()
    }

    /// The slot to read at a level: of the ply the entry names. Some other slot if the entry is final.
    #[inline(always)]
    fn slot(&self, level: u8) -> usize {
        first_slot(self.entry.line()) + self.addr.digit(level)
    }

    /// Goes a level down. The entry of a search that has ended stays as it is, though some slot is read for it: a
    /// branch would be guessed wrong more often than that costs.
    #[inline(always)]
    fn step(&mut self, slots: &[AtomicU32], level: u8) {
        let below = slots.get(self.slot(level)).map_or(0, |slot| slot.load(Ordering::Acquire));
        self.entry = if self.entry.is_final() { self.entry } else { Entry(below) };
    }
}

impl<A: Address> From<A> for Search<A> {
    fn from(addr: A) -> Self {
        Search::of(addr)
    }
}

/// Whether all are for one address; without a branch for each, so that several are compared at once.
#[inline(always)]
#[allow(clippy::needless_bitwise_bool)] // a lazy operator would be a branch
fn are_for<A: Address>(addr: A, all: &[Search<A>]) -> bool {
    all.iter().fold(true, |same, search| same & (search.addr == addr))
}

/// Most searches whose small plies are looked at together.
const TOGETHER: usize = 32;

/// What is known of several searches after [`Mtrie::advance`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InFlight {
    /// Some are not done.
    #[default]
    Open,
    /// They are done.
    Done,
}

impl<A: Address> Mtrie<A> {
    /// Looks up several addresses, all of them one level after the other, so that their loads overlap. Up to some 32
    /// at once are better than all of a frame: what a processor can have under way at once is bounded. Where all are
    /// the same, as in a burst to one host, there is one lookup in a deep trie.
    #[inline(always)]
    pub fn seek(&self, all: &mut [Search<A>]) {
        if A::LEVELS > WIDE_LEVELS {
            let Some(&Search { addr: first, .. }) = all.first() else { return };
            if are_for(first, all) {
                let entry = Entry::leaf(self.lookup(first));
                for search in all {
                    search.entry = entry;
                }
                return;
            }
        }
        for search in &mut *all {
            self.begin(search);
        }
        let begun = self.advance(all);
        self.finish(begun, all);
    }

    /// Looks up one address.
    #[inline(always)]
    pub fn look_up(&self, search: &mut Search<A>) {
        search.entry = Entry::leaf(self.lookup(search.addr));
    }

    /// The first part of [`seek`](Self::seek), of one search: the levels that stay in the caches. What the next reads is
    /// then on its way, and there is time for something else.
    #[inline(always)]
    pub fn begin(&self, search: &mut Search<A>) {
        search.entry = self.root(search.addr);
        for level in 1..=A::CACHED_LEVELS {
            search.step(self.slots.as_slice(), level);
        }
        self.slots.prefetch(search.slot(A::CACHED_LEVELS + 1));
    }

    /// The second part, of several: the next level of large plies. What the one below reads is then on its way
    /// again, where there is one.
    #[inline(always)]
    pub fn advance(&self, all: &mut [Search<A>]) -> InFlight {
        // By value, so that what it consists of need not be read again for each.
        let slots = self.slots.as_slice();
        let level = A::CACHED_LEVELS + 1;
        let mut open = 0;
        for search in all {
            search.step(slots, level);
            open |= search.entry.0;
            if level == WIDE_LEVELS {
                self.slots.prefetch(first_slot(search.entry.line()));
            } else if !search.entry.is_final() {
                // Few have a longer prefix than this level's.
                self.slots.prefetch(search.slot(level + 1));
            }
        }
        if Entry(open).is_final() { InFlight::Done } else { InFlight::Open }
    }

    /// The rest, of the same searches.
    #[inline(always)]
    pub fn finish(&self, begun: InFlight, all: &mut [Search<A>]) {
        if begun == InFlight::Done {
            return;
        }
        let slots = self.slots.as_slice();
        for level in A::CACHED_LEVELS + 2..=WIDE_LEVELS {
            for search in all.iter_mut() {
                search.step(slots, level);
            }
        }
        if A::LEVELS > WIDE_LEVELS {
            all.chunks_mut(TOGETHER).for_each(|some| self.finish_narrow(some));
        }
    }

    /// The levels of small plies, and buckets, each a line. Most searches end in the first: those that do not go on
    /// when it was read for all.
    #[inline(always)]
    fn finish_narrow(&self, all: &mut [Search<A>]) {
        let (lines, _) = self.slots.as_slice().as_chunks::<LINE>();
        let level = WIDE_LEVELS + 1;
        let mut open = 0u32;
        for (i, search) in all.iter_mut().enumerate().take(TOGETHER) {
            if search.entry.is_final() {
                continue;
            }
            let Some(line) = lines.get(search.entry.line()) else { continue };
            if search.entry.as_bucket().is_some() {
                search.entry = bucket::find(line, search.addr.upper());
                continue;
            }
            search.step(self.slots.as_slice(), level);
            if !search.entry.is_final() {
                self.slots.prefetch(first_slot(search.entry.line()));
                open |= 1 << i;
            }
        }
        while open != 0 {
            if let Some(search) = all.get_mut(open.trailing_zeros() as usize) {
                search.entry = Entry::leaf(self.descend(search.entry, search.addr, level));
            }
            open &= open - 1;
        }
    }
}
