//! Frames to the host's programs, in a ring the kernel empties: a frame is a chain of slots.

use std::sync::Arc;

use shoal_vnet::VnetHdr;
use zerocopy::IntoBytes as _;

use crate::SendError;
use crate::ring::{HEADER, Malformed, Ring};
use crate::sys::vhost::Vhost;
use crate::vring::NEXT;

/// Bytes of an Ethernet header: the kernel takes nothing shorter.
const LEAST: usize = 14;

/// A transmit ring.
pub(crate) struct TxRing {
    ring: Ring,
    /// Slots of this end.
    free: Vec<u16>,
    /// Slots of the frame that is being written.
    chain: Vec<u16>,
    /// Behind which slot which one follows, as this end knows: the kernel is not asked.
    next: Box<[u16]>,
    /// How many slots the chain has that begins at each and is with the kernel; 0 where none does.
    heads: Box<[u16]>,
    /// The last owner stops it. None in tests, where no other thread is in the ring.
    #[allow(dead_code, reason = "kept for when it ends")]
    vhost: Option<Arc<Vhost>>,
}

impl TxRing {
    /// An empty ring.
    pub(crate) fn new(ring: Ring) -> Self {
        let size = ring.vring.size();
        let room = usize::from(size);
        let (next, heads) = (vec![0; room].into(), vec![0; room].into());
        // From the end, as they are taken.
        let free = (0..size).rev().collect();
        TxRing { ring, free, chain: Vec::with_capacity(room), next, heads, vhost: None }
    }

    /// The kernel's thread lives as long as this.
    pub(crate) fn start(&mut self, vhost: Arc<Vhost>) {
        self.vhost = Some(vhost);
    }

    /// The ring, to tell the kernel of it.
    pub(crate) fn ring(&self) -> &Ring {
        &self.ring
    }

    /// Whether nothing can be sent any more.
    #[inline(always)]
    pub(crate) fn is_broken(&self) -> bool {
        self.ring.is_broken()
    }

    /// Takes back what the kernel has sent; tells how many entries make no sense.
    #[inline(always)]
    pub(crate) fn begin(&mut self) -> usize {
        let Ok(ready) = self.ring.ready() else { return 1 };
        let mut malformed = 0;
        for _ in 0..ready {
            let (id, _) = self.ring.take();
            malformed += usize::from(self.reclaim(id).is_err());
        }
        malformed
    }

    #[inline(always)]
    fn reclaim(&mut self, id: u32) -> Result<(), Malformed> {
        let slots = self.heads.get_mut(id as usize).filter(|slots| **slots > 0).ok_or(Malformed)?;
        let slots = std::mem::take(slots);
        let mut slot = id as u16;
        for _ in 0..slots {
            self.free.push(slot);
            slot = self.next.get(usize::from(slot)).copied().unwrap_or_default();
        }
        Ok(())
    }

    /// Writes a frame behind its header. The kernel sees it after [`TxRing::finish`].
    ///
    /// # Errors
    /// It is too short, or there is no room; nothing is taken then.
    #[inline(always)]
    pub(crate) fn send<'a>(
        &mut self,
        vnet: VnetHdr,
        segments: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<(), SendError> {
        // The number of buffers behind it says nothing on this way: 0 (virtio 1.2, 5.1.6.2).
        let mut header = [0; HEADER];
        for (to, from) in header.iter_mut().zip(vnet.as_bytes()) {
            *to = *from;
        }
        let header: &[u8] = &header;
        self.chain.clear();
        let (mut at, mut bytes) = (self.ring.vring.slot_bytes(), 0);
        for mut segment in std::iter::once(header).chain(segments.into_iter().map(|s| -> &[u8] { s })) {
            bytes += segment.len();
            while !segment.is_empty() {
                if at == self.ring.vring.slot_bytes() {
                    let Some(slot) = self.free.pop() else { return Err(self.give_up()) };
                    self.chain.push(slot);
                    at = 0;
                }
                let n = segment.len().min(self.ring.vring.slot_bytes() - at);
                let Some((now, rest)) = segment.split_at_checked(n) else { break };
                let slot = self.chain.last().copied().unwrap_or_default();
                let copied = self.ring.vring.copy_in(slot, at, now);
                debug_assert!(copied.is_some(), "there is room");
                (segment, at) = (rest, at + n);
            }
        }
        if bytes < HEADER + LEAST {
            self.give_up();
            return Err(SendError::Invalid);
        }
        self.give(at);
        Ok(())
    }

    /// Gives the chain, whose last slot has so many bytes.
    #[inline(always)]
    fn give(&mut self, last: usize) {
        let full = self.ring.vring.slot_bytes() as u32;
        let mut behind = None;
        for slot in self.chain.iter().rev().copied() {
            match behind {
                None => self.ring.vring.set_desc(slot, last as u32, 0, 0),
                Some(next) => {
                    self.ring.vring.set_desc(slot, full, NEXT, next);
                    if let Some(own) = self.next.get_mut(usize::from(slot)) {
                        *own = next;
                    }
                }
            }
            behind = Some(slot);
        }
        if let Some(head) = behind
            && let Some(slots) = self.heads.get_mut(usize::from(head))
        {
            *slots = self.chain.len() as u16;
            self.ring.give(head);
        }
    }

    /// Takes back what was written of a frame.
    #[cold]
    fn give_up(&mut self) -> SendError {
        let whole = self.chain.len() == self.heads.len();
        self.free.extend(self.chain.drain(..).rev());
        if whole { SendError::TooManySegments } else { SendError::QueueFull }
    }

    /// Shows the kernel all that was sent; tells whether it was woken.
    #[inline(always)]
    pub(crate) fn finish(&mut self) -> bool {
        self.ring.show()
    }
}

#[cfg(test)]
#[path = "tx_ring_tests.rs"]
mod tests;
