//! Regions: files in memory that both ends have mapped.

use std::ffi::c_void;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::{self, NonNull};

use rustix::fs::{MemfdFlags, SealFlags};
use rustix::mm::{MapFlags, ProtFlags};

/// The magic number of file systems of huge pages (linux/magic.h).
const HUGETLBFS: i64 = 0x9584_58f6;
/// Most bytes that offsets of 32 bits reach.
pub(crate) const MOST_BYTES: u64 = 1 << 32;

/// Why a peer's region is not mapped.
#[derive(Debug, thiserror::Error)]
pub enum RegionError {
    /// Its length makes no sense.
    #[error("region of {0} bytes, must be from 1 to 4294967296")]
    Size(u64),
    /// The file is shorter than was said.
    #[error("region of {said} bytes in a file of {there}")]
    Short {
        /// What the peer said.
        said: u64,
        /// What there is.
        there: u64,
    },
    /// The file can be made shorter: reading what is then missing would end this process.
    #[error("region is no memfd sealed against shrinking (F_SEAL_SHRINK)")]
    Unsealed,
    /// Of huge pages: one that is punched out may be missing when it is touched again, which would end this process.
    #[error("region of huge pages, must be of ordinary ones")]
    Huge,
    /// A system call failed.
    #[error("{0}: {1}")]
    System(&'static str, io::Error),
}

/// Memory shared with a peer, unmapped when dropped.
pub struct Region {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: the mapping is plain memory without thread affinity, which only this value unmaps.
unsafe impl Send for Region {}
// SAFETY: all that is done through `&self` is copying bytes that any process may change at any time, through raw
// pointers; no reference into the memory exists.
unsafe impl Sync for Region {}

impl Region {
    /// Makes a region of zeroes and the descriptor a peer maps it by. Its file can neither shrink nor grow any more.
    ///
    /// # Errors
    /// The system gives none.
    pub fn create(len: usize) -> io::Result<(Region, OwnedFd)> {
        let fd = rustix::fs::memfd_create("memif", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        rustix::fs::ftruncate(&fd, len as u64)?;
        rustix::fs::fcntl_add_seals(&fd, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        Ok((Region::map_fd(&fd, len)?, fd))
    }

    /// Maps a peer's region, if nothing that the peer may do to its file later can end this process.
    ///
    /// # Errors
    /// It is shorter than said, can shrink, or cannot be mapped.
    pub fn open(fd: impl AsFd, len: u64) -> Result<Region, RegionError> {
        if len == 0 || len > MOST_BYTES {
            return Err(RegionError::Size(len));
        }
        let fd = fd.as_fd();
        let failed = |what| move |e: rustix::io::Errno| RegionError::System(what, e.into());
        // A peer that forgot the seal is helped; after that it is there for good.
        let sealed = || rustix::fs::fcntl_get_seals(fd).is_ok_and(|s| s.contains(SealFlags::SHRINK));
        if !sealed() && (rustix::fs::fcntl_add_seals(fd, SealFlags::SHRINK).is_err() || !sealed()) {
            return Err(RegionError::Unsealed);
        }
        // Seals are known of two kinds of files, those of shared memory and those of huge pages.
        if rustix::fs::fstatfs(fd).map_err(failed("fstatfs"))?.f_type as i64 == HUGETLBFS {
            return Err(RegionError::Huge);
        }
        // Asked for after the seal: from now on it only grows.
        let there = rustix::fs::fstat(fd).map_err(failed("fstat"))?.st_size as u64;
        if there < len {
            return Err(RegionError::Short { said: len, there });
        }
        Region::map_fd(fd, len as usize).map_err(|e| RegionError::System("mmap", e))
    }

    fn map_fd(fd: impl AsFd, len: usize) -> io::Result<Region> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: without an address the kernel chooses free address space, so no existing mapping is replaced.
        let base = unsafe { rustix::mm::mmap(ptr::null_mut(), len, protection, MapFlags::SHARED, fd, 0) }?;
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Region { base, len })
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

    /// The address of `len` bytes, if they are inside.
    #[inline(always)]
    pub(super) fn at(&self, offset: usize, len: usize) -> Option<NonNull<u8>> {
        if offset.checked_add(len)? > self.len {
            return None;
        }
        // SAFETY: `offset + len` is inside the mapping, which is one allocation.
        Some(unsafe { self.base.add(offset) })
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: exactly what `mmap` returned, unmapped once; rings in it hold it by an `Arc`.
        let _ = unsafe { rustix::mm::munmap(self.base.as_ptr().cast::<c_void>(), self.len) };
    }
}

/// All regions of one connection.
pub struct Regions(Box<[Region]>);

impl Regions {
    /// Those of a connection, in order.
    pub fn new(regions: Vec<Region>) -> Self {
        Regions(regions.into())
    }

