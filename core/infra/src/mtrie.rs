//! The longest-prefix-match tries that packets read: 16 bits, twice 8 bits, and for IPv6 then 4 bits at a time or a
//! bucket.
//!
//! [`Mtrie4`] has up to two levels of plies below its root, [`Mtrie6`] up to 26; they are one code.
//! An entry is a leaf (`value << 1`; 0 is no route), a ply (`index << 1 | 1`) or a bucket, which has the top bit set too:
//! the up to six prefixes below a slot of a /32 or longer, in one cache line. A lookup is a chain of dependent loads, one
//! and one more for each level, that ends at the first leaf or bucket: a /24 lies one level down, a /48 among few three.
//! [`Mtrie::seek`] overlaps the chains of many packets. The one writer changes entries in place with single atomic
//! stores, so each lookup finds either the value from before a change or the one from after it.
//!
//! # Memory
//!
//! The root takes 327,680 bytes, a ply of 256 slots 1,344, and one of 16 slots or a bucket 84: 4 per slot for readers,
//! 1 per slot and 4 per 16 slots for the writer. There is a ply for each /16 and /24 that has a longer prefix inside; for
//! each /32, /36, /40 and so on a bucket, or a ply if more than six prefixes or one beyond a /64 are inside.
//! A full IPv4 table needs some 50,000 plies. 230,000 IPv6 prefixes, made with the Internet's
//! lengths and a guess at how they cluster, need 100,000 plies and buckets: 11 MB, 48 bytes per route (139 without
//! buckets).
//!
//! # Time
//!
//! Built for x86-64-v3, a lookup takes 8, 21 or 27 instructions for IPv4. An update costs its own path, and a short
//! prefix each slot below it: the IPv6 table above takes 0.8 million inserts a second in any order, 1.9 million in rising
//! order, and a default route that comes last 7 to 27 ms (`cargo run --release -p shoal-infra --example ip6_table`, one
//! run on a busy core of a Xeon). So give a table its default route first.
//!
//! # Readers
//!
//! Plies that are no longer needed are recycled through [`qsbr`](crate::qsbr): a reader that looks up
//! while its [`Reader`](crate::qsbr::Reader) is offline is still memory-safe but may get an answer from
//! another part of the table.

use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::raw::arena::{StableArena, StableBox};
use crate::sync::Arc;

mod address;
mod bucket;
mod search;
mod writer;

pub use address::Address;
use address::WIDE_LEVELS;
pub use search::{InFlight, Search};
pub use writer::{Begins, MtrieWriter, UpdateError};

/// The trie of IPv4 routes.
pub type Mtrie4 = Mtrie<u32>;
/// The writer of a [`Mtrie4`].
pub type Mtrie4Writer = MtrieWriter<u32>;
/// The trie of IPv6 routes.
pub type Mtrie6 = Mtrie<u128>;
/// The writer of a [`Mtrie6`].
pub type Mtrie6Writer = MtrieWriter<u128>;

/// Entries of the root: one per value of the upper 16 bits.
const ROOT: usize = 1 << 16;
/// Entries side by side that plies are made of: one small ply, or a 16th of a large one. A cache line.
const LINE: usize = 16;
/// Lines of the largest ply.
const MOST_LINES: usize = 16;
/// The slot, in line 0, that tells how many lines plies have been made of so far.
const USED: usize = 0;
/// The most lines entries can name.
const MAX_LINES: usize = (1 << 30) - MOST_LINES;
/// Tells an entry that names a bucket from one that names a ply.
const BUCKET: u32 = 1 << 31;

#[inline(always)]
const fn first_slot(ply: usize) -> usize {
    ply * LINE
}

/// The trie, for readers. It is a handle: clones are the same trie.
#[derive(Clone)]
pub struct Mtrie<A> {
    root: StableBox<[AtomicU32; ROOT]>,
    /// The slots of all plies. A ply is named by its first line; line 0 is never one: its entry would be
    /// "no route".
    slots: StableArena<AtomicU32>,
    max_plies: usize,
    addresses: PhantomData<fn(A)>,
}

/// What a stage found: the answer, or the ply to look in next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entry(u32);

impl Entry {
    /// No route.
    pub const NONE: Entry = Entry(0);

    const fn leaf(value: u32) -> Entry {
        Entry(value << 1)
    }

    const fn ply(index: u32) -> Entry {
        Entry(index << 1 | 1)
    }

    const fn bucket(line: u32) -> Entry {
        Entry(BUCKET | line << 1 | 1)
    }

    /// Whether no later stage can change the answer.
    #[inline(always)]
    pub fn is_final(self) -> bool {
        self.0 & 1 == 0
    }

    /// The answer of a final entry: a leaf's value, or 0.
    #[inline(always)]
    pub fn value(self) -> u32 {
        self.0 >> 1
    }

    #[inline(always)]
    fn as_ply(self) -> Option<usize> {
        (self.0 & (BUCKET | 1) == 1).then_some((self.0 >> 1) as usize)
    }

    #[inline(always)]
    fn as_bucket(self) -> Option<usize> {
        (self.0 & (BUCKET | 1) == BUCKET | 1).then_some(self.line())
    }

    /// The first line of a ply or bucket; some line if it is neither.
    #[inline(always)]
    fn line(self) -> usize {
        (self.0 << 1 >> 2) as usize
    }
}

impl<A: Address> Mtrie<A> {
    /// An empty trie that can grow to `max_plies`, and its writer. Address space for all is reserved; memory is
    /// used as plies are. How many a table needs is [above](self#memory).
    pub fn new(max_plies: usize) -> io::Result<(Arc<Self>, MtrieWriter<A>)> {
        let max_plies = max_plies.min(MAX_LINES / MOST_LINES);
        let trie = Arc::new(Mtrie {
            root: StableBox::zeroed()?,
            slots: StableArena::with_capacity((max_plies + 1) * MOST_LINES * LINE)?,
            max_plies,
            addresses: PhantomData,
        });
        let writer = MtrieWriter::new(Arc::clone(&trie))?;
        Ok((trie, writer))
    }

