//! A guest's memory: files in memory that its hypervisor has mapped, too.

use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd};
use std::sync::Arc;

use shoal_shm::{Mapping, OpenError};

/// Most regions of a guest, as many as the protocol has room for.
pub const MOST_REGIONS: usize = 8;
/// Regions begin at pages.
const PAGE: u64 = 4096;

/// Whether guests are believed not to take memory away that they have shared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trust {
    /// Only memory that cannot be taken away is mapped.
    #[default]
    NoGuest,
    /// Files that can shrink, and files of huge pages, are mapped, too.
    Guests,
}

/// A region as the front end describes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RegionDescription {
    /// Where the guest sees it.
    pub guest: u64,
    /// Bytes.
    pub size: u64,
    /// Where the hypervisor sees it: rings are named by such addresses.
    pub user: u64,
    /// Where it begins in its file.
    pub offset: u64,
}

/// Why a guest's memory is not mapped.
#[derive(Debug, thiserror::Error)]
pub enum MemoryError {
    /// Its length or place makes no sense.
    #[error("memory region {0}: {1}")]
    Place(usize, &'static str),
    /// The file is shorter than announced.
    #[error("memory region {region}: {said} bytes in a file of {there}")]
    Short {
        /// Which one.
        region: usize,
        /// The front end's size.
        said: u64,
        /// What there is.
        there: u64,
    },
    /// The file can be made shorter: reading what is then missing would end this process.
    #[error(
        "memory region {0}: no memfd sealed against shrinking; give the guest memory-backend-memfd,share=on, or start \
         the router with vhost-user {{ trust-guests }}"
    )]
    Unsealed(usize),
    /// Of huge pages: one that is punched out may be missing when it is touched again, which would end this process.
    #[error(
        "memory region {0}: of huge pages; give the guest memory of ordinary ones, or start the router with vhost-user \
         {{ trust-guests }}"
    )]
    Huge(usize),
    /// A system call failed.
    #[error("memory region {0}: {1}: {2}")]
    System(usize, &'static str, io::Error),
}

/// One region, mapped.
struct Region {
    mapping: Arc<Mapping>,
    len: usize,
    said: RegionDescription,
    fd: i32,
}

impl Region {
    fn open(
        number: usize,
        said: RegionDescription,
        fd: BorrowedFd<'_>,
        trust: Trust,
    ) -> Result<Self, MemoryError> {
        let place = |rule| Err(MemoryError::Place(number, rule));
        let Ok(len) = usize::try_from(said.size) else { return place("too large") };
        if len == 0
            || said.guest.checked_add(said.size).is_none()
            || said.user.checked_add(said.size).is_none()
        {
            return place("its size is 0, or its addresses wrap");
        }
        if !said.offset.is_multiple_of(PAGE) {
            return place("its offset is no multiple of 4096");
        }
        let trust = match trust {
            Trust::NoGuest => shoal_shm::Trust::NoPeer,
            Trust::Guests => shoal_shm::Trust::Owner,
        };
        let mapping = Mapping::open(fd, said.offset, len, trust).map_err(|e| match e {
            OpenError::End => MemoryError::Place(number, "its end is beyond any file"),
            OpenError::Short { said, there } => MemoryError::Short { region: number, said, there },
            OpenError::Unsealed => MemoryError::Unsealed(number),
            OpenError::Huge => MemoryError::Huge(number),
            OpenError::System(what, e) => MemoryError::System(number, what, e),
        })?;
        mapping.hide_from_dumps();
        Ok(Region { mapping: Arc::new(mapping), len, said, fd: fd.as_raw_fd() })
    }
}

/// Bytes of a guest's memory that lie in one region.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Piece {
    /// Where in the region.
    pub offset: u64,
    /// How many.
    pub len: u32,
    /// Which region.
    pub region: u32,
}

/// All of a guest's memory, the largest region first.
pub struct GuestMemory {
    regions: Box<[Region]>,
}

fn overlap(a: u64, a_len: u64, b: u64, b_len: u64) -> bool {
    a < b.wrapping_add(b_len) && b < a.wrapping_add(a_len)
}

impl GuestMemory {
    /// Maps it, all or nothing.
    ///
    /// # Errors
    /// A region is not all there, could be taken away, or overlaps another.
    pub fn open(said: &[RegionDescription], fds: &[impl AsFd], trust: Trust) -> Result<Self, MemoryError> {
        let mut regions: Vec<Region> = Vec::new();
        for (number, (said, fd)) in said.iter().zip(fds).enumerate() {
            let region = Region::open(number, *said, fd.as_fd(), trust)?;
            let both = |other: &RegionDescription| {
                overlap(said.guest, said.size, other.guest, other.size)
                    || overlap(said.user, said.size, other.user, other.size)
            };
            if regions.iter().any(|r| both(&r.said)) {
                return Err(MemoryError::Place(number, "it overlaps another"));
            }
            regions.push(region);
        }
        // What is looked for is most probably there.
        regions.sort_by_key(|r| std::cmp::Reverse(r.len));
        Ok(GuestMemory { regions: regions.into() })
    }

