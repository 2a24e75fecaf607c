//! Invariant: the mapping holds `capacity` elements of `T` from its base, each of which has been a
//! valid `T` since the mapping was made (zero bytes are valid: `T: Zeroable`) and is only reached by
//! shared reference. So any index below `capacity` may be dereferenced at any time. A `StableBox` is the same
//! with a capacity of one, which its constructor alone establishes.

use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::Arc;

use super::map::{HUGE, Kind, Mapping};
use super::zeroable::Zeroable;

/// A table of `capacity` elements that never move and start as zero.
///
/// Address space for all of it is reserved at once; memory is used only for pages that were
/// written, so reserve generously. Large arenas ask for transparent huge pages.
/// Elements change through their own interior mutability (atomics).
///
/// It is a handle: clones are the same table, and the address lies in the handle itself, so that a reader who
/// keeps one reaches an element with a single load.
pub struct StableArena<T> {
    base: NonNull<T>,
    capacity: usize,
    /// Keeps the address valid.
    memory: Arc<Mapping>,
    _elements: PhantomData<T>,
}

impl<T> Clone for StableArena<T> {
    fn clone(&self) -> Self {
        let (base, capacity, memory) = (self.base, self.capacity, Arc::clone(&self.memory));
        StableArena { base, capacity, memory, _elements: PhantomData }
    }
}

// SAFETY: the handles own the elements together, as `Arc<[T]>`s would.
unsafe impl<T: Send + Sync> Send for StableArena<T> {}
// SAFETY: they give out shared references only, as `Arc<[T]>`s would.
unsafe impl<T: Send + Sync> Sync for StableArena<T> {}

impl<T: Zeroable> StableArena<T> {
    /// Reserves address space for `capacity` elements.
    pub fn with_capacity(capacity: usize) -> io::Result<Self> {
        const {
            assert!(align_of::<T>() <= 4096, "a page is the largest alignment mmap gives");
            assert!(!std::mem::needs_drop::<T>(), "elements are never dropped");
        }
        let bytes = size_of::<T>()
            .checked_mul(capacity)
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "arena is larger than memory"))?;
        let memory = Mapping::new(bytes, Kind::ZeroMemory)?;
        if memory.bytes() >= HUGE {
            memory.advise_huge(0, memory.bytes());
        }
        let base = memory.base().cast::<T>();
        Ok(StableArena { base, capacity, memory: Arc::new(memory), _elements: PhantomData })
    }

    /// The element at `index`, or `None` at or beyond the capacity.
    #[inline(always)]
    pub fn get(&self, index: usize) -> Option<&T> {
        if index < self.capacity {
            // SAFETY: index < capacity, and the file's invariant.
            Some(unsafe { &*self.base.add(index).as_ptr() })
        } else {
            None
        }
    }

    /// Where the element at `index` is, with the rights of the whole mapping.
    ///
    /// # Safety
    ///
    /// `index` is below the capacity.
    #[inline(always)]
    pub(super) unsafe fn pointer(&self, index: usize) -> NonNull<T> {
        // SAFETY: the caller's: it lies in the mapping.
        unsafe { self.base.add(index) }
    }

    /// All elements.
    #[inline(always)]
    pub fn as_slice(&self) -> &[T] {
        // SAFETY: the file's invariant.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr(), self.capacity) }
    }

    /// How many elements there are.
    #[inline(always)]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Asks the CPU to fetch the first cache line of the element at `index`.
    #[inline(always)]
    pub fn prefetch(&self, index: usize) {
        super::prefetch::prefetch_address(self.base.as_ptr().wrapping_add(index));
    }
}

impl<T> fmt::Debug for StableArena<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StableArena").field("capacity", &self.capacity).finish_non_exhaustive()
    }
}

/// One element that never moves and starts as zero: a [`StableArena`] whose only index needs no check.
///
/// It is a handle: clones are the same element.
pub struct StableBox<T>(StableArena<T>);

impl<T: Zeroable> StableBox<T> {
    /// Maps memory for the element.
    pub fn zeroed() -> io::Result<Self> {
        Ok(StableBox(StableArena::with_capacity(1)?))
    }
}

impl<T> Clone for StableBox<T> {
    fn clone(&self) -> Self {
        StableBox(self.0.clone())
    }
}

impl<T: Zeroable> Deref for StableBox<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // WHY: a lookup that ends at the root of a trie takes 8 instructions; with `get(0)` it took 12.
        // SAFETY: the capacity is 1, and the file's invariant.
        unsafe { self.0.base.as_ref() }
    }
}

impl<T> fmt::Debug for StableBox<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StableBox").finish_non_exhaustive()
    }
}
