//! The end of a ring where packets are put in.

use shoal_buffer::Packet;

use crate::consumer::{RingFault, Slots};
use crate::ring::{Desc, RingMemory};
use shoal_link::Doorbell;

/// How many packets ahead memory is loaded.
const AHEAD: u16 = 4;

/// Why a packet is not put into a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The peer does not keep up.
    Full,
    /// It needs more descriptors than the ring has.
    TooLong,
    /// A descriptor of the peer speaks of memory that is not there.
    Lie,
}

/// Puts packets into one ring.
pub struct Producer {
    ring: RingMemory,
    /// The slave's slots; none for the master, who learns from descriptors where to write.
    slots: Option<Slots>,
    /// The next descriptor to use.
    next: u16,
    /// Descriptors that can be used.
    free: u16,
    /// What the peer has been told.
    told: u16,
    doorbell: Doorbell,
}

impl Producer {
    /// The master's end of a ring whose memory is the peer's.
    pub fn master(ring: RingMemory, doorbell: Doorbell) -> Self {
        Producer { ring, slots: None, next: 0, free: 0, told: 0, doorbell }
    }

    /// The slave's end of an empty ring.
    pub fn slave(ring: RingMemory, slots: Slots, doorbell: Doorbell) -> Self {
        ring.format();
        Producer { ring, slots: Some(slots), next: 0, free: 0, told: 0, doorbell }
    }

    /// Looks how far the peer has come.
    ///
    /// # Errors
    /// It says what cannot be.
    #[inline]
    pub fn begin(&mut self) -> Result<(), RingFault> {
        let most = self.ring.size();
        let claimed = match self.slots {
            // What is not in the peer's hands.
            Some(_) => self.next.wrapping_sub(self.ring.tail()),
            // What the peer has given.
            None => self.ring.head().wrapping_sub(self.next),
        };
        if claimed > most {
            return Err(RingFault { claimed, most });
        }
        self.free = if self.slots.is_some() { most - claimed } else { claimed };
        (0..AHEAD).for_each(|ahead| self.ring.prefetch(self.next.wrapping_add(ahead)));
        Ok(())
    }

    /// The memory behind a descriptor.
    #[inline(always)]
    fn room(&self, index: u16) -> Desc {
        match &self.slots {
            Some(slots) => slots.empty(self.ring.slot(index)),
            None => self.ring.desc(index),
        }
    }

    /// Puts a packet in. The peer sees it after [`Producer::publish`].
    #[inline]
    pub fn send(&mut self, pkt: &Packet<'_>) -> Result<(), Refusal> {
        let ahead = self.next.wrapping_add(AHEAD);
        self.ring.prefetch(ahead.wrapping_add(AHEAD));
        let to = self.room(ahead);
        self.ring.regions().prefetch(to.region, to.offset);
        if !pkt.is_chained() && self.free > 0 {
            let room = self.room(self.next);
            let data = pkt.data();
            if data.len() <= room.length as usize {
                return self.put(room, data, 0).ok_or(Refusal::Lie);
            }
        }
        self.send_parts(pkt.segments())
    }

    /// Fills the next descriptor and its memory.
    #[inline(always)]
    fn put(&mut self, room: Desc, data: &[u8], flags: u16) -> Option<()> {
        self.ring.regions().copy_in(room.region, room.offset, data)?;
        self.ring.set_desc(self.next, Desc { flags, length: data.len() as u32, ..room });
        self.next = self.next.wrapping_add(1);
        self.free -= 1;
        Some(())
    }

    /// Puts a packet in, over as many descriptors as it needs; all of it or nothing.
    pub fn send_parts<'a>(&mut self, parts: impl Iterator<Item = &'a [u8]>) -> Result<(), Refusal> {
        let (next, free) = (self.next, self.free);
        let sent = self.try_parts(parts);
        if sent.is_err() {
            (self.next, self.free) = (next, free);
        }
        sent
    }

    fn try_parts<'a>(&mut self, parts: impl Iterator<Item = &'a [u8]>) -> Result<(), Refusal> {
        let (first, ring) = (self.next, self.ring.size());
        let none_left = |p: &Self| {
            let whole = p.next.wrapping_sub(first) == ring;
            if whole { Refusal::TooLong } else { Refusal::Full }
        };
        // The descriptor that is being filled.
        let mut open: Option<(Desc, u32)> = None;
        for mut part in parts {
            while !part.is_empty() {
                let (room, filled) = match open {
                    Some((room, filled)) if filled < room.length => (room, filled),
                    full => {
                        if let Some((room, _)) = full {
                            self.close(Desc { flags: Desc::NEXT, ..room });
                        }
                        if self.free == 0 {
                            return Err(none_left(self));
                        }
                        let room = self.room(self.next);
                        if room.length == 0
                            || !self.ring.regions().holds(room.region, room.offset, room.length)
                        {
                            return Err(Refusal::Lie);
                        }
                        (room, 0)
                    }
                };
                let n = part.len().min((room.length - filled) as usize);
                let (now, later) = part.split_at_checked(n).unwrap_or((part, &[]));
                // Inside: `filled + n` is at most the length that was checked.
                let copied = self.ring.regions().copy_in(room.region, room.offset.wrapping_add(filled), now);
                copied.ok_or(Refusal::Lie)?;
                open = Some((room, filled + n as u32));
                part = later;
            }
        }
        if let Some((room, filled)) = open {
            self.close(Desc { flags: 0, length: filled, ..room });
        }
        Ok(())
    }

    /// Writes the descriptor that was filled, and goes to the next.
    fn close(&mut self, desc: Desc) {
        self.ring.set_desc(self.next, desc);
        self.next = self.next.wrapping_add(1);
        self.free = self.free.saturating_sub(1);
    }

    /// Shows the peer what was put in since the last time, and wakes it if it wants to be; tells whether it did.
    #[inline]
    pub fn publish(&mut self) -> bool {
        if self.told == self.next {
            return false;
        }
        self.told = self.next;
        match self.slots {
            Some(_) => self.ring.set_head(self.next),
            None => self.ring.set_tail(self.next),
        }
        // The peer writes its flag and then looks at the index: this is the other way round.
        std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
        self.ring.wants_interrupts() && self.doorbell.ring()
    }
}
