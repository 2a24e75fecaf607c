//! Invariant: only the holder of the one writer stores, and it writes the inactive copy only when a
//! grace period has passed since that copy became inactive. A reader that found it active did so
//! under a guard, so its reference is gone by then; readers that come later find the other copy.
//!
//! A cell of a `TwinTable` may have more copies, further on in the table's memory: its spare ones. The number of the
//! active copy is its distance from the cell's first one, whichever it is, so that readers need not tell them apart.

use std::fmt;
#[cfg(not(loom))]
use std::ptr::NonNull;

use super::cell::Cell;
use crate::qsbr::{Grace, Guard, OwnReaderOnline};
use crate::sync::{Arc, AtomicU32, Ordering};

/// A small value that readers see whole, by reference, and that one writer replaces in place.
///
/// It keeps two copies and the number of the active one. For values of up to 56 bytes the number
/// and the first copy share a cache line.
#[repr(C, align(64))]
pub struct TwinCell<T> {
    /// Bytes from the first copy to the active one: 0, the size of a copy, or, in a table, where a spare copy is.
    active: AtomicU32,
    copies: [Cell<T>; 2],
}

// SAFETY: `T` is `Send + Sync`; readers get `&T`, the writer moves `T` in, and the file's invariant
// keeps the two apart.
unsafe impl<T: Send + Sync> Sync for TwinCell<T> {}

#[cfg(not(loom))]
// SAFETY: the number 0 is valid, and both copies are zero, which `T: Zeroable` allows. `Copy` types
// are not dropped.
unsafe impl<T: super::zeroable::Zeroable + Copy> super::zeroable::Zeroable for TwinCell<T> {}

impl<T: Copy + Send + Sync> TwinCell<T> {
    fn new(value: T) -> Self {
        TwinCell { active: AtomicU32::new(0), copies: [Cell::new(value), Cell::new(value)] }
    }

    /// Where the second copy starts, from the first.
    pub(super) const SECOND: u32 = size_of::<Cell<T>>() as u32;

    /// The copy at an offset that `active` may hold.
    #[inline(always)]
    fn copy(&self, offset: u32) -> &Cell<T> {
        #[cfg(loom)]
        return &self.copies[usize::from(offset != 0)];
        // WHY: an addition where choosing costs four instructions, on every table load of every packet.
        #[cfg(not(loom))]
        // SAFETY: `active` only ever holds 0 or `SECOND`: the offsets of the two copies.
        unsafe {
            &*self.copies.as_ptr().byte_add(offset as usize)
        }
    }

    /// The current value; wait-free.
    #[inline(always)]
    pub fn load<'g>(&'g self, _guard: Guard<'g>) -> &'g T {
        let copy = self.copy(self.active.load(Ordering::Acquire));
        // SAFETY: the acquire load shows the copy as it was written before the flip. By the file's
        // invariant it is not written again before this reader is quiescent, which the guard's
        // borrow excludes for 'g; and 'g does not outlive the cell.
        copy.with(|value| unsafe { &*value })
    }

    /// The current value, for the writer.
    ///
    /// # Safety
    ///
    /// No store may happen while the reference lives.
    pub(super) unsafe fn peek(&self) -> &T {
        let copy = self.copy(self.active.load(Ordering::Relaxed));
        // SAFETY: only stores write, and the caller excludes them.
        copy.with(|value| unsafe { &*value })
    }

    /// Where the first copy is, with the rights of `cell`: those of the whole table.
    ///
    /// # Safety
    ///
    /// `cell` points to a cell.
    #[cfg(not(loom))]
    #[inline(always)]
    unsafe fn first(cell: NonNull<Self>) -> *const Cell<T> {
        // SAFETY: the field of a cell, and its first element; no reference is made.
        unsafe { (&raw const (*cell.as_ptr()).copies).cast() }
    }

