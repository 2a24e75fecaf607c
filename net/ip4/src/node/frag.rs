//! `ip4-frag`: cut packets that are too long for the way out. RFC 791, 3.2; RFC 1812, 4.2.2.7.
//! ip4-rewrite -> **ip4-frag** -> ip4-rewrite | where packets to groups are rewritten
//!
//! A frame node, because one packet becomes several.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use shoal_adj::{AdjIndex, AdjKind, AdjTable};
use shoal_buffer::{Buffer, DATA_SIZE, Flags, Frame, Packet};
use shoal_derive::{ErrorCounters, NextNodes, TraceLine};
use shoal_graph::{Edge, FrameCx, FrameNode, NextNodes as _};
use shoal_wire::{FromBytes, Ip4Header};

use crate::checksum;

/// Where a packet goes next.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Each fragment goes the packet's way.
    #[node("ip4-rewrite")]
    Rewrite,
    /// The same for packets to groups.
    Multicast(Edge),
}

/// Why a packet is dropped here, and what else is counted.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// fragments sent
    #[severity(info)]
    FragmentsSent,
    /// packets cut
    #[severity(info)]
    PacketsCut,
    /// packet or MTU too short to cut
    CannotCut,
    /// no buffer for a fragment
    NoBuffer,
    /// fragment ends beyond the longest packet
    BeyondEnd,
}

/// What `show trace` says.
#[derive(TraceLine)]
#[line("IPv4 mtu: {mtu} fragments: {fragments}")]
struct Trace {
    mtu: usize,
    fragments: usize,
}

/// Cuts packets.
pub struct Ip4Frag {
    /// All adjacencies.
    pub adjacencies: AdjTable,
    /// The edge to the node that rewrites packets to groups.
    pub multicast: Ip4FragMulticast,
}

/// The edge from `ip4-frag` to the node that rewrites packets to groups, which is not named here. Clones are the same.
#[derive(Clone, Default)]
pub struct Ip4FragMulticast(Arc<AtomicU16>);

impl Ip4FragMulticast {
    /// Sets it; it leads to a drop at first.
    pub fn set(&self, edge: Edge) {
        self.0.store(edge.0, Ordering::Release);
    }

    fn get(&self) -> Edge {
        Edge(self.0.load(Ordering::Acquire))
    }
}

/// Longest header.
const MAX_HEADER: usize = Ip4Header::MAX_LEN;

/// Longest packet that fragments may make up.
const MAX_PACKET: usize = u16::MAX as usize;

/// A header to put in front of fragments.
pub struct Header {
    bytes: [u8; MAX_HEADER],
    /// How long it is.
    pub len: usize,
}

impl Header {
    /// That of a packet.
    pub fn of(pkt: &Packet<'_>) -> Option<Header> {
        let len = Some(pkt.header::<Ip4Header>()?.header_len()).filter(|n| *n >= Ip4Header::LEN)?;
        let mut bytes = [0; MAX_HEADER];
        let from = pkt.data().get(..len)?;
        bytes.get_mut(..len)?.copy_from_slice(from);
        Some(Header { bytes, len })
    }

    /// The header of fragments but the first: only options with the copy bit, RFC 791, 3.1.
    #[must_use]
    pub fn later(&self) -> Header {
        let mut bytes = [0; MAX_HEADER];
        let mut len = Ip4Header::LEN;
        let options = self.bytes.get(Ip4Header::LEN..self.len).unwrap_or_default();
        if let (Some(to), Some(from)) = (bytes.get_mut(..len), self.bytes.get(..len)) {
            to.copy_from_slice(from);
        }
        for option in shoal_wire::Ip4Options::new(options).flatten().filter(|o| o.kind & 0x80 != 0) {
            let size = 2 + option.data.len();
            let head = [option.kind, size as u8];
            if let Some(to) = bytes.get_mut(len..len + size) {
                to.iter_mut().zip(head.iter().chain(option.data)).for_each(|(to, from)| *to = *from);
                len += size;
            }
        }
        Header { bytes, len: len.next_multiple_of(4).min(MAX_HEADER) }
    }

    /// Writes the header for a fragment of `payload` bytes at `offset`.
    pub fn write(&self, to: &mut [u8], payload: usize, offset: usize, more: bool) -> Option<()> {
        to.get_mut(..self.len)?.copy_from_slice(self.bytes.get(..self.len)?);
        let (ip, rest) = Ip4Header::mut_from_prefix(to).ok()?;
        let old = ip.flags_and_fragment_offset();
        let more = if more { Ip4Header::MORE_FRAGMENTS } else { old & Ip4Header::MORE_FRAGMENTS };
        let units = (old & 0x1fff) + (offset / 8) as u16;
        ip.set_version_ihl(0x40 | (self.len / 4) as u8);
        ip.set_total_length((self.len + payload) as u16);
        ip.set_flags_and_fragment_offset(more | (units & 0x1fff));
        let options = rest.get(..self.len - Ip4Header::LEN)?;
        let checksum = ip.compute_checksum_with(options);
        ip.set_checksum(checksum);
        Some(())
    }
}

