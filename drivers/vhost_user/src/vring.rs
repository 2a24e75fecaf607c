//! The memory of one split virtqueue (virtio 1.2, 2.7).
//!
//! | part | bytes | who writes |
//! |---|---|---|
//! | descriptors | 16 each: address, length, flags, next | guest |
//! | available | flags, index, 2 each; `used_event` | guest |
//! | used | flags, index, 8 each: head, length; `avail_event` | this end |

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering};

use shoal_shm::{PlaceError, Word, Words};

use crate::memory::GuestMemory;

const DESC_BYTES: usize = 16;
/// Flags and index, in front of the entries of both rings.
const RING_HEAD: usize = 4;
const USED_BYTES: usize = 8;

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

/// A ring that cannot be at its announced place.
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
///
/// Everything here is atomic words: two threads that wrote at once would disturb the guest's packets, and nothing else.
pub struct Vring {
    /// Address; length, flags, next.
    desc: Words<AtomicU64, 2>,
    /// Flags, index.
    avail_head: Words<AtomicU16, 2>,
    avail: Words<AtomicU16>,
    used_event: Words<AtomicU16>,
    /// Flags, index.
    used_head: Words<AtomicU16, 2>,
    /// Head, length.
    used: Words<AtomicU32, 2>,
    avail_event: Words<AtomicU16>,
    mask: u16,
    memory: Arc<GuestMemory>,
}

/// Words at an address of the hypervisor, and `behind` bytes from there on.
fn words<W: Word, const N: usize>(
    memory: &GuestMemory,
    name: &'static str,
    user: u64,
    behind: usize,
    count: usize,
) -> Result<Words<W, N>, VringError> {
    let (region, offset) = memory.at_user(user).ok_or(VringError::Outside(name, user))?;
    let offset = offset.checked_add(behind).ok_or(VringError::Outside(name, user))?;
    Words::new(region, offset, count).map_err(|e| match e {
        PlaceError::Align => VringError::Align(name, user),
        PlaceError::Outside | PlaceError::Count(_) => VringError::Outside(name, user),
    })
}

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
        let VringPlace { desc, used, avail } = place;
        let (desc_name, avail_name, used_name) = ("descriptor", "available", "used");
        // Words are aligned to their size; virtio 1.2, 2.7 asks for more here.
        if memory.at_user(desc).is_some_and(|(_, offset)| !offset.is_multiple_of(DESC_BYTES)) {
            return Err(VringError::Align(desc_name, desc));
        }
        // Behind the entries of both rings: the other end's event index.
        Ok(Vring {
            desc: words(memory, desc_name, desc, 0, n)?,
            avail_head: words(memory, avail_name, avail, 0, 1)?,
            avail: words(memory, avail_name, avail, RING_HEAD, n)?,
            used_event: words(memory, avail_name, avail, RING_HEAD + n * 2, 1)?,
            used_head: words(memory, used_name, used, 0, 1)?,
            used: words(memory, used_name, used, RING_HEAD, n)?,
            avail_event: words(memory, used_name, used, RING_HEAD + n * USED_BYTES, 1)?,
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

    /// The guest's flags.
    #[inline(always)]
    pub fn avail_flags(&self) -> u16 {
        let [flags, _] = self.avail_head.at(0);
        flags.load(Ordering::Relaxed)
    }

    /// How many chains the guest has given in all.
    #[inline(always)]
    pub fn avail_index(&self) -> u16 {
        let [_, index] = self.avail_head.at(0);
        index.load(Ordering::Acquire)
    }

    /// The head of a chain that the guest has given.
    #[inline(always)]
    pub fn avail_entry(&self, index: u16) -> u16 {
        let [head] = self.avail.at(usize::from(index));
        head.load(Ordering::Relaxed)
    }

    /// When the guest wants to be woken.
    #[inline(always)]
    pub fn used_event(&self) -> u16 {
        let [event] = self.used_event.at(0);
        event.load(Ordering::Relaxed)
    }

    /// Our flags.
    pub fn used_flags(&self) -> u16 {
        let [flags, _] = self.used_head.at(0);
        flags.load(Ordering::Relaxed)
    }

    /// Sets our flags.
    #[inline(always)]
    pub fn set_used_flags(&self, value: u16) {
        let [flags, _] = self.used_head.at(0);
        flags.store(value, Ordering::Relaxed);
    }

    /// How many chains were given back in all.
    #[inline(always)]
    pub fn used_index(&self) -> u16 {
        let [_, index] = self.used_head.at(0);
        index.load(Ordering::Relaxed)
    }

    /// Gives chains back.
    #[inline(always)]
    pub fn set_used_index(&self, value: u16) {
        let [_, index] = self.used_head.at(0);
        index.store(value, Ordering::Release);
    }

    /// Says when this end wants to be woken.
    #[inline(always)]
    pub fn set_avail_event(&self, index: u16) {
        let [event] = self.avail_event.at(0);
        event.store(index, Ordering::Relaxed);
    }

    /// Writes which chain is given back, and how much was written to it.
    #[inline(always)]
    pub fn set_used_entry(&self, index: u16, head: u16, len: u32) {
        let [id, length] = self.used.at(usize::from(index));
        id.store(u32::from(head), Ordering::Relaxed);
        length.store(len, Ordering::Relaxed);
    }

    /// A descriptor, each of its words read once.
    #[inline(always)]
    pub fn desc(&self, index: u16) -> Desc {
        let [addr, rest] = self.desc.at(usize::from(index));
        let (addr, rest) = (addr.load(Ordering::Relaxed), rest.load(Ordering::Relaxed));
        Desc { addr, len: rest as u32, flags: (rest >> 32) as u16, next: (rest >> 48) as u16 }
    }

    /// Starts loading a descriptor.
    #[inline(always)]
    pub fn prefetch(&self, index: u16) {
        self.desc.prefetch(usize::from(index));
    }
}

#[cfg(target_endian = "big")]
compile_error!("rings are read as on little-endian machines");
