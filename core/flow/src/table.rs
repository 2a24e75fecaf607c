//! The table: flows come, are reached by handle, and go.

use std::fmt;

use shoal_infra::{Links, StableVec, Wheel, budget};

use crate::bucket::Bucket;
use crate::entry::{Armed, Entries, Entry, Flow, Handle, Hashed};
use crate::expiry::{Stamp, Tick, Timeout, Timeouts};
use crate::hash::Seed;
use crate::index::{Index, fill_for};
use crate::key::FlowKey;
use crate::settings::{InsertError, Settings, Sizes, TableError, Usage};

/// No entry is free.
const NONE: u32 = u32::MAX;

/// Flows by key: see the [crate](crate).
///
/// `V` is what the feature keeps of a flow. A look-up reads one line of memory if key, value and 16 bytes of the table are a
/// divisor of 64 bytes together, or 64: with an [`Ip4Flow`](crate::Ip4Flow) that is a value of 32 bytes.
pub struct FlowTable<K, V> {
    pub(crate) seed: Seed,
    pub(crate) index: Index,
    pub(crate) entries: Entries<K, V>,
    pub(crate) timeouts: Timeouts,
    pub(crate) wheel: Wheel,
    /// The latest tick it was told.
    pub(crate) now: Tick,
    /// The first entry that is free.
    free: u32,
    len: u32,
    most: u32,
    /// Which limit `most` comes from: that of bytes.
    most_bytes: Option<usize>,
    /// Bytes that were taken of the budget.
    taken: usize,
    full: u64,
    crowded: u64,
}

impl<K: FlowKey, V: Copy> FlowTable<K, V> {
    /// Bytes of a flow, its share of the index left out: 16, the key and the value, and what their alignment costs.
    pub const ENTRY_BYTES: usize = size_of::<Entry<K, V>>();

    const SIZES: Sizes = Sizes {
        fixed: size_of::<FlowTable<K, V>>() + Wheel::BYTES - size_of::<Wheel>(),
        entry: Self::ENTRY_BYTES,
        bucket: size_of::<Bucket>(),
        fill: fill_for(Self::ENTRY_BYTES - size_of::<V>()),
    };

    /// An empty table, at tick `now`.
    ///
    /// All that it may ever take is asked of the [budget](shoal_infra::budget) here, where a refusal is an answer to somebody;
    /// memory itself is used as flows come. Address space is reserved for all of it.
    ///
    /// # Errors
    /// A setting is out of bounds, or there is no such memory: the error has the value, and the nearest that would do.
    pub fn new(settings: Settings, now: Tick) -> Result<Self, TableError> {
        if let Some(asked) = settings.timeouts.too_long() {
            return Err(TableError::Timeout { asked });
        }
        let most = Self::SIZES.flows(&settings)?;
        let bytes = Self::SIZES.bytes(most as usize);
        let memory = |reason: String| TableError::Memory { bytes, reason };
        let mut index = Index::new(most as usize, Self::SIZES.fill).map_err(|e| memory(e.to_string()))?;
        let mut entries = StableVec::with_capacity(most as usize).map_err(|e| memory(e.to_string()))?;
        let ready = settings.ready.min(most) as usize;
        if ready > 0 {
            index.populate(ready).map_err(|e| memory(e.to_string()))?;
            entries.populate(ready).map_err(|e| memory(e.to_string()))?;
        }
        budget::take(bytes).map_err(|e| memory(e.to_string()))?;
        let Settings { flows, timeouts, seed, .. } = settings;
        let most_bytes = (most < flows).then_some(settings.bytes);
        let wheel = Wheel::new(now.0);
        let (free, len, full, crowded, taken) = (NONE, 0, 0, 0, bytes);
        Ok(FlowTable {
            seed,
            index,
            entries,
            timeouts,
            wheel,
            now,
            free,
            len,
            most,
            most_bytes,
            taken,
            full,
            crowded,
        })
    }

