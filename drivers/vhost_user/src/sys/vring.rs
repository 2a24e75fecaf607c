//! The memory of one split virtqueue (virtio 1.2, 2.7).
//!
//! | part | bytes | who writes |
//! |---|---|---|
//! | descriptors | 16 each: address, length, flags, next | guest |
//! | available | flags, index, 2 each; `used_event` | guest |
//! | used | flags, index, 8 each: head, length; `avail_event` | this end |

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use super::GuestMemory;

const DESC_BYTES: usize = 16;
/// Flags and index, in front of the entries of both rings.
const RING_HEAD: usize = 4;
const INDEX_AT: usize = 2;

/// A descriptor. What a guest wrote into it may be anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Desc {
    /// Where the guest sees the memory.
    pub addr: u64,
    /// Bytes.
    pub len: u32,
    /// [`Desc::NEXT`], [`Desc::WRITE`], [`Desc::INDIRECT`].
    pub flags: u16,
    /// The next one of its chain.
    pub next: u16,
}

impl Desc {
    /// Bytes of one.
    pub const BYTES: usize = DESC_BYTES;
    /// In `flags`: the chain goes on.
    pub const NEXT: u16 = 1;
    /// In `flags`: the memory is for this end to write; else to read.
    pub const WRITE: u16 = 2;
    /// In `flags`: the memory is a table of descriptors.
    pub const INDIRECT: u16 = 4;

    /// One in a table.
    #[inline(always)]
    pub fn of(bytes: [u8; DESC_BYTES]) -> Self {
        let word = u128::from_le_bytes(bytes);
        Desc {
            addr: word as u64,
            len: (word >> 64) as u32,
            flags: (word >> 96) as u16,
            next: (word >> 112) as u16,
        }
    }
}

/// Where a ring lies, by addresses of the hypervisor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VringPlace {
    /// Descriptors.
    pub desc: u64,
    /// The used ring.
    pub used: u64,
    /// The available ring.
    pub avail: u64,
}

