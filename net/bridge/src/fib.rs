//! The MAC table: where stations are, read and written by all threads without a lock that anyone waits for.
//!
//! Buckets of one cache line with four entries each; an entry is two words, a key and what is known of it. A key whose
//! bucket is full is in one of the next ones, and each bucket on the way counts that in a word beside the table, so that a
//! look-up ends where it can: nearly always in the first line. See docs/decisions/0014.
//!
//! *Reading*: a key is compared, its word read, and the key read again. *Changing* a known station (it was heard again, it
//! moved): the word is exchanged if it is still what was read. *Entering* a station needs the right of its first
//! bucket, one bit there: a thread that does not get it at once does not enter, and the station's next frame does.
//! *Removing* is for the control plane alone, and needs the same right. *Growing*: see [`grow`].

mod grow;

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering};

use shoal_flow::Seed;
use shoal_infra::{StableArena, zeroable_struct};

use self::grow::{Growth, Layout};
use crate::entry::{Entry, Key};

/// Entries of a bucket.
const WAYS: usize = 4;
/// Buckets that a key may be in, from its first one on: so many that a table which is full for two thirds refuses none.
const PROBES: usize = 64;
/// Buckets of a group, of which one number tells whether there is anything in them: a page of memory. A new table has one.
pub(crate) const GROUP: usize = 64;
/// The bit of a bucket's state that says that a thread enters, moves or removes a key whose first bucket this is.
const TAKEN: u16 = 1 << 15;
/// How often the control plane asks for the right to a bucket, and lets other threads run in between.
const PATIENCE: usize = 1_000;

zeroable_struct! {
    /// A cache line.
    #[repr(C, align(64))]
    struct Bucket {
        keys: [AtomicU64; WAYS],
        entries: [AtomicU64; WAYS],
    }
}

const _: () = assert!(size_of::<Bucket>() == 64, "a bucket is a cache line");

struct Inner {
    /// As many as it may ever have, and those behind the last one that its keys may be in.
    buckets: StableArena<Bucket>,
    growth: Growth,
    seed: Seed,
    /// Of each bucket: how many entries are in later ones because it was full; and [`TAKEN`].
    states: StableArena<AtomicU16>,
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

/// The places of stations at one moment. A look-up that begins there finds a station also if the table has grown since.
#[derive(Clone, Copy)]
pub(crate) struct Places<'a> {
    macs: &'a MacTable,
    layout: Layout,
}

impl Places<'_> {
    #[inline(always)]
    fn of(&self, key: Key) -> Search {
        Search { key, first: self.layout.first(self.macs.hash(key)) }
    }

    /// Begins to look for a station.
    #[inline(always)]
    pub(crate) fn search(&self, key: Key) -> Search {
        let search = self.of(key);
        self.macs.0.buckets.prefetch(search.first as usize);
        search
    }
}

