//! A view of one packet. Unsafe, because the router says where the bytes are.

use core::marker::PhantomData;

use shoal_plugin_abi as abi;

/// One packet in the hands of a node. Bytes are those of its first segment.
pub struct Packet<'a> {
    raw: &'a mut abi::Packet,
    owner: PhantomData<&'a mut [u8]>,
}

impl<'a> Packet<'a> {
    /// # Safety
    /// `raw` is as the router gave it: `base` has `capacity` bytes and `scratch` eight words that no other code uses
    /// for as long as the view lives, and `start + length` does not exceed `capacity`.
    pub(crate) unsafe fn new(raw: &'a mut abi::Packet) -> Self {
        Packet { raw, owner: PhantomData }
    }

    /// The bytes.
    pub fn data(&self) -> &[u8] {
        // SAFETY: `new`'s caller vouches for the memory, and every change below keeps start + length <= capacity.
        unsafe {
            core::slice::from_raw_parts(self.raw.base.add(self.raw.start as usize), self.raw.length as usize)
        }
    }

    /// The bytes, for changes.
    pub fn data_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `data`, and the view is borrowed mutably.
        unsafe {
            core::slice::from_raw_parts_mut(
                self.raw.base.add(self.raw.start as usize),
                self.raw.length as usize,
            )
        }
    }

    /// Eight words that go with the packet to [`Node::trace`](crate::Node::trace) and to the next node that uses them.
    /// They hold anything at first.
    pub fn scratch(&mut self) -> &mut [u64; 8] {
        // SAFETY: `new`'s caller vouches for eight aligned words that no other code uses.
        unsafe { &mut *self.raw.scratch.cast() }
    }

    /// The same, for reading.
    pub fn scratch_ref(&self) -> &[u64; 8] {
        // SAFETY: as in `scratch`.
        unsafe { &*self.raw.scratch.cast() }
    }

    /// Takes the next `n` bytes off the front; `None`, and nothing changes, when there are fewer.
    #[must_use]
    pub fn pull(&mut self, n: usize) -> Option<()> {
        let bytes = u32::try_from(n).ok()?;
        self.raw.length = self.raw.length.checked_sub(bytes)?;
        self.raw.start += bytes;
        Some(())
    }

    /// Puts `n` unset bytes in front; `None`, and nothing changes, when the headroom is smaller.
    #[must_use]
    pub fn push(&mut self, n: usize) -> Option<()> {
        let bytes = u32::try_from(n).ok()?;
        self.raw.start = self.raw.start.checked_sub(bytes)?;
        self.raw.length += bytes;
        Some(())
    }

    /// Appends `n` unset bytes to a packet of one segment; `None`, and nothing changes, when they do not fit.
    #[must_use]
    pub fn put(&mut self, n: usize) -> Option<&mut [u8]> {
        if self.is_chained() || n > self.tailroom() {
            return None;
        }
        let old = self.raw.length as usize;
        self.raw.length += n as u32;
        self.data_mut().get_mut(old..)
    }

    /// Cuts a packet of one segment to `n` bytes; `None`, and nothing changes, when it is shorter.
    #[must_use]
    pub fn truncate(&mut self, n: usize) -> Option<()> {
        let length = u32::try_from(n).ok().filter(|n| *n <= self.raw.length && !self.is_chained())?;
        self.raw.length = length;
        Some(())
    }

    /// Bytes that can be put in front.
    pub fn headroom(&self) -> usize {
        self.raw.start as usize
    }

    /// Bytes that can be appended.
    pub fn tailroom(&self) -> usize {
        (self.raw.capacity - self.raw.start - self.raw.length) as usize
    }

    /// Whether bytes lie in later segments, which a node does not see.
    pub fn is_chained(&self) -> bool {
        self.raw.rest != 0
    }

    /// Bytes of the whole packet.
    pub fn total_len(&self) -> usize {
        self.raw.length as usize + self.raw.rest as usize
    }

    /// Where the network header is, from the front; `None` when it was taken off. On arcs behind `ethernet-input`.
    pub fn network(&self) -> Option<usize> {
        self.raw.l3.checked_sub(self.raw.start).map(|at| at as usize)
    }

    /// The interface it came in by.
    pub fn rx_sw_if_index(&self) -> u32 {
        self.raw.rx_sw_if_index
    }

    /// The interface it goes out by, on output arcs.
    pub fn tx_sw_if_index(&self) -> u32 {
        self.raw.tx_sw_if_index
    }

    /// Whether it is traced.
    pub fn is_traced(&self) -> bool {
        self.raw.flags & abi::SHOAL_PACKET_TRACED != 0
    }

    /// Whether its layer-4 checksum is completed on the way out.
    pub fn is_checksum_left(&self) -> bool {
        self.raw.flags & abi::SHOAL_PACKET_CHECKSUM_LEFT != 0
    }
}
