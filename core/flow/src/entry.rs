//! A flow's own memory: what the table keeps of it, its key, and what the feature keeps.

use std::fmt;

use shoal_infra::{Links, StableVec, Timers};

use crate::expiry::{Stamp, Tick, Timeouts};
use crate::hash::Seed;
use crate::index::Hashes;
use crate::key::FlowKey;

/// 16 bytes, the key, the value.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Entry<K, V> {
    /// Odd while a flow is here. Grows with each flow that comes and each that goes.
    pub(crate) generation: u32,
    /// When its last packet came; of a free entry the number of the next free one.
    pub(crate) stamp: Stamp,
    pub(crate) links: Links,
    pub(crate) key: K,
    pub(crate) value: V,
}

impl<K, V> Entry<K, V> {
    #[inline(always)]
    pub(crate) fn is_live(&self) -> bool {
        self.generation & 1 == 1
    }
}

pub(crate) type Entries<K, V> = StableVec<Entry<K, V>>;

/// Names one flow of one table. After the flow's end it names nothing; another flow in the same memory has another handle.
///
/// A feature keeps handles where it has a second way to a flow: of the other direction, of a list of its own.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Handle {
    pub(crate) index: u32,
    /// Odd.
    pub(crate) generation: u32,
}

impl Handle {
    /// The flow's number: small, dense, used again after its end. For arrays beside the table.
    pub fn index(self) -> u32 {
        self.index
    }

    /// The handle as a number that is not zero.
    pub fn to_bits(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.index)
    }

    /// What [`to_bits`](Self::to_bits) made; any other number gives a handle that names nothing, or nothing at all.
    pub fn from_bits(bits: u64) -> Option<Self> {
        let generation = (bits >> 32) as u32;
        (generation & 1 == 1).then_some(Handle { index: bits as u32, generation })
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.index, self.generation / 2)
    }
}

/// A flow that was found.
pub struct Flow<'a, K, V> {
    pub(crate) entry: &'a mut Entry<K, V>,
    pub(crate) index: u32,
}

impl<K, V> Flow<'_, K, V> {
    /// What it was found by.
    #[inline(always)]
    pub fn key(&self) -> &K {
        &self.entry.key
    }

    /// What the feature keeps of it.
    #[inline(always)]
    pub fn value(&self) -> &V {
        &self.entry.value
    }

    /// What the feature keeps of it, to be changed.
    #[inline(always)]
    pub fn value_mut(&mut self) -> &mut V {
        &mut self.entry.value
    }

    /// Puts its end off: it has a packet now. Nothing is written if it had one in the same tick.
    #[inline(always)]
    pub fn touch(&mut self, now: Tick) {
        let stamp = self.entry.stamp.at(now);
        if self.entry.stamp != stamp {
            self.entry.stamp = stamp;
        }
    }

    /// Ticks since its last packet.
    #[inline(always)]
    pub fn age(&self, now: Tick) -> u32 {
        self.entry.stamp.age(now)
    }

    /// Whether it had a packet in this tick: then its age is 0, and nothing is to be written.
    #[inline(always)]
    pub fn is_touched(&self, now: Tick) -> bool {
        self.entry.stamp.is_at(now)
    }

    /// Names it, for later.
    #[inline(always)]
    pub fn handle(&self) -> Handle {
        Handle { index: self.index, generation: self.entry.generation }
    }
}

impl<K: fmt::Debug, V: fmt::Debug> fmt::Debug for Flow<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Flow").field("key", self.key()).field("value", self.value()).finish_non_exhaustive()
    }
}

/// Entries as the wheel sees them: a flow's timer has the flow's number.
pub(crate) struct Armed<'a, K, V> {
    pub(crate) entries: &'a mut Entries<K, V>,
    pub(crate) timeouts: &'a Timeouts,
    /// The latest tick the table was told.
    pub(crate) now: Tick,
}

impl<K: Copy, V: Copy> Timers for Armed<'_, K, V> {
    #[inline(always)]
    fn links(&mut self, timer: u32) -> Option<&mut Links> {
        self.entries.get_mut(timer as usize).map(|entry| &mut entry.links)
    }

    #[inline(always)]
    fn deadline(&self, timer: u32) -> u64 {
        self.entries.get(timer as usize).map_or(0, |entry| self.timeouts.deadline(entry.stamp, self.now))
    }
}

/// Entries as the index sees them: a flow's hash is that of the key it keeps.
pub(crate) struct Hashed<'a, K, V> {
    pub(crate) entries: &'a Entries<K, V>,
    pub(crate) seed: &'a Seed,
}

impl<K: FlowKey, V: Copy> Hashes for Hashed<'_, K, V> {
    #[inline(always)]
    fn hash(&self, flow: u32) -> u64 {
        self.entries.get(flow as usize).map_or(0, |entry| self.seed.hash(entry.key.words().as_ref()))
    }

    #[inline(always)]
    fn prefetch(&self, flow: u32) {
        self.entries.prefetch(flow as usize);
    }
}
