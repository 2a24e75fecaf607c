//! `gso-ip4`, `gso-ip6`: large packets become packets that the wire takes.
//! ip4-rewrite -> **gso-ip4** -> the next feature
//!
//! A frame node, because one packet becomes many.

use std::num::NonZero;

use shoal_buffer::{Buffer, DATA_SIZE, Flags, Frame, Packet};
use shoal_derive::{ErrorCounters, NextNodes, TraceLine};
use shoal_graph::{Edge, FrameCx, FrameNode};
use shoal_interface::{IfFlags, IfTable};
use shoal_vnet::{Offload, PieceError, SegmentList, Segments};

/// Where a packet goes next.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The next feature.
    Feature(Edge),
}

/// Why a packet is dropped here, and what else is counted.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// large packets cut
    #[severity(info)]
    Cut,
    /// packets made of large ones
    #[severity(info)]
    Made,
    /// large packet whose headers or sizes make no sense
    Invalid,
    /// large packet over too many buffers
    TooManySegments,
    /// large packet lost in part, no buffer free
    NoBuffer,
}

/// What `show trace` says.
#[derive(TraceLine)]
#[line("gso_sz {size} gso_l4_hdr_sz {header}, {len} bytes into {pieces} packets")]
struct Trace {
    size: u16,
    header: u16,
    len: usize,
    pieces: usize,
}

/// The code of both nodes.
pub struct Cut<const IP6: bool> {
    pub(crate) interfaces: IfTable,
}

/// What became of a packet.
enum CutOutcome {
    /// It goes on as it is.
    Whole,
    /// Packets were made of it.
    Pieces,
    /// It cannot be cut.
    Dropped(Error),
}

impl<const IP6: bool> FrameNode for Cut<IP6> {
    const NAME: &'static str = if IP6 { "gso-ip6" } else { "gso-ip4" };
    type Next = Next;
    type Error = Error;

    fn frame(&self, frame: &mut Frame, cx: &mut FrameCx<'_>) {
        for mut buffer in frame.drain() {
            let mut pkt = cx.cache().packet(&mut buffer);
            let fate = if pkt.flags().has(Flags::GSO) { self.cut(&pkt, cx) } else { CutOutcome::Whole };
            match fate {
                CutOutcome::Whole => {
                    let edge = cx.next_feature(&mut pkt);
                    cx.send(edge, buffer);
                }
                CutOutcome::Pieces => cx.cache().free(buffer),
                CutOutcome::Dropped(error) => cx.drop(buffer, error),
            }
        }
    }
}

impl<const IP6: bool> Cut<IP6> {
    /// Sends the pieces of a large packet on, in order.
    fn cut(&self, pkt: &Packet<'_>, cx: &mut FrameCx<'_>) -> CutOutcome {
        if self.interfaces.get(pkt.tx(), cx.guard()).flags().has(IfFlags::TX_GSO) {
            return CutOutcome::Whole;
        }
        let Some(list) = SegmentList::of(pkt) else { return CutOutcome::Dropped(Error::TooManySegments) };
        let (front, meta) = (pkt.current(), pkt.meta());
        let pieces = Offload::load(pkt).and_then(|mut offload| {
            if let Some(gso) = &mut offload.gso {
                gso.size = gso.size.min(in_one_buffer(front, gso.header_len));
            }
            let net = usize::try_from(i32::from(meta.l3) - i32::from(front)).ok()?;
            Segments::bounded(list.as_slice(), &offload, net)
        });
        let Some(mut pieces) = pieces else {
            return CutOutcome::Dropped(Error::Invalid);
        };
        let (len, count) = (pkt.len(), pieces.count());
        cx.trace(pkt, || Trace { size: meta.gso_size, header: meta.gso_header, len, pieces: count });
        let mut made = 0;
        let fate = loop {
            match pieces.next_packet(cx.cache(), front) {
                None => break CutOutcome::Pieces,
                Some(Ok(piece)) => send(piece, pkt, cx),
                Some(Err(PieceError::BadHeaders)) if made == 0 => break CutOutcome::Dropped(Error::Invalid),
                Some(Err(PieceError::NoBuffer)) if made == 0 => break CutOutcome::Dropped(Error::NoBuffer),
                Some(Err(_)) => {
                    cx.count(Error::NoBuffer, 1);
                    break CutOutcome::Pieces;
                }
            }
            made += 1;
        };
        if made > 0 {
            cx.count(Error::Cut, 1);
            cx.count(Error::Made, made);
        }
        fate
    }
}

/// Payload that fits behind the headers of a piece in one buffer: VPP makes no longer pieces, whatever the wire takes.
fn in_one_buffer(front: i16, headers: u16) -> NonZero<u16> {
    let before = front.max(0).cast_unsigned().saturating_add(headers);
    let room = u16::try_from(DATA_SIZE).unwrap_or(u16::MAX).saturating_sub(before);
    NonZero::new(room).unwrap_or(NonZero::<u16>::MIN)
}

/// A piece goes where its packet was going.
fn send(mut buffer: Buffer, from: &Packet<'_>, cx: &mut FrameCx<'_>) {
    let mut piece = cx.cache().packet(&mut buffer);
    let (meta, old) = (piece.meta_mut(), from.meta());
    meta.inherit(old);
    meta.share_trace(old);
    meta.flags = meta.flags.without(Flags::GSO_ECN);
    (meta.l3, meta.l4) = (old.l3, old.l4);
    (meta.arc, meta.feature) = (old.arc, old.feature);
    let edge = cx.next_feature(&mut piece);
    cx.send(edge, buffer);
}