    /// Puts a flow in, whose packet comes now.
    ///
    /// # Errors
    /// There is one with this key, or no room: the table is as it was.
    pub fn insert(&mut self, key: K, value: V, timeout: Timeout, now: Tick) -> Result<Handle, InsertError> {
        let hash = self.seed.hash(key.words().as_ref());
        let same = |flow: u32| self.entries.get(flow as usize).is_some_and(|e| e.key == key);
        if let Some(index) = self.index.find(hash, same) {
            let generation = self.entries.get(index as usize).map_or(1, |entry| entry.generation);
            return Err(InsertError::Exists(Handle { index, generation }));
        }
        let Some(handle) = self.new_entry(key, value, Stamp::new(timeout, now)) else {
            self.full += 1;
            return Err(self.is_full());
        };
        let hashed = Hashed { entries: &self.entries, seed: &self.seed };
        if self.index.is_filled_by(self.len as usize) {
            self.index.grow(&hashed);
        }
        if !self.index.insert(hash, handle.index, &hashed) {
            self.crowded += 1;
            self.free_entry(handle.index);
            return Err(InsertError::Crowded);
        }
        self.len += 1;
        self.now = self.now.max(now);
        let mut armed = Armed { entries: &mut self.entries, timeouts: &self.timeouts, now: self.now };
        self.wheel.start(&mut armed, handle.index);
        Ok(handle)
    }

    #[cold]
    fn is_full(&self) -> InsertError {
        match self.most_bytes {
            Some(most) => InsertError::Bytes { most, flows: self.most },
            None => InsertError::Flows { most: self.most },
        }
    }

    /// What the feature keeps of a flow, if it is still there.
    #[inline(always)]
    pub fn get(&self, handle: Handle) -> Option<&V> {
        let entry = self.entries.get(handle.index as usize)?;
        (entry.generation == handle.generation).then_some(&entry.value)
    }

    /// What the feature keeps of a flow, if it is still there, to be changed.
    #[inline(always)]
    pub fn get_mut(&mut self, handle: Handle) -> Option<&mut V> {
        self.entry_mut(handle).map(|entry| &mut entry.value)
    }

    /// The key of a flow, if it is still there.
    pub fn key(&self, handle: Handle) -> Option<&K> {
        let entry = self.entries.get(handle.index as usize)?;
        (entry.generation == handle.generation).then_some(&entry.key)
    }

    /// The flow of a number, if there is one now: for a feature that keeps only numbers of flows that end together.
    #[inline(always)]
    pub fn handle_at(&self, index: u32) -> Option<Handle> {
        let entry = self.entries.get(index as usize).filter(|entry| entry.is_live())?;
        Some(Handle { index, generation: entry.generation })
    }

