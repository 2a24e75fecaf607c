//! The one range of memory all buffers live in.

use std::io;
use std::num::NonZeroU32;
use std::ptr::NonNull;
use std::sync::{Mutex, OnceLock, PoisonError};

pub use shoal_infra::Backing;
use shoal_infra::{Pages, Region};

use crate::meta::Link;
use crate::{DATA_OFFSET, Frame, Meta, Packet, STRIDE};

/// Virtual space reserved; buffers are numbered in cache lines from its start.
const RESERVED: usize = 16 << 30;
const _: () = assert!(RESERVED / 64 < 1 << 31, "the topmost bit of a link says whether it is shared");
/// Where the first buffer lies; the others follow at every [`STRIDE`]. The first line is never a buffer, so that index 0
/// means none.
pub(crate) const FIRST: usize = 64;

struct Whole {
    base: NonNull<u8>,
    grown: Mutex<Grown>,
}

/// How far the memory has grown.
struct Grown {
    region: Region,
    /// Bytes that are cut into buffers.
    used: usize,
    /// What the last chunk is made of.
    backing: Backing,
    /// Whether all of it is in reserved huge pages.
    all_huge: bool,
}

/// The part of buffer memory that is there at some moment: what can be registered with a kernel or a device. It stays
/// where it is for as long as the process lives; what is added later lies behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    address: u64,
    len: usize,
    huge: bool,
}

impl Part {
    /// Nothing.
    pub(crate) const NONE: Part = Part { address: 0, len: 0, huge: false };

    /// No more than its first `len` bytes, for a borrower that knows no more.
    #[must_use]
    pub fn up_to(self, len: usize) -> Part {
        Part { len: self.len.min(len), ..self }
    }

    /// Where it starts in the process's address space, a multiple of 2 MiB.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Its length in bytes, a multiple of 2 MiB when it is whole.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether all of it lies in reserved pages of 2 MiB, so that a device finds each buffer of [`Loans`] in one piece.
    pub fn is_huge(&self) -> bool {
        self.huge
    }
}

// SAFETY: `base` is only an address; what lies behind it is reached through tokens, each of which is in one
// place only (the crate's invariant).
unsafe impl Send for Whole {}
// SAFETY: as above; `grown` is behind its lock.
unsafe impl Sync for Whole {}

static WHOLE: OnceLock<Result<Whole, String>> = OnceLock::new();

/// A handle on buffer memory: a base address, copied freely and kept in a register by loops.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    base: NonNull<u8>,
}

