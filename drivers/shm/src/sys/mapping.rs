//! The owner of a mapping, and what can be done with its bytes.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use rustix::fs::{MemfdFlags, SealFlags};
use rustix::mm::{Advice, MapFlags, ProtFlags};

use super::copy;

/// Whether pages are there from the beginning, or come when they are touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Populate {
    /// From the beginning.
    Now,
    /// When they are touched.
    Later,
}

impl Populate {
    fn flags(self) -> MapFlags {
        if self == Populate::Now { MapFlags::POPULATE } else { MapFlags::empty() }
    }
}

/// Memory that others may write, unmapped when dropped. It begins at a page.
#[derive(Debug)]
pub struct Mapping {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: the mapping is plain memory without thread affinity, which only this value unmaps.
unsafe impl Send for Mapping {}
// SAFETY: through `&self` there are atomic words, copies that may meet others (`copy`), and slices whose callers promise that
// the bytes are theirs.
unsafe impl Sync for Mapping {}

const READ_WRITE: ProtFlags = ProtFlags::READ.union(ProtFlags::WRITE);

impl Mapping {
    /// Memory of our own, zero, to be shown to the kernel.
    ///
    /// # Errors
    /// The system gives none.
    pub fn anonymous(len: usize, populate: Populate) -> io::Result<Self> {
        let flags = MapFlags::PRIVATE | populate.flags();
        // SAFETY: without an address the kernel chooses free address space, so no existing mapping is replaced.
        let base = unsafe { rustix::mm::mmap_anonymous(ptr::null_mut(), len, READ_WRITE, flags) }?;
        Self::own(base.cast(), len)
    }

    /// What a device or a socket offers at an offset, shared with it.
    ///
    /// # Errors
    /// It does not offer so much there.
    pub fn of_device(fd: impl AsFd, offset: u64, len: usize, populate: Populate) -> io::Result<Self> {
        let flags = MapFlags::SHARED | populate.flags();
        // SAFETY: as in `anonymous`.
        let base = unsafe { rustix::mm::mmap(ptr::null_mut(), len, READ_WRITE, flags, fd, offset) }?;
        Self::own(base.cast(), len)
    }

