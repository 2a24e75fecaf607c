//! Between the ten bytes and a packet's metadata: what a driver does with each frame it receives or sends.

use std::num::NonZeroU16;

use shoal_buffer::{Buffer, Cache, DATA_SIZE, Flags, Packet};

use crate::bytes::put;
use crate::checksum::Sum;
use crate::hdr::{Csum, Gso, GsoKind, Offload, VnetHdr};

/// Bytes of an 802.1Q tag.
const TAG: usize = 4;
/// Bytes of the two addresses in front of the tag.
const ADDRESSES: usize = 12;

/// A packet with these bytes, over as many segments as they need. `None` when no buffer is free; nothing is kept
/// then.
#[inline]
pub fn fill(cache: &mut Cache, bytes: &[u8]) -> Option<Buffer> {
    if bytes.len() <= DATA_SIZE {
        let mut buffer = cache.alloc_one()?;
        let fits = cache.packet(&mut buffer).set_data(bytes);
        debug_assert!(fits.is_some(), "the length was checked");
        return Some(buffer);
    }
    fill_chain(cache, bytes.len(), |at, to| {
        to.copy_from_slice(bytes.get(at..at + to.len()).unwrap_or_default());
    })
}

/// A packet of so many bytes, which `read` writes: those from a byte on, as many as there is room for. `None` when no
/// buffer is free; nothing is kept then.
#[inline]
pub fn fill_with(cache: &mut Cache, len: usize, mut read: impl FnMut(usize, &mut [u8])) -> Option<Buffer> {
    if len <= DATA_SIZE {
        let mut buffer = cache.alloc_one()?;
        read(0, cache.packet(&mut buffer).put(len).unwrap_or_default());
        return Some(buffer);
    }
    fill_chain(cache, len, read)
}

/// From the last segment to the first, because what is added goes behind a packet's end: the other way round, the
/// whole chain would be walked for every segment.
fn fill_chain(cache: &mut Cache, len: usize, mut read: impl FnMut(usize, &mut [u8])) -> Option<Buffer> {
    let mut tail: Option<Buffer> = None;
    let mut end = len;
    while end > 0 {
        let start = (end - 1) / DATA_SIZE * DATA_SIZE;
        let Some(mut buffer) = cache.alloc_one() else {
            if let Some(tail) = tail {
                cache.free(tail);
            }
            return None;
        };
        let mut pkt = cache.packet(&mut buffer);
        read(start, pkt.put(end - start).unwrap_or_default());
        if let Some(tail) = tail.take() {
            let added = cache.append(&mut pkt, tail);
            debug_assert!(added.is_ok(), "nothing of it is shared");
        }
        tail = Some(buffer);
        end = start;
    }
    tail
}

/// The checksum or the headers a frame owes lie behind its first segment: no sender does that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("headers beyond the first segment")]
pub struct HeadersTooLong;

impl Offload {
    /// Writes what the packet owes into its metadata. The packet's front must be that of the frame the header came
    /// with.
    ///
    /// # Errors
    /// The headers do not lie in the first segment; the metadata is unchanged then.
    #[inline]
    pub fn store(&self, pkt: &mut Packet<'_>) -> Result<(), HeadersTooLong> {
        match self.csum {
            Csum::Unknown => Ok(()),
            Csum::Valid => {
                let meta = pkt.meta_mut();
                meta.flags = meta.flags.with(Flags::L4_CHECKSUM_OK);
                Ok(())
            }
            Csum::Partial { start, offset } => self.store_partial(pkt, start, offset),
        }
    }

    fn store_partial(&self, pkt: &mut Packet<'_>, start: u16, offset: u16) -> Result<(), HeadersTooLong> {
        let end = usize::from(start) + usize::from(offset) + 2;
        let headers = self.gso.map_or(end, |gso| end.max(usize::from(gso.header_len)));
        if headers > pkt.segment_len() {
            return Err(HeadersTooLong);
        }
        let front = pkt.current();
        let meta = pkt.meta_mut();
        // A segment holds 2,048 bytes, so the offset fits.
        meta.l4 = front + start as i16;
        meta.checksum_offset = offset;
        // A sender that vouches for an open checksum vouches for the bytes under it: nothing was on a wire yet.
        let mut flags = meta.flags.with(Flags::L4_CHECKSUM_OFFLOAD).with(Flags::L4_CHECKSUM_OK);
        if let Some(gso) = self.gso {
            flags = flags.with(Flags::GSO).with(match gso.kind {
                GsoKind::Tcp4 => Flags::GSO_TCP4,
                GsoKind::Tcp6 => Flags::GSO_TCP6,
                GsoKind::Udp => Flags::GSO_UDP,
            });
            if gso.ecn {
                flags = flags.with(Flags::GSO_ECN);
            }
            meta.gso_size = gso.size.get();
            meta.gso_header = gso.header_len.saturating_sub(start);
        }
        meta.flags = flags;
        Ok(())
    }

