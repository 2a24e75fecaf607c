//! Files of a peer, mapped if nothing that the peer may do to them later can end this process.

use std::io;
use std::os::fd::AsFd;

use rustix::fs::SealFlags;

use super::{Mapping, Populate};

/// The magic number of file systems of huge pages (linux/magic.h).
const HUGETLBFS: i64 = 0x9584_58f6;

/// Whether the owner of a file is believed not to take memory away that it has shared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trust {
    /// Only memory that cannot be taken away is mapped.
    #[default]
    NoPeer,
    /// Files that can shrink, and files of huge pages, are mapped, too.
    Owner,
}

/// Why a peer's file is not mapped.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Its end is beyond any file.
    #[error("ends beyond any file")]
    End,
    /// The file is shorter than announced.
    #[error("{said} bytes in a file of {there}")]
    Short {
        /// The peer's size.
        said: u64,
        /// What there is.
        there: u64,
    },
    /// The file can be made shorter: reading what is then missing would end this process.
    #[error("no memfd sealed against shrinking (F_SEAL_SHRINK)")]
    Unsealed,
    /// Of huge pages: one that is punched out may be missing when it is touched again, which would end this process.
    #[error("of huge pages, must be of ordinary ones")]
    Huge,
    /// A system call failed.
    #[error("{0}: {1}")]
    System(&'static str, io::Error),
}

impl Mapping {
    /// Maps `len` bytes of a peer's file from `offset` on.
    ///
    /// # Errors
    /// It is shorter than announced, can shrink, or cannot be mapped.
    pub fn open(fd: impl AsFd, offset: u64, len: usize, trust: Trust) -> Result<Self, OpenError> {
        let fd = fd.as_fd();
        let failed = |what| move |e: rustix::io::Errno| OpenError::System(what, e.into());
        let end = offset.checked_add(len as u64).filter(|end| i64::try_from(*end).is_ok());
        let end = end.ok_or(OpenError::End)?;
        if trust == Trust::NoPeer {
            // A peer that forgot the seal is helped; after that it is there for good.
            let sealed = || rustix::fs::fcntl_get_seals(fd).is_ok_and(|s| s.contains(SealFlags::SHRINK));
            if !sealed() && (rustix::fs::fcntl_add_seals(fd, SealFlags::SHRINK).is_err() || !sealed()) {
                return Err(OpenError::Unsealed);
            }
            // Seals are known of two kinds of files, those of shared memory and those of huge pages.
            if rustix::fs::fstatfs(fd).map_err(failed("fstatfs"))?.f_type as i64 == HUGETLBFS {
                return Err(OpenError::Huge);
            }
        }
        // Asked for after the seal: from now on it only grows.
        let there = rustix::fs::fstat(fd).map_err(failed("fstat"))?.st_size as u64;
        if there < end {
            return Err(OpenError::Short { said: end, there });
        }
        Mapping::of_device(fd, offset, len, Populate::Later).map_err(|e| OpenError::System("mmap", e))
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

    #[test]
    fn a_file_that_can_shrink_is_sealed_refused_or_trusted() {
        let sealable = memfd(4096, MemfdFlags::ALLOW_SEALING);
        Mapping::open(&sealable, 0, 4096, Trust::NoPeer).unwrap();
        assert!(rustix::fs::ftruncate(&sealable, 0).is_err(), "it was sealed");
        let never = memfd(4096, MemfdFlags::empty());
        assert!(matches!(Mapping::open(&never, 0, 4096, Trust::NoPeer), Err(OpenError::Unsealed)));
        Mapping::open(&never, 0, 4096, Trust::Owner).unwrap();
        let file: OwnedFd = std::fs::File::open("/proc/self/exe").unwrap().into();
        assert!(matches!(Mapping::open(&file, 0, 4096, Trust::NoPeer), Err(OpenError::Unsealed)));
    }

    #[test]
    fn a_length_that_is_not_there_is_refused() {
        let fd = memfd(4096, MemfdFlags::ALLOW_SEALING);
        let open = |offset, len| Mapping::open(&fd, offset, len, Trust::NoPeer);
        assert!(matches!(open(0, 4097), Err(OpenError::Short { said: 4097, there: 4096 })));
        assert!(matches!(open(4096, 1), Err(OpenError::Short { said: 4097, there: 4096 })));
        assert!(matches!(open(u64::MAX, 1), Err(OpenError::End)));
        assert!(matches!(open(0, usize::MAX), Err(OpenError::End)));
    }
}