/// Where an entry was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FoundEntry {
    /// What is known.
    pub entry: Entry,
    key: Key,
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
    /// A table that grows to so many buckets, rounded up to a power of two.
    ///
    /// # Errors
    /// The system gives no address space.
    pub fn new(most: usize, seed: Seed) -> io::Result<Self> {
        let most = most.max(GROUP).next_power_of_two();
        let all = most + PROBES;
        Ok(MacTable(Arc::new(Inner {
            buckets: StableArena::with_capacity(all)?,
            growth: Growth::new(most),
            seed,
            states: StableArena::with_capacity(all)?,
            occupied: StableArena::with_capacity(all.div_ceil(GROUP))?,
            news: StableArena::with_capacity(all.div_ceil(GROUP))?,
        })))
    }

    #[inline(always)]
    fn bucket(&self, at: usize) -> &Bucket {
        match self.0.buckets.get(at) {
            Some(bucket) => bucket,
            None => {
                unreachable!("keys are in the first bucket that the layout gives them, or just behind it")
            }
        }
    }

    #[inline(always)]
    fn state(&self, at: u32) -> &AtomicU16 {
        match self.0.states.get(at as usize) {
            Some(state) => state,
            None => unreachable!("there is one for each bucket"),
        }
    }

    /// Whether no key passed a bucket by.
    #[inline(always)]
    fn is_last(&self, at: u32) -> bool {
        self.state(at).load(Ordering::Acquire) & !TAKEN == 0
    }

    /// The place of a station.
    #[inline(always)]
    pub(crate) fn place_of(&self, key: Key) -> Search {
        self.places().of(key)
    }

    #[inline(always)]
    fn hash(&self, key: Key) -> u64 {
        self.0.seed.hash(&[key.0])
    }

    /// The places of stations as they are now, for several look-ups.
    #[inline(always)]
    pub(crate) fn places(&self) -> Places<'_> {
        Places { macs: self, layout: self.0.growth.layout() }
    }

    /// Begins to look for a station.
    #[inline(always)]
    pub fn search(&self, key: Key) -> Search {
        self.places().search(key)
    }

    /// Finds it.
    #[inline(always)]
    pub fn find(&self, search: &Search) -> Option<FoundEntry> {
        let bucket = self.bucket(search.first as usize);
        match Self::find_in(bucket, search.first, search.key) {
            Some(found) => Some(found),
            None => self.find_behind(search),
        }
    }

    /// Compares all keys of a bucket and branches once: which of them it is cannot be foreseen.
    #[inline(always)]
    fn find_in(bucket: &Bucket, at: u32, key: Key) -> Option<FoundEntry> {
        let way = Self::way_of(bucket, key);
        let entry = bucket.entries.get(way)?.load(Ordering::Acquire);
        // Another station's, if the entry was removed and its place taken meanwhile.
        let still = bucket.keys.get(way)?.load(Ordering::Acquire) == key.0;
        (entry != 0 && still).then_some(FoundEntry { entry: Entry(entry), key, bucket: at, way: way as u8 })
    }

    /// The place of a key in a bucket, or one behind the last.
    #[inline(always)]
    fn way_of(bucket: &Bucket, key: Key) -> usize {
        let keys = bucket.keys.iter().enumerate().rev();
        keys.fold(WAYS, |way, (at, there)| if there.load(Ordering::Acquire) == key.0 { at } else { way })
    }

    /// Looks on from the first bucket; and again if the station was given another place since the search began.
    #[inline(never)]
    fn find_behind(&self, search: &Search) -> Option<FoundEntry> {
        let mut first = search.first;
        loop {
            for at in first..first + PROBES as u32 {
                let found = Self::find_in(self.bucket(at as usize), at, search.key);
                if found.is_some() {
                    return found;
                }
                if self.is_last(at) {
                    break;
                }
            }
            let now = self.place_of(search.key).first;
            if now == first {
                return None;
            }
            first = now;
        }
    }

    /// Puts another word in the place of what was found; false when it is no longer that.
    #[inline(always)]
    pub fn change(&self, found: &FoundEntry, to: Entry) -> bool {
        let bucket = self.bucket(found.bucket as usize);
        let way = usize::from(found.way);
        let (Some(key), Some(entry)) = (bucket.keys.get(way), bucket.entries.get(way)) else { return false };
        let exchange = |from: Entry, to: Entry| {
            entry.compare_exchange(from.0, to.0, Ordering::AcqRel, Ordering::Relaxed)
        };
        if exchange(found.entry, to).is_err() {
            return false;
        }
        if key.load(Ordering::Acquire) != found.key.0 {
            // The place has another station by now, of which the same was known.
            let _ = exchange(to, found.entry);
            return false;
        }
        if to.has(Entry::LEARN_EVENT) {
            self.note(found.bucket as usize);
        }
        true
    }

    /// Takes the right to enter, move and remove keys of a bucket; false if another thread has it.
    #[inline]
    fn take(&self, first: u32) -> bool {
        self.state(first).fetch_or(TAKEN, Ordering::Acquire) & TAKEN == 0
    }

    #[inline]
    fn give_back(&self, first: u32) {
        self.state(first).fetch_and(!TAKEN, Ordering::Release);
    }

    /// The right to a station's first bucket; none if another thread has it. The place holds until the right is given back.
    fn take_place(&self, key: Key) -> Option<Search> {
        loop {
            let search = self.place_of(key);
            if !self.take(search.first) {
                return None;
            }
            if self.place_of(key) == search {
                return Some(search);
            }
            self.give_back(search.first);
        }
    }

    /// Enters a station that was not found.
    ///
    /// # Errors
    /// It is there, there is no room, or another thread enters one that begins in the same bucket.
    pub fn enter(&self, key: Key, entry: Entry) -> Result<(), Refused> {
        let entered = self.enter_as_it_is(key, entry);
        match entered {
            Ok(()) => {
                self.0.growth.came();
                self.grow();
                Ok(())
            }
            // It is time to grow if no thread could for a while.
            Err(Refused::Full) if self.grow() => {
                self.enter_as_it_is(key, entry).inspect(|()| self.0.growth.came())
            }
            Err(why) => Err(why),
        }
    }

    fn enter_as_it_is(&self, key: Key, entry: Entry) -> Result<(), Refused> {
        let search = self.take_place(key).ok_or(Refused::Busy)?;
        let entered = match self.find(&search) {
            Some(_) => Err(Refused::Known),
            None => self.place(&search, entry).map(drop),
        };
        self.give_back(search.first);
        entered
    }

    fn place(&self, search: &Search, entry: Entry) -> Result<FoundEntry, Refused> {
        for at in search.first..search.first + PROBES as u32 {
            let bucket = self.bucket(at as usize);
            let free = |word: &AtomicU64| {
                word.compare_exchange(0, entry.0, Ordering::AcqRel, Ordering::Relaxed).is_ok()
            };
            let mut ways = bucket.entries.iter().zip(&bucket.keys).zip(0..);
            if let Some(((_, key), way)) = ways.find(|((word, _), _)| free(word)) {
                key.store(search.key.0, Ordering::Release);
                if let Some(occupied) = self.0.occupied.get(at as usize / GROUP) {
                    occupied.fetch_add(1, Ordering::Release);
                }
                if entry.has(Entry::LEARN_EVENT) {
                    self.note(at as usize);
                }
                return Ok(FoundEntry { entry, key: search.key, bucket: at, way });
            }
            self.state(at).fetch_add(1, Ordering::AcqRel);
        }
        self.forget_way(search.first, search.first + PROBES as u32);
        Err(Refused::Full)
    }

    /// Buckets from the first on, up to another, have one entry fewer behind them.
    fn forget_way(&self, first: u32, to: u32) {
        for at in first..to {
            self.state(at).fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// Clears the place of a key by the right of its first bucket; what was known last.
    fn clear(&self, first: u32, found: &FoundEntry) -> Option<Entry> {
        let bucket = self.bucket(found.bucket as usize);
        let way = usize::from(found.way);
        let (key, entry) = (bucket.keys.get(way)?, bucket.entries.get(way)?);
        key.store(0, Ordering::Release);
        let last = entry.swap(0, Ordering::AcqRel);
        self.forget_way(first, found.bucket);
        if let Some(occupied) = self.0.occupied.get(found.bucket as usize / GROUP) {
            occupied.fetch_sub(1, Ordering::AcqRel);
        }
        Some(Entry(last))
    }

    /// There is news for clients in a group.
    fn note(&self, bucket: usize) {
        if let Some(news) = self.0.news.get(bucket / GROUP) {
            news.store(1, Ordering::Release);
        }
    }

    /// Removes a station; what was known of it. For the control plane's thread alone.
    pub fn remove(&self, key: Key) -> Option<Entry> {
        self.find(&self.search(key))?;
        for _ in 0..PATIENCE {
            // A packet may teach a station that begins in the same bucket at this moment.
            let Some(search) = self.take_place(key) else {
                std::thread::yield_now();
                continue;
            };
            let last = self.find(&search).and_then(|found| self.clear(search.first, &found));
            self.give_back(search.first);
            if last.is_some() {
                self.0.growth.left();
            }
            return last;
        }
        None
    }

    /// All groups, by number, also those that the table has not grown to yet.
    pub fn groups(&self) -> Range<usize> {
        0..self.0.occupied.capacity()
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

    /// The entries of a group. The table may grow meanwhile: then an entry can move to a later group, never to an earlier one.
    pub fn entries(&self, group: usize) -> Vec<(Key, Entry)> {
        if self.occupied(group) == 0 {
            return Vec::new();
        }
        let mut all = Vec::new();
        for bucket in (group * GROUP..(group + 1) * GROUP).map_while(|at| self.0.buckets.get(at)) {
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
        self.0.growth.entries()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of the buckets that it has grown to.
    pub fn bytes(&self) -> usize {
        self.0.growth.layout().buckets() * size_of::<Bucket>()
    }
}
