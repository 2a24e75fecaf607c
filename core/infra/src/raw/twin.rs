//! Invariant: only the holder of the one writer stores, and it writes the inactive copy only when a
//! grace period has passed since that copy became inactive. A reader that found it active did so
//! under a guard, so its reference is gone by then; readers that come later find the other copy.

use std::fmt;

use super::cell::Cell;
use crate::qsbr::{Grace, Guard, OwnReaderOnline};
use crate::sync::{Arc, AtomicU32, Ordering};

/// A small value that readers see whole, by reference, and that one writer replaces in place.
///
/// It keeps two copies and the number of the active one. For values of up to 56 bytes the number
/// and the first copy share a cache line.
#[repr(C, align(64))]
pub struct TwinCell<T> {
    /// Bytes from the first copy to the active one: 0 or the size of a copy.
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
    const SECOND: u32 = size_of::<Cell<T>>() as u32;

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

    /// Writes the inactive copy and makes it the active one.
    ///
    /// # Safety
    ///
    /// Only one thread stores at a time, and since the previous store a grace period has passed.
    pub(super) unsafe fn store(&self, value: T) {
        let active = self.active.load(Ordering::Relaxed);
        let inactive = Self::SECOND - active;
        // SAFETY: the caller's promise is the file's invariant: nobody reads or writes this copy.
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
