//! The memory of a ring, mapped; every access is checked against its bounds.

use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::Error;

/// `len` bytes shared with the kernel, unmapped when dropped.
pub(super) struct Mapping {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: the mapping is plain memory without thread affinity, and `Mapping` is its only owner in user
// space; all that its methods do through `&self` is reading, and atomic stores.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps the ring that was configured on `fd`.
    pub(super) fn of_socket(fd: BorrowedFd<'_>, len: usize) -> Result<Self, Error> {
        let prot = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a null hint lets the kernel choose the address, so no existing mapping is replaced.
        let addr = unsafe { libc::mmap(ptr::null_mut(), len, prot, libc::MAP_SHARED, fd.as_raw_fd(), 0) };
        if addr == libc::MAP_FAILED {
            return Err(Error::last("mmap(PACKET_RX_RING)"));
        }
        let base = NonNull::new(addr.cast()).ok_or(Error::last("mmap(PACKET_RX_RING)"))?;
        Ok(Self { base, len })
    }

    fn at(&self, offset: usize, len: usize) -> Option<*mut u8> {
        if offset.checked_add(len)? > self.len {
            return None;
        }
        // SAFETY: `offset + len` is inside the mapping, which is one allocation.
        Some(unsafe { self.base.as_ptr().add(offset) })
    }

    /// The address of a word, if it is one.
    // The alignment is checked, which the lint cannot see.
    #[allow(clippy::cast_ptr_alignment)]
    fn aligned(&self, offset: usize) -> Option<*mut u32> {
        Some(self.at(offset, 4)?.cast::<u32>()).filter(|word| word.is_aligned())
    }

    fn word(&self, offset: usize) -> Option<&AtomicU32> {
        let word = self.aligned(offset)?;
        // SAFETY: in bounds and aligned (`aligned` checked both), valid while `self` is; user space touches
        // the words given to this function only through atomics.
        Some(unsafe { AtomicU32::from_ptr(word) })
    }

    /// Acquires a status word: what the kernel wrote before it is visible after.
    pub(super) fn load_acquire(&self, offset: usize) -> Option<u32> {
        Some(self.word(offset)?.load(Ordering::Acquire))
    }

    /// Releases a status word: our reads are finished before the kernel sees it.
    pub(super) fn store_release(&self, offset: usize, value: u32) {
        if let Some(word) = self.word(offset) {
            word.store(value, Ordering::Release);
        }
    }

    /// Reads one field as a volatile word, so that a value is read once and then checked.
    pub(super) fn read_u32(&self, offset: usize) -> Option<u32> {
        let field = self.aligned(offset)?;
        // SAFETY: in bounds and aligned (`aligned` checked both); any bit pattern is a `u32`.
        Some(unsafe { field.read_volatile() })
    }

    /// Bytes of the ring.
    ///
    /// # Safety
    /// The block that contains them must be owned by user space (acquired, not yet released) for as long
    /// as the slice lives, so that the kernel does not write to it.
    pub(super) unsafe fn bytes(&self, offset: usize, len: usize) -> Option<&[u8]> {
        let start = self.at(offset, len)?;
        // SAFETY: in bounds; initialised (the kernel zeroes rings when it makes them); nobody writes to it
        // by the promise of our caller.
        Some(unsafe { std::slice::from_raw_parts(start, len) })
    }

    /// Ordinary memory in place of a ring, for tests with hostile contents.
    #[cfg(test)]
    pub(super) fn anonymous(contents: &[u8]) -> Self {
        let len = contents.len();
        let (prot, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a fresh anonymous mapping replaces nothing.
        let addr = unsafe { libc::mmap(ptr::null_mut(), len, prot, flags, -1, 0) };
        assert_ne!(addr, libc::MAP_FAILED);
        // SAFETY: the mapping is `len` bytes long, fresh and writable.
        unsafe { ptr::copy_nonoverlapping(contents.as_ptr(), addr.cast(), len) };
        Self { base: NonNull::new(addr.cast()).unwrap(), len }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: exactly what `mmap` returned, unmapped once; slices of it borrow `self`.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.len) };
    }
}
