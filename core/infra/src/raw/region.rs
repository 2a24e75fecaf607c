//! Invariant: `[0, committed)` of the mapping is readable and writable and starts as zero; the rest is
//! address space without access. `committed` only grows, and nothing is unmapped before the drop.

use std::fmt;
use std::io;
use std::ptr::NonNull;

use super::map::{HUGE, Kind, Mapping};

/// Which pages a [`Region`] tries to get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pages {
    /// Reserved 2 MB pages (hugetlbfs), else as `Transparent`.
    Huge,
    /// Ordinary memory, with a wish for transparent huge pages.
    Transparent,
    /// Ordinary memory.
    Small,
}

/// Which pages a chunk of a [`Region`] got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backing {
    /// Reserved 2 MB pages.
    Huge2M,
    /// Ordinary memory that the kernel may back with huge pages.
    Transparent,
    /// Ordinary memory, 4 kB pages.
    Small,
}

/// One range of address space, committed chunk by chunk; nothing in it ever moves.
///
/// It hands out a raw pointer: what the bytes mean, and who may touch them, is its owner's unsafe
/// code's business.
pub struct Region {
    mapping: Mapping,
    limit: usize,
    committed: usize,
    pages: Pages,
}

impl Region {
    /// Reserves address space for `bytes`, rounded up to 2 MB. No memory is used yet.
    pub fn reserve(bytes: usize, pages: Pages) -> io::Result<Region> {
        let limit = bytes
            .max(1)
            .checked_next_multiple_of(HUGE)
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "region is too large"))?;
        Ok(Region { mapping: Mapping::new(limit, Kind::Reserved)?, limit, committed: 0, pages })
    }

    /// Commits the next `bytes`, rounded up to 2 MB, and says what they are made of. Fails with
    /// `OutOfMemory` beyond the reservation or when the kernel refuses.
    pub fn grow(&mut self, bytes: usize) -> io::Result<Backing> {
        let chunk = bytes
            .max(1)
            .checked_next_multiple_of(HUGE)
            .filter(|&chunk| chunk <= self.limit - self.committed)
            .ok_or_else(|| {
                io::Error::new(
                    io::ErrorKind::OutOfMemory,
                    format!("{bytes} bytes do not fit: {} of {} are in use", self.committed, self.limit),
                )
            })?;
        let backing = self.commit(chunk)?;
        self.committed += chunk;
        Ok(backing)
    }

    fn commit(&mut self, chunk: usize) -> io::Result<Backing> {
        if self.pages == Pages::Huge {
            // SAFETY: nothing behind `committed` was ever committed, and `&mut self` is the only one who does.
            let huge = unsafe { self.mapping.commit_huge(self.committed, chunk) };
            if huge.is_ok() {
                return Ok(Backing::Huge2M);
            }
        }
        self.mapping.commit(self.committed, chunk)?;
        let transparent = self.pages != Pages::Small
            && self.mapping.advise_huge(self.committed, chunk)
            && transparent_pages_enabled();
        Ok(if transparent { Backing::Transparent } else { Backing::Small })
    }

    /// Where the region starts, aligned to 2 MB. Valid for [`committed`](Self::committed) bytes, as
    /// long as the region lives.
    pub fn base(&self) -> NonNull<u8> {
        self.mapping.base()
    }

    /// How many bytes from the base can be used.
    pub fn committed(&self) -> usize {
        self.committed
    }

    /// How many bytes it can grow to.
    pub fn limit(&self) -> usize {
        self.limit
    }
}

fn transparent_pages_enabled() -> bool {
    std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled")
        .is_ok_and(|setting| !setting.contains("[never]"))
}

impl fmt::Debug for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Region")
            .field("committed", &self.committed)
            .field("limit", &self.limit)
            .field("pages", &self.pages)
            .finish_non_exhaustive()
    }
}