    /// The value of the longest prefix that covers `addr` (host order), or 0.
    #[inline(always)]
    pub fn lookup(&self, addr: A) -> u32 {
        let entry = self.root(addr);
        if entry.is_final() {
            return entry.value();
        }
        let entry = self.step(self.step(entry, addr, 1), addr, WIDE_LEVELS);
        if A::LEVELS == WIDE_LEVELS || entry.is_final() {
            return entry.value();
        }
        self.descend(entry, addr, WIDE_LEVELS)
    }

    /// The levels of small plies below `level`, the next four bits always on top, and buckets.
    #[inline(always)]
    fn descend(&self, entry: Entry, addr: A, level: u8) -> u32 {
        let mut entry = entry;
        let mut done = level - WIDE_LEVELS;
        for bits in addr.tail() {
            let mut bits = bits << (4 * done);
            // Bounded, because plies may be recycled under a reader that is offline.
            for _ in std::mem::take(&mut done)..16 {
                let Some(ply) = entry.as_ply() else { return self.in_bucket(entry, addr).value() };
                entry = self.load(ply, (bits >> 60) as usize);
                bits <<= 4;
            }
        }
        entry.value()
    }

    /// What a bucket says of an address; any other entry stays what it is.
    #[inline(always)]
    fn in_bucket(&self, entry: Entry, addr: A) -> Entry {
        match entry.as_bucket() {
            Some(line) => self.line(line).map_or(Entry::NONE, |words| bucket::find(words, addr.upper())),
            None => entry,
        }
    }

    #[inline(always)]
    fn line(&self, line: usize) -> Option<&[AtomicU32; LINE]> {
        self.slots.as_slice().as_chunks().0.get(line)
    }

    /// Memory that lookups read from, in bytes: a trie that is small stays in the first caches.
    #[inline(always)]
    pub fn reach(&self) -> usize {
        let lines = self.slots.get(USED).map_or(0, |slot| slot.load(Ordering::Relaxed));
        ROOT * size_of::<u32>() + lines as usize * LINE * size_of::<u32>()
    }

    /// Fetches the line that [`root`](Self::root) reads.
    #[inline(always)]
    pub fn prefetch_root(&self, addr: A) {
        crate::raw::prefetch::prefetch_read(self.root_slot(addr));
    }

    /// What the upper 16 bits find. Then [`prefetch_step`](Self::prefetch_step) and [`step`](Self::step)
    /// with level 1, 2 and so on, until the entry [is final](Entry::is_final).
    #[inline(always)]
    pub fn root(&self, addr: A) -> Entry {
        Entry(self.root_slot(addr).load(Ordering::Acquire))
    }

    /// What the next bits find, given what the level before `level` found. A final entry stays what it is.
    #[inline(always)]
    pub fn step(&self, entry: Entry, addr: A, level: u8) -> Entry {
        match entry.as_ply() {
            Some(ply) => self.load(ply, addr.digit(level)),
            None => self.in_bucket(entry, addr),
        }
    }

    /// Fetches the line that [`step`](Self::step) with the same arguments reads.
    #[inline(always)]
    pub fn prefetch_step(&self, entry: Entry, addr: A, level: u8) {
        if let Some(ply) = entry.as_ply()
            && let Some(slot) = self.slot(ply, addr.digit(level))
        {
            crate::raw::prefetch::prefetch_read(slot);
        }
    }

    #[inline(always)]
    fn root_slot(&self, addr: A) -> &AtomicU32 {
        match self.root.get(usize::from(addr.top())) {
            Some(slot) => slot,
            None => unreachable!("the root has an entry for each 16 bits"),
        }
    }

    #[inline(always)]
    fn slot(&self, ply: usize, digit: usize) -> Option<&AtomicU32> {
        self.slots.get(first_slot(ply) + digit)
    }

    #[inline(always)]
    fn load(&self, ply: usize, digit: usize) -> Entry {
        self.slot(ply, digit).map_or(Entry::NONE, |slot| Entry(slot.load(Ordering::Acquire)))
    }
}

/// The three stages of IPv4 by name.
impl Mtrie<u32> {
    /// Stage one: the upper 16 bits. Then [`prefetch`](Self::prefetch) for stage two.
    #[inline(always)]
    pub fn stage1(&self, addr: u32) -> Entry {
        self.root(addr)
    }

    /// Stage two: the next 8 bits. A final entry stays what it is.
    #[inline(always)]
    pub fn stage2(&self, entry: Entry, addr: u32) -> Entry {
        self.step(entry, addr, 1)
    }

    /// Stage three: the last 8 bits, and the answer; 0 for no route.
    #[inline(always)]
    pub fn stage3(&self, entry: Entry, addr: u32) -> u32 {
        self.step(entry, addr, 2).value()
    }

    /// Fetches the line that stage two reads, given what stage one found.
    #[inline(always)]
    pub fn prefetch(&self, entry: Entry, addr: u32) {
        self.prefetch_step(entry, addr, 1);
    }

    /// Fetches the line that stage three reads, given what stage two found.
    #[inline(always)]
    pub fn prefetch_last(&self, entry: Entry, addr: u32) {
        self.prefetch_step(entry, addr, 2);
    }
}

impl<A> fmt::Debug for Mtrie<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mtrie").field("max_plies", &self.max_plies).finish_non_exhaustive()
    }
}
