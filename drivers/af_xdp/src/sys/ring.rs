//! The four rings between a socket and the kernel: indices that count up, and entries between them.
//!
//! One side produces, the other consumes, and each writes its own index only. The kernel's index and entries are input: an
//! index that is further ahead than the ring is long makes the ring stand still and is counted.

use shoal_shm::Mapping;

/// Where the parts of a ring lie in its mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) producer: usize,
    pub(super) consumer: usize,
    pub(super) flags: usize,
    pub(super) entries: usize,
    /// Entries, a power of two.
    pub(super) size: u32,
    /// Bytes of one, 8 or 16.
    pub(super) entry: usize,
}

impl Layout {
    /// Bytes of a mapping that holds it; `None` for offsets that cannot be.
    pub(super) fn bytes(&self) -> Option<usize> {
        let entries = (self.size as usize).checked_mul(self.entry)?;
        [self.producer, self.consumer, self.flags]
            .into_iter()
            .try_fold(self.entries.checked_add(entries)?, |end, word| Some(end.max(word.checked_add(4)?)))
    }
}

/// An entry of the rings that carry frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Desc {
    pub(super) addr: u64,
    pub(super) len: u32,
    pub(super) options: u32,
}

struct Ring {
    map: Mapping,
    at: Layout,
}

impl Ring {
    #[inline]
    fn offset(&self, index: u32) -> usize {
        self.at.entries + (index & (self.at.size - 1)) as usize * self.at.entry
    }
}

/// A ring that we fill: addresses of free frames, or frames to be sent.
pub(super) struct Producer {
    ring: Ring,
    /// Where we write next; the kernel knows of less until [`Producer::publish`].
    next: u32,
    /// Where the kernel was when we last looked.
    consumer: u32,
    faults: u64,
}

impl Producer {
    pub(super) fn new(map: Mapping, at: Layout) -> Self {
        let next = map.load_acquire(at.producer).unwrap_or(0);
        Producer { ring: Ring { map, at }, next, consumer: next, faults: 0 }
    }

    /// Entries that can be written; the kernel's index is read when these are fewer than wanted.
    #[inline]
    pub(super) fn room(&mut self, wanted: u32) -> u32 {
        let size = self.ring.at.size;
        let room = size.saturating_sub(self.next.wrapping_sub(self.consumer));
        if room >= wanted {
            return room;
        }
        let Some(consumer) = self.ring.map.load_acquire(self.ring.at.consumer) else { return 0 };
        if self.next.wrapping_sub(consumer) > size {
            self.faults += 1;
            return 0;
        }
        self.consumer = consumer;
        size - self.next.wrapping_sub(consumer)
    }

    /// Writes the address of a frame; whether there was room.
    #[inline]
    pub(super) fn put_address(&mut self, addr: u64) -> bool {
        if self.room(1) == 0 {
            return false;
        }
        self.ring.map.write_u64(self.ring.offset(self.next), addr);
        self.next = self.next.wrapping_add(1);
        true
    }

    /// Writes a frame; whether there was room.
    #[inline]
    pub(super) fn put(&mut self, desc: Desc) -> bool {
        if self.room(1) == 0 {
            return false;
        }
        let offset = self.ring.offset(self.next);
        self.ring.map.write_u64(offset, desc.addr);
        self.ring.map.write_u64(offset + 8, words(desc.len, desc.options));
        self.next = self.next.wrapping_add(1);
        true
    }

    /// Lets the kernel see what was written.
    #[inline]
    pub(super) fn publish(&self) {
        self.ring.map.store_release(self.ring.at.producer, self.next);
    }

    /// Whether the kernel sleeps and wants to be woken.
    #[inline]
    pub(super) fn needs_wakeup(&self) -> bool {
        self.ring
            .map
            .load_acquire(self.ring.at.flags)
            .is_some_and(|flags| flags & libc::XDP_RING_NEED_WAKEUP != 0)
    }

    /// Entries that the kernel has not taken yet.
    pub(super) fn waiting(&self) -> u32 {
        let consumer = self.ring.map.load_acquire(self.ring.at.consumer).unwrap_or(self.next);
        let waiting = self.next.wrapping_sub(consumer);
        if waiting > self.ring.at.size { 0 } else { waiting }
    }

    /// Indices of the kernel's that could not be.
    pub(super) fn faults(&self) -> u64 {
        self.faults
    }
}

/// Two 32-bit fields side by side, as they lie in memory.
pub(super) fn words(low: u32, high: u32) -> u64 {
    let (low, high) = (u64::from(low), u64::from(high));
    if cfg!(target_endian = "little") { low | high << 32 } else { high | low << 32 }
}

/// A ring that the kernel fills: received frames, or frames that were sent.
pub(super) struct Consumer {
    ring: Ring,
    /// What we read next; the kernel knows of less until [`Consumer::publish`].
    next: u32,
    /// Where the kernel was when we last looked.
    producer: u32,
    faults: u64,
}

impl Consumer {
    pub(super) fn new(map: Mapping, at: Layout) -> Self {
        let next = map.load_acquire(at.consumer).unwrap_or(0);
        Consumer { ring: Ring { map, at }, next, producer: next, faults: 0 }
    }

    /// Whether there is an entry.
    #[inline]
    pub(super) fn is_ready(&mut self) -> bool {
        if self.producer != self.next {
            return true;
        }
        let Some(producer) = self.ring.map.load_acquire(self.ring.at.producer) else { return false };
        if producer.wrapping_sub(self.next) > self.ring.at.size {
            self.faults += 1;
            return false;
        }
        self.producer = producer;
        producer != self.next
    }

    /// The next frame.
    #[inline]
    pub(super) fn take(&mut self) -> Option<Desc> {
        if !self.is_ready() {
            return None;
        }
        let offset = self.ring.offset(self.next);
        let (addr, rest) = (self.ring.map.read_u64(offset)?, self.ring.map.read_u64(offset + 8)?);
        self.next = self.next.wrapping_add(1);
        let (low, high) = (rest as u32, (rest >> 32) as u32);
        let (len, options) = if cfg!(target_endian = "little") { (low, high) } else { (high, low) };
        Some(Desc { addr, len, options })
    }

    /// The address in an entry behind the next one, if the kernel was known to have written it.
    #[inline]
    pub(super) fn peek_address(&self, behind: u32) -> Option<u64> {
        if self.producer.wrapping_sub(self.next) <= behind {
            return None;
        }
        self.ring.map.read_u64(self.ring.offset(self.next.wrapping_add(behind)))
    }

    /// The next address.
    #[inline]
    pub(super) fn take_address(&mut self) -> Option<u64> {
        if !self.is_ready() {
            return None;
        }
        let addr = self.ring.map.read_u64(self.ring.offset(self.next))?;
        self.next = self.next.wrapping_add(1);
        Some(addr)
    }

    /// Gives the entries that were read back.
    #[inline]
    pub(super) fn publish(&self) {
        self.ring.map.store_release(self.ring.at.consumer, self.next);
    }

    /// Indices of the kernel's that could not be.
    pub(super) fn faults(&self) -> u64 {
        self.faults
    }
}