    /// What a packet owes when it leaves, counted from its front as it is now. `None` when its metadata make no
    /// sense: the transport header is not inside the first segment.
    #[inline]
    pub fn load(pkt: &Packet<'_>) -> Option<Self> {
        if pkt.flags().has(Flags::L4_CHECKSUM_OFFLOAD.with(Flags::GSO)) {
            Self::load_partial(pkt)
        } else {
            Some(Self::default())
        }
    }

    fn load_partial(pkt: &Packet<'_>) -> Option<Self> {
        let meta = pkt.meta();
        let start = u16::try_from(i32::from(meta.l4) - i32::from(pkt.current())).ok()?;
        let offset = meta.checksum_offset;
        if usize::from(start) + usize::from(offset) + 2 > pkt.segment_len() {
            return None;
        }
        let csum = Csum::Partial { start, offset };
        if !pkt.flags().has(Flags::GSO) {
            return Some(Offload { csum, gso: None });
        }
        let kind = match pkt.flags() {
            f if f.has(Flags::GSO_TCP4) => GsoKind::Tcp4,
            f if f.has(Flags::GSO_TCP6) => GsoKind::Tcp6,
            f if f.has(Flags::GSO_UDP) => GsoKind::Udp,
            _ => return None,
        };
        // Read again: a node may have changed the header on the way.
        let transport = match kind {
            GsoKind::Udp => 8,
            GsoKind::Tcp4 | GsoKind::Tcp6 => u16::from(pkt.data().get(usize::from(start) + 12)? >> 4) * 4,
        };
        let header_len = start.checked_add(transport).filter(|len| usize::from(*len) <= pkt.segment_len())?;
        let gso = Gso {
            kind,
            size: NonZeroU16::new(meta.gso_size)?,
            header_len,
            ecn: pkt.flags().has(Flags::GSO_ECN),
        };
        Some(Offload { csum, gso: Some(gso) })
    }
}

/// Completes the transport checksum a packet owes, over all its segments. A packet that owes none, or is a superframe, is
/// left as it is; `None`, and so is it, when its metadata make no sense.
pub fn complete_checksum(pkt: &mut Packet<'_>) -> Option<()> {
    let Offload { csum: Csum::Partial { start, offset }, gso: None } = Offload::load(pkt)? else {
        return Some(());
    };
    let mut sum = Sum::default();
    let mut skip = usize::from(start);
    for segment in pkt.segments() {
        sum.add(segment.get(skip..).unwrap_or_default());
        skip = skip.saturating_sub(segment.len());
    }
    // In the first segment: `load` has checked it.
    put(pkt.data_mut(), usize::from(start) + usize::from(offset), &sum.finish_transport().to_be_bytes())?;
    let meta = pkt.meta_mut();
    meta.flags = meta.flags.without(Flags::L4_CHECKSUM_OFFLOAD);
    Some(())
}

/// Segments that a [`SegmentList`] can hold: a superframe of 64 KiB has 33, and headers may have got some of their own.
const MOST_SEGMENTS: usize = 128;

/// A packet's segments side by side, as [`crate::Segments`] wants them.
pub struct SegmentList<'a> {
    list: [&'a [u8]; MOST_SEGMENTS],
    len: usize,
}

impl<'a> SegmentList<'a> {
    /// The segments of a packet; `None` when there are more than 128.
    pub fn of(pkt: &'a Packet<'_>) -> Option<Self> {
        let mut segments = SegmentList { list: [&[]; MOST_SEGMENTS], len: 0 };
        for segment in pkt.segments() {
            *segments.list.get_mut(segments.len)? = segment;
            segments.len += 1;
        }
        Some(segments)
    }

    /// The segments, in order.
    pub fn as_slice(&self) -> &[&'a [u8]] {
        self.list.get(..self.len).unwrap_or_default()
    }
}

/// The header to send with a packet; `None` when its metadata make no sense.
#[inline]
pub fn owed(pkt: &Packet<'_>) -> Option<VnetHdr> {
    Offload::load(pkt).map(VnetHdr::from)
}

