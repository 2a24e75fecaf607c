//! The memory of one split virtqueue (virtio 1.2, 2.7) of this process, whose other end is the kernel's thread.
//!
//! | part | bytes | who writes |
//! |---|---|---|
//! | descriptors | 16 each: address, length, flags, next | this end |
//! | available | flags, index, 2 each | this end |
//! | used | flags, index, 8 each: head, length | kernel |
//! | slots | for frames, `slot_bytes` each; one for each descriptor | whose turn it is |
//!
//! Nothing that the kernel writes leads anywhere: what a slot's number or a length is used for is checked here or by the
//! caller, and a descriptor is never read back.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering};

use shoal_shm::{Mapping, Words};

const DESC_BYTES: usize = 16;
/// Flags and index, in front of the entries of both rings.
const RING_HEAD: usize = 4;
const USED_BYTES: usize = 8;
/// Parts begin at cache lines.
const LINE: usize = 64;

/// In a descriptor's flags: the chain goes on.
pub(crate) const NEXT: u16 = 1;
/// In a descriptor's flags: the kernel writes the slot.
pub(crate) const WRITE: u16 = 2;
/// In this end's flags: it does not want to be woken. In the kernel's: it need not be woken.
pub(crate) const QUIET: u16 = 1;

/// Where the parts of a ring lie, for the kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Addresses {
    pub(crate) size: u16,
    pub(crate) desc: u64,
    pub(crate) avail: u64,
    pub(crate) used: u64,
}

/// One ring, and the memory of its frames. It stays mapped as long as this lives.
pub(crate) struct Vring {
    /// Address; length, flags, next.
    desc: Words<AtomicU64, 2>,
    /// Flags, index.
    avail_head: Words<AtomicU16, 2>,
    avail: Words<AtomicU16>,
    /// Flags, index.
    used_head: Words<AtomicU16, 2>,
    /// Head, length.
    used: Words<AtomicU32, 2>,
    addresses: Addresses,
    /// Where the slots begin in the memory.
    slots: usize,
    mask: u16,
    slot_bytes: usize,
    memory: Arc<Mapping>,
}

/// Offsets of the parts of a ring of `size` entries from its beginning, and where it ends.
fn parts(size: u16, slot_bytes: usize) -> [usize; 4] {
    let n = usize::from(size);
    // Two bytes more than entries: event indices, which are not agreed on but have their place.
    let avail = n * DESC_BYTES;
    let used = (avail + RING_HEAD + n * 2 + 2).next_multiple_of(LINE);
    let slots = (used + RING_HEAD + n * USED_BYTES + 2).next_multiple_of(LINE);
    [avail, used, slots, (slots + n * slot_bytes).next_multiple_of(LINE)]
}

impl Vring {
    /// Bytes that a ring takes.
    pub(crate) fn bytes(size: u16, slot_bytes: usize) -> usize {
        let [.., end] = parts(size, slot_bytes);
        end
    }

    /// The ring of `size` entries, a power of two, at `at`, a multiple of 64; `None` when it is not all in the memory.
    pub(crate) fn new(memory: &Arc<Mapping>, at: usize, size: u16, slot_bytes: usize) -> Option<Self> {
        let [avail, used, slots, end] = parts(size, slot_bytes).map(|part| at.checked_add(part));
        let (avail, used, slots, n) = (avail?, used?, slots?, usize::from(size));
        if end? > memory.len() || !size.is_power_of_two() || !at.is_multiple_of(LINE) {
            return None;
        }
        let address = |offset: usize| memory.address() + offset as u64;
        Some(Vring {
            desc: Words::new(memory, at, n).ok()?,
            avail_head: Words::new(memory, avail, 1).ok()?,
            avail: Words::new(memory, avail + RING_HEAD, n).ok()?,
            used_head: Words::new(memory, used, 1).ok()?,
            used: Words::new(memory, used + RING_HEAD, n).ok()?,
            addresses: Addresses { size, desc: address(at), avail: address(avail), used: address(used) },
            slots,
            mask: size - 1,
            slot_bytes,
            memory: Arc::clone(memory),
        })
    }

    /// How many entries it has.
    #[inline(always)]
    pub(crate) fn size(&self) -> u16 {
        self.mask + 1
    }

    /// Bytes of a slot.
    #[inline(always)]
    pub(crate) fn slot_bytes(&self) -> usize {
        self.slot_bytes
    }

