//! The longest-prefix-match tries that packets read: 16 bits, then 8 bits at a time.
//!
//! [`Mtrie4`] has up to two levels of plies below its root, [`Mtrie6`] up to fourteen; they are one code.
//! An entry is a leaf (`value << 1`; 0 is no route) or a ply (`index << 1 | 1`). A lookup is a chain of
//! dependent loads, one and one more for each level, that ends at the first leaf: a /24 lies one level down,
//! a /48 four, and either some more where a longer prefix is near the address. A staged node overlaps the
//! chains of a whole frame. The one writer changes entries in place with single atomic stores, so each lookup
//! finds either the value from before a change or the one from after it.
//!
//! # Memory
//!
//! The root takes 327,680 bytes and each ply 1,284: 4 per slot for readers, 1 per slot and 4 more for the writer. There
//! is a ply for each /16, /24, /32 and so on that has a longer prefix inside, so a lone /128 needs 14 (18 kB), a lone
//! /48 needs 4, and neighbours share them. A full IPv4 table needs some 50,000 plies. 230,000 IPv6 prefixes, made with
//! the Internet's lengths and a guess at how they cluster, need 155,000: 199 MB, 866 bytes per route.
//!
//! # Time
//!
//! Built for x86-64-v3, a lookup takes 8, 21 or 27 instructions for IPv4, and for IPv6 40 to a /32 and 63 to a /48.
//! An update costs its own path, and a short prefix each slot below it: the IPv6 table above takes 0.5 to 0.7 million
//! inserts a second in any order, 1.9 to 2.7 million in rising order, and a default route that comes last 75 to 160 ms
//! (`cargo run --release -p shoal-infra --example ip6_table`, three runs on two shared cores of a Xeon).
//! So give a table its default route first.
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
mod writer;

pub use address::Address;
pub use writer::{MtrieWriter, UpdateError};

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
/// Entries of a ply.
const PLY: usize = 1 << 8;
/// The most plies an entry can name.
const MAX_PLIES: usize = (1 << 31) - 1;

type Ply = [AtomicU32; PLY];

/// The trie, for readers. It is a handle: clones are the same trie.
#[derive(Clone)]
pub struct Mtrie<A> {
    root: StableBox<[AtomicU32; ROOT]>,
    /// Ply 0 is never used: its entry would be "no route".
    plies: StableArena<Ply>,
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

    /// Whether no later stage can change the answer.
    #[inline(always)]
    pub fn is_final(self) -> bool {
        self.as_ply().is_none()
    }

    /// The answer of a final entry: a leaf's value, or 0.
    #[inline(always)]
    pub fn value(self) -> u32 {
        self.0 >> 1
    }

    #[inline(always)]
    fn as_ply(self) -> Option<usize> {
        (self.0 & 1 == 1).then_some((self.0 >> 1) as usize)
    }
}

impl<A: Address> Mtrie<A> {
    /// An empty trie that can grow to `max_plies`, and its writer. Address space for all is reserved; memory is
    /// used as plies are. How many a table needs is [above](self#memory).
    pub fn new(max_plies: usize) -> io::Result<(Arc<Self>, MtrieWriter<A>)> {
        let max_plies = max_plies.min(MAX_PLIES);
        let trie = Arc::new(Mtrie {
            root: StableBox::zeroed()?,
            plies: StableArena::with_capacity(max_plies + 1)?,
            addresses: PhantomData,
        });
        let writer = MtrieWriter::new(Arc::clone(&trie))?;
        Ok((trie, writer))
    }

    /// The value of the longest prefix that covers `addr` (host order), or 0.
    #[inline(always)]
    pub fn lookup(&self, addr: A) -> u32 {
        let mut entry = self.root(addr);
        // IPv4 written out: what the compiler lifts out of the loop costs a lookup two instructions.
        if A::LEVELS == 2 {
            if entry.is_final() {
                return entry.value();
            }
            return self.step(self.step(entry, addr, 1), addr, 2).value();
        }
        // Bounded, because plies may be recycled under a reader that is offline.
        for above in 0..A::LEVELS {
            let Some(ply) = entry.as_ply() else {
                // Not `break`, with which the loop is not unrolled: 94 instructions for a /48, not 63.
                return entry.value();
            };
            entry = self.load(ply, addr.byte(above + 1));
        }
        entry.value()
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

    /// What the next 8 bits find, given what the level before `level` found. A final entry stays what it is.
    #[inline(always)]
    pub fn step(&self, entry: Entry, addr: A, level: u8) -> Entry {
        let Some(ply) = entry.as_ply() else {
            return entry;
        };
        self.load(ply, addr.byte(level))
    }

    /// Fetches the line that [`step`](Self::step) with the same arguments reads.
    #[inline(always)]
    pub fn prefetch_step(&self, entry: Entry, addr: A, level: u8) {
        if let Some(ply) = entry.as_ply()
            && let Some(slot) = self.ply_slot(ply, addr.byte(level))
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
    fn ply_slot(&self, ply: usize, byte: u8) -> Option<&AtomicU32> {
        self.plies.get(ply)?.get(usize::from(byte))
    }

    #[inline(always)]
    fn load(&self, ply: usize, byte: u8) -> Entry {
        self.ply_slot(ply, byte).map_or(Entry::NONE, |slot| Entry(slot.load(Ordering::Acquire)))
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
        f.debug_struct("Mtrie").field("max_plies", &(self.plies.capacity() - 1)).finish_non_exhaustive()
    }
}
