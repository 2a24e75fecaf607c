//! Packets for many: copies whose payload is shared.

use std::num::NonZeroU32;

use shoal_infra::Shares;

use crate::meta::Link;
use crate::{Buffer, Cache, DATA_SIZE, Flags, Full, Meta, Packet};

/// Bytes that a packet whose payload is shared has for itself, if it is that long: enough for headers, which nodes look
/// for in the first segment, and change.
pub const SHARED_HEAD: usize = 256;
/// Bytes that are worth sharing: fewer are copied as fast as they are counted (`tests/cost.rs`).
const LEAST: usize = 768;
/// Bytes in front of a packet's first that are kept for it, as there was its link's header.
const IN_FRONT: usize = 64;

impl Packet<'_> {
    /// Bytes at the front that have to be this packet's own: nodes write them later.
    fn headers(&self) -> usize {
        let meta = self.meta();
        if !meta.flags.has(Flags::L4_CHECKSUM_OFFLOAD.with(Flags::GSO)) {
            return SHARED_HEAD;
        }
        let l4 = usize::try_from(i32::from(meta.l4) - i32::from(meta.current)).unwrap_or(0);
        SHARED_HEAD.max(l4 + usize::from(meta.gso_header).max(usize::from(meta.checksum_offset) + 2))
    }
}

impl Cache {
    /// Makes a packet ready for many: all but its front becomes a part that copies ([`Cache::copy`]) share and only read.
    /// It has the same bytes and is the same packet for the graph. Short packets come back as they are, and so do all when
    /// there is no buffer for the front; their copies are whole ones then.
    #[inline]
    #[must_use]
    pub fn share(&mut self, mut buffer: Buffer) -> Buffer {
        let mut pkt = self.packet(&mut buffer);
        let (front, first) = (pkt.headers(), pkt.segment_len());
        if pkt.len() < front + LEAST {
            return buffer;
        }
        if first >= front + LEAST {
            return self.divide(buffer, front);
        }
        // The front is a segment by itself already, unless headers go on behind it.
        if front == SHARED_HEAD || first >= front {
            let memory = self.memory();
            let meta = pkt.meta_mut();
            if let Some(next) = meta.next.to_own() {
                meta.next = Link::shared(next.get());
                // SAFETY: a link of this packet's own chain, which no other thread has yet.
                unsafe { memory.meta(next.get()) }.shares = Shares::new(1);
            }
        }
        buffer
    }

    /// Parts a packet's first segment: the front goes to a new buffer, the rest becomes the first shared segment.
    fn divide(&mut self, mut buffer: Buffer, front: usize) -> Buffer {
        let Some(mut head) = self.alloc_one() else { return buffer };
        let (mut old, mut new) = (self.packet(&mut buffer), self.packet(&mut head));
        *new.scratch_line() = *old.scratch_line();
        let kept = old.headroom().min(IN_FRONT);
        let start = old.headroom() - kept;
        if let (Some(to), Some(from)) = (
            new.area_mut().get_mut(start..start + kept + front),
            old.area_mut().get(start..start + kept + front),
        ) {
            to.copy_from_slice(from);
        }
        let (from, to) = (old.meta_mut(), new.meta_mut());
        to.take_over(from);
        (to.flags, to.trace, to.error) = (from.flags, from.trace, from.error);
        (to.current, to.length) = (from.current, front as u16);
        to.rest = u32::from(from.length) - front as u32 + from.rest;
        (from.current, from.length) = (from.current + front as i16, from.length - front as u16);
        from.shares = Shares::new(1);
        to.next = Link::shared(buffer.into_index());
        head
    }

    /// A second packet with the same bytes, and everything the graph knows of the first one but its trace; the scratch line
    /// is not copied. The first one's own segments are copied, shared ones are shared with this one too: whatever either
    /// writes, and when it is freed, is nothing to the other.
    ///
    /// # Errors
    /// [`Full`] when the pool has too few buffers; nothing is kept.
    #[inline]
    pub fn copy(&mut self, from: &Packet<'_>) -> Result<Buffer, Full> {
        let mut first = self.alloc_one().ok_or(Full)?;
        let mut copy = self.packet(&mut first);
        // The first segment keeps its headroom, for the offsets of the headers count from the data area.
        let fits = copy.set_data_at(from.current(), from.data());
        debug_assert!(fits.is_some(), "the bytes lay in a buffer of this size");
        copy.meta_mut().take_over(from.meta());
        if from.is_chained() {
            return self.copy_rest(from, first);
        }
        Ok(first)
    }