    /// Where it lies.
    pub(crate) fn addresses(&self) -> Addresses {
        self.addresses
    }

    /// Says where a descriptor points: `len` bytes of its slot; `next` counts if `flags` has [`NEXT`].
    #[inline(always)]
    pub(crate) fn set_desc(&self, index: u16, len: u32, flags: u16, next: u16) {
        let slot = self.slots + usize::from(index & self.mask) * self.slot_bytes;
        let [address, rest] = self.desc.at(usize::from(index));
        address.store(self.memory.address() + slot as u64, Ordering::Relaxed);
        let value = u64::from(len) | u64::from(flags) << 32 | u64::from(next) << 48;
        rest.store(value, Ordering::Relaxed);
    }

    /// Writes which chain is given. The kernel sees it after [`Vring::set_avail_index`].
    #[inline(always)]
    pub(crate) fn set_avail_entry(&self, index: u16, value: u16) {
        let [head] = self.avail.at(usize::from(index));
        head.store(value, Ordering::Relaxed);
    }

    /// Says how many chains were given in all.
    #[inline(always)]
    pub(crate) fn set_avail_index(&self, value: u16) {
        let [_, index] = self.avail_head.at(0);
        index.store(value, Ordering::Release);
    }

    /// Says whether this end wants to be woken: 0 or [`QUIET`].
    #[inline(always)]
    pub(crate) fn set_avail_flags(&self, value: u16) {
        let [flags, _] = self.avail_head.at(0);
        flags.store(value, Ordering::Relaxed);
    }

    /// Whether the kernel wants to be woken: 0 or [`QUIET`].
    #[inline(always)]
    pub(crate) fn used_flags(&self) -> u16 {
        let [flags, _] = self.used_head.at(0);
        flags.load(Ordering::Relaxed)
    }

    /// How many chains the kernel says it has given back in all.
    #[inline(always)]
    pub(crate) fn used_index(&self) -> u16 {
        let [_, index] = self.used_head.at(0);
        index.load(Ordering::Acquire)
    }

    /// A chain that was given back, and bytes written to it, each read once; both may be anything.
    #[inline(always)]
    pub(crate) fn used_entry(&self, index: u16) -> (u32, u32) {
        let [id, len] = self.used.at(usize::from(index));
        (id.load(Ordering::Relaxed), len.load(Ordering::Relaxed))
    }

    /// Where byte `at` of a slot is, if `len` bytes from there on are in the slot.
    #[inline(always)]
    fn slot(&self, slot: u16, at: usize, len: usize) -> Option<usize> {
        let inside = slot <= self.mask && at.checked_add(len)? <= self.slot_bytes;
        inside.then(|| self.slots + usize::from(slot) * self.slot_bytes + at)
    }

    /// Fills `to` from byte `at` of a slot on; `None`, and nothing is copied, when that goes beyond it.
    #[inline(always)]
    #[must_use]
    pub(crate) fn copy_out(&self, slot: u16, at: usize, to: &mut [u8]) -> Option<()> {
        self.memory.copy_out(self.slot(slot, at, to.len())?, to)
    }

    /// Writes `from` at byte `at` of a slot; `None`, and nothing is copied, when that goes beyond it.
    #[inline(always)]
    #[must_use]
    pub(crate) fn copy_in(&self, slot: u16, at: usize, from: &[u8]) -> Option<()> {
        self.memory.copy_in(self.slot(slot, at, from.len())?, from)
    }

    /// Starts loading the beginning of a slot.
    #[inline(always)]
    pub(crate) fn prefetch(&self, slot: u16) {
        if let Some(offset) = self.slot(slot, 0, 0) {
            self.memory.prefetch(offset);
        }
    }
}

#[cfg(target_endian = "big")]
compile_error!("rings are written as on little-endian machines");

/// The kernel's end, played by tests: it reads what this end wrote, and writes into the used ring whatever it likes.
#[cfg(test)]
impl Vring {
    /// The same ring once more.
    pub(crate) fn other_end(&self) -> Self {
        Vring {
            desc: self.desc.clone(),
            avail_head: self.avail_head.clone(),
            avail: self.avail.clone(),
            used_head: self.used_head.clone(),
            used: self.used.clone(),
            memory: Arc::clone(&self.memory),
            ..*self
        }
    }

