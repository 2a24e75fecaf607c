//! Invariant: that of `TwinCell`, per slot. The writer keeps, for each slot it ever stored to, the
//! grace period that began after that slot's last store, and it is the only one that stores.
//!
//! When a slot's other copy may still be read, because a thread does not move, a store takes a spare copy. Those are
//! the first copies of the cells behind the last slot. A spare copy belongs to the one slot whose active copy it is; when
//! it is no longer that, a grace period begins after which it may be any slot's.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::io;
use std::ptr::NonNull;

use super::arena::StableArena;
use super::twin::TwinCell;
use super::zeroable::Zeroable;
use crate::qsbr::{Grace, Guard, OwnReaderOnline};

/// Most spare copies of a table: so many stores wait for a thread that does not move. More than the changes that
/// `qsbr::admit` lets in, so that none of those stops half-way.
const SPARE: usize = 1 << 18;

/// A table of [`TwinCell`]s at fixed addresses; slots never written hold zero.
///
/// It is a handle: clones are the same table.
#[derive(Clone)]
pub struct TwinTable<T> {
    /// Slots, then cells that hold a spare copy each.
    cells: StableArena<TwinCell<T>>,
    /// How many slots.
    capacity: usize,
    /// What a load beyond the capacity finds.
    zero: T,
}

/// The one writer of a [`TwinTable`].
pub struct TwinTableWriter<T> {
    table: TwinTable<T>,
    /// When each slot's inactive copies may be written; as long as the highest slot stored to.
    writable: Vec<Grace>,
    /// Spare copies never used: how many there have been.
    used: usize,
    /// Spare copies without a user, and when they may be written.
    free: VecDeque<(usize, Grace)>,
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
    /// A thread does not move, and as many stores wait for it as can.
    Stuck {
        /// How many.
        waiting: usize,
    },
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::OutOfRange { index, capacity } => {
                write!(f, "slot {index} is beyond the table's {capacity} slots")
            }
            StoreError::OwnReaderOnline => OwnReaderOnline.fmt(f),
            StoreError::Stuck { waiting } => {
                write!(f, "a thread does not move (`show threads'), and {waiting} changes wait for it")
            }
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
    /// How far two cells are from each other.
    const CELL: usize = size_of::<TwinCell<T>>();

    /// A table with room for `capacity` slots, of which only those written use memory, and its
    /// writer.
    pub fn with_capacity(capacity: usize) -> io::Result<(Self, TwinTableWriter<T>)> {
        // Distances have 32 bits.
        let most = (u32::MAX as usize / Self::CELL).saturating_sub(2);
        let spare = SPARE.min(most.saturating_sub(capacity));
        let cells = StableArena::with_capacity(capacity.saturating_add(spare))?;
        let table = TwinTable { cells, capacity, zero: T::zeroed() };
        let writer =
            TwinTableWriter { table: table.clone(), writable: Vec::new(), used: 0, free: VecDeque::new() };
        Ok((table, writer))
    }

    #[inline(always)]
    fn slot(&self, index: usize) -> Option<NonNull<TwinCell<T>>> {
        if index < self.capacity {
            // SAFETY: there are at least as many cells as slots.
            Some(unsafe { self.cells.pointer(index) })
        } else {
            None
        }
    }

    /// The value of slot `index`; zero when it was never written or is beyond the capacity.
    #[inline(always)]
    pub fn load<'g>(&'g self, index: usize, guard: Guard<'g>) -> &'g T {
        match self.slot(index) {
            // SAFETY: the pointer has the rights of all cells, which hold all copies, and they live as long as the
            // table does.
            Some(slot) => unsafe { TwinCell::load_from(slot, guard) },
            None => &self.zero,
        }
    }

    /// Asks the CPU to fetch slot `index`.
    #[inline(always)]
    pub fn prefetch(&self, index: usize) {
        self.cells.prefetch(index);
    }

    /// How many slots there are.
    pub fn capacity(&self) -> usize {
        self.capacity
    }
}

