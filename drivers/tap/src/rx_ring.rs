//! Frames that the host's programs sent, in a ring the kernel fills: a frame may be in several slots (virtio 1.2, 5.1.6.4,
//! `VIRTIO_NET_F_MRG_RXBUF`).

use std::cell::Cell;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::Arc;

use shoal_buffer::{Buffer, Cache};
use shoal_interface::SwIfIndex;
use shoal_link::{EventFd, Refused};
use shoal_vnet::{SegmentList, VNET_HDR_LEN, VnetHdr, fill_with};
use zerocopy::FromBytes as _;

use crate::ring::{HEADER, LONGEST, Malformed, Ring};
use crate::sys::vhost::Vhost;
use crate::vring::WRITE;

/// A slot and its bytes that belong to the frame in hand, header included.
#[derive(Clone, Copy)]
struct Part {
    slot: u16,
    len: usize,
}

/// A receive ring: all its slots are with the kernel but for those of the frame in hand.
pub(crate) struct RxRing {
    ring: Ring,
    /// What wakes this end.
    call: EventFd,
    /// Which slots the kernel has.
    out: Box<[bool]>,
    /// The frame in hand; as much room as the ring has slots.
    parts: Vec<Part>,
    /// The kernel was asked to wake this end.
    armed: Cell<bool>,
    /// The last owner stops it. None in tests, where no other thread is in the ring.
    #[allow(dead_code, reason = "kept for when it ends")]
    vhost: Option<Arc<Vhost>>,
}

impl RxRing {
    /// An empty ring; [`RxRing::start`] gives its slots.
    pub(crate) fn new(ring: Ring, call: EventFd) -> Self {
        let size = ring.vring.size();
        for slot in 0..size {
            ring.vring.set_desc(slot, ring.vring.slot_bytes() as u32, WRITE, 0);
        }
        let out = vec![false; usize::from(size)].into();
        let parts = Vec::with_capacity(usize::from(size));
        RxRing { ring, call, out, parts, armed: Cell::new(false), vhost: None }
    }

    /// Gives all slots to the kernel, whose thread lives as long as this.
    pub(crate) fn start(&mut self, vhost: Option<Arc<Vhost>>) {
        self.vhost = vhost;
        for slot in 0..self.ring.vring.size() {
            self.give(slot);
        }
        self.ring.show();
    }

    /// The ring, to tell the kernel of it.
    pub(crate) fn ring(&self) -> (&Ring, &EventFd) {
        (&self.ring, &self.call)
    }

    fn give(&mut self, slot: u16) {
        if let Some(out) = self.out.get_mut(usize::from(slot)) {
            *out = true;
            self.ring.give(slot);
        }
    }

    /// Takes a slot that has come back and adds it to the frame in hand. One that the kernel does not have adds nothing.
    #[inline(always)]
    fn take(&mut self) -> Result<Part, Malformed> {
        let (id, len) = self.ring.take();
        let out = self.out.get_mut(id as usize).filter(|out| **out).ok_or(Malformed)?;
        *out = false;
        // Taken back, whatever it says of its length.
        let fits = len as usize <= self.ring.vring.slot_bytes();
        let part = Part { slot: id as u16, len: if fits { len as usize } else { 0 } };
        self.parts.push(part);
        if fits { Ok(part) } else { Err(Malformed) }
    }

    /// The next frame: what it owes, and its length. It is in hand until the next one is, or [`RxRing::finish`].
    ///
    /// # Errors
    /// What came back makes no sense. Its slots are given again as far as they are known.
    #[inline(always)]
    pub(crate) fn next_frame(&mut self) -> Option<Result<(VnetHdr, usize), Malformed>> {
        self.give_back();
        match self.ring.ready() {
            Ok(0) => None,
            Ok(ready) => Some(self.frame(ready)),
            Err(malformed) => Some(Err(malformed)),
        }
    }