    /// Address, length, flags and next of a descriptor; the address as a slot's number, if it is the beginning of one.
    pub(crate) fn desc(&self, index: u16) -> (Option<u16>, u32, u16, u16) {
        let [address, rest] = self.desc.at(usize::from(index));
        let (address, rest) = (address.load(Ordering::Relaxed), rest.load(Ordering::Relaxed));
        let offset = (address - self.memory.address()) as usize - self.slots;
        let slot = offset.is_multiple_of(self.slot_bytes).then_some((offset / self.slot_bytes) as u16);
        (slot, rest as u32, (rest >> 32) as u16, (rest >> 48) as u16)
    }

    /// How many chains were given.
    pub(crate) fn avail_index(&self) -> u16 {
        let [_, index] = self.avail_head.at(0);
        index.load(Ordering::Acquire)
    }

    /// Whether this end wants to be woken.
    pub(crate) fn avail_flags(&self) -> u16 {
        let [flags, _] = self.avail_head.at(0);
        flags.load(Ordering::Relaxed)
    }

    /// A chain that was given.
    pub(crate) fn avail_entry(&self, index: u16) -> u16 {
        let [head] = self.avail.at(usize::from(index));
        head.load(Ordering::Relaxed)
    }

    /// Writes that a chain is given back.
    pub(crate) fn set_used_entry(&self, index: u16, id: u32, len: u32) {
        let [head, length] = self.used.at(usize::from(index));
        head.store(id, Ordering::Relaxed);
        length.store(len, Ordering::Relaxed);
    }

    /// Writes how many were given back in all.
    pub(crate) fn set_used_index(&self, value: u16) {
        let [_, index] = self.used_head.at(0);
        index.store(value, Ordering::Release);
    }

    /// Writes whether the kernel's end wants to be woken.
    pub(crate) fn set_used_flags(&self, value: u16) {
        let [flags, _] = self.used_head.at(0);
        flags.store(value, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(bytes: usize) -> Arc<Mapping> {
        Arc::new(Mapping::anonymous(bytes, shoal_shm::Populate::Later).unwrap())
    }

    #[test]
    fn the_parts_of_a_ring_lie_one_behind_the_other_and_aligned() {
        for (size, slot) in [(1, 65_664), (2, 2112), (256, 2112), (32_768, 2112)] {
            let bytes = Vring::bytes(size, slot);
            let memory = memory(bytes + LINE);
            let ring = Vring::new(&memory, LINE, size, slot).unwrap();
            let Addresses { desc, avail, used, .. } = ring.addresses();
            assert_eq!(desc, memory.address() + 64);
            assert!(desc.is_multiple_of(16) && avail.is_multiple_of(2) && used.is_multiple_of(4));
            assert!(desc + u64::from(size) * 16 <= avail && avail + 6 + u64::from(size) * 2 <= used);
            assert!(used + 6 + u64::from(size) * 8 <= memory.address() + ring.slots as u64);
            assert!(Vring::new(&memory, 2 * LINE, size, slot).is_none(), "it would reach beyond the memory");
            assert!(Vring::new(&memory, 8, size, slot).is_none(), "it would not be aligned");
            // The last byte of the last slot is there.
            ring.copy_in(size - 1, slot - 1, &[7]).unwrap();
        }
        let memory = memory(1 << 20);
        assert!(Vring::new(&memory, 0, 3, 64).is_none() && Vring::new(&memory, 0, 0, 64).is_none());
    }

    #[test]
    fn nothing_beyond_a_slot_is_reached() {
        let memory = memory(Vring::bytes(4, 128));
        let ring = Vring::new(&memory, 0, 4, 128).unwrap();
        let mut to = [0; 129];
        assert!(ring.copy_in(3, 0, &[1; 128]).is_some() && ring.copy_out(3, 0, &mut to[..128]).is_some());
        assert_eq!(to[..128], [1; 128]);
        assert!(ring.copy_in(4, 0, &[1]).is_none() && ring.copy_in(u16::MAX, 0, &[1]).is_none());
        assert!(ring.copy_in(0, 0, &[1; 129]).is_none() && ring.copy_in(0, usize::MAX, &[1]).is_none());
        assert!(ring.copy_out(0, 128, &mut to[..1]).is_none() && ring.copy_out(4, 0, &mut to[..1]).is_none());
        ring.copy_out(2, 0, &mut to[..128]).unwrap();
        assert_eq!(to[..128], [0; 128], "the neighbour is as it was");
    }
}