    /// What the front end announced of each region, and its descriptor's number when it came.
    pub fn regions(&self) -> impl Iterator<Item = (RegionDescription, i32)> + '_ {
        self.regions.iter().map(|r| (r.said, r.fd))
    }

    /// As much of `len` bytes at a guest's address as lies in one region; `None` when the first of them is nowhere, or
    /// there are none.
    #[inline(always)]
    pub fn piece(&self, guest: u64, len: u32) -> Option<Piece> {
        for (number, region) in self.regions.iter().enumerate() {
            let offset = guest.wrapping_sub(region.said.guest);
            if offset < region.len as u64 {
                let left = region.len as u64 - offset;
                let len = u64::from(len).min(left) as u32;
                return (len > 0).then_some(Piece { offset, len, region: number as u32 });
            }
        }
        None
    }

    /// The region of a piece, and where byte `skip` of it is there.
    #[inline(always)]
    fn at(&self, piece: Piece, skip: u32) -> Option<(&Mapping, usize)> {
        let region = self.regions.get(piece.region as usize)?;
        Some((&region.mapping, (piece.offset as usize).checked_add(skip as usize)?))
    }

    /// Where an address of the hypervisor is: the region, and the place in it.
    pub(crate) fn at_user(&self, user: u64) -> Option<(&Arc<Mapping>, usize)> {
        self.regions.iter().find_map(|region| {
            let offset = user.wrapping_sub(region.said.user);
            (offset < region.len as u64).then_some((&region.mapping, offset as usize))
        })
    }

    /// Starts loading the first line of a piece.
    #[inline(always)]
    pub fn prefetch(&self, piece: Piece) {
        if let Some((region, offset)) = self.at(piece, 0) {
            region.prefetch(offset);
        }
    }

    /// Fills `to` from byte `skip` of a piece on; `None`, and nothing is copied, when it does not all lie in the region.
    #[inline(always)]
    #[must_use]
    pub fn copy_out(&self, piece: Piece, skip: u32, to: &mut [u8]) -> Option<()> {
        let (region, offset) = self.at(piece, skip)?;
        region.copy_out(offset, to)
    }

    /// Writes `from` at byte `skip` of a piece; `None`, and nothing is copied, when it does not all fit in the region.
    #[inline(always)]
    #[must_use]
    pub fn copy_in(&self, piece: Piece, skip: u32, from: &[u8]) -> Option<()> {
        let (region, offset) = self.at(piece, skip)?;
        region.copy_in(offset, from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::MemfdFlags;
    use std::os::fd::OwnedFd;

    fn memfd(len: u64, flags: MemfdFlags) -> OwnedFd {
        let fd = rustix::fs::memfd_create("test", flags).unwrap();
        rustix::fs::ftruncate(&fd, len).unwrap();
        fd
    }

    fn open(said: &[RegionDescription], trust: Trust) -> Result<GuestMemory, MemoryError> {
        let fds: Vec<_> = said.iter().map(|_| memfd(16_384, MemfdFlags::ALLOW_SEALING)).collect();
        GuestMemory::open(said, &fds, trust)
    }

    fn said(guest: u64, size: u64, user: u64, offset: u64) -> RegionDescription {
        RegionDescription { guest, size, user, offset }
    }

    #[test]
    fn nothing_outside_is_reached() {
        let memory =
            open(&[said(0, 8192, 0x10_0000, 4096), said(8192, 4096, 0x20_0000, 0)], Trust::NoGuest).unwrap();
        let piece = memory.piece(8000, 1000).unwrap();
        assert_eq!((piece.len, piece.offset), (192, 8000), "as far as the region goes");
        assert_eq!(memory.piece(8192, 1000).unwrap().len, 1000);
        assert_eq!(memory.piece(12_288, 1), None);
        assert_eq!(memory.piece(u64::MAX, 1), None);
        assert_eq!(memory.piece(0, 0), None);
        let mut to = [0; 200];
        assert!(memory.copy_out(piece, 0, &mut to[..192]).is_some());
        assert!(memory.copy_out(piece, 1, &mut to[..192]).is_none());
        assert!(memory.copy_in(piece, u32::MAX, &to).is_none());
        assert!(memory.copy_in(Piece { region: 7, ..piece }, 0, &to).is_none());
        assert_eq!(memory.at_user(0x10_1fff).map(|(_, at)| at), Some(8191));
        assert!(memory.at_user(0x10_2000).is_none() && memory.at_user(0x0f_ffff).is_none());
    }

    #[test]
    fn regions_that_cannot_be_are_refused() {
        let wrong = [
            said(0, 0, 0, 0),
            said(u64::MAX - 10, 4096, 0, 0),
            said(0, 4096, u64::MAX - 10, 0),
            said(0, 4096, 0, 100),
            said(0, u64::MAX, 0, 0),
            said(0, 4096, 0, u64::MAX - 4095),
        ];
        for one in wrong {
            assert!(matches!(open(&[one], Trust::NoGuest), Err(MemoryError::Place(0, _))), "{one:?}");
        }
        assert!(matches!(open(&[said(0, 20_480, 0, 0)], Trust::NoGuest), Err(MemoryError::Short { .. })));
        assert!(matches!(open(&[said(0, 16_384, 0, 4096)], Trust::NoGuest), Err(MemoryError::Short { .. })));
        let twice = [said(0, 8192, 0, 0), said(4096, 4096, 0x10_0000, 0)];
        assert!(matches!(open(&twice, Trust::NoGuest), Err(MemoryError::Place(1, _))));
        let twice = [said(0, 8192, 0, 0), said(8192, 4096, 4096, 0)];
        assert!(matches!(open(&twice, Trust::NoGuest), Err(MemoryError::Place(1, _))));
    }

    #[test]
    fn a_file_that_can_shrink_is_sealed_refused_or_trusted() {
        let one = [said(0, 4096, 0, 0)];
        let sealable = [memfd(4096, MemfdFlags::ALLOW_SEALING)];
        GuestMemory::open(&one, &sealable, Trust::NoGuest).unwrap();
        assert!(rustix::fs::ftruncate(&sealable[0], 0).is_err(), "it was sealed");
        let never = [memfd(4096, MemfdFlags::empty())];
        assert!(matches!(GuestMemory::open(&one, &never, Trust::NoGuest), Err(MemoryError::Unsealed(0))));
        GuestMemory::open(&one, &never, Trust::Guests).unwrap();
    }
}