    /// A file in memory that can neither shrink nor grow any more, mapped, and the descriptor a peer maps it by.
    ///
    /// # Errors
    /// The system gives none.
    pub fn sealed(name: &str, len: usize) -> io::Result<(Self, OwnedFd)> {
        let fd = rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        rustix::fs::ftruncate(&fd, len as u64)?;
        rustix::fs::fcntl_add_seals(&fd, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        Ok((Self::of_device(&fd, 0, len, Populate::Later)?, fd))
    }

    fn own(base: *mut u8, len: usize) -> io::Result<Self> {
        Ok(Mapping { base: NonNull::new(base).ok_or(io::ErrorKind::OutOfMemory)?, len })
    }

    /// Keeps it out of core dumps.
    pub fn hide_from_dumps(&self) {
        // SAFETY: exactly this mapping; the advice changes no contents.
        let _ = unsafe { rustix::mm::madvise(self.base.as_ptr().cast(), self.len, Advice::LinuxDontDump) };
    }

    /// Bytes.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none, which does not happen.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Where it begins, as a number for the kernel.
    pub fn address(&self) -> u64 {
        self.base.addr().get() as u64
    }

    /// Whether these bytes are there. What is there stays there.
    #[inline(always)]
    pub fn holds(&self, offset: usize, len: usize) -> bool {
        offset.checked_add(len).is_some_and(|end| end <= self.len)
    }

    /// The address of `len` bytes, if they are inside.
    #[inline(always)]
    pub(super) fn at(&self, offset: usize, len: usize) -> Option<NonNull<u8>> {
        if !self.holds(offset, len) {
            return None;
        }
        // SAFETY: `offset + len` is inside the mapping, which is one allocation.
        Some(unsafe { self.base.add(offset) })
    }

    /// Starts loading the line at an offset.
    #[inline(always)]
    pub fn prefetch(&self, offset: usize) {
        if let Some(p) = self.at(offset, 0) {
            shoal_infra::prefetch_address(p.as_ptr());
        }
    }

    /// Fills `to`; `None`, and nothing is copied, when the bytes are not all inside. What others write meanwhile arrives or not,
    /// byte by byte.
    #[inline(always)]
    #[must_use]
    pub fn copy_out(&self, offset: usize, to: &mut [u8]) -> Option<()> {
        let from = self.at(offset, to.len())?;
        // SAFETY: both are as long as `to`, which is private memory: nothing refers to this mapping's bytes while they are
        // shared.
        unsafe { copy::read(from.as_ptr(), to.as_mut_ptr(), to.len()) };
        Some(())
    }

    /// Writes `from`; `None`, and nothing is copied, when it does not all fit. Where two write to one place, the bytes are some
    /// of one and some of the other.
    #[inline(always)]
    #[must_use]
    pub fn copy_in(&self, offset: usize, from: &[u8]) -> Option<()> {
        let to = self.at(offset, from.len())?;
        // SAFETY: as in `copy_out`.
        unsafe { copy::write(from.as_ptr(), to.as_ptr(), from.len()) };
        Some(())
    }

    /// A word, if it is inside and aligned.
    #[allow(clippy::cast_ptr_alignment, reason = "it is checked")]
    #[inline(always)]
    pub fn u32_at(&self, offset: usize) -> Option<&AtomicU32> {
        let word = self.at(offset, 4)?.as_ptr().cast::<u32>();
        // SAFETY: in bounds and aligned, valid while `self` is; this process accesses it by atomics and `copy` only.
        word.is_aligned().then(|| unsafe { AtomicU32::from_ptr(word) })
    }

    /// A double word, if it is inside and aligned.
    #[allow(clippy::cast_ptr_alignment, reason = "it is checked")]
    #[inline(always)]
    pub fn u64_at(&self, offset: usize) -> Option<&AtomicU64> {
        let word = self.at(offset, 8)?.as_ptr().cast::<u64>();
        // SAFETY: as in `u32_at`.
        word.is_aligned().then(|| unsafe { AtomicU64::from_ptr(word) })
    }

    /// Acquires a word: what was written before it is visible after. `None` outside of the mapping.
    #[inline(always)]
    pub fn load_acquire(&self, offset: usize) -> Option<u32> {
        Some(self.u32_at(offset)?.load(Ordering::Acquire))
    }

    /// Releases a word: our reads and writes are finished before the other end sees it.
    #[inline(always)]
    pub fn store_release(&self, offset: usize, value: u32) {
        if let Some(word) = self.u32_at(offset) {
            word.store(value, Ordering::Release);
        }
    }

    /// Reads a field once, so that what is checked is what is used.
    #[inline(always)]
    pub fn read_u32(&self, offset: usize) -> Option<u32> {
        Some(self.u32_at(offset)?.load(Ordering::Relaxed))
    }

    /// Reads a field once, so that what is checked is what is used.
    #[inline(always)]
    pub fn read_u64(&self, offset: usize) -> Option<u64> {
        Some(self.u64_at(offset)?.load(Ordering::Relaxed))
    }

    /// Writes a field; nothing outside of the mapping.
    #[inline(always)]
    pub fn write_u64(&self, offset: usize, value: u64) {
        if let Some(word) = self.u64_at(offset) {
            word.store(value, Ordering::Relaxed);
        }
    }

    /// Bytes, to be read in place.
    ///
    /// # Safety
    /// For as long as the slice lives, neither this process nor the other end writes to these bytes.
    #[inline]
    pub unsafe fn bytes(&self, offset: usize, len: usize) -> Option<&[u8]> {
        let start = self.at(offset, len)?;
        // SAFETY: in bounds; initialised, since mappings are zero or what was written; no writer by the caller's
        // promise.
        Some(unsafe { std::slice::from_raw_parts(start.as_ptr(), len) })
    }

    /// Bytes, to be written in place.
    ///
    /// # Safety
    /// For as long as the slice lives, no other code has access to these bytes, neither in this process nor the other
    /// end.
    #[allow(clippy::mut_from_ref, reason = "many writers share one mapping, each with bytes of its own")]
    #[inline]
    pub unsafe fn bytes_mut(&self, offset: usize, len: usize) -> Option<&mut [u8]> {
        let start = self.at(offset, len)?;
        // SAFETY: in bounds; initialised; the caller has the only access.
        Some(unsafe { std::slice::from_raw_parts_mut(start.as_ptr(), len) })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: exactly what `mmap` returned, unmapped once; what refers to it borrows `self` or holds it by an `Arc`.
        let _ = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), self.len) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn nothing_outside_is_reached() {
        let map = Mapping::anonymous(100, Populate::Later).unwrap();
        let mut to = [0; 8];
        assert!(map.copy_out(92, &mut to).is_some() && map.copy_out(93, &mut to).is_none());
        assert!(map.copy_in(93, &to).is_none() && map.copy_in(usize::MAX, &to).is_none());
        assert!(map.copy_in(100, &[]).is_some() && !map.holds(1, usize::MAX));
        assert!(map.read_u32(96).is_some() && map.read_u32(97).is_none() && map.read_u32(100).is_none());
        assert!(map.read_u64(88).is_some() && map.read_u64(90).is_none() && map.read_u64(96).is_none());
        map.write_u64(usize::MAX - 6, 1);
        map.store_release(1, 1);
    }

    #[test]
    fn a_sealed_file_is_seen_at_both_ends_and_keeps_its_length() {
        let (ours, fd) = Mapping::sealed("test", 8192).unwrap();
        let theirs = Mapping::of_device(&fd, 4096, 4096, Populate::Now).unwrap();
        ours.copy_in(4096, b"packet").unwrap();
        let mut read = [0; 6];
        theirs.copy_out(0, &mut read).unwrap();
        assert_eq!(&read, b"packet");
        assert!(rustix::fs::ftruncate(&fd, 0).is_err() && rustix::fs::ftruncate(&fd, 16_384).is_err());
    }

    #[test]
    fn two_threads_that_write_to_one_place_leave_bytes_of_one_or_the_other() {
        let map = Arc::new(Mapping::anonymous(4096, Populate::Now).unwrap());
        let writers: Vec<_> = [1_u8, 2]
            .map(|value| {
                let map = Arc::clone(&map);
                std::thread::spawn(move || {
                    for i in 0..2000 {
                        map.copy_in(i % 64, &[value; 200]).unwrap();
                    }
                })
            })
            .into();
        let mut seen = [0; 264];
        while writers.iter().any(|w| !w.is_finished()) {
            map.copy_out(0, &mut seen).unwrap();
            assert!(seen.iter().all(|b| *b <= 2));
        }
        for writer in writers {
            writer.join().unwrap();
        }
    }
}
