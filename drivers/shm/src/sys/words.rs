//! Arrays of atomic words in a mapping, checked once.

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64};

use super::Mapping;

/// Why words cannot be at their announced place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlaceError {
    /// They are not all in the mapping.
    #[error("outside the memory")]
    Outside,
    /// Their address is no multiple of a word's size.
    #[error("not aligned")]
    Align,
    /// Their number is no power of two.
    #[error("{0} entries, must be a power of two")]
    Count(usize),
}

/// A word that can be in shared memory: an atomic, of which all bits are valid.
///
/// # Safety
/// Any bytes are a value of it, it has interior mutability, and it has no padding.
pub unsafe trait Word: Send + Sync + 'static {}

// SAFETY: an atomic integer.
unsafe impl Word for AtomicU16 {}
// SAFETY: an atomic integer.
unsafe impl Word for AtomicU32 {}
// SAFETY: an atomic integer.
unsafe impl Word for AtomicU64 {}

/// A power of two of entries of `N` words each. The mapping stays as long as this lives.
#[derive(Debug)]
pub struct Words<W, const N: usize = 1> {
    first: NonNull<[W; N]>,
    mask: usize,
    memory: Arc<Mapping>,
}

// SAFETY: a shared slice of words, which are `Sync`, and a handle on what they live in, which may go anywhere.
unsafe impl<W: Word, const N: usize> Send for Words<W, N> {}
// SAFETY: as above.
unsafe impl<W: Word, const N: usize> Sync for Words<W, N> {}

impl<W, const N: usize> Clone for Words<W, N> {
    fn clone(&self) -> Self {
        Words { first: self.first, mask: self.mask, memory: Arc::clone(&self.memory) }
    }
}

impl<W: Word, const N: usize> Words<W, N> {
    /// Those at an offset.
    ///
    /// # Errors
    /// They cannot be there.
    pub fn new(memory: &Arc<Mapping>, offset: usize, count: usize) -> Result<Self, PlaceError> {
        if !count.is_power_of_two() {
            return Err(PlaceError::Count(count));
        }
        let bytes = count.checked_mul(size_of::<[W; N]>()).ok_or(PlaceError::Outside)?;
        let first = memory.at(offset, bytes).ok_or(PlaceError::Outside)?.cast::<[W; N]>();
        if !first.is_aligned() {
            return Err(PlaceError::Align);
        }
        Ok(Words { first, mask: count - 1, memory: Arc::clone(memory) })
    }

    /// What they are in.
    pub fn memory(&self) -> &Arc<Mapping> {
        &self.memory
    }

    #[inline(always)]
    fn entry(&self, index: usize) -> NonNull<[W; N]> {
        // SAFETY: the masked index is less than the number of entries, all of which `new` has found in the mapping.
        unsafe { self.first.add(index & self.mask) }
    }

    /// An entry; numbers beyond the last begin again.
    #[inline(always)]
    pub fn at(&self, index: usize) -> &[W; N] {
        // SAFETY: in the mapping, which `memory` keeps, and aligned; any bits are words, and this process accesses them by
        // atomics and `copy` only.
        unsafe { self.entry(index).as_ref() }
    }

    /// Starts loading an entry.
    #[inline(always)]
    pub fn prefetch(&self, index: usize) {
        shoal_infra::prefetch_address(self.entry(index).as_ptr());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Populate;
    use std::sync::atomic::Ordering;

    #[test]
    fn words_that_are_not_all_there_or_not_aligned_are_refused() {
        let memory = Arc::new(Mapping::anonymous(256, Populate::Later).unwrap());
        let new = |offset, count| Words::<AtomicU64, 2>::new(&memory, offset, count).err();
        assert_eq!(new(0, 16), None);
        assert_eq!(new(0, 32), Some(PlaceError::Outside));
        assert_eq!(new(8, 16), Some(PlaceError::Outside));
        assert_eq!(new(usize::MAX, 1), Some(PlaceError::Outside));
        assert_eq!(new(0, 1 << 61), Some(PlaceError::Outside));
        assert_eq!(new(4, 8), Some(PlaceError::Align));
        assert_eq!(new(0, 3), Some(PlaceError::Count(3)));
        assert_eq!(new(0, 0), Some(PlaceError::Count(0)));
    }

    #[test]
    fn numbers_beyond_the_last_entry_begin_again_and_words_outlive_the_other_handles() {
        let memory = Arc::new(Mapping::anonymous(4096, Populate::Later).unwrap());
        let words = Words::<AtomicU16, 2>::new(&memory, 64, 4).unwrap();
        words.at(5)[1].store(0x1234, Ordering::Relaxed);
        let mut bytes = [0; 2];
        memory.copy_out(64 + 4 + 2, &mut bytes).unwrap();
        assert_eq!(bytes, [0x34, 0x12]);
        drop(memory);
        assert_eq!(words.clone().at(usize::MAX - 2)[1].load(Ordering::Relaxed), 0x1234);
    }
}