// SAFETY: the handle gives access only through tokens and frames, which it borrows.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    /// The process's buffer memory, reserved on the first call.
    /// `pages` is what to ask the kernel for; the first caller's wish holds for the process.
    pub fn get(pages: Pages) -> io::Result<Memory> {
        whole(pages).map(|w| Memory { base: w.base })
    }

    /// Address of a buffer. Numbers come only from tokens, frames and links, and so are always in range.
    #[inline(always)]
    pub(crate) fn at(self, index: u32) -> NonNull<u8> {
        // SAFETY: `index` was handed out by `grow`, which keeps index * 64 + STRIDE inside the region.
        unsafe { self.base.add(index as usize * 64) }
    }

    /// A view of the packet in slot `i` of a frame; `None` past its end.
    #[inline(always)]
    pub fn packet(self, frame: &mut Frame, i: usize) -> Option<Packet<'_>> {
        let index = frame.index(i)?;
        // SAFETY: the frame owns the token and is borrowed mutably for as long as the view lives.
        Some(unsafe { Packet::new(self, self.at(index)) })
    }

    /// A view of the packet in a slot of a frame that the caller borrows mutably.
    ///
    /// # Safety
    /// `index` is in a valid slot of a frame borrowed mutably for `'a`, and no other view of it is alive.
    #[inline(always)]
    pub(crate) unsafe fn packet_at<'a>(self, index: u32) -> Packet<'a> {
        // SAFETY: upheld by the caller.
        unsafe { Packet::new(self, self.at(index)) }
    }

    /// Starts loading the header line and first data line of a buffer; any number does no harm.
    #[inline(always)]
    pub(crate) fn prefetch_slot(self, index: u32) {
        let p = self.base.as_ptr().wrapping_add(index as usize * 64);
        shoal_infra::prefetch_address(p);
        shoal_infra::prefetch_address(p.wrapping_add(DATA_OFFSET));
    }

    /// Starts loading the header line and first data line of slot `i`; nothing past the frame's end.
    #[inline(always)]
    pub fn prefetch(self, frame: &Frame, i: usize) {
        if let Some(index) = frame.index(i) {
            let p = self.at(index);
            // SAFETY: both addresses lie inside the buffer `index` names.
            let (meta, data) = unsafe { (p.as_ref(), p.add(DATA_OFFSET).as_ref()) };
            shoal_infra::prefetch_read(meta);
            shoal_infra::prefetch_read(data);
        }
    }

    /// Header of a buffer named by an index the caller holds the one place of.
    ///
    /// # Safety
    /// The caller owns `index` and keeps no other reference into its buffer.
    #[inline(always)]
    pub(crate) unsafe fn meta<'a>(self, index: u32) -> &'a mut Meta {
        // SAFETY: upheld by the caller; the header line is aligned to 64 and always initialised.
        unsafe { self.at(index).cast::<Meta>().as_mut() }
    }

    /// Header of a segment that a link leads to, for reading.
    ///
    /// # Safety
    /// The caller has the link for as long as it reads, and the segment is not written.
    #[inline(always)]
    pub(crate) unsafe fn linked(self, link: &Link) -> Option<&Meta> {
        let index = link.index()?;
        // SAFETY: upheld by the caller; as in `meta`.
        Some(unsafe { self.at(index.get()).cast::<Meta>().as_ref() })
    }

    /// Gives up a link that the caller holds the one place of. A segment that has no other is the caller's then: its
    /// index, and the link that it has itself.
    #[inline]
    pub(crate) fn unlink(self, link: Link) -> Option<(NonZeroU32, Link)> {
        let index = link.index()?;
        // SAFETY: the link is here, and what a shared link leads to is not written.
        if link.is_shared() && !unsafe { self.linked(&link) }?.shares.release() {
            return None;
        }
        // SAFETY: the link was the only one to this segment.
        let meta = unsafe { self.meta(index.get()) };
        Some((index, std::mem::take(&mut meta.next)))
    }
}

fn whole(pages: Pages) -> io::Result<&'static Whole> {
    let made = WHOLE.get_or_init(|| {
        let region = Region::reserve(RESERVED, pages).map_err(|e| e.to_string())?;
        let base = region.base();
        let grown = Grown { region, used: FIRST, backing: Backing::Small, all_huge: true };
        Ok(Whole { base, grown: Mutex::new(grown) })
    });
    made.as_ref().map_err(|e| io::Error::other(e.clone()))
}

/// Commits memory for `count` more buffers and returns their indices.
pub(crate) fn grow(count: usize, pages: Pages) -> io::Result<(Vec<NonZeroU32>, Backing)> {
    let mut grown = whole(pages)?.grown.lock().unwrap_or_else(PoisonError::into_inner);
    let start = grown.used;
    let end = start + count * STRIDE;
    let committed = grown.region.committed();
    if end > committed {
        grown.backing = grown.region.grow(end - committed)?;
        grown.all_huge &= grown.backing == Backing::Huge2M;
    }
    grown.used = end;
    let index = |k: usize| NonZeroU32::new(((start + k * STRIDE) / 64) as u32);
    Ok(((0..count).filter_map(index).collect(), grown.backing))
}

/// All memory there is now.
pub(crate) fn part(pages: Pages) -> io::Result<Part> {
    let whole = whole(pages)?;
    let grown = whole.grown.lock().unwrap_or_else(PoisonError::into_inner);
    let (address, len) = (whole.base.as_ptr().addr() as u64, grown.region.committed());
    Ok(Part { address, len, huge: grown.all_huge && len > 0 })
}
