//! Invariant: that of `TwinCell`, per slot. The writer keeps, for each slot it ever stored to, the
//! grace period that began after that slot's last store, and it is the only one that stores.

use std::collections::BTreeMap;
use std::fmt;
use std::io;

use super::arena::StableArena;
use super::twin::TwinCell;
use super::zeroable::Zeroable;
use crate::qsbr::{Grace, Guard, OwnReaderOnline};

/// A table of [`TwinCell`]s at fixed addresses; slots never written hold zero.
///
/// It is a handle: clones are the same table.
#[derive(Clone)]
pub struct TwinTable<T> {
    slots: StableArena<TwinCell<T>>,
    /// What a load beyond the capacity finds.
    zero: T,
}

/// The one writer of a [`TwinTable`].
pub struct TwinTableWriter<T> {
    table: TwinTable<T>,
    /// When each slot's inactive copy may be written; as long as the highest slot stored to.
    writable: Vec<Grace>,
}

/// Why nothing was stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreError {
    /// The slot is at or beyond the table's capacity.
    OutOfRange {
        /// The slot asked for.
        index: usize,
        /// How many slots there are.
        capacity: usize,
    },
    /// The store had to wait for readers, and the calling thread's own is online.
    OwnReaderOnline,
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::OutOfRange { index, capacity } => {
                write!(f, "slot {index} is beyond the table's {capacity} slots")
            }
            StoreError::OwnReaderOnline => OwnReaderOnline.fmt(f),
        }
    }
}

impl std::error::Error for StoreError {}

impl From<OwnReaderOnline> for StoreError {
    fn from(_: OwnReaderOnline) -> Self {
        StoreError::OwnReaderOnline
    }
}

impl<T: Copy + Send + Sync + Zeroable> TwinTable<T> {
    /// A table with room for `capacity` slots, of which only those written use memory, and its
    /// writer.
    pub fn with_capacity(capacity: usize) -> io::Result<(Self, TwinTableWriter<T>)> {
        let table = TwinTable { slots: StableArena::with_capacity(capacity)?, zero: T::zeroed() };
        let writer = TwinTableWriter { table: table.clone(), writable: Vec::new() };
        Ok((table, writer))
    }

    /// The value of slot `index`; zero when it was never written or is beyond the capacity.
    #[inline(always)]
    pub fn load<'g>(&'g self, index: usize, guard: Guard<'g>) -> &'g T {
        match self.slots.get(index) {
            Some(slot) => slot.load(guard),
            None => &self.zero,
        }
    }

    /// Asks the CPU to fetch slot `index`.
    #[inline(always)]
    pub fn prefetch(&self, index: usize) {
        self.slots.prefetch(index);
    }

    /// How many slots there are.
    pub fn capacity(&self) -> usize {
        self.slots.capacity()
    }
}

impl<T: Copy + Send + Sync + Zeroable> TwinTableWriter<T> {
    /// Publishes `value` in slot `index`. Waits only when the slot was stored to so recently that
    /// readers may still look at the value before last.
    pub fn store(&mut self, index: usize, value: T) -> Result<(), StoreError> {
        self.check(index)?;
        self.recorded(index).wait()?;
        self.put(index, value);
        self.record(index, Grace::start());
        Ok(())
    }

    /// Stores many, with at most one wait for all. Of several values for one slot the last counts.
    /// On error nothing was stored. Slots change one by one, in rising order.
    pub fn store_many(&mut self, values: impl IntoIterator<Item = (usize, T)>) -> Result<(), StoreError> {
        let values: BTreeMap<usize, T> = values.into_iter().collect();
        let mut latest = Grace::OVER;
        for &index in values.keys() {
            self.check(index)?;
            latest = latest.max(self.recorded(index));
        }
        // Grace periods end in the order in which they began.
        latest.wait()?;
        for (&index, &value) in &values {
            self.put(index, value);
        }
        let grace = Grace::start();
        for &index in values.keys() {
            self.record(index, grace);
        }
        Ok(())
    }

    /// The current value of slot `index`; needs no reader.
    pub fn get(&self, index: usize) -> Option<&T> {
        // SAFETY: only `put` stores, and it needs `&mut self`.
        self.table.slots.get(index).map(|slot| unsafe { slot.peek() })
    }

    /// The table, for one more reader.
    pub fn table(&self) -> TwinTable<T> {
        self.table.clone()
    }

    fn check(&self, index: usize) -> Result<(), StoreError> {
        let capacity = self.table.capacity();
        if index < capacity { Ok(()) } else { Err(StoreError::OutOfRange { index, capacity }) }
    }

    fn recorded(&self, index: usize) -> Grace {
        self.writable.get(index).copied().unwrap_or(Grace::OVER)
    }

    fn record(&mut self, index: usize, grace: Grace) {
        if let Some(recorded) = self.writable.get_mut(index) {
            *recorded = grace;
        }
    }

    /// Stores to a slot whose recorded grace period is over; the caller records a new one before
    /// the next call for the same slot.
    fn put(&mut self, index: usize, value: T) {
        // First, so that running out of memory here cannot leave a store unrecorded.
        if self.writable.len() <= index {
            self.writable.resize(index + 1, Grace::OVER);
        }
        if let Some(slot) = self.table.slots.get(index) {
            // SAFETY: `&mut self` of the only writer. Both callers have waited for the grace period
            // recorded for this slot, and pass each slot once before recording the next.
            unsafe { slot.store(value) };
        }
    }
}

impl<T> fmt::Debug for TwinTable<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TwinTable").field("slots", &self.slots).finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for TwinTableWriter<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TwinTableWriter").field("table", &self.table).finish_non_exhaustive()
    }
}
