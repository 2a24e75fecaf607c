//! The pool that threads' caches fill up from.

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use shoal_infra::Pages;

use crate::cache::Cached;
use crate::memory::{self, Backing};
use crate::meta::Link;
use crate::{Cache, DATA_SIZE, Memory, Part, STRIDE};

/// How a pool is made.
#[derive(Clone, Debug)]
pub struct PoolConfig {
    /// Name in `show buffers`.
    pub name: String,
    /// Buffers to start with.
    pub buffers: usize,
    /// Buffers it may grow to.
    pub most: usize,
    /// What memory to ask for; without hugepages, transparent huge pages are used.
    pub pages: Pages,
}

impl Default for PoolConfig {
    fn default() -> Self {
        PoolConfig { name: "default-numa-0".into(), buffers: 16_384, most: 16 * 16_384, pages: Pages::Huge }
    }
}

/// What `show buffers` prints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolStats {
    /// The pool's name.
    pub name: String,
    /// Bytes from one buffer to the next.
    pub size: usize,
    /// Bytes of data per buffer.
    pub data_size: usize,
    /// All buffers.
    pub total: usize,
    /// Free in the pool.
    pub available: usize,
    /// Free in the threads' caches.
    pub cached: usize,
    /// In packets.
    pub used: usize,
    /// What memory the last chunk came from.
    pub backing: Backing,
    /// Buffers it may grow to.
    pub most: usize,
}

struct State {
    free: Vec<u32>,
    total: usize,
    backing: Backing,
    caches: Vec<Arc<Cached>>,
}

/// A pool of buffers, shared by all threads of a router.
pub struct Pool {
    config: PoolConfig,
    memory: Memory,
    state: Mutex<State>,
    /// Buffers free in the pool, kept beside the list so that workers can look without the lock.
    available: AtomicU32,
    /// All buffers, likewise.
    total: AtomicU32,
}

impl Pool {
    /// Makes a pool with its first buffers.
    ///
    /// # Errors
    /// The system gives no memory.
    pub fn new(config: PoolConfig) -> io::Result<Arc<Pool>> {
        let memory = Memory::get(config.pages)?;
        let state = State { free: Vec::new(), total: 0, backing: Backing::Small, caches: Vec::new() };
        let pool = Pool {
            config,
            memory,
            state: Mutex::new(state),
            available: AtomicU32::new(0),
            total: AtomicU32::new(0),
        };
        pool.grow(pool.config.buffers)?;
        Ok(Arc::new(pool))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds up to `count` buffers, within [`PoolConfig::most`]; tells how many.
    ///
    /// # Errors
    /// The system gives no memory.
    pub fn grow(&self, count: usize) -> io::Result<usize> {
        let mut state = self.lock();
        let count = count.min(self.config.most.saturating_sub(state.total));
        if count == 0 {
            return Ok(0);
        }
        let (fresh, backing) = memory::grow(count, self.config.pages)?;
        state.backing = backing;
        state.total += fresh.len();
        // The free list never needs more room than there are buffers, so giving back never allocates. New buffers are
        // taken last: they are cold, and lie outside of what was registered with a kernel or device before.
        let total = state.total;
        self.total.store(total as u32, Ordering::Relaxed);
        let held = state.free.len();
        state.free.reserve(total - held);
        state.free.splice(..0, fresh.iter().rev().map(|i| i.get()));
        self.available.store(state.free.len() as u32, Ordering::Relaxed);
        Ok(fresh.len())
    }

    /// How many buffers there are; asked without the lock.
    pub fn total(&self) -> u32 {
        self.total.load(Ordering::Relaxed)
    }

    /// Whether less than a quarter is free and the pool may still grow.
    pub fn wants_to_grow(&self) -> bool {
        let state = self.lock();
        state.free.len() * 4 < state.total && state.total < self.config.most
    }

    /// The memory that all pools' buffers are in now. Buffers that come later lie behind it.
    ///
    /// # Errors
    /// The system gave no memory at all.
    pub fn part(&self) -> io::Result<Part> {
        memory::part(self.config.pages)
    }

    /// The handle on its memory.
    pub(crate) fn memory(&self) -> Memory {
        self.memory
    }

    /// A cache for one thread.
    pub fn cache(self: &Arc<Self>) -> Cache {
        let cached = Arc::new(Cached::default());
        self.lock().caches.push(Arc::clone(&cached));
        Cache::new(Arc::clone(self), self.memory, cached)
    }

    /// Moves up to `to.capacity() - to.len()` free buffers into a cache's list; tells how many.
    pub(crate) fn take(&self, to: &mut Vec<u32>, count: usize) -> usize {
        if self.available.load(Ordering::Relaxed) == 0 {
            return 0;
        }
        let mut state = self.lock();
        let keep = state.free.len().saturating_sub(count);
        let n = state.free.len() - keep;
        to.extend(state.free.drain(keep..));
        self.available.store(keep as u32, Ordering::Relaxed);
        n
    }

    /// Gives buffers of a cache back.
    pub(crate) fn give(&self, from: impl Iterator<Item = u32>) {
        let mut state = self.lock();
        state.free.extend(from);
        self.available.store(state.free.len() as u32, Ordering::Relaxed);
    }

    pub(crate) fn forget_cache(&self, cached: &Arc<Cached>) {
        self.lock().caches.retain(|c| !Arc::ptr_eq(c, cached));
    }

    /// Takes back buffers whose tokens were dropped by mistake; tells how many.
    pub fn reclaim_lost(&self) -> usize {
        let lost = crate::token::lost::take();
        let mut all = Vec::with_capacity(lost.len());
        for first in lost {
            let mut link = Link::own(first);
            while let Some((index, next)) = self.memory.unlink(link) {
                all.push(index.get());
                link = next;
            }
        }
        let n = all.len();
        self.give(all.into_iter());
        n
    }

    /// The pool's figures. Buffers of caches are counted by their threads, so while packets flow `used` is a
    /// moment's estimate.
    pub fn stats(&self) -> PoolStats {
        let state = self.lock();
        let cached: usize = state.caches.iter().map(|c| c.count()).sum();
        let available = state.free.len();
        PoolStats {
            name: self.config.name.clone(),
            size: STRIDE,
            data_size: DATA_SIZE,
            total: state.total,
            available,
            cached,
            used: state.total.saturating_sub(available + cached),
            backing: state.backing,
            most: self.config.most,
        }
    }
}