    fn frame(&mut self, ready: u16) -> Result<(VnetHdr, usize), Malformed> {
        // Its frame is the one after next.
        self.ring.vring.prefetch(self.ring.peek(2) as u16);
        let first = self.take()?;
        let mut header = [0; HEADER];
        if first.len < HEADER {
            return Err(Malformed);
        }
        self.ring.vring.copy_out(first.slot, 0, &mut header).ok_or(Malformed)?;
        let [front @ .., low, high] = header;
        let front: [u8; VNET_HDR_LEN] = front;
        let vnet = VnetHdr::read_from_bytes(&front).map_err(|_| Malformed)?;
        let slots = u16::from_le_bytes([low, high]);
        // virtio 1.2, 5.1.6.4.1: at least one; all of a frame's slots come back at once.
        let (mut total, mut sound) = (first.len - HEADER, (1..=ready).contains(&slots));
        // All of them are taken, also behind one that makes no sense: their bytes are no frame of their own.
        for _ in 1..slots.min(ready) {
            match self.take() {
                Ok(part) => total += part.len,
                Err(Malformed) => sound = false,
            }
        }
        if sound && (1..=LONGEST).contains(&total) { Ok((vnet, total)) } else { Err(Malformed) }
    }

    /// Fills `to` from byte `at` of the frame in hand on. What is not there stays as it is.
    #[inline(always)]
    fn read(&self, at: usize, mut to: &mut [u8]) {
        let mut skip = at + HEADER;
        for part in &self.parts {
            if to.is_empty() {
                return;
            }
            let n = part.len.saturating_sub(skip).min(to.len());
            if n > 0 {
                let Some((now, rest)) = to.split_at_mut_checked(n) else { return };
                let copied = self.ring.vring.copy_out(part.slot, skip, now);
                debug_assert!(copied.is_some(), "its length was checked");
                to = rest;
                skip = 0;
            } else {
                skip -= part.len;
            }
        }
    }

    /// The frame in hand as a packet that owes what its header says.
    ///
    /// # Errors
    /// No buffer is free, or the header is wrong; nothing is kept then.
    #[inline(always)]
    pub(crate) fn packet(
        &self,
        cache: &mut Cache,
        interface: SwIfIndex,
        (vnet, len): (VnetHdr, usize),
    ) -> Result<Buffer, Refused> {
        let mut buffer = fill_with(cache, len, |at, to| self.read(at, to)).ok_or(Refused::NoBuffer)?;
        let mut pkt = cache.packet(&mut buffer);
        pkt.meta_mut().rx = interface;
        let plain = vnet.flags == 0 && vnet.gso_type == 0;
        if plain {
            return Ok(buffer);
        }
        let offload = SegmentList::of(&pkt).and_then(|segments| vnet.validate(segments.as_slice()).ok());
        if offload.is_some_and(|offload| offload.store(&mut pkt).is_ok()) {
            return Ok(buffer);
        }
        cache.free(buffer);
        Err(Refused::BadOffload)
    }

    #[inline(always)]
    fn give_back(&mut self) {
        while let Some(part) = self.parts.pop() {
            self.give(part.slot);
        }
    }

    /// Gives the last frame's slots back and shows the kernel all that were; tells whether it was woken.
    #[inline(always)]
    pub(crate) fn finish(&mut self) -> bool {
        self.give_back();
        self.ring.show()
    }

    /// Whether nothing more comes.
    pub(crate) fn is_broken(&self) -> bool {
        self.ring.is_broken()
    }

    /// Readable when the kernel has woken this end.
    pub(crate) fn wait_fd(&self) -> BorrowedFd<'_> {
        self.call.as_fd()
    }

    /// Asks the kernel to wake this end; tells whether there is a frame already.
    pub(crate) fn arm(&self) -> bool {
        self.armed.set(true);
        self.ring.arm()
    }

    /// Takes that back, if it was asked; tells whether it was.
    #[inline(always)]
    pub(crate) fn disarm(&self) -> bool {
        let armed = self.armed.replace(false);
        if armed {
            self.ring.disarm();
            self.call.drain();
        }
        armed
    }
}

#[cfg(test)]
#[path = "rx_ring_tests.rs"]
mod tests;
