//! A thread's own free list.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use shoal_infra::Padded;

use crate::meta::Link;
use crate::{Buffer, FRAME_SIZE, Frame, Memory, Meta, Packet, Pool};

/// Buffers moved between a cache and its pool at once.
const BATCH: usize = 256;
/// Most buffers a cache keeps.
const MOST: usize = 3 * BATCH;

/// How many buffers a cache holds, readable by others. Its thread writes it with every frame, so it shares its cache
/// line with nothing of another thread.
#[derive(Default)]
pub(crate) struct Cached(Padded<AtomicU32>);

impl Cached {
    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed) as usize
    }
}

/// There is no buffer left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Full;

/// One thread's cache of free buffers: last in, first out, so that warm memory is used again.
pub struct Cache {
    pool: Arc<Pool>,
    memory: Memory,
    free: Vec<u32>,
    cached: Arc<Cached>,
    /// Buffers taken from the cache and given back to it.
    taken: u64,
    given: u64,
}

impl Cache {
    pub(crate) fn new(pool: Arc<Pool>, memory: Memory, cached: Arc<Cached>) -> Self {
        Cache { pool, memory, free: Vec::with_capacity(MOST + BATCH), cached, taken: 0, given: 0 }
    }

    /// The memory handle loops keep.
    #[inline(always)]
    pub fn memory(&self) -> Memory {
        self.memory
    }

    /// The pool behind this cache.
    pub fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// Buffers taken from the cache so far, and given back to it; what moves between it and its pool is neither.
    #[inline]
    pub fn moved(&self) -> (u64, u64) {
        (self.taken, self.given)
    }

    #[inline(always)]
    fn publish(&self) {
        self.cached.0.store(self.free.len() as u32, Ordering::Relaxed);
    }

    /// Adds up to `count` fresh, empty packets to a frame; tells how many. Fewer than asked for means that the
    /// pool is exhausted or the frame full.
    #[inline]
    pub fn alloc(&mut self, frame: &mut Frame, count: usize) -> usize {
        let count = count.min(frame.room());
        if self.free.len() < count {
            self.refill(count);
        }
        let count = count.min(self.free.len());
        let keep = self.free.len() - count;
        let fresh = self.free.get(keep..).unwrap_or_default();
        for &index in fresh {
            // SAFETY: the index was in this cache's free list and nowhere else.
            *unsafe { self.memory.meta(index) } = Meta::fresh();
        }
        frame.extend(fresh);
        self.free.truncate(keep);
        self.taken = self.taken.wrapping_add(count as u64);
        self.publish();
        count
    }

    /// One fresh, empty packet.
    #[inline]
    pub fn alloc_one(&mut self) -> Option<Buffer> {
        let index = self.take_index()?;
        // SAFETY: the index was in this cache's free list and nowhere else.
        *unsafe { self.memory.meta(index.get()) } = Meta::fresh();
        Some(Buffer::from_index(index))
    }

    /// A packet with these bytes, over as many segments as they need.
    ///
    /// # Errors
    /// [`Full`] when the pool has too few buffers; nothing is kept.
    pub fn alloc_data(&mut self, bytes: &[u8]) -> Result<Buffer, Full> {
        let mut chunks = bytes.chunks(crate::DATA_SIZE);
        let mut first = self.alloc_one().ok_or(Full)?;
        let fits = self.packet(&mut first).set_data(chunks.next().unwrap_or_default());
        debug_assert!(fits.is_some(), "a chunk fits a buffer");
        for chunk in chunks {
            let Some(mut buffer) = self.alloc_one() else {
                self.free(first);
                return Err(Full);
            };
            let fits = self.packet(&mut buffer).set_data(chunk);
            debug_assert!(fits.is_some(), "a chunk fits a buffer");
            if let Err(buffer) = self.packet(&mut first).append_segment(buffer) {
                // Not so: a fresh packet shares nothing.
                self.free(buffer);
            }
        }
        Ok(first)
    }

    /// A view of the packet a token stands for.
    #[inline(always)]
    pub fn packet<'a>(&self, buffer: &'a mut Buffer) -> Packet<'a> {
        // SAFETY: the token is borrowed mutably for the view's lifetime.
        unsafe { Packet::new(self.memory, self.memory.at(buffer.number())) }
    }

    /// Takes a free index out, whose header line holds whatever was there before.
    #[inline]
    pub(crate) fn take_index(&mut self) -> Option<NonZeroU32> {
        if self.free.is_empty() {
            self.refill(1);
        }
        let index = NonZeroU32::new(self.free.pop()?)?;
        self.taken = self.taken.wrapping_add(1);
        self.publish();
        Some(index)
    }

    /// Takes in an index that its one place was just taken from, and that no chain hangs on.
    #[inline]
    pub(crate) fn give_index(&mut self, index: u32) {
        self.free.push(index);
        self.given = self.given.wrapping_add(1);
        self.settle();
    }

    #[cold]
    fn refill(&mut self, count: usize) {
        let want = count.clamp(BATCH, MOST) - self.free.len().min(count);
        self.pool.take(&mut self.free, want);
        self.publish();
    }

    /// Gives a packet and its chain back.
    #[inline]
    pub fn free(&mut self, buffer: Buffer) {
        let index = buffer.into_index();
        self.free_chain(index);
        self.free.push(index);
        self.given = self.given.wrapping_add(1);
        self.settle();
    }

    /// Gives all packets of a frame back.
    #[inline]
    pub fn free_frame(&mut self, frame: &mut Frame) {
        for index in frame.indices() {
            self.free_chain(*index);
        }
        self.free.extend_from_slice(frame.indices());
        self.given = self.given.wrapping_add(frame.len() as u64);
        frame.forget();
        self.settle();
    }

    /// Gives back what is chained to `index`, whose place the caller holds.
    #[inline(always)]
    fn free_chain(&mut self, index: u32) {
        // SAFETY: the caller holds the index's one place.
        let meta = unsafe { self.memory.meta(index) };
        if !meta.next.is_none() {
            self.free_link(std::mem::take(&mut meta.next));
        }
    }

    /// Gives a link up, and frees the segments that have no other link.
    #[cold]
    pub(crate) fn free_link(&mut self, mut link: Link) {
        while let Some((index, next)) = self.memory.unlink(link) {
            self.free.push(index.get());
            self.given = self.given.wrapping_add(1);
            link = next;
            self.settle();
        }
    }

    #[inline(always)]
    fn settle(&mut self) {
        if self.free.len() > MOST {
            self.spill();
        }
        self.publish();
    }

    /// Gives the oldest buffers back to the pool.
    #[cold]
    fn spill(&mut self) {
        let n = self.free.len() - (MOST - FRAME_SIZE);
        self.pool.give(self.free.drain(..n));
    }

    /// Gives everything back to the pool: a thread that goes to sleep or ends keeps nothing.
    pub fn flush(&mut self) {
        self.pool.give(self.free.drain(..));
        self.publish();
    }
}

impl Drop for Cache {
    fn drop(&mut self) {
        self.flush();
        self.pool.forget_cache(&self.cached);
    }
}