    /// The later segments of a copy whose first is made.
    fn copy_rest(&mut self, from: &Packet<'_>, mut first: Buffer) -> Result<Buffer, Full> {
        let memory = self.memory();
        let (mut last, mut old) = (first.number(), from.meta());
        let mut own = from.segments();
        own.next();
        while let Some(next) = old.next.to_own() {
            // SAFETY: an own link of the packet's chain, and the packet is borrowed.
            old = unsafe { memory.at(next.get()).cast::<Meta>().as_ref() };
            let Some(mut buffer) = self.alloc_one() else {
                self.free(first);
                return Err(Full);
            };
            let fits = self.packet(&mut buffer).set_data_at(0, own.next().unwrap_or_default());
            debug_assert!(fits.is_some(), "the bytes lay in a buffer of this size");
            let index = buffer.into_index();
            // SAFETY: the copy's last segment, which is in no other hands.
            unsafe { memory.meta(last) }.next = Link::own(index);
            last = index;
        }
        // SAFETY: the packet has the link, and is borrowed.
        let shared = unsafe { memory.linked(&old.next) };
        if let (true, Some(index), Some(shared)) = (old.next.is_shared(), old.next.index(), shared) {
            shared.shares.add();
            // SAFETY: the copy's last segment, which is in no other hands.
            unsafe { memory.meta(last) }.next = Link::shared(index.get());
        }
        self.packet(&mut first).meta_mut().rest = from.meta().rest;
        Ok(first)
    }

    /// Makes every segment a packet's own, so that it may be written and others hung on it. What other packets have too is
    /// copied.
    ///
    /// # Errors
    /// [`Full`] when the pool has too few buffers; the packet is as before.
    pub fn make_own(&mut self, pkt: &mut Packet<'_>) -> Result<(), Full> {
        if !pkt.is_shared() {
            return Ok(());
        }
        let memory = self.memory();
        while pkt.is_shared() {
            let end = pkt.end_of_own_mut();
            // SAFETY: the packet has the link, and is borrowed.
            let alone = unsafe { memory.linked(&end.next) }.is_some_and(|next| next.shares.is_last());
            if alone {
                end.next = Link::own(end.next.index().map_or(0, NonZeroU32::get));
            } else {
                self.copy_shared(pkt)?;
            }
        }
        // A segment that others had too may have been longer than what this packet has of it.
        let cut = pkt.truncate(pkt.len());
        debug_assert!(cut.is_some(), "it is as long as it is");
        Ok(())
    }

    /// Adds `more` behind a packet's last byte, which is made the packet's own first where it is not.
    ///
    /// # Errors
    /// [`Full`] when that takes more buffers than there are; `more` is freed, the packet is as before.
    #[inline]
    pub fn append(&mut self, pkt: &mut Packet<'_>, more: Buffer) -> Result<(), Full> {
        let Err(mut more) = pkt.append_segment(more) else { return Ok(()) };
        if self.make_own(pkt).is_ok() {
            match pkt.append_segment(more) {
                Ok(()) => return Ok(()),
                Err(refused) => more = refused,
            }
        }
        self.free(more);
        Err(Full)
    }

    #[cold]
    fn copy_shared(&mut self, pkt: &mut Packet<'_>) -> Result<(), Full> {
        let memory = self.memory();
        let mut own = pkt.segment_len();
        let mut meta = pkt.meta();
        while let Some(next) = meta.next.to_own() {
            // SAFETY: an own link of the packet's chain, and the packet is borrowed.
            meta = unsafe { memory.at(next.get()).cast::<Meta>().as_ref() };
            own += usize::from(meta.length);
        }
        // From the last to the first: what is added goes behind a packet's end, which would be looked for each time.
        let pieces = pkt.len().saturating_sub(own).div_ceil(DATA_SIZE);
        let mut rest = None::<Buffer>;
        for at in (0..pieces).map(|piece| own + piece * DATA_SIZE).rev() {
            let Some(mut buffer) = self.alloc_one() else {
                if let Some(rest) = rest {
                    self.free(rest);
                }
                return Err(Full);
            };
            let mut piece = self.packet(&mut buffer);
            if let Some(to) = piece.put(DATA_SIZE.min(pkt.len() - at)) {
                pkt.copy_at(at, to);
            }
            if let Some(rest) = rest.take() {
                let bytes = self.packet(&mut buffer).append_segment(rest);
                debug_assert!(bytes.is_ok(), "it is fresh");
            }
            rest = Some(buffer);
        }
        let copied = rest.map_or(Link::NONE, |rest| Link::own(rest.into_index()));
        let shared = std::mem::replace(&mut pkt.end_of_own_mut().next, copied);
        self.free_link(shared);
        Ok(())
    }
}
