//! The MAC table: where stations are, read and written by all threads without a lock that anyone waits for.
//!
//! Buckets of one cache line with three entries each; an entry is two words, a key and what is known of it. A key whose
//! bucket is full is in one of the next ones, and each bucket on the way counts that, so that a look-up ends where it can:
//! nearly always in the first line. See docs/decisions/0014.
//!
//! *Reading*: a key is compared, its word read, and the key read again. *Changing* a known station (it was heard again, it
//! moved): the word is exchanged if it is still what was read. *Entering* a station needs the right of its first
//! bucket, one bit there: a thread that does not get it at once does not enter, and the station's next frame does.
//! *Removing* is for the control plane alone.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use shoal_flow::Seed;
use shoal_infra::{StableArena, zeroable_struct};

use crate::entry::{Entry, Key};

/// Entries of a bucket.
const WAYS: usize = 3;
/// Buckets that a key may be in, from its first one on: so many that a table which is full for two thirds refuses none.
const PROBES: usize = 64;
/// Buckets of a group, of which one number tells whether there is anything in them: a page of memory.
pub(crate) const GROUP: usize = 64;
/// The bit of [`Bucket::state`] that says that a thread enters a key whose first bucket this is.
const ENTERING: u32 = 1 << 31;

zeroable_struct! {
    /// A cache line.
    #[repr(C, align(64))]
    struct Bucket {
        /// How many entries are in later buckets because this one was full; and [`ENTERING`].
        state: AtomicU32,
        unused: [u32; 3],
        keys: [AtomicU64; WAYS],
        entries: [AtomicU64; WAYS],
    }
}

const _: () = assert!(size_of::<Bucket>() == 64, "a bucket is a cache line");

struct Inner {
    buckets: StableArena<Bucket>,
    mask: usize,
    seed: Seed,
    /// Entries of each group.
    occupied: StableArena<AtomicU32>,
    /// Groups with news for clients.
    news: StableArena<AtomicU32>,
}

/// The table. Clones are the same.
#[derive(Clone)]
pub struct MacTable(Arc<Inner>);

/// A look-up that has begun: the first bucket is on its way from memory.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Search {
    pub(crate) key: Key,
    first: u32,
}

impl Search {
    /// One that has begun, by the number of its first bucket.
    #[inline(always)]
    pub(crate) fn of(key: Key, first: u32) -> Self {
        Search { key, first }
    }

    /// The number of the first bucket.
    #[inline(always)]
    pub(crate) fn first(&self) -> u32 {
        self.first
    }
}

/// Where an entry was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FoundEntry {
    /// What is known.
    pub entry: Entry,
    bucket: u32,
    way: u8,
}

/// Why a station was not entered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refused {
    /// There is no room near its place.
    Full,
    /// Another thread enters a station there at this moment.
    Busy,
    /// It is there.
    Known,
}

impl MacTable {
    /// A table of so many buckets, rounded up to a power of two. Memory is taken when it is first written.
    ///
    /// # Errors
    /// The system gives no address space.
    pub fn new(buckets: usize, seed: Seed) -> io::Result<Self> {
        let buckets = buckets.max(GROUP).next_power_of_two();
        Ok(MacTable(Arc::new(Inner {
            buckets: StableArena::with_capacity(buckets)?,
            mask: buckets - 1,
            seed,
            occupied: StableArena::with_capacity(buckets / GROUP)?,
            news: StableArena::with_capacity(buckets / GROUP)?,
        })))
    }

    #[inline(always)]
    fn bucket(&self, at: usize) -> &Bucket {
        match self.0.buckets.get(at & self.0.mask) {
            Some(bucket) => bucket,
            None => unreachable!("the mask is below the capacity"),
        }
    }

    /// The place of a station.
    #[inline(always)]
    pub(crate) fn place_of(&self, key: Key) -> Search {
        Search { key, first: (self.0.seed.hash(&[key.0]) as usize & self.0.mask) as u32 }
    }

    /// Begins to look for a station.
    #[inline(always)]
    pub fn search(&self, key: Key) -> Search {
        let search = self.place_of(key);
        self.0.buckets.prefetch(search.first as usize);
        search
    }

    /// Finds it.
    #[inline(always)]
    pub fn find(&self, search: &Search) -> Option<FoundEntry> {
        let bucket = self.bucket(search.first as usize);
        if let Some(found) = Self::find_in(bucket, search.first, search.key) {
            return Some(found);
        }
        if bucket.state.load(Ordering::Acquire) & !ENTERING == 0 { None } else { self.find_behind(search) }
    }

    /// Compares all keys of a bucket and branches once: which of them it is cannot be foreseen.
    #[inline(always)]
    fn find_in(bucket: &Bucket, at: u32, key: Key) -> Option<FoundEntry> {
        let way = Self::way_of(bucket, key);
        let entry = bucket.entries.get(way)?.load(Ordering::Acquire);
        // Another station's, if the entry was removed and its place taken meanwhile.
        let still = bucket.keys.get(way)?.load(Ordering::Acquire) == key.0;
        (entry != 0 && still).then_some(FoundEntry { entry: Entry(entry), bucket: at, way: way as u8 })
    }

