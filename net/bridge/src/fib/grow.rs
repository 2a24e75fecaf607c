//! How the MAC table grows: by a bucket at a time, by the threads that enter stations, and no look-up waits.
//!
//! Linear hashing: a table of 2^n buckets, of which the first s are *split*: their keys are shared out between bucket b and
//! b + 2^n, by one more bit of the hash. When all are split, the table has 2^(n+1) buckets, of which none is. Both numbers
//! are one word, the [`Layout`].
//!
//! A thread that splits a bucket has the right to it, copies the keys that move to their new place, shows the new layout,
//! and clears the old places. So a station is always at its place by the old or by the new layout. A reader
//! that finds nothing looks whether the layout was the old one, and if so again. A word that changed
//! in its old place meanwhile is carried over when the place is cleared.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use super::{FoundEntry, GROUP, MacTable, PROBES, Search};

/// Entries for each bucket, on average, beyond which the table grows. Buckets that are not split yet have up to twice as
/// many, of four that they have room for.
const LOAD: usize = 1;
/// Buckets that a thread splits at most for a station that it enters: more than one, so that the table catches up where a
/// thread with the right to split had no processor for a while.
const SPLITS: usize = 4;
/// Keys that one split moves at most. One would move on average; that it were more is as good as impossible.
const MOVES: usize = 16;
/// Buckets ahead of the next split that memory is asked for.
const AHEAD: usize = 4;

const _: () = assert!(GROUP >= PROBES, "the places before and after a split do not overlap");

/// Which bucket is a key's first one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Layout {
    /// 2^n - 1.
    mask: u32,
    /// Buckets that are split.
    split: u32,
}

impl Layout {
    /// The first bucket of a key of this hash.
    #[inline(always)]
    pub(super) fn first(self, hash: u64) -> u32 {
        let (at, next) = (hash as u32 & self.mask, hash as u32 & (self.mask << 1 | 1));
        if at < self.split { next } else { at }
    }

    /// How many buckets there are.
    #[inline(always)]
    pub(super) fn buckets(self) -> usize {
        (self.mask + 1 + self.split) as usize
    }

    /// With one more bucket split.
    fn next(self) -> Layout {
        if self.split == self.mask {
            Layout { mask: self.mask << 1 | 1, split: 0 }
        } else {
            Layout { split: self.split + 1, ..self }
        }
    }

    fn word(self) -> u64 {
        u64::from(self.split) << 32 | u64::from(self.mask)
    }
}

/// The layout as it is, and what makes it grow.
pub(super) struct Growth {
    /// [`Layout::word`].
    layout: AtomicU64,
    /// Stations in the table.
    entries: AtomicUsize,
    /// A thread splits a bucket.
    busy: AtomicBool,
    /// Buckets that there may be.
    most: usize,
}

impl Growth {
    pub(super) fn new(most: usize) -> Growth {
        let layout = Layout { mask: GROUP as u32 - 1, split: 0 };
        Growth {
            layout: AtomicU64::new(layout.word()),
            entries: AtomicUsize::new(0),
            busy: AtomicBool::new(false),
            most,
        }
    }

    #[inline(always)]
    pub(super) fn layout(&self) -> Layout {
        let word = self.layout.load(Ordering::Acquire);
        Layout { mask: word as u32, split: (word >> 32) as u32 }
    }

    pub(super) fn entries(&self) -> usize {
        self.entries.load(Ordering::Acquire)
    }

    /// A station was entered.
    pub(super) fn came(&self) {
        self.entries.fetch_add(1, Ordering::AcqRel);
    }

    /// A station was removed.
    pub(super) fn left(&self) {
        self.entries.fetch_sub(1, Ordering::AcqRel);
    }

    /// Whether the table is to grow.
    fn is_due(&self) -> bool {
        let buckets = self.layout().buckets();
        buckets < self.most && self.entries() > buckets * LOAD
    }
}

impl MacTable {
    /// Splits some buckets if it is time and no other thread is about it; whether there are more now.
    pub(super) fn grow(&self) -> bool {
        let growth = &self.0.growth;
        let mut grown = false;
        for _ in 0..SPLITS {
            if !growth.is_due() || growth.busy.swap(true, Ordering::Acquire) {
                return grown;
            }
            // Asked again, with the right to split.
            let done = growth.is_due() && self.split();
            growth.busy.store(false, Ordering::Release);
            if !done {
                return grown;
            }
            grown = true;
        }
        grown
    }

    /// Splits the next bucket, if no thread enters a station there.
    fn split(&self) -> bool {
        let layout = self.0.growth.layout();
        let (from, to) = (layout.split, layout.split + layout.mask + 1);
        for bucket in [from, to] {
            self.0.buckets.prefetch(bucket as usize + AHEAD);
        }
        if !self.take(from) {
            return false;
        }
        let done = self.split_taken(layout, from, to);
        self.give_back(from);
        done
    }

    fn split_taken(&self, layout: Layout, from: u32, to: u32) -> bool {
        let next = layout.next();
        let mut moved: [Option<(FoundEntry, FoundEntry)>; MOVES] = [None; MOVES];
        let mut slots = moved.iter_mut();
        let mut whole = true;
        self.each_of(from, |old| {
            let hash = self.hash(old.key);
            if layout.first(hash) != from || next.first(hash) != to {
                return;
            }
            let copy = self.place(&Search { key: old.key, first: to }, old.entry);
            match (copy, slots.next()) {
                (Ok(copy), Some(slot)) => *slot = Some((old, copy)),
                (Ok(copy), None) => {
                    self.clear(to, &copy);
                    whole = false;
                }
                (Err(_), _) => whole = false,
            }
        });
        if !whole {
            for (_, copy) in moved.iter().flatten() {
                self.clear(to, copy);
            }
            return false;
        }
        self.0.growth.layout.store(next.word(), Ordering::Release);
        for (old, copy) in moved.iter().flatten() {
            if let Some(last) = self.clear(from, old).filter(|last| *last != old.entry) {
                // If that was changed, too, it is newer.
                self.change(copy, last);
            }
        }
        true
    }

    /// All entries of a bucket and of those behind it that have keys which passed it by.
    fn each_of(&self, first: u32, mut f: impl FnMut(FoundEntry)) {
        for at in first..first + PROBES as u32 {
            let bucket = self.bucket(at as usize);
            for ((key, entry), way) in bucket.keys.iter().zip(&bucket.entries).zip(0..) {
                let key = crate::Key(key.load(Ordering::Acquire));
                let entry = crate::Entry(entry.load(Ordering::Acquire));
                if key.0 != 0 && entry.0 != 0 {
                    f(FoundEntry { entry, key, bucket: at, way });
                }
            }
            if self.is_last(at) {
                return;
            }
        }
    }
}
