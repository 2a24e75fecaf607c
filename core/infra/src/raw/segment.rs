//! Invariant: the mapping is shared memory of the file, whose size is sealed at `words * 8` bytes, so no
//! access faults. This process reaches it only as an array of `AtomicU64`, no matter which process wrote the bytes;
//! every bit pattern is valid. A `Span` keeps the mapping it points into alive.

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::ops::Deref;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use super::map::{Kind, Mapping};

/// A memfd mapped as words.
pub(crate) struct Words {
    file: OwnedFd,
    mapping: Mapping,
    count: usize,
}

impl Words {
    /// A sparse memfd called `name`, of `bytes` rounded up to a page.
    pub(crate) fn create(name: &CStr, bytes: usize) -> io::Result<Words> {
        let bytes = bytes
            .max(1)
            .checked_next_multiple_of(4096)
            .ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        // SAFETY: `name` is a C string; the call has no other precondition.
        let fd = unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a descriptor just opened, which has no other owner.
        let file = unsafe { OwnedFd::from_raw_fd(fd) };
        let length =
            libc::off_t::try_from(bytes).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        // SAFETY: plain system call on our descriptor.
        if unsafe { libc::ftruncate(fd, length) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // A client that holds the descriptor must not be able to shrink the file under us.
        // SAFETY: plain system call on our descriptor.
        if unsafe { libc::fcntl(fd, libc::F_ADD_SEALS, libc::F_SEAL_SHRINK | libc::F_SEAL_GROW) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // `Mapping` may round up to 2 MB: pages past the file's end are mapped but never touched.
        let mapping = Mapping::new(bytes, Kind::Shared(file.as_fd()))?;
        Ok(Words { file, mapping, count: bytes / 8 })
    }

    /// Another process's file, for reading: this process must not write to these words. Only a file that can no longer
    /// shrink is mapped, for an access beyond its end would kill the reader.
    pub(crate) fn view(file: OwnedFd) -> io::Result<Words> {
        // SAFETY: plain system call on our descriptor; it answers -1 for what is no memfd.
        let seals = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GET_SEALS) };
        if seals < 0 || seals & libc::F_SEAL_SHRINK == 0 {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "the file may shrink"));
        }
        let file = File::from(file);
        let bytes = usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX) / 8 * 8;
        if bytes == 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the file is empty"));
        }
        let mapping = Mapping::new(bytes, Kind::View(file.as_fd()))?;
        Ok(Words { file: file.into(), mapping, count: bytes / 8 })
    }

    /// The words `[start, start + count)`; `None` when they are not all inside.
    #[inline(always)]
    pub(crate) fn get(&self, start: usize, count: usize) -> Option<&[AtomicU64]> {
        if start.checked_add(count)? > self.count {
            return None;
        }
        // SAFETY: the range is inside the file, mapped as long as `self` lives, aligned (the base
        // is a page), and valid as words (file invariant). Atomics need no exclusive access.
        Some(unsafe {
            let first = self.mapping.base().cast::<AtomicU64>().add(start);
            std::slice::from_raw_parts(first.as_ptr(), count)
        })
    }

    /// As `get`, to be kept.
    pub(crate) fn span(self: &Arc<Self>, start: usize, count: usize) -> Option<Span> {
        let words = self.get(start, count)?;
        Some(Span { first: NonNull::from(words).cast(), count, words: Arc::clone(self) })
    }

    pub(crate) fn len(&self) -> usize {
        self.count
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Gives the pages of `[start, start + count)` words back to the kernel: they read as zero.
    /// Both must be multiples of a page; false when the kernel cannot.
    pub(crate) fn discard(&self, start: usize, count: usize) -> bool {
        if self.get(start, count).is_none() || !start.is_multiple_of(512) || !count.is_multiple_of(512) {
            return false;
        }
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        let (Ok(offset), Ok(length)) = (libc::off_t::try_from(start * 8), libc::off_t::try_from(count * 8))
        else {
            return false;
        };
        // SAFETY: plain system call on our descriptor; to atomics it looks like stores of zero.
        unsafe { libc::fallocate(self.file.as_raw_fd(), mode, offset, length) == 0 }
    }
}

/// A range of the words, found without asking the mapping: counters are in the path of every packet.
#[derive(Clone)]
pub(crate) struct Span {
    first: NonNull<AtomicU64>,
    count: usize,
    words: Arc<Words>,
}

// SAFETY: a span is a shared slice of atomics and a handle of what they live in, both of which may go anywhere.
unsafe impl Send for Span {}
// SAFETY: as above.
unsafe impl Sync for Span {}

impl Span {
    /// What it is a range of.
    pub(crate) fn words(&self) -> &Arc<Words> {
        &self.words
    }
}

impl Deref for Span {
    type Target = [AtomicU64];

    #[inline(always)]
    fn deref(&self) -> &[AtomicU64] {
        // SAFETY: `Words::span` made these of a slice of the mapping, which `words` keeps.
        unsafe { std::slice::from_raw_parts(self.first.as_ptr(), self.count) }
    }
}
