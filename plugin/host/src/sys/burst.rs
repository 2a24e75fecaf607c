//! Packets between buffers and a device's queues: slots are shown, the plugin copies.

use std::marker::PhantomData;

use shoal_buffer::{FRAME_SIZE, Frame, HEADROOM, Memory};
use shoal_plugin_abi as abi;
use shoal_vnet::{GsoKind, Offload, VnetHdr};

use super::thread::Opened;
use super::{RxHandle, TxHandle};

const EMPTY: abi::Slot = abi::Slot {
    bytes: std::ptr::null_mut(),
    token: 0,
    capacity: 0,
    length: 0,
    flags: 0,
    gso: 0,
    gso_size: 0,
    header_length: 0,
    checksum_start: 0,
    checksum_offset: 0,
    reserved: [0; 3],
};

/// A frame's worth of slots.
pub(crate) struct Slots(Box<[abi::Slot; FRAME_SIZE]>);

// SAFETY: the pointers in it are used only in the call before which they were written.
unsafe impl Send for Slots {}

/// What a plugin wrote into a slot: unchecked numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Filled {
    pub(crate) length: usize,
    /// The packet goes on in the next slot.
    pub(crate) more: bool,
    /// What the packet owes, in the words of virtio.
    pub(crate) vnet: VnetHdr,
}

/// virtio's numbers of what a slot says.
fn vnet(slot: &abi::Slot) -> VnetHdr {
    let flag = |ours, theirs| if slot.flags & ours != 0 { theirs } else { 0 };
    VnetHdr {
        flags: flag(abi::SHOAL_SLOT_CHECKSUM_LEFT, 1) | flag(abi::SHOAL_SLOT_CHECKSUM_GOOD, 2),
        // What is no number of virtio's is refused as one.
        gso_type: u8::try_from(slot.gso).unwrap_or(u8::MAX),
        hdr_len: slot.header_length.into(),
        gso_size: slot.gso_size.into(),
        csum_start: slot.checksum_start.into(),
        csum_offset: slot.checksum_offset.into(),
    }
}

/// A slot for a plugin to write into.
fn shown(room: &mut [u8]) -> abi::Slot {
    abi::Slot { bytes: room.as_mut_ptr(), capacity: room.len() as u32, ..EMPTY }
}

fn burst((device, queue, thread): (u32, u32, usize), count: usize, slots: *mut abi::Slot) -> abi::Burst {
    abi::Burst {
        size: size_of::<abi::Burst>() as u32,
        thread: thread as u32,
        device,
        queue,
        count: count as u32,
        used: 0,
        lost: 0,
        reserved: 0,
        slots,
    }
}

impl RxHandle {
    /// How many slots the packets of the queue need, none if there are none.
    #[inline]
    pub(crate) fn poll(&mut self, thread: usize) -> usize {
        let Opened { driver, number } = &*self.opened;
        // SAFETY: the plugin's function for this context; the owner of the handle is the one thread that calls it.
        let wanted = unsafe { (driver.poll)(driver.context, *number, self.queue, thread as u32) };
        (wanted as usize).min(FRAME_SIZE)
    }
}

impl Slots {
    pub(crate) fn new() -> Self {
        Slots(Box::new([EMPTY; FRAME_SIZE]))
    }

    /// Has the empty buffers of a frame filled; tells how many were, and how many packets were lost.
    pub(crate) fn receive(
        &mut self,
        (queue, thread): (&mut RxHandle, usize),
        frame: &mut Frame,
        memory: Memory,
    ) -> (usize, u64) {
        let Opened { driver, number } = &*queue.opened;
        let count = frame.len();
        for (i, slot) in self.0.iter_mut().enumerate().take(count) {
            let Some(mut pkt) = frame.packet(memory, i) else { break };
            let room = pkt.area_mut().get_mut(HEADROOM..).unwrap_or_default();
            *slot = shown(room);
        }
        let mut burst = burst((*number, queue.queue, thread), count, self.0.as_mut_ptr());
        // SAFETY: the plugin's function for this context. The first `count` slots were written above and point to
        // memory of packets of this frame, which is borrowed mutably.
        unsafe { (driver.receive)(driver.context, &raw mut burst) };
        ((burst.used as usize).min(count), burst.lost.into())
    }

