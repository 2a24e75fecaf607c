//! Invariant: the mapping holds `capacity` elements of `T` from its base, aligned as `T` wants; the first `len` of
//! them have been written and never move. Only the owner of the value reaches them, by the borrow of `self`.

use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use super::map::{HUGE, Kind, Mapping};

/// A vector that never moves what is in it: it grows in place, in address space that was reserved for all of it.
///
/// One thread owns it, and changes it by `&mut`. Memory is used for elements that were pushed, a page at a time; a large
/// one asks for transparent huge pages. What was pushed stays until the vector is dropped.
///
/// ```
/// use shoal_infra::StableVec;
///
/// let mut lines = StableVec::with_capacity(2)?;
/// assert_eq!(lines.push([1_u8; 64]), Some(0));
/// assert_eq!(lines.push([2; 64]), Some(1));
/// assert_eq!(lines.push([3; 64]), None, "full");
/// lines[0][0] = 7;
/// assert_eq!((lines.len(), lines[0][0], lines[1][0]), (2, 7, 2));
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct StableVec<T> {
    base: NonNull<T>,
    len: usize,
    capacity: usize,
    /// Keeps the address valid.
    memory: Mapping,
    _elements: PhantomData<T>,
}

// SAFETY: it owns its elements, as `Vec<T>` does.
unsafe impl<T: Send> Send for StableVec<T> {}
// SAFETY: `&self` gives out shared references only, as `Vec<T>` does.
unsafe impl<T: Sync> Sync for StableVec<T> {}

impl<T: Copy> StableVec<T> {
    /// Reserves address space for `capacity` elements.
    ///
    /// # Errors
    /// So much address space cannot be had.
    pub fn with_capacity(capacity: usize) -> io::Result<Self> {
        const { assert!(align_of::<T>() <= 4096, "a page is the largest alignment mmap gives") };
        let bytes = size_of::<T>()
            .checked_mul(capacity)
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "vector is larger than memory"))?;
        let memory = Mapping::new(bytes, Kind::ZeroMemory)?;
        if memory.bytes() >= HUGE {
            memory.advise_huge(0, memory.bytes());
        }
        Ok(StableVec { base: memory.base().cast(), len: 0, capacity, memory, _elements: PhantomData })
    }

    /// Adds an element, and tells its index; `None` when there are as many as there may be.
    #[inline]
    pub fn push(&mut self, value: T) -> Option<usize> {
        let index = self.len;
        if index == self.capacity {
            return None;
        }
        // SAFETY: index < capacity, so the element lies in the mapping, which is writable and ours; it is no live
        // value before, and `T: Copy` needs no drop.
        unsafe { self.base.add(index).write(value) };
        self.len = index + 1;
        Some(index)
    }

    /// How many elements there may be.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Gets memory for the first `elements` now, so that pushing them takes no page fault: some 30 to 100
    /// milliseconds a gigabyte. More than the capacity is all.
    ///
    /// # Errors
    /// There is no such memory; later pushes may end the process, as with any memory that the kernel overcommits.
    pub fn populate(&mut self, elements: usize) -> io::Result<()> {
        self.memory.populate(0, elements.min(self.capacity) * size_of::<T>())
    }

    /// Asks the CPU to fetch the first and the last cache line of the element at `index`, which may be any.
    #[inline(always)]
    pub fn prefetch(&self, index: usize) {
        let first = self.base.as_ptr().wrapping_add(index);
        super::prefetch::prefetch_address(first);
        // Elements that divide a line, or are one, lie in one.
        if 64 % size_of::<T>().max(1) != 0 {
            super::prefetch::prefetch_address(first.wrapping_add(1).cast::<u8>().wrapping_sub(1));
        }
    }
}

impl<T> Deref for StableVec<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: the file's invariant; `self` is borrowed as long as the slice.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr(), self.len) }
    }
}

impl<T> DerefMut for StableVec<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: the file's invariant; `self` is borrowed for this slice alone.
        unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr(), self.len) }
    }
}

impl<T> fmt::Debug for StableVec<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let StableVec { len, capacity, .. } = self;
        f.debug_struct("StableVec").field("len", len).field("capacity", capacity).finish_non_exhaustive()
    }
}
