//! A thread's own free list.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use shoal_infra::Padded;

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
}

impl Cache {
    pub(crate) fn new(pool: Arc<Pool>, memory: Memory, cached: Arc<Cached>) -> Self {
        Cache { pool, memory, free: Vec::with_capacity(MOST + BATCH), cached }
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
            *unsafe { self.memory.meta(index) } = Meta::FRESH;
        }
        frame.extend(fresh);
        self.free.truncate(keep);
        self.publish();
        count
    }

    /// One fresh, empty packet.
    #[inline]
    pub fn alloc_one(&mut self) -> Option<Buffer> {
        let index = self.take_index()?;
        // SAFETY: the index was in this cache's free list and nowhere else.
        *unsafe { self.memory.meta(index.get()) } = Meta::FRESH;
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
            self.packet(&mut first).append_segment(buffer);
        }
        Ok(first)
    }

    /// A second packet with the same bytes, segment by segment, and everything the graph knows of the first one but its
    /// trace; the scratch line is not copied. The bytes are copied, not shared: each packet has its own, so that either
    /// may be changed and freed without a thought for the other.
    ///
    /// # Errors
    /// [`Full`] when the pool has too few buffers; nothing is kept.
    pub fn copy(&mut self, from: &Packet<'_>) -> Result<Buffer, Full> {
        let mut first: Option<Buffer> = None;
        let mut offset = from.current();
        for segment in from.segments() {
            let Some(mut buffer) = self.alloc_one() else {
                if let Some(first) = first {
                    self.free(first);
                }
                return Err(Full);
            };
            let mut copy = self.packet(&mut buffer);
            // The first segment keeps its headroom, for the offsets of the headers count from the data area.
            let fits = copy.set_data_at(std::mem::take(&mut offset), segment);
            debug_assert!(fits.is_some(), "the bytes lay in a buffer of this size");
            match &mut first {
                None => {
                    copy.meta_mut().take_over(from.meta());
                    first = Some(buffer);
                }
                Some(first) => self.packet(first).append_segment(buffer),
            }
        }
        first.ok_or(Full)
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
        self.publish();
        Some(index)
    }

    /// Takes in an index that its one place was just taken from, and that no chain hangs on.
    #[inline]
    pub(crate) fn give_index(&mut self, index: u32) {
        self.free.push(index);
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
        self.settle();
    }

    /// Gives all packets of a frame back.
    #[inline]
    pub fn free_frame(&mut self, frame: &mut Frame) {
        for at in 0..frame.len() {
            if let Some(index) = frame.index(at) {
                self.free_chain(index);
            }
        }
        self.free.extend_from_slice(frame.indices());
        frame.forget();
        self.settle();
    }

    /// Gives back what is chained to `index`, whose place the caller holds.
    #[inline(always)]
    fn free_chain(&mut self, index: u32) {
        // SAFETY: the caller holds the index's one place.
        let meta = unsafe { self.memory.meta(index) };
        let next = std::mem::take(&mut meta.next);
        if next != 0 {
            self.free_rest(next);
        }
    }

    #[cold]
    fn free_rest(&mut self, mut index: u32) {
        while index != 0 {
            // SAFETY: a link of a chain whose head the caller holds.
            let meta = unsafe { self.memory.meta(index) };
            let next = std::mem::take(&mut meta.next);
            self.free.push(index);
            index = next;
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