    /// The same into the first `count` parts of a memory, `part` bytes each.
    pub(crate) fn receive_into(
        &mut self,
        (queue, thread): (&mut RxHandle, usize),
        (memory, part): (&mut [u8], usize),
        count: usize,
    ) -> (usize, u64) {
        let Opened { driver, number } = &*queue.opened;
        let mut shown_slots = 0;
        for (slot, room) in self.0.iter_mut().zip(memory.chunks_exact_mut(part.max(1))).take(count) {
            *slot = shown(room);
            shown_slots += 1;
        }
        let mut burst = burst((*number, queue.queue, thread), shown_slots, self.0.as_mut_ptr());
        // SAFETY: the plugin's function for this context. As many slots as are told were written above and point to parts
        // of `memory`, which do not overlap and are borrowed mutably.
        unsafe { (driver.receive)(driver.context, &raw mut burst) };
        ((burst.used as usize).min(shown_slots), burst.lost.into())
    }

    /// What the plugin wrote into a slot.
    pub(crate) fn filled(&self, at: usize) -> Option<Filled> {
        let slot = self.0.get(at)?;
        let more = slot.flags & abi::SHOAL_SLOT_MORE != 0;
        Some(Filled { length: slot.length as usize, more, vnet: vnet(slot) })
    }

    /// Packets to be sent, none yet.
    pub(crate) fn batch(&mut self) -> Batch<'_> {
        Batch { slots: &mut self.0, at: 0, packets: 0, _bytes: PhantomData }
    }
}

/// Packets that are to be sent with one call; their bytes are borrowed until then.
pub(crate) struct Batch<'a> {
    slots: &'a mut [abi::Slot; FRAME_SIZE],
    at: usize,
    packets: usize,
    _bytes: PhantomData<&'a [u8]>,
}

impl<'a> Batch<'a> {
    /// Whether nothing is to be sent.
    pub(crate) fn is_empty(&self) -> bool {
        self.packets == 0
    }

    /// Whether there is no room for another segment.
    pub(crate) fn is_full(&self) -> bool {
        self.at == self.slots.len()
    }

    /// Adds a packet; `false`, and nothing is added, when there is no room.
    pub(crate) fn push(&mut self, segments: impl Iterator<Item = &'a [u8]>, owes: &Offload) -> bool {
        let first = self.at;
        let mut at = first;
        for segment in segments.filter(|s| !s.is_empty()) {
            let Some(slot) = self.slots.get_mut(at) else { return false };
            let length = segment.len() as u32;
            let bytes = segment.as_ptr().cast_mut();
            *slot = abi::Slot { bytes, capacity: length, length, flags: abi::SHOAL_SLOT_MORE, ..EMPTY };
            at += 1;
        }
        if at == first {
            return false;
        }
        if let Some(slot) = self.slots.get_mut(first) {
            let vnet = VnetHdr::from(*owes);
            if vnet.flags & 1 != 0 {
                slot.flags |= abi::SHOAL_SLOT_CHECKSUM_LEFT;
                (slot.checksum_start, slot.checksum_offset) = (vnet.csum_start.get(), vnet.csum_offset.get());
            }
            if let Some(gso) = owes.gso {
                slot.gso = match gso.kind {
                    GsoKind::Tcp4 => abi::SHOAL_GSO_TCP4,
                    GsoKind::Tcp6 => abi::SHOAL_GSO_TCP6,
                    // Cut before it comes here.
                    GsoKind::Udp => abi::SHOAL_GSO_NONE,
                };
                (slot.gso_size, slot.header_length) = (gso.size.get(), gso.header_len);
            }
        }
        if let Some(slot) = at.checked_sub(1).and_then(|last| self.slots.get_mut(last)) {
            slot.flags &= !abi::SHOAL_SLOT_MORE;
        }
        self.at = at;
        self.packets += 1;
        true
    }

    /// Sends the packets: how many there were, how many the device did not take, and how many it refused.
    pub(crate) fn send(self, queue: &mut TxHandle, thread: usize) -> (usize, usize, usize) {
        let Opened { driver, number } = &*queue.opened;
        let mut burst = burst((*number, queue.queue, thread), self.at, self.slots.as_mut_ptr());
        // SAFETY: the plugin's function for this context. The first `at` slots were written by `push` and point to
        // bytes that are borrowed until this call ends, which the ABI lets the plugin read only.
        unsafe { (driver.send)(driver.context, &raw mut burst) };
        let taken = (burst.used as usize).min(self.packets);
        (self.packets, self.packets - taken, (burst.lost as usize).min(taken))
    }
}