    /// Their lengths.
    pub fn lens(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().map(Region::len)
    }

    #[inline(always)]
    pub(super) fn at(&self, region: u16, offset: u32, len: usize) -> Option<NonNull<u8>> {
        self.0.get(usize::from(region))?.at(offset as usize, len)
    }

    /// Whether these bytes are there. What is there stays there.
    #[inline(always)]
    pub fn holds(&self, region: u16, offset: u32, len: u32) -> bool {
        self.at(region, offset, len as usize).is_some()
    }

    /// Starts loading the first line of a piece of memory.
    #[inline(always)]
    pub fn prefetch(&self, region: u16, offset: u32) {
        if let Some(p) = self.at(region, offset, 0) {
            shoal_infra::prefetch_address(p.as_ptr());
        }
    }

    /// Fills `to` from shared memory; `None`, and nothing is copied, when it does not all lie in the region.
    #[inline(always)]
    #[must_use]
    pub fn copy_out(&self, region: u16, offset: u32, to: &mut [u8]) -> Option<()> {
        let from = self.at(region, offset, to.len())?;
        // SAFETY: both are as long as `to`; `to` is private memory, which no region is.
        unsafe { super::copy::bytes(from.as_ptr(), to.as_mut_ptr(), to.len()) };
        Some(())
    }

    /// Writes `from` to shared memory; `None`, and nothing is copied, when it does not all fit in the region.
    #[inline(always)]
    #[must_use]
    pub fn copy_in(&self, region: u16, offset: u32, from: &[u8]) -> Option<()> {
        let to = self.at(region, offset, from.len())?;
        // SAFETY: both are as long as `from`, which is private memory, which no region is.
        unsafe { super::copy::bytes(from.as_ptr(), to.as_ptr(), from.len()) };
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memfd(len: u64, flags: MemfdFlags) -> OwnedFd {
        let fd = rustix::fs::memfd_create("test", flags).unwrap();
        rustix::fs::ftruncate(&fd, len).unwrap();
        fd
    }

    #[test]
    fn what_is_written_at_one_end_is_read_at_the_other() {
        let (ours, fd) = Region::create(8192).unwrap();
        let theirs = Regions::new(vec![Region::open(&fd, 8192).unwrap()]);
        let ours = Regions::new(vec![ours]);
        ours.copy_in(0, 4090, b"packet").unwrap();
        let mut read = [0; 6];
        theirs.copy_out(0, 4090, &mut read).unwrap();
        assert_eq!(&read, b"packet");
    }

    #[test]
    fn nothing_outside_is_reached() {
        let (region, _fd) = Region::create(100).unwrap();
        let regions = Regions::new(vec![region]);
        let mut to = [0; 8];
        assert!(regions.copy_out(0, 92, &mut to).is_some());
        assert!(regions.copy_out(0, 93, &mut to).is_none());
        assert!(regions.copy_out(0, u32::MAX, &mut to).is_none());
        assert!(regions.copy_out(1, 0, &mut to).is_none());
        assert!(regions.copy_in(0, 93, &to).is_none());
        assert!(!regions.holds(0, 1, u32::MAX));
    }

    #[test]
    fn a_file_that_can_shrink_is_sealed_or_refused() {
        let sealable = memfd(4096, MemfdFlags::ALLOW_SEALING);
        Region::open(&sealable, 4096).unwrap();
        assert!(rustix::fs::ftruncate(&sealable, 0).is_err(), "it was sealed");
        let never = memfd(4096, MemfdFlags::empty());
        assert!(matches!(Region::open(&never, 4096), Err(RegionError::Unsealed)));
        let file: OwnedFd = std::fs::File::open("/proc/self/exe").unwrap().into();
        assert!(matches!(Region::open(&file, 4096), Err(RegionError::Unsealed)));
    }

    #[test]
    fn a_length_that_is_not_there_is_refused() {
        let fd = memfd(4096, MemfdFlags::ALLOW_SEALING);
        assert!(matches!(Region::open(&fd, 4097), Err(RegionError::Short { said: 4097, there: 4096 })));
        assert!(matches!(Region::open(&fd, 0), Err(RegionError::Size(0))));
        assert!(matches!(Region::open(&fd, u64::MAX), Err(RegionError::Size(_))));
    }

    #[test]
    fn our_own_file_keeps_its_length() {
        let (_region, fd) = Region::create(4096).unwrap();
        assert!(rustix::fs::ftruncate(&fd, 0).is_err());
        assert!(rustix::fs::ftruncate(&fd, 8192).is_err());
    }
}