/// Puts an 802.1Q tag that the kernel took out back behind the two addresses. `None`, and nothing changes, when the
/// packet is too short or has no headroom.
pub fn insert_tag(pkt: &mut Packet<'_>, tpid: u16, tci: u16) -> Option<()> {
    if pkt.segment_len() < ADDRESSES {
        return None;
    }
    // The front moves, not the payload: offsets that count from the data area stay right.
    pkt.push(TAG)?;
    let data = pkt.data_mut();
    data.copy_within(TAG..TAG + ADDRESSES, 0);
    let ([a, b], [c, d]) = (tpid.to_be_bytes(), tci.to_be_bytes());
    data.get_mut(ADDRESSES..ADDRESSES + TAG)?.copy_from_slice(&[a, b, c, d]);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use shoal_buffer::{Pages, Pool, PoolConfig};

    fn pool(buffers: usize) -> std::sync::Arc<Pool> {
        Pool::new(PoolConfig { name: "test".into(), buffers, most: buffers, pages: Pages::Small }).unwrap()
    }

    #[test]
    fn a_long_frame_becomes_a_chain_with_the_same_bytes() {
        let pool = pool(128);
        let mut cache = pool.cache();
        for len in [0, 1, 2048, 2049, 4096, 65_535] {
            let bytes: Vec<u8> = (0..len).map(|i| (i * 7) as u8).collect();
            let mut buffer = fill(&mut cache, &bytes).unwrap();
            assert_eq!(cache.packet(&mut buffer).to_vec(), bytes);
            assert_eq!(cache.packet(&mut buffer).len(), len);
            cache.free(buffer);
            let read = |at: usize, to: &mut [u8]| to.copy_from_slice(&bytes[at..at + to.len()]);
            let mut buffer = fill_with(&mut cache, len, read).unwrap();
            assert_eq!(cache.packet(&mut buffer).to_vec(), bytes);
            cache.free(buffer);
        }
        drop(cache);
        assert_eq!(pool.stats().used, 0);
    }

    #[test]
    fn an_exhausted_pool_keeps_nothing_of_a_half_made_chain() {
        let pool = pool(8);
        let mut cache = pool.cache();
        assert!(fill(&mut cache, &vec![1; 65_000]).is_none());
        drop(cache);
        assert_eq!(pool.stats().used, 0);
    }

    #[test]
    fn what_is_owed_survives_another_link_layer_in_front() {
        let pool = pool(8);
        let mut cache = pool.cache();
        let mut frame = [0u8; 100];
        frame[34 + 12] = 0x80;
        let mut buffer = fill(&mut cache, &frame).unwrap();
        let mut pkt = cache.packet(&mut buffer);
        let size = NonZeroU16::new(1448).unwrap();
        let gso = Gso { kind: GsoKind::Tcp4, size, header_len: 66, ecn: true };
        let offload = Offload { csum: Csum::Partial { start: 34, offset: 16 }, gso: Some(gso) };
        offload.store(&mut pkt).unwrap();
        assert_eq!(Offload::load(&pkt), Some(offload));
        insert_tag(&mut pkt, 0x8100, 5).unwrap();
        assert_eq!(&pkt.data()[12..16], &[0x81, 0, 0, 5]);
        let shifted = Offload {
            csum: Csum::Partial { start: 38, offset: 16 },
            gso: Some(Gso { header_len: 70, ..gso }),
        };
        assert_eq!(Offload::load(&pkt), Some(shifted));
        pkt.pull(40).unwrap();
        assert_eq!(Offload::load(&pkt), None, "the transport header is cut off");
        cache.free(buffer);
    }

    #[test]
    fn a_packets_checksum_is_completed_over_all_its_segments() {
        let pool = pool(8);
        let mut cache = pool.cache();
        for len in [60, 2048, 2049, 4097, 6000] {
            let mut frame: Vec<u8> = (0..len).map(|i| (i * 13) as u8).collect();
            let mut buffer = fill(&mut cache, &frame).unwrap();
            let mut pkt = cache.packet(&mut buffer);
            Offload { csum: Csum::Partial { start: 35, offset: 6 }, gso: None }.store(&mut pkt).unwrap();
            complete_checksum(&mut pkt).unwrap();
            crate::finish_checksum(&mut [&mut frame], 35, 6).unwrap();
            assert_eq!(pkt.to_vec(), frame, "{len} bytes");
            assert_eq!(Offload::load(&pkt), Some(Offload::default()), "nothing is owed any more");
            complete_checksum(&mut pkt).unwrap();
            assert_eq!(pkt.to_vec(), frame, "a packet that owes nothing is left alone");
            cache.free(buffer);
        }
    }

    #[test]
    fn a_checksum_beyond_its_packet_is_refused() {
        let pool = pool(8);
        let mut cache = pool.cache();
        let mut buffer = fill(&mut cache, &[0; 60]).unwrap();
        let mut pkt = cache.packet(&mut buffer);
        Offload { csum: Csum::Partial { start: 34, offset: 16 }, gso: None }.store(&mut pkt).unwrap();
        pkt.truncate(51).unwrap();
        assert_eq!(complete_checksum(&mut pkt), None);
        assert_eq!(pkt.to_vec(), [0; 51]);
        cache.free(buffer);
    }

    #[test]
    fn a_chain_of_too_many_segments_makes_no_list() {
        let pool = pool(256);
        let mut cache = pool.cache();
        for (segments, fits) in [(1, true), (128, true), (129, false)] {
            let mut buffer = fill(&mut cache, &[0]).unwrap();
            let mut pkt = cache.packet(&mut buffer);
            for n in 1..segments {
                let more = fill(&mut cache, &[n as u8]).unwrap();
                pkt.append_segment(more).unwrap();
            }
            let list = SegmentList::of(&pkt);
            assert_eq!(list.is_some(), fits, "{segments}");
            assert!(list.is_none_or(|l| l.as_slice().concat() == pkt.to_vec()));
            cache.free(buffer);
        }
    }

    #[test]
    fn headers_behind_the_first_segment_are_refused() {
        let pool = pool(8);
        let mut cache = pool.cache();
        let mut buffer = fill(&mut cache, &[0; 3000]).unwrap();
        let offload = Offload { csum: Csum::Partial { start: 2040, offset: 16 }, gso: None };
        assert_eq!(offload.store(&mut cache.packet(&mut buffer)), Err(HeadersTooLong));
        cache.free(buffer);
    }
}
