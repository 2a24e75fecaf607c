//! `ip6-frag`: cut packets of this router that are too long for the way out. RFC 8200, 4.5 and 5; RFC 7739.
//! ip6-rewrite -> **ip6-frag** -> ip6-rewrite
//!
//! A frame node, because one packet becomes several. Packets of others do not come here.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU32, Ordering};

use shoal_adj::{AdjIndex, AdjTable};
use shoal_buffer::{Buffer, DATA_SIZE, Flags, Frame, Packet};
use shoal_derive::{ErrorCounters, NextNodes, TraceLine};
use shoal_graph::{FrameCx, FrameNode, NextNodes as _};
use shoal_wire::ip6_ext::{Reader, walk};
use shoal_wire::packet::Fragment;
use shoal_wire::{IntoBytes, Ip6FragmentHeader, Ip6Header, IpProtocol};

/// Where a packet goes next.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Each fragment goes the packet's way.
    #[node("ip6-rewrite")]
    Rewrite,
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
}

/// What `show trace` says.
#[derive(TraceLine)]
#[line("IPv6 mtu: {mtu} fragments: {fragments}")]
struct Trace {
    mtu: usize,
    fragments: usize,
}

/// Counters that identifications come from; destinations share them by hash.
const COUNTERS: usize = 256;

/// Identifications of packets that are cut. RFC 7739, 5.3: each counts up from a secret place, so that one host cannot
/// tell what another gets.
struct Ids {
    secret: RandomState,
    counters: Box<[AtomicU32]>,
}

impl Ids {
    fn next(&self, ip: &Ip6Header) -> u32 {
        let hash = self.secret.hash_one((ip.src_bytes(), ip.dst_bytes()));
        let counter = self.counters.get((hash >> 32) as usize % COUNTERS);
        (hash as u32).wrapping_add(counter.map_or(0, |c| c.fetch_add(1, Ordering::Relaxed)))
    }
}

/// Cuts packets.
pub struct Ip6Frag {
    adjacencies: AdjTable,
    ids: Ids,
}

/// What every fragment begins with.
struct Front {
    /// Bytes up to the fragment header.
    len: usize,
    /// Where the first header behind it is named.
    named_at: usize,
    /// That header.
    next: IpProtocol,
    id: u32,
    /// Where what is cut begins.
    payload_at: usize,
    /// Where that belongs in the datagram, and whether more of it follows: what is cut may be a fragment, as a translator makes
    /// of an IPv4 one.
    offset: usize,
    more: bool,
}

impl Ip6Frag {
    /// All adjacencies say what the ways out carry.
    pub fn new(adjacencies: AdjTable) -> Self {
        let counters = (0..COUNTERS).map(|_| AtomicU32::new(0)).collect();
        Ip6Frag { adjacencies, ids: Ids { secret: RandomState::new(), counters } }
    }

    fn front(&self, pkt: &Packet<'_>) -> Option<Front> {
        let ip = pkt.header::<Ip6Header>()?;
        let chain = walk(pkt.data(), Reader::Router).ok()?;
        let (len, named_at) = (chain.fragmentable_at, chain.fragmentable_next_header_at);
        let Some(fragment) = chain.fragment else {
            let next = IpProtocol(*pkt.data().get(named_at)?);
            let id = self.ids.next(ip);
            return Some(Front { len, named_at, next, id, payload_at: len, offset: 0, more: false });
        };
        // Its own header says where the pieces belong.
        let header = fragment.header;
        (fragment.at == len).then(|| Front {
            len,
            named_at,
            next: header.next_header(),
            id: header.id(),
            payload_at: len + Ip6FragmentHeader::LEN,
            offset: header.offset().into(),
            more: header.more_fragments(),
        })
    }