    /// As [`load`](TwinCell::load), of a cell that may have spare copies.
    ///
    /// # Safety
    ///
    /// `cell` points to a cell, with the rights of all memory in which `place` ever puts its copies, for as long as the guard.
    #[cfg(not(loom))]
    #[inline(always)]
    pub(super) unsafe fn load_from(cell: NonNull<Self>, _guard: Guard<'_>) -> &T {
        // SAFETY: a cell; the reference is to the number only.
        let active = unsafe { &(*cell.as_ptr()).active }.load(Ordering::Acquire);
        // SAFETY: `place` has put a copy there, and the caller's rights reach it. Why it stays: see `load`.
        unsafe { &*Self::first(cell).byte_add(active as usize) }.with(|value| unsafe { &*value })
    }

    /// Which copy is the active one, for the writer.
    #[cfg(not(loom))]
    pub(super) fn active(&self) -> u32 {
        self.active.load(Ordering::Relaxed)
    }

    /// The current value, for the writer.
    ///
    /// # Safety
    ///
    /// As [`load_from`](TwinCell::load_from), and no store may happen while the reference lives.
    #[cfg(not(loom))]
    pub(super) unsafe fn peek_from<'a>(cell: NonNull<Self>) -> &'a T {
        // SAFETY: the caller's.
        let active = unsafe { &(*cell.as_ptr()).active }.load(Ordering::Relaxed);
        // SAFETY: the caller's, as in `load_from`.
        unsafe { &*Self::first(cell).byte_add(active as usize) }.with(|value| unsafe { &*value })
    }

    /// Writes the copy at a distance and makes it the active one.
    ///
    /// # Safety
    ///
    /// As [`load_from`](TwinCell::load_from); there is a copy at `distance`, which is this cell's for as long as it is
    /// active and which no reader can have found since a grace period began that is over; only one thread stores.
    #[cfg(not(loom))]
    pub(super) unsafe fn place(cell: NonNull<Self>, distance: u32, value: T) {
        // SAFETY: the caller's: a copy that no thread reads or writes.
        unsafe { &*Self::first(cell).byte_add(distance as usize) }
            .with_mut(|copy| unsafe { copy.write(value) });
        // SAFETY: a cell.
        unsafe { &(*cell.as_ptr()).active }.store(distance, Ordering::Release);
    }

    /// Writes the inactive copy and makes it the active one.
    ///
    /// # Safety
    ///
    /// Only one thread stores at a time, and since the previous store a grace period has passed.
    pub(super) unsafe fn store(&self, value: T) {
        let active = self.active.load(Ordering::Relaxed);
        let inactive = Self::SECOND - active;
        // SAFETY: the caller's promise is the file's invariant: no thread reads or writes this copy.
        self.copy(inactive).with_mut(|copy| unsafe { copy.write(value) });
        self.active.store(inactive, Ordering::Release);
    }
}

impl<T> fmt::Debug for TwinCell<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TwinCell")
    }
}

/// The one writer of a [`TwinCell`].
#[derive(Debug)]
pub struct TwinWriter<T> {
    cell: Arc<TwinCell<T>>,
    /// When the copy that is inactive now may be written.
    writable: Grace,
}

/// A cell and its writer.
pub fn twin_cell<T: Copy + Send + Sync>(value: T) -> (Arc<TwinCell<T>>, TwinWriter<T>) {
    let cell = Arc::new(TwinCell::new(value));
    let writer = TwinWriter { cell: Arc::clone(&cell), writable: Grace::OVER };
    (cell, writer)
}

impl<T: Copy + Send + Sync> TwinWriter<T> {
    /// Publishes `value`. Waits for the readers of the value before last, which is rarely needed.
    pub fn store(&mut self, value: T) -> Result<(), OwnReaderOnline> {
        self.writable.wait()?;
        // SAFETY: `&mut self` of the only writer; the grace period since the last store is over.
        unsafe { self.cell.store(value) };
        self.writable = Grace::start();
        Ok(())
    }

    /// The current value; needs no reader.
    pub fn get(&self) -> &T {
        // SAFETY: only `store` stores, and it needs `&mut self`.
        unsafe { self.cell.peek() }
    }

    /// The cell, for one more reader.
    pub fn cell(&self) -> Arc<TwinCell<T>> {
        Arc::clone(&self.cell)
    }
}
