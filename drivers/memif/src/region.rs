//! Regions: files in memory that both ends have mapped.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use shoal_shm::{Mapping, OpenError, Trust};

/// Most bytes that offsets of 32 bits reach.
pub(crate) const MOST_BYTES: u64 = 1 << 32;

/// Why a peer's region is not mapped.
#[derive(Debug, thiserror::Error)]
pub enum RegionError {
    /// Its length makes no sense.
    #[error("region of {0} bytes, must be from 1 to 4294967296")]
    Size(u64),
    /// The file is shorter than announced.
    #[error("region of {said} bytes in a file of {there}")]
    Short {
        /// The peer's size.
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

/// Memory shared with a peer, unmapped when the last handle on it is dropped.
pub struct Region(Arc<Mapping>);

impl Region {
    /// Makes a region of zeroes and the descriptor a peer maps it by. Its file can neither shrink nor grow any more.
    ///
    /// # Errors
    /// The system gives none.
    pub fn create(len: usize) -> io::Result<(Region, OwnedFd)> {
        let (mapping, fd) = Mapping::sealed("memif", len)?;
        Ok((Region(Arc::new(mapping)), fd))
    }

    /// Maps a peer's region, if nothing that the peer may do to its file later can end this process.
    ///
    /// # Errors
    /// It is shorter than announced, can shrink, or cannot be mapped.
    pub fn open(fd: impl AsFd, len: u64) -> Result<Region, RegionError> {
        let size = usize::try_from(len).ok().filter(|_| len != 0 && len <= MOST_BYTES);
        let size = size.ok_or(RegionError::Size(len))?;
        match Mapping::open(fd, 0, size, Trust::NoPeer) {
            Ok(mapping) => Ok(Region(Arc::new(mapping))),
            Err(OpenError::End) => Err(RegionError::Size(len)),
            Err(OpenError::Short { said, there }) => Err(RegionError::Short { said, there }),
            Err(OpenError::Unsealed) => Err(RegionError::Unsealed),
            Err(OpenError::Huge) => Err(RegionError::Huge),
            Err(OpenError::System(what, e)) => Err(RegionError::System(what, e)),
        }
    }

    /// Bytes.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none, which does not happen.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
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
    pub(crate) fn get(&self, region: u16) -> Option<&Arc<Mapping>> {
        self.0.get(usize::from(region)).map(|region| &region.0)
    }

    /// Whether these bytes are there. What is there stays there.
    #[inline(always)]
    pub fn holds(&self, region: u16, offset: u32, len: u32) -> bool {
        self.get(region).is_some_and(|region| region.holds(offset as usize, len as usize))
    }

    /// Starts loading the first line of a piece of memory.
    #[inline(always)]
    pub fn prefetch(&self, region: u16, offset: u32) {
        if let Some(region) = self.get(region) {
            region.prefetch(offset as usize);
        }
    }

    /// Fills `to` from shared memory; `None`, and nothing is copied, when it does not all lie in the region.
    #[inline(always)]
    #[must_use]
    pub fn copy_out(&self, region: u16, offset: u32, to: &mut [u8]) -> Option<()> {
        self.get(region)?.copy_out(offset as usize, to)
    }

    /// Writes `from` to shared memory; `None`, and nothing is copied, when it does not all fit in the region.
    #[inline(always)]
    #[must_use]
    pub fn copy_in(&self, region: u16, offset: u32, from: &[u8]) -> Option<()> {
        self.get(region)?.copy_in(offset as usize, from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::MemfdFlags;

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
