//! The end of a ring where packets are taken out.

use std::sync::Arc;

use shoal_buffer::FRAME_SIZE;

use crate::region::Regions;
use crate::ring::{Desc, RingMemory};
use shoal_link::EventFd;

/// Most descriptors that are looked at before packets are handed on.
const MOST_DESCS: usize = 1024;
/// Most descriptors of one packet: 64 KiB in pieces of 128 bytes.
const MOST_PARTS: usize = 512;
/// Most bytes of a packet.
const MOST_BYTES: usize = 65_535;

/// What a peer wrote into a ring's header cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("ring index that cannot be: {claimed} descriptors where at most {most} can be")]
pub struct RingFault {
    /// Descriptors there would have to be.
    pub claimed: u16,
    /// Descriptors there can be.
    pub most: u16,
}

/// Where the slave has put the packets of one ring: known to itself, whatever the peer writes into descriptors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slots {
    /// Which region.
    pub region: u16,
    /// Where the first packet's memory begins.
    pub first: u32,
    /// Bytes from one to the next.
    pub stride: u32,
    /// Bytes of each.
    pub size: u32,
}

impl Slots {
    #[inline(always)]
    pub(crate) fn offset(&self, slot: u16) -> u32 {
        self.first.wrapping_add(self.stride.wrapping_mul(u32::from(slot)))
    }

    /// The descriptor of an empty slot.
    #[inline(always)]
    pub(crate) fn empty(&self, slot: u16) -> Desc {
        Desc { flags: 0, region: self.region, length: self.size, offset: self.offset(slot) }
    }
}

/// Packets found in a ring, as descriptors that were read once and are inside their regions.
pub struct Found {
    descs: Box<[Desc; MOST_DESCS]>,
    used: usize,
    /// Where each packet begins in `descs`, and where it ends.
    packets: Box<[(u16, u16); FRAME_SIZE]>,
    count: usize,
    /// Descriptors to give back, also those of packets that make no sense.
    taken: u16,
    /// Packets whose descriptors make no sense.
    bad: usize,
}

impl Default for Found {
    fn default() -> Self {
        Found {
            descs: Box::new([Desc::default(); MOST_DESCS]),
            used: 0,
            packets: Box::new([(0, 0); FRAME_SIZE]),
            count: 0,
            taken: 0,
            bad: 0,
        }
    }
}

impl Found {
    /// How many packets.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether nothing was found.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.taken == 0
    }

    /// How many packets make no sense.
    pub fn bad(&self) -> usize {
        self.bad
    }

    /// The parts of a packet.
    #[inline(always)]
    pub fn packet(&self, i: usize) -> &[Desc] {
        let (start, end) = self.packets.get(i).copied().unwrap_or_default();
        self.descs.get(usize::from(start)..usize::from(end)).unwrap_or_default()
    }

    fn clear(&mut self) {
        (self.used, self.count, self.taken, self.bad) = (0, 0, 0, 0);
    }

    /// Adds a part to the packet that is being found; there is room.
    #[inline(always)]
    fn part(&mut self, desc: Desc) {
        if let Some(slot) = self.descs.get_mut(self.used) {
            *slot = desc;
            self.used += 1;
        }
    }

    /// The parts from `start` on are a packet.
    #[inline(always)]
    fn packet_from(&mut self, start: usize) {
        if let Some(slot) = self.packets.get_mut(self.count) {
            *slot = (start as u16, self.used as u16);
            self.count += 1;
        }
    }
}

/// Takes packets out of one ring. What the peer writes is read once, checked, and not looked at again.
pub struct Consumer {
    ring: RingMemory,
    /// The slave's slots; none for the master, who learns from descriptors where packets are.
    slots: Option<Slots>,
    /// The next descriptor to look at.
    next: u16,
    /// The slave has given this many descriptors in all.
    given: u16,
    /// The peer's index when it was read last.
    seen: u16,
    /// There was more than could be taken.
    more: bool,
    event: EventFd,
}

impl Consumer {
    /// The master's end of a ring whose memory is the peer's.
    pub fn master(ring: RingMemory, event: EventFd) -> Self {
        ring.set_interrupts(false);
        Consumer { ring, slots: None, next: 0, given: 0, seen: 0, more: false, event }
    }

    /// The slave's end, with all slots given to the peer.
    pub fn slave(ring: RingMemory, slots: Slots, event: EventFd) -> Self {
        ring.format();
        ring.set_interrupts(false);
        let given = ring.size();
        (0..given).for_each(|slot| ring.set_desc(slot, slots.empty(slot)));
        ring.set_head(given);
        Consumer { ring, slots: Some(slots), next: 0, given, seen: 0, more: false, event }
    }

    /// The slave gives its slots once more, before it has taken anything: DPDK's masters set all indices to 0 when they
    /// have heard of all rings, and say so with their `connected`.
    pub fn give_again(&self) {
        self.ring.set_interrupts(false);
        self.ring.set_head(self.given);
    }

    /// The memory packets lie in.
    #[inline(always)]
    pub fn regions(&self) -> &Arc<Regions> {
        self.ring.regions()
    }

