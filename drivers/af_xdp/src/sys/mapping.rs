//! Memory shared with the kernel; every access is checked against its bounds.

use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::Error;

/// `len` bytes, unmapped when dropped.
pub(crate) struct Mapping {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: the mapping is plain memory without thread affinity; it is unmapped by its only owner.
unsafe impl Send for Mapping {}
// SAFETY: through `&self` there are atomic words, fields read and written as volatile words of a ring's own side, and
// slices whose callers promise that nobody else has these bytes.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps a ring of a socket.
    pub(super) fn of_socket(fd: BorrowedFd<'_>, offset: u64, len: usize) -> Result<Self, Error> {
        Self::map(len, libc::MAP_SHARED | libc::MAP_POPULATE, fd.as_raw_fd(), offset, "mmap(AF_XDP ring)")
    }

    /// Memory of our own, zero.
    pub(super) fn anonymous(len: usize) -> Result<Self, Error> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE;
        Self::map(len, flags, -1, 0, "mmap(packet memory)")
    }

    /// The same memory twice, for tests: the router's view of a ring, and the kernel's.
    #[cfg(test)]
    pub(super) fn shared(len: usize) -> (Self, Self) {
        let file = nix::sys::memfd::memfd_create("ring", nix::sys::memfd::MFdFlags::MFD_CLOEXEC).unwrap();
        nix::unistd::ftruncate(&file, len as i64).unwrap();
        let map = || Self::map(len, libc::MAP_SHARED, file.as_raw_fd(), 0, "mmap(memfd)").unwrap();
        (map(), map())
    }

    fn map(len: usize, flags: i32, fd: i32, offset: u64, what: &'static str) -> Result<Self, Error> {
        let prot = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a null hint lets the kernel choose the address, so no existing mapping is replaced.
        let addr = unsafe { libc::mmap(ptr::null_mut(), len, prot, flags, fd, offset as libc::off_t) };
        if addr == libc::MAP_FAILED {
            return Err(Error::last(what));
        }
        let base = NonNull::new(addr.cast()).ok_or(Error::last(what))?;
        Ok(Self { base, len })
    }

    /// Bytes of it.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Its address, for the kernel.
    pub(super) fn address(&self) -> u64 {
        self.base.as_ptr() as u64
    }

    #[inline]
    fn at(&self, offset: usize, len: usize) -> Option<*mut u8> {
        if offset.checked_add(len)? > self.len {
            return None;
        }
        // SAFETY: `offset + len` is inside the mapping, which is one allocation.
        Some(unsafe { self.base.as_ptr().add(offset) })
    }

    /// A word that both sides use.
    // The alignment is checked, which the lint cannot see.
    #[allow(clippy::cast_ptr_alignment)]
    #[inline]
    fn word(&self, offset: usize) -> Option<&AtomicU32> {
        let word = self.at(offset, 4)?.cast::<u32>();
        if !word.is_aligned() {
            return None;
        }
        // SAFETY: in bounds and aligned, valid while `self` is; user space touches it only through atomics.
        Some(unsafe { AtomicU32::from_ptr(word) })
    }

    /// Acquires a word: what the kernel wrote before it is visible after. `None` outside of the mapping.
    #[inline]
    pub(super) fn load_acquire(&self, offset: usize) -> Option<u32> {
        Some(self.word(offset)?.load(Ordering::Acquire))
    }

    /// Releases a word: our reads and writes are finished before the kernel sees it.
    #[inline]
    pub(super) fn store_release(&self, offset: usize, value: u32) {
        if let Some(word) = self.word(offset) {
            word.store(value, Ordering::Release);
        }
    }

    /// Reads a field once, so that what is checked is what is used.
    #[allow(clippy::cast_ptr_alignment)]
    #[inline]
    pub(super) fn read_u64(&self, offset: usize) -> Option<u64> {
        let field = self.at(offset, 8)?.cast::<u64>();
        if !field.is_aligned() {
            return None;
        }
        // SAFETY: in bounds and aligned; any bit pattern is a `u64`.
        Some(unsafe { field.read_volatile() })
    }

    /// Writes a field of an entry that is ours.
    #[allow(clippy::cast_ptr_alignment)]
    #[inline]
    pub(super) fn write_u64(&self, offset: usize, value: u64) {
        let Some(field) = self.at(offset, 8).map(<*mut u8>::cast::<u64>) else { return };
        if field.is_aligned() {
            // SAFETY: in bounds and aligned; rings are written by one thread, which holds them by `&mut`.
            unsafe { field.write_volatile(value) };
        }
    }

    /// Bytes of packet memory.
    ///
    /// # Safety
    /// These bytes are ours, not the kernel's, for as long as the slice lives, and nobody writes to them.
    #[inline]
    pub(super) unsafe fn bytes(&self, offset: usize, len: usize) -> Option<&[u8]> {
        let start = self.at(offset, len)?;
        // SAFETY: in bounds; initialised (mapped zero); nobody writes to it by the promise of our caller.
        Some(unsafe { std::slice::from_raw_parts(start, len) })
    }

    /// Bytes of packet memory, to be written.
    ///
    /// # Safety
    /// These bytes are ours, not the kernel's, for as long as the slice lives, and nobody else has a slice of them.
    // Many writers share one mapping, each with frames of its own.
    #[allow(clippy::mut_from_ref)]
    #[inline]
    pub(super) unsafe fn bytes_mut(&self, offset: usize, len: usize) -> Option<&mut [u8]> {
        let start = self.at(offset, len)?;
        // SAFETY: in bounds; initialised; the caller has the only access.
        Some(unsafe { std::slice::from_raw_parts_mut(start, len) })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: exactly what `mmap` returned, unmapped once; slices of it borrow `self`.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.len) };
    }
}