impl<T: Copy + Send + Sync + Zeroable> TwinTableWriter<T> {
    /// Publishes `value` in slot `index`. While all threads move it lies in one of the slot's own copies; when one does
    /// not, in a spare one. Waits for no thread longer than [`Grace::soon`] does.
    pub fn store(&mut self, index: usize, value: T) -> Result<(), StoreError> {
        self.check(index)?;
        if !self.recorded(index).soon()? && self.spares() == 0 {
            return Err(StoreError::Stuck { waiting: self.used });
        }
        let left = self.put(index, value);
        let grace = Grace::start();
        self.record(index, grace);
        self.free.extend(left.map(|spare| (spare, grace)));
        Ok(())
    }

    /// Stores many. Of several values for one slot the last counts. On error nothing was stored. Slots change one by
    /// one, in rising order.
    pub fn store_many(&mut self, values: impl IntoIterator<Item = (usize, T)>) -> Result<(), StoreError> {
        let values: BTreeMap<usize, T> = values.into_iter().collect();
        let mut latest = Grace::OVER;
        for &index in values.keys() {
            self.check(index)?;
            latest = latest.max(self.recorded(index));
        }
        // Grace periods end in the order in which they began.
        if !latest.soon()? {
            let spares = values.keys().filter(|index| !self.recorded(**index).is_over()).count();
            if spares > self.spares() {
                return Err(StoreError::Stuck { waiting: self.used });
            }
        }
        let left: Vec<usize> = values.iter().filter_map(|(&index, &value)| self.put(index, value)).collect();
        let grace = Grace::start();
        for &index in values.keys() {
            self.record(index, grace);
        }
        self.free.extend(left.into_iter().map(|spare| (spare, grace)));
        Ok(())
    }

    /// The current value of slot `index`; needs no reader.
    pub fn get(&self, index: usize) -> Option<&T> {
        // SAFETY: only `put` stores, and it needs `&mut self`; the rights are those of `load`.
        self.table.slot(index).map(|slot| unsafe { TwinCell::peek_from(slot) })
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

    /// How many spare copies may be written now, at least.
    fn spares(&self) -> usize {
        let fresh = self.table.cells.capacity() - self.table.capacity - self.used;
        // Those that were given up first may be written first.
        fresh + self.free.iter().take_while(|(_, grace)| grace.is_over()).count()
    }

    /// A spare copy that may be written; the caller has counted them.
    fn take_spare(&mut self) -> Option<usize> {
        if self.free.front().is_some_and(|(_, grace)| grace.is_over()) {
            return self.free.pop_front().map(|(spare, _)| spare);
        }
        let fresh = self.table.cells.capacity() - self.table.capacity > self.used;
        self.used += usize::from(fresh);
        fresh.then(|| self.used - 1)
    }

    /// Stores to a slot; the caller records a new grace period before the next call for the same slot. Gives back the
    /// spare copy that was the active one, for the same grace period.
    fn put(&mut self, index: usize, value: T) -> Option<usize> {
        // First, so that running out of memory here cannot leave a store unrecorded.
        if self.writable.len() <= index {
            self.writable.resize(index + 1, Grace::OVER);
        }
        let slot = self.table.slot(index)?;
        let before = self.table.cells.get(index)?.active();
        let second = TwinCell::<T>::SECOND;
        let first_spare = self.table.capacity - index;
        let left = (before > second).then(|| before as usize / TwinTable::<T>::CELL - first_spare);
        let to = if self.recorded(index).is_over() {
            if before == 0 { second } else { 0 }
        } else {
            ((first_spare + self.take_spare()?) * TwinTable::<T>::CELL) as u32
        };
        // SAFETY: `&mut self` of the only writer, and the rights are those of `load`. A copy of the slot's own is not the
        // active one and the grace period since the slot's last store is over; a spare copy is no other slot's, and the
        // grace period since it was one's is over.
        unsafe { TwinCell::place(slot, to, value) };
        left
    }
}

impl<T> fmt::Debug for TwinTable<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TwinTable").field("cells", &self.cells).finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for TwinTableWriter<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TwinTableWriter").field("table", &self.table).finish_non_exhaustive()
    }
}