    /// The place of a key in a bucket, or one behind the last.
    #[inline(always)]
    fn way_of(bucket: &Bucket, key: Key) -> usize {
        let keys = bucket.keys.iter().enumerate().rev();
        keys.fold(WAYS, |way, (at, there)| if there.load(Ordering::Acquire) == key.0 { at } else { way })
    }

    #[cold]
    fn find_behind(&self, search: &Search) -> Option<FoundEntry> {
        for step in 1..PROBES {
            let at = (search.first as usize + step) & self.0.mask;
            let bucket = self.bucket(at);
            let found = Self::find_in(bucket, at as u32, search.key);
            if found.is_some() || bucket.state.load(Ordering::Acquire) & !ENTERING == 0 {
                return found;
            }
        }
        None
    }

    /// Puts another word in the place of what was found; false when it is no longer that.
    #[inline(always)]
    pub fn change(&self, found: &FoundEntry, to: Entry) -> bool {
        let bucket = self.bucket(found.bucket as usize);
        let entry = bucket.entries.get(usize::from(found.way));
        let done = entry.is_some_and(|entry| {
            entry.compare_exchange(found.entry.0, to.0, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        });
        if done && to.has(Entry::LEARN_EVENT) {
            self.note(found.bucket as usize);
        }
        done
    }

    /// Enters a station that was not found.
    ///
    /// # Errors
    /// It is there, there is no room, or another thread enters one that begins in the same bucket.
    pub fn enter(&self, search: &Search, entry: Entry) -> Result<(), Refused> {
        let first = &self.bucket(search.first as usize).state;
        if first.fetch_or(ENTERING, Ordering::Acquire) & ENTERING != 0 {
            return Err(Refused::Busy);
        }
        let entered =
            if self.find(search).is_some() { Err(Refused::Known) } else { self.place(search, entry) };
        first.fetch_and(!ENTERING, Ordering::Release);
        entered
    }

    fn place(&self, search: &Search, entry: Entry) -> Result<(), Refused> {
        for step in 0..PROBES {
            let at = (search.first as usize + step) & self.0.mask;
            let bucket = self.bucket(at);
            let free = |word: &AtomicU64| {
                word.compare_exchange(0, entry.0, Ordering::AcqRel, Ordering::Relaxed).is_ok()
            };
            if let Some((_, key)) = bucket.entries.iter().zip(&bucket.keys).find(|(word, _)| free(word)) {
                key.store(search.key.0, Ordering::Release);
                if let Some(occupied) = self.0.occupied.get(at / GROUP) {
                    occupied.fetch_add(1, Ordering::Release);
                }
                if entry.has(Entry::LEARN_EVENT) {
                    self.note(at);
                }
                return Ok(());
            }
            bucket.state.fetch_add(1, Ordering::AcqRel);
        }
        self.forget_way(search.first as usize, PROBES);
        Err(Refused::Full)
    }

    /// Buckets from the first on have one entry fewer behind them.
    fn forget_way(&self, first: usize, steps: usize) {
        for step in 0..steps {
            self.bucket(first + step).state.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// There is news for clients in a group.
    fn note(&self, bucket: usize) {
        if let Some(news) = self.0.news.get(bucket / GROUP) {
            news.store(1, Ordering::Release);
        }
    }

    /// Removes a station; what was known of it. For the control plane's thread alone.
    pub fn remove(&self, key: Key) -> Option<Entry> {
        let search = self.search(key);
        let found = self.find(&search)?;
        let bucket = self.bucket(found.bucket as usize);
        let (there, entry) =
            (bucket.keys.get(usize::from(found.way))?, bucket.entries.get(usize::from(found.way))?);
        there.store(0, Ordering::Release);
        let word = entry.swap(0, Ordering::AcqRel);
        let steps = (found.bucket as usize).wrapping_sub(search.first as usize) & self.0.mask;
        self.forget_way(search.first as usize, steps);
        if let Some(occupied) = self.0.occupied.get(found.bucket as usize / GROUP) {
            occupied.fetch_sub(1, Ordering::AcqRel);
        }
        Some(Entry(word))
    }

    /// All groups, by number.
    pub fn groups(&self) -> Range<usize> {
        0..(self.0.mask + 1) / GROUP
    }

    /// How many entries a group has.
    pub fn occupied(&self, group: usize) -> u32 {
        self.0.occupied.get(group).map_or(0, |n| n.load(Ordering::Acquire))
    }

    /// Whether a group has news for clients; then it has none from now on.
    pub fn take_news(&self, group: usize) -> bool {
        self.0
            .news
            .get(group)
            .is_some_and(|news| news.load(Ordering::Relaxed) != 0 && news.swap(0, Ordering::AcqRel) != 0)
    }

    /// The entries of a group.
    pub fn entries(&self, group: usize) -> Vec<(Key, Entry)> {
        if self.occupied(group) == 0 {
            return Vec::new();
        }
        let mut all = Vec::new();
        for at in group * GROUP..(group + 1) * GROUP {
            let bucket = self.bucket(at);
            for (key, entry) in bucket.keys.iter().zip(&bucket.entries) {
                let (key, entry) = (key.load(Ordering::Acquire), entry.load(Ordering::Acquire));
                if key != 0 && entry != 0 {
                    all.push((Key(key), Entry(entry)));
                }
            }
        }
        all
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.groups().map(|group| self.occupied(group) as usize).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.groups().all(|group| self.occupied(group) == 0)
    }
}