    /// Makes fragments of at most `mtu` bytes; tells how many.
    ///
    /// # Errors
    /// Why not. Fragments of a packet that cannot be finished are of no use: the caller frees them.
    pub fn cut(
        &self,
        pkt: &mut Packet<'_>,
        mtu: usize,
        pieces: &mut Frame,
        cx: &mut FrameCx<'_>,
    ) -> Result<usize, Error> {
        let front = self.front(pkt).ok_or(Error::CannotCut)?;
        let ip = pkt.header::<Ip6Header>().ok_or(Error::CannotCut)?;
        let total = (Ip6Header::LEN + usize::from(ip.payload_length())).min(pkt.len());
        // A sender that leaves a checksum to the device sends nothing that is cut.
        if pkt.flags().has(Flags::L4_CHECKSUM_OFFLOAD) {
            return Err(Error::CannotCut);
        }
        // A fragment lies in one buffer, which may make it shorter than it could be.
        let mtu = mtu.min(DATA_SIZE);
        let headers = front.len + Ip6FragmentHeader::LEN;
        let room = mtu.checked_sub(headers).map(|n| n & !7).filter(|n| *n >= 8).ok_or(Error::CannotCut)?;
        let payload = total.checked_sub(front.payload_at).filter(|n| *n > 0).ok_or(Error::CannotCut)?;
        let mut at = 0;
        while at < payload {
            let n = room.min(payload - at);
            let place = if front.more || at + n < payload { Fragment::More } else { Fragment::Last };
            let piece = Self::piece(pkt, &front, (at, n), place, cx).ok_or(Error::NoBuffer)?;
            if let Err(piece) = pieces.push(piece) {
                cx.cache().free(piece);
                return Err(Error::CannotCut);
            }
            at += n;
        }
        let fragments = pieces.len();
        cx.trace(pkt, || Trace { mtu, fragments });
        Ok(fragments)
    }

    fn piece(
        pkt: &Packet<'_>,
        front: &Front,
        (at, n): (usize, usize),
        place: Fragment,
        cx: &mut FrameCx<'_>,
    ) -> Option<Buffer> {
        let mut buffer = cx.cache().alloc_one()?;
        let mut piece = cx.cache().packet(&mut buffer);
        let headers = front.len + Ip6FragmentHeader::LEN;
        let filled = piece.put(headers + n).and_then(|bytes| {
            let (unfragmentable, rest) = bytes.split_at_mut_checked(front.len)?;
            let (fragment, body) = rest.split_at_mut_checked(Ip6FragmentHeader::LEN)?;
            unfragmentable.copy_from_slice(pkt.data().get(..front.len)?);
            *unfragmentable.get_mut(front.named_at)? = IpProtocol::IPV6_FRAGMENTATION.0;
            let header = Ip6FragmentHeader::new(front.next, (front.offset + at) as u16, place, front.id);
            fragment.copy_from_slice(header.as_bytes());
            (pkt.copy_at(front.payload_at + at, body) == n).then_some(())
        });
        let length = (headers - Ip6Header::LEN + n) as u16;
        let sized = filled.and_then(|()| {
            piece.header_mut::<Ip6Header>()?.set_payload_length(length);
            Some(())
        });
        if sized.is_none() {
            cx.cache().free(buffer);
            return None;
        }
        piece.meta_mut().inherit(pkt.meta());
        piece.meta_mut().share_trace(pkt.meta());
        Some(buffer)
    }
}

impl FrameNode for Ip6Frag {
    const NAME: &'static str = "ip6-frag";
    type Next = Next;
    type Error = Error;

    fn frame(&self, frame: &mut Frame, cx: &mut FrameCx<'_>) {
        let mut pieces = cx.blank();
        for mut buffer in frame.drain() {
            let mut pkt = cx.cache().packet(&mut buffer);
            let mtu = self.adjacencies.get(AdjIndex(pkt.meta().adj), cx.guard()).mtu;
            match self.cut(&mut pkt, mtu.into(), &mut pieces, cx) {
                Ok(n) => {
                    cx.count(Error::PacketsCut, 1);
                    cx.count(Error::FragmentsSent, n as u64);
                    cx.send_frame(Next::Rewrite.edge(), &mut pieces);
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
