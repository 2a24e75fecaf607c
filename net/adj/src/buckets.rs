//! The buckets of all balances: blocks of 2^k adjacency indices in one table.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};

use shoal_infra::StableArena;
use shoal_infra::qsbr::Grace;

use crate::fill::MOST_BUCKETS;

/// Most buckets; address space only.
const CAPACITY: usize = 1 << 24;
/// Sizes of blocks: 2^0 to 2^10.
const SIZES: usize = MOST_BUCKETS.ilog2() as usize + 1;

/// A balance's buckets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Block {
    pub base: u32,
    pub len: u32,
}

/// Who gives blocks out and writes them.
pub(crate) struct Buckets {
    pub arena: StableArena<AtomicU32>,
    /// The first bucket never used.
    next: u32,
    /// By size: blocks that were given back, and when packets have left them.
    free: [VecDeque<(u32, Grace)>; SIZES],
    pub in_use: usize,
    pub stores: u64,
}

impl Buckets {
    pub fn new() -> io::Result<Self> {
        let arena = StableArena::with_capacity(CAPACITY)?;
        Ok(Buckets { arena, next: 0, free: Default::default(), in_use: 0, stores: 0 })
    }

    /// A block of at least `len` buckets that no packet looks at; `None` when there is none.
    pub fn take(&mut self, len: usize) -> Option<Block> {
        let len = len.next_power_of_two() as u32;
        let free = self.free.get_mut(len.ilog2() as usize)?;
        let base = match free.front() {
            Some((base, grace)) if grace.is_over() => {
                let base = *base;
                free.pop_front();
                base
            }
            _ => {
                let base = self.next;
                let next = base.checked_add(len).filter(|next| *next as usize <= CAPACITY)?;
                self.next = next;
                base
            }
        };
        self.in_use += len as usize;
        Some(Block { base, len })
    }

    /// Packets of this round may still look at it; it is used again only after they have passed.
    pub fn give_back(&mut self, block: Block) {
        self.in_use -= block.len as usize;
        if let Some(free) = self.free.get_mut(block.len.ilog2() as usize) {
            free.push_back((block.base, Grace::start()));
        }
    }

    /// What a block holds.
    pub fn read(&self, block: Block) -> Vec<u32> {
        let cell =
            |i: u32| self.arena.get((block.base + i) as usize).map_or(0, |c| c.load(Ordering::Relaxed));
        (0..block.len).map(cell).collect()
    }

    /// Writes a block's buckets, those that change.
    pub fn write(&mut self, block: Block, members: &[u32]) {
        for (i, member) in (0..block.len).zip(members) {
            if let Some(cell) = self.arena.get((block.base + i) as usize)
                && cell.load(Ordering::Relaxed) != *member
            {
                // Release: a reader that finds the member finds its record.
                cell.store(*member, Ordering::Release);
                self.stores += 1;
            }
        }
    }

    /// Buckets there may be in all.
    pub fn capacity() -> usize {
        CAPACITY
    }
}