/// A ring that cannot be where it is said to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VringError {
    /// No power of two, or too many.
    #[error("ring of {0} entries, must be a power of two up to 32768")]
    Size(u32),
    /// A part of it is not in the guest's memory.
    #[error("{0} ring at {1:#x} is not in the guest's memory")]
    Outside(&'static str, u64),
    /// A part of it is not aligned.
    #[error("{0} ring at {1:#x} is not aligned")]
    Align(&'static str, u64),
}

/// A split ring in a guest's memory. It stays mapped as long as this lives.
pub struct Vring {
    desc: NonNull<u8>,
    avail: NonNull<u8>,
    used: NonNull<u8>,
    mask: u16,
    memory: Arc<GuestMemory>,
}

// SAFETY: addresses in memory that `memory` keeps mapped and that is read and written by atomics and volatile accesses
// only.
unsafe impl Send for Vring {}
// SAFETY: as above; two threads that wrote at once would disturb the guest's packets, never memory that is not the ring's.
unsafe impl Sync for Vring {}

impl Vring {
    /// The ring at a place, if it is all there.
    ///
    /// # Errors
    /// It cannot be there.
    pub fn new(memory: &Arc<GuestMemory>, place: VringPlace, size: u32) -> Result<Self, VringError> {
        if !size.is_power_of_two() || size > 32_768 {
            return Err(VringError::Size(size));
        }
        let n = size as usize;
        let find = |name, user: u64, len, align: usize| {
            let p = memory.at_user(user, len).ok_or(VringError::Outside(name, user))?;
            if p.addr().get().is_multiple_of(align) { Ok(p) } else { Err(VringError::Align(name, user)) }
        };
        // Two bytes more than entries: the other end's event index.
        Ok(Vring {
            desc: find("descriptor", place.desc, n * DESC_BYTES, 16)?,
            avail: find("available", place.avail, RING_HEAD + n * 2 + 2, 2)?,
            used: find("used", place.used, RING_HEAD + n * 8 + 2, 4)?,
            mask: (size - 1) as u16,
            memory: Arc::clone(memory),
        })
    }

    /// The guest's memory.
    #[inline(always)]
    pub fn memory(&self) -> &GuestMemory {
        &self.memory
    }

    /// How many entries it has.
    #[inline(always)]
    pub fn size(&self) -> u16 {
        self.mask + 1
    }

    #[inline(always)]
    fn avail_word(&self, at: usize) -> &AtomicU16 {
        debug_assert!(at < RING_HEAD + usize::from(self.size()) * 2 + 2 && at.is_multiple_of(2));
        // SAFETY: all callers stay within the bytes that `new` has checked; base and offset are even. All access to it by
        // this process is atomic.
        unsafe { AtomicU16::from_ptr(self.avail.as_ptr().add(at).cast()) }
    }

    #[inline(always)]
    fn used_word(&self, at: usize) -> &AtomicU16 {
        debug_assert!(at < RING_HEAD + usize::from(self.size()) * 8 + 2 && at.is_multiple_of(2));
        // SAFETY: as in `avail_word`; only head words and the event index are accessed by this.
        unsafe { AtomicU16::from_ptr(self.used.as_ptr().add(at).cast()) }
    }

    /// The guest's flags.
    #[inline(always)]
    pub fn avail_flags(&self) -> u16 {
        self.avail_word(0).load(Ordering::Relaxed)
    }

    /// How many chains the guest has given in all.
    #[inline(always)]
    pub fn avail_index(&self) -> u16 {
        self.avail_word(INDEX_AT).load(Ordering::Acquire)
    }

    /// The head of a chain that the guest has given.
    #[inline(always)]
    pub fn avail_entry(&self, index: u16) -> u16 {
        self.avail_word(RING_HEAD + usize::from(index & self.mask) * 2).load(Ordering::Relaxed)
    }

    /// When the guest wants to be woken.
    #[inline(always)]
    pub fn used_event(&self) -> u16 {
        self.avail_word(RING_HEAD + usize::from(self.size()) * 2).load(Ordering::Relaxed)
    }

    /// Our flags.
    pub fn used_flags(&self) -> u16 {
        self.used_word(0).load(Ordering::Relaxed)
    }

    /// Sets our flags.
    #[inline(always)]
    pub fn set_used_flags(&self, flags: u16) {
        self.used_word(0).store(flags, Ordering::Relaxed);
    }

    /// How many chains were given back in all.
    #[inline(always)]
    pub fn used_index(&self) -> u16 {
        self.used_word(INDEX_AT).load(Ordering::Relaxed)
    }

    /// Gives chains back.
    #[inline(always)]
    pub fn set_used_index(&self, index: u16) {
        self.used_word(INDEX_AT).store(index, Ordering::Release);
    }

    /// Says when this end wants to be woken.
    #[inline(always)]
    pub fn set_avail_event(&self, index: u16) {
        self.used_word(RING_HEAD + usize::from(self.size()) * 8).store(index, Ordering::Relaxed);
    }

    #[allow(clippy::cast_ptr_alignment, reason = "`new` has checked it")]
    /// Writes which chain is given back, and how much was written to it.
    #[inline(always)]
    pub fn set_used_entry(&self, index: u16, head: u16, len: u32) {
        let at = RING_HEAD + usize::from(index & self.mask) * 8;
        // SAFETY: the slot is less than the ring's size, so both words are inside what `new` has checked; base and offset
        // are multiples of 4.
        unsafe {
            let p = self.used.as_ptr().add(at).cast::<u32>();
            p.write_volatile(u32::from(head));
            p.add(1).write_volatile(len);
        }
    }

    #[allow(clippy::cast_ptr_alignment, reason = "`new` has checked it")]
    /// A descriptor, each of its words read once.
    #[inline(always)]
    pub fn desc(&self, index: u16) -> Desc {
        // SAFETY: the slot is less than the ring's size, so all 16 bytes are inside what `new` has checked, aligned to 16;
        // any bits are a `u64`.
        let (addr, rest) = unsafe {
            let p = self.desc.as_ptr().add(usize::from(index & self.mask) * DESC_BYTES).cast::<u64>();
            (p.read_volatile(), p.add(1).read_volatile())
        };
        Desc { addr, len: rest as u32, flags: (rest >> 32) as u16, next: (rest >> 48) as u16 }
    }

    /// Starts loading a descriptor.
    #[inline(always)]
    pub fn prefetch(&self, index: u16) {
        let at = usize::from(index & self.mask) * DESC_BYTES;
        shoal_infra::prefetch_address(self.desc.as_ptr().wrapping_add(at));
    }
}

#[cfg(target_endian = "big")]
compile_error!("rings are read as on little-endian machines");
