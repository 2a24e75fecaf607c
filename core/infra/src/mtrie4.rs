//! The IPv4 longest-prefix-match trie that packets read: 16, then 8, then 8 bits.
//!
//! An entry is a leaf (`value << 1`; 0 is no route) or a ply (`index << 1 | 1`). A lookup is one to
//! three dependent loads, which a staged node overlaps over a whole frame. The one writer changes
//! entries in place with single atomic stores, so each lookup finds either the value from before a
//! change or the one from after it.
//!
//! Plies that are no longer needed are recycled through [`qsbr`](crate::qsbr): a reader that looks up
//! while its [`Reader`](crate::qsbr::Reader) is offline is still memory-safe but may get an answer from
//! another part of the table.

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::raw::arena::StableArena;
use crate::sync::Arc;

mod writer;

pub use writer::{Mtrie4Writer, UpdateError};

/// Entries of the root: one per value of the upper 16 bits.
const ROOT: usize = 1 << 16;
/// Entries of a ply.
const PLY: usize = 1 << 8;
/// The most plies an entry can name.
const MAX_PLIES: usize = (1 << 31) - 1;

type Ply = [AtomicU32; PLY];

/// The trie, for readers. It is a handle: clones are the same trie.
#[derive(Clone)]
pub struct Mtrie4 {
    /// One element, so that an upper half of an address is always in range.
    root: StableArena<[AtomicU32; ROOT]>,
    /// Ply 0 is never used: its entry would be "no route".
    plies: StableArena<Ply>,
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

impl Mtrie4 {
    /// An empty trie that can grow to `max_plies`, and its writer. Address space for all is
    /// reserved (1 kB per ply), memory is used as plies are. A full Internet table needs some
    /// 50,000; one ply per /16 and per /24 with longer prefixes is the rule.
    pub fn new(max_plies: usize) -> io::Result<(Arc<Mtrie4>, Mtrie4Writer)> {
        let max_plies = max_plies.min(MAX_PLIES);
        let trie = Arc::new(Mtrie4 {
            root: StableArena::with_capacity(1)?,
            plies: StableArena::with_capacity(max_plies + 1)?,
        });
        let writer = Mtrie4Writer::new(Arc::clone(&trie))?;
        Ok((trie, writer))
    }

    /// The value of the longest prefix that covers `addr` (host order), or 0.
    #[inline(always)]
    pub fn lookup(&self, addr: u32) -> u32 {
        let entry = self.stage1(addr);
        if entry.is_final() {
            return entry.value();
        }
        self.stage3(self.stage2(entry, addr), addr)
    }

    /// Fetches the line that [`stage1`](Self::stage1) reads.
    #[inline(always)]
    pub fn prefetch_root(&self, addr: u32) {
        if let Some(entry) = self.root_entry(addr) {
            crate::raw::prefetch::prefetch_read(entry);
        }
    }

    #[inline(always)]
    fn root_entry(&self, addr: u32) -> Option<&AtomicU32> {
        self.root.get(0)?.get((addr >> 16) as usize)
    }

    /// Stage one: the upper 16 bits. Then [`prefetch`](Self::prefetch) for stage two.
    #[inline(always)]
    pub fn stage1(&self, addr: u32) -> Entry {
        match self.root_entry(addr) {
            Some(entry) => Entry(entry.load(Ordering::Acquire)),
            None => Entry::NONE,
        }
    }

    /// Stage two: the next 8 bits. A final entry stays what it is.
    #[inline(always)]
    pub fn stage2(&self, entry: Entry, addr: u32) -> Entry {
        self.descend(entry, (addr >> 8) as u8)
    }

    /// Stage three: the last 8 bits, and the answer; 0 for no route.
    #[inline(always)]
    pub fn stage3(&self, entry: Entry, addr: u32) -> u32 {
        self.descend(entry, addr as u8).value()
    }

    /// Fetches the line that stage two reads, given what stage one found.
    #[inline(always)]
    pub fn prefetch(&self, entry: Entry, addr: u32) {
        self.prefetch_ply(entry, (addr >> 8) as u8);
    }

    /// Fetches the line that stage three reads, given what stage two found.
    #[inline(always)]
    pub fn prefetch_last(&self, entry: Entry, addr: u32) {
        self.prefetch_ply(entry, addr as u8);
    }

    #[inline(always)]
    fn prefetch_ply(&self, entry: Entry, byte: u8) {
        if let Some(ply) = entry.as_ply()
            && let Some(ply) = self.plies.get(ply)
            && let Some(slot) = ply.get(byte as usize)
        {
            crate::raw::prefetch::prefetch_read(slot);
        }
    }

    #[inline(always)]
    fn descend(&self, entry: Entry, byte: u8) -> Entry {
        let Some(ply) = entry.as_ply() else {
            return entry;
        };
        match self.plies.get(ply).and_then(|ply| ply.get(byte as usize)) {
            Some(entry) => Entry(entry.load(Ordering::Acquire)),
            None => Entry::NONE,
        }
    }
}

impl fmt::Debug for Mtrie4 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mtrie4").field("max_plies", &(self.plies.capacity() - 1)).finish_non_exhaustive()
    }
}