    pub(crate) fn event(&self) -> &EventFd {
        &self.event
    }

    /// Descriptors that the last look found with packets, those that were found and not yet given back included. As many as
    /// the ring has: the peer could not put in what it had then.
    #[inline(always)]
    pub fn waiting(&self) -> u16 {
        self.seen.wrapping_sub(self.next)
    }

    /// How far the peer says it has come.
    #[inline(always)]
    fn theirs(&self) -> u16 {
        if self.slots.is_some() { self.ring.tail() } else { self.ring.head() }
    }

    /// Descriptors with packets.
    #[inline(always)]
    fn ready(&mut self) -> Result<u16, RingFault> {
        self.seen = self.theirs();
        let claimed = self.seen.wrapping_sub(self.next);
        // The slave can be given back only what it gave; all of a ring's descriptors are with the master then.
        let most = self.ring.size();
        if claimed > most { Err(RingFault { claimed, most }) } else { Ok(claimed) }
    }

    /// A descriptor whose memory is where it says; `None` when it is not.
    #[inline(always)]
    fn checked(&self, index: u16, desc: Desc) -> Option<Desc> {
        if let Some(slots) = &self.slots {
            let own = slots.empty(self.ring.slot(index));
            return (desc.length <= slots.size).then_some(Desc { length: desc.length, ..own });
        }
        self.regions().holds(desc.region, desc.offset, desc.length).then_some(desc)
    }

    /// Finds up to a frame's worth of packets. Afterwards they are to be copied, and given back with
    /// [`Consumer::release`].
    ///
    /// # Errors
    /// The peer's index cannot be: nothing in the ring can be believed any more.
    #[inline]
    pub fn find(&mut self, found: &mut Found) -> Result<(), RingFault> {
        found.clear();
        let ready = self.ready()?;
        self.more = false;
        while found.taken < ready {
            if found.count + found.bad >= FRAME_SIZE || found.used + MOST_PARTS > MOST_DESCS {
                self.more = true;
                break;
            }
            let index = self.next.wrapping_add(found.taken);
            self.ring.prefetch(index.wrapping_add(8));
            let desc = self.ring.desc(index);
            if desc.flags & Desc::NEXT != 0 {
                match self.find_chain(found, ready)? {
                    Some(()) => continue,
                    None => break,
                }
            }
            found.taken += 1;
            match self.checked(index, desc) {
                Some(desc) if desc.length > 0 && desc.length as usize <= MOST_BYTES => {
                    self.regions().prefetch(desc.region, desc.offset);
                    found.part(desc);
                    found.packet_from(found.used - 1);
                }
                _ => found.bad += 1,
            }
        }
        Ok(())
    }

    /// A packet of several descriptors; `None` when its end is not there yet.
    #[inline(never)]
    fn find_chain(&self, found: &mut Found, ready: u16) -> Result<Option<()>, RingFault> {
        let (start, mut bytes, mut good, mut taken) = (found.used, 0, true, found.taken);
        loop {
            if taken == ready {
                found.used = start;
                // A chain as long as the ring has no end.
                let endless = ready - found.taken == self.ring.size();
                return if endless { Err(RingFault { claimed: ready, most: ready - 1 }) } else { Ok(None) };
            }
            let index = self.next.wrapping_add(taken);
            let desc = self.ring.desc(index);
            taken += 1;
            match self.checked(index, desc) {
                Some(part) if good => {
                    bytes += part.length as usize;
                    good = bytes <= MOST_BYTES && found.used - start < MOST_PARTS;
                    if part.length > 0 && good {
                        found.part(part);
                    }
                }
                _ => good = false,
            }
            if desc.flags & Desc::NEXT == 0 {
                break;
            }
        }
        found.taken = taken;
        if good && bytes > 0 {
            found.packet_from(start);
        } else {
            found.used = start;
            found.bad += 1;
        }
        Ok(Some(()))
    }

    /// Gives back the descriptors of what was found.
    #[inline]
    pub fn release(&mut self, found: &Found) {
        self.next = self.next.wrapping_add(found.taken);
        let Some(slots) = self.slots else {
            self.ring.set_tail(self.next);
            return;
        };
        for _ in 0..found.taken {
            self.ring.set_desc(self.given, slots.empty(self.ring.slot(self.given)));
            self.given = self.given.wrapping_add(1);
        }
        self.ring.set_head(self.given);
    }

    /// Asks the peer to wake this end; tells whether there is something to take out already.
    pub fn arm(&self) -> bool {
        self.ring.set_interrupts(true);
        std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
        let work = || self.more || self.theirs() != self.seen;
        if work() {
            return true;
        }
        // A peer that does not order its index before its look at the flag may have both under way: what it wrote comes
        // to light within this time.
        (0..64).for_each(|_| std::hint::spin_loop());
        work()
    }

    /// Takes that back: this end looks for itself.
    pub fn disarm(&self) {
        self.ring.set_interrupts(false);
        self.event.drain();
    }
}