impl Ip4Frag {
    /// The way of the fragments: the packet's own.
    fn next(&self, pkt: &Packet<'_>, cx: &FrameCx<'_>) -> Next {
        match self.adjacencies.get(AdjIndex(pkt.meta().adj), cx.guard()).kind() {
            AdjKind::Multicast => Next::Multicast(self.multicast.get()),
            _ => Next::Rewrite,
        }
    }

    /// Sends the fragments. Fragments of a packet that cannot be finished are of no
    /// use and are freed, but for those of more than a frame, which have gone by then.
    fn cut(
        &self,
        pkt: &mut Packet<'_>,
        (pieces, next): (&mut Frame, Next),
        cx: &mut FrameCx<'_>,
    ) -> Result<(), Error> {
        let first = Header::of(pkt).ok_or(Error::CannotCut)?;
        let later = first.later();
        let ip = pkt.header::<Ip4Header>().ok_or(Error::CannotCut)?;
        let total = usize::from(ip.total_length()).min(pkt.len());
        let offset = ip.flags_and_fragment_offset() & 0x1fff;
        let adj = self.adjacencies.get(AdjIndex(pkt.meta().adj), cx.guard());
        // A fragment lies in one buffer, which may make it shorter than it could be.
        let mtu = usize::from(adj.mtu).min(DATA_SIZE);
        let payload = total.checked_sub(first.len).filter(|n| *n > 0).ok_or(Error::CannotCut)?;
        // The pieces' offsets would not fit in their field.
        if usize::from(offset) * 8 + payload > MAX_PACKET {
            return Err(Error::BeyondEnd);
        }
        if pkt.flags().has(Flags::L4_CHECKSUM_OFFLOAD) {
            checksum::complete(pkt, total).ok_or(Error::CannotCut)?;
        }
        let room = mtu.checked_sub(first.len).map(|n| n & !7).filter(|n| *n >= 8).ok_or(Error::CannotCut)?;
        let (mut at, mut gone) = (0, 0);
        while at < payload {
            let n = room.min(payload - at);
            let header = if at == 0 { &first } else { &later };
            let piece = Self::piece(pkt, header, first.len, (at, n), at + n < payload, cx);
            let piece = piece.ok_or(Error::NoBuffer)?;
            if let Err(piece) = pieces.push(piece) {
                // The shortest MTU makes five frames of the longest packet.
                gone += pieces.len();
                cx.count(Error::FragmentsSent, pieces.len() as u64);
                cx.send_frame(next.edge(), pieces);
                if let Err(piece) = pieces.push(piece) {
                    cx.cache().free(piece);
                    return Err(Error::CannotCut);
                }
            }
            at += n;
        }
        let fragments = gone + pieces.len();
        cx.count(Error::FragmentsSent, pieces.len() as u64);
        cx.send_frame(next.edge(), pieces);
        cx.trace(pkt, || Trace { mtu, fragments });
        Ok(())
    }

    fn piece(
        pkt: &Packet<'_>,
        header: &Header,
        skip: usize,
        (at, n): (usize, usize),
        more: bool,
        cx: &mut FrameCx<'_>,
    ) -> Option<Buffer> {
        let mut buffer = cx.cache().alloc_one()?;
        let mut piece = cx.cache().packet(&mut buffer);
        let filled = piece.put(header.len + n).and_then(|bytes| {
            header.write(bytes, n, at, more)?;
            let body = bytes.get_mut(header.len..)?;
            (pkt.copy_at(skip + at, body) == n).then_some(())
        });
        if filled.is_none() {
            cx.cache().free(buffer);
            return None;
        }
        piece.meta_mut().inherit(pkt.meta());
        piece.meta_mut().share_trace(pkt.meta());
        Some(buffer)
    }
}

impl FrameNode for Ip4Frag {
    const NAME: &'static str = "ip4-frag";
    type Next = Next;
    type Error = Error;

    fn frame(&self, frame: &mut Frame, cx: &mut FrameCx<'_>) {
        let mut pieces = cx.blank();
        while let Some(mut buffer) = frame.pop() {
            let mut pkt = cx.cache().packet(&mut buffer);
            let next = self.next(&pkt, cx);
            match self.cut(&mut pkt, (&mut pieces, next), cx) {
                Ok(()) => {
                    cx.count(Error::PacketsCut, 1);
                    cx.cache().free(buffer);
                }
                Err(why) => {
                    cx.free_frame(&mut pieces);
                    cx.drop(buffer, why);
                }
            }
        }
        cx.recycle(pieces);
    }
}