    /// The same, as [`find`](Self::find) gives it.
    #[inline(always)]
    pub fn flow_of(&mut self, index: u32) -> Option<Flow<'_, K, V>> {
        let entry = self.entries.get_mut(index as usize).filter(|entry| entry.is_live())?;
        Some(Flow { entry, index })
    }

    /// Asks memory for the flow of a number.
    #[inline(always)]
    pub fn prefetch_at(&self, index: u32) {
        self.entries.prefetch(index as usize);
    }

    /// Puts a flow's end off: it has a packet now. False if it is gone.
    #[inline(always)]
    pub fn touch(&mut self, handle: Handle, now: Tick) -> bool {
        let Some(entry) = self.entry_mut(handle) else { return false };
        entry.stamp = entry.stamp.at(now);
        true
    }

    /// Asks memory for a flow: for a feature that found its handle elsewhere.
    #[inline(always)]
    pub fn prefetch(&self, handle: Handle) {
        self.entries.prefetch(handle.index as usize);
    }

    /// Gives a flow another timeout, from now on; false if it is gone. For changes of its state, not for each packet: where its end
    /// comes nearer, its timer is moved.
    pub fn set_timeout(&mut self, handle: Handle, timeout: Timeout, now: Tick) -> bool {
        self.now = self.now.max(now);
        let Some(old) = self.entry_mut(handle).map(|entry| entry.stamp) else { return false };
        let new = Stamp::new(timeout, now);
        if let Some(entry) = self.entry_mut(handle) {
            entry.stamp = new;
        }
        if self.timeouts.deadline(new, self.now) < self.timeouts.deadline(old, self.now) {
            let mut armed = Armed { entries: &mut self.entries, timeouts: &self.timeouts, now: self.now };
            self.wheel.stop(&mut armed, handle.index);
            self.wheel.start(&mut armed, handle.index);
        }
        true
    }

    /// Changes how long flows with this timeout live, from now on. Where that is less than before, they end when their old time
    /// comes; a [sweep](Self::sweep) with [`SweepAction::Rearm`](crate::SweepAction::Rearm) makes them end at the new.
    ///
    /// # Errors
    /// It is too long.
    pub fn change_timeout(&mut self, timeout: Timeout, ticks: u32) -> Result<(), TableError> {
        if ticks > Settings::LONGEST_TIMEOUT {
            return Err(TableError::Timeout { asked: ticks });
        }
        self.timeouts.set(timeout, ticks);
        Ok(())
    }

    /// Ends a flow, and gives what was kept of it.
    pub fn remove(&mut self, handle: Handle) -> Option<(K, V)> {
        self.entry_mut(handle)?;
        self.stop(handle.index);
        self.take(handle.index)
    }

    /// How many flows there are.
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// The latest tick it was told.
    pub fn latest(&self) -> Tick {
        self.now
    }

    /// Numbers of flows are below this.
    pub fn places(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// What it takes, and has refused.
    pub fn usage(&self) -> Usage {
        let Self { entries, index, .. } = self;
        let Sizes { fixed, entry, bucket, .. } = Self::SIZES;
        Usage {
            flows: self.len,
            most_flows: self.most,
            bytes: fixed + entries.len() * entry + index.len() * bucket,
            most_bytes: Self::SIZES.bytes(self.most as usize),
            full: self.full,
            crowded: self.crowded,
        }
    }

    #[inline(always)]
    fn entry_mut(&mut self, handle: Handle) -> Option<&mut Entry<K, V>> {
        self.entries.get_mut(handle.index as usize).filter(|entry| entry.generation == handle.generation)
    }

    /// A live entry that is in neither index nor wheel; `None` if there may be no more.
    fn new_entry(&mut self, key: K, value: V, stamp: Stamp) -> Option<Handle> {
        if let Some(entry) = self.entries.get_mut(self.free as usize) {
            let (index, generation) = (self.free, entry.generation + 1);
            self.free = entry.stamp.number();
            *entry = Entry { generation, stamp, links: Links::STOPPED, key, value };
            return Some(Handle { index, generation });
        }
        let generation = 1;
        let index = self.entries.push(Entry { generation, stamp, links: Links::STOPPED, key, value })?;
        Some(Handle { index: index as u32, generation })
    }

    /// Ends the life of an entry that is in neither index nor wheel.
    fn free_entry(&mut self, flow: u32) {
        let Some(entry) = self.entries.get_mut(flow as usize) else { return };
        entry.generation = entry.generation.wrapping_add(1);
        // After two thousand million flows a place is not used again, so that no handle names two flows.
        if entry.generation != 0 {
            entry.stamp = Stamp::of_number(self.free);
            self.free = flow;
        }
    }

    /// Stops a flow's timer.
    pub(crate) fn stop(&mut self, flow: u32) {
        let mut armed = Armed { entries: &mut self.entries, timeouts: &self.timeouts, now: self.now };
        self.wheel.stop(&mut armed, flow);
    }

    /// Takes a flow out whose timer does not run.
    pub(crate) fn take(&mut self, flow: u32) -> Option<(K, V)> {
        let entry = self.entries.get(flow as usize).filter(|entry| entry.is_live())?;
        let (key, value) = (entry.key, entry.value);
        self.index.remove(self.seed.hash(key.words().as_ref()), flow);
        self.free_entry(flow);
        self.len -= 1;
        Some((key, value))
    }
}

impl<K, V> Drop for FlowTable<K, V> {
    fn drop(&mut self) {
        budget::give_back(self.taken);
    }
}

impl<K, V> fmt::Debug for FlowTable<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FlowTable { len, most, .. } = self;
        f.debug_struct("FlowTable").field("len", len).field("most", most).finish_non_exhaustive()
    }
}
