//! `ip4-map-fragment`: packets that are too large for a domain are cut before they go into a tunnel.
//! ip4-map -> **ip4-map-fragment** -> ip6-lookup | ip6-load-balance
//!
//! A frame node, because one packet becomes several.

use std::net::Ipv6Addr;
use std::sync::Arc;

use shoal_buffer::{Buffer, DATA_SIZE, Flags, Frame, Packet};
use shoal_derive::NextNodes;
use shoal_graph::{FrameCx, FrameNode, NextNodes as _};
use shoal_ip4::node::frag::Header;
use shoal_wire::{IntoBytes, Ip4Header, Ip6Header, IpProtocol};
use zerocopy::{FromBytes, Immutable, KnownLayout};

use super::ip4_map::HOPS;
use super::{Error, Shared};
use crate::config::Config;

/// What becomes of a packet's pieces, in its scratch.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Cut {
    dst: [u8; 16],
    mtu: u16,
    class: u16,
}

impl Cut {
    /// Pieces that make tunnel packets of at most `mtu` bytes.
    pub fn new(dst: Ipv6Addr, class: u8, mtu: u16) -> Cut {
        Cut { dst: dst.octets(), mtu, class: class.into() }
    }
}

/// Where pieces go.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Into the tunnel.
    #[node("ip6-lookup")]
    Lookup,
    /// The same, to a next hop that is set.
    #[node("ip6-load-balance")]
    LoadBalance,
}

/// The node.
pub struct Fragment {
    pub(crate) shared: Arc<Shared>,
}

fn cut(
    pkt: &mut Packet<'_>,
    (config, cut): (&Config, &Cut),
    pieces: &mut Vec<Buffer>,
    cx: &mut FrameCx<'_>,
) -> Result<(), Error> {
    pkt.header_mut::<Ip4Header>().ok_or(Error::Malformed)?.decrement_ttl();
    let ip = pkt.header::<Ip4Header>().copied().ok_or(Error::Malformed)?;
    let total = usize::from(ip.total_length());
    // The domain may have gone meanwhile.
    let (_, domain) = config.by_ip4(ip.dst()).ok_or(Error::NoDomain)?;
    let src = domain.internet(ip.src());
    let first = Header::of(pkt).ok_or(Error::Malformed)?;
    let later = first.later();
    let payload = total.min(pkt.len()).checked_sub(first.len).filter(|n| *n > 0).ok_or(Error::Malformed)?;
    let most = usize::from(cut.mtu).min(DATA_SIZE);
    let room = most.checked_sub(Ip6Header::LEN + first.len).map(|n| n & !7).filter(|n| *n >= 8);
    let room = room.ok_or(Error::DfSet)?;
    let mut at = 0;
    while at < payload {
        let n = room.min(payload - at);
        let header = if at == 0 { &first } else { &later };
        let mut buffer = cx.cache().alloc_one().ok_or(Error::FragmentMemory)?;
        let mut piece = cx.cache().packet(&mut buffer);
        let length = header.len + n;
        let mut outer = Ip6Header::new(src, cut.dst.into(), IpProtocol::IP_IN_IP, HOPS, length as u16);
        outer.set_traffic_class(cut.class as u8);
        let filled = piece.put(Ip6Header::LEN + length).and_then(|bytes| {
            let (front, inner) = bytes.split_at_mut_checked(Ip6Header::LEN)?;
            front.copy_from_slice(outer.as_bytes());
            header.write(inner, n, at, at + n < payload)?;
            let body = inner.get_mut(header.len..)?;
            (pkt.copy_at(first.len + at, body) == n).then_some(())
        });
        piece.meta_mut().inherit(pkt.meta());
        piece.meta_mut().share_trace(pkt.meta());
        super::begin_again(&mut piece);
        super::go_to(config.next_hops.ip6, &mut piece);
        let meta = piece.meta_mut();
        meta.flags = meta.flags.with(Flags::LOCALLY_ORIGINATED);
        pieces.push(buffer);
        filled.ok_or(Error::FragmentMalformed)?;
        at += n;
    }
    Ok(())
}

impl FrameNode for Fragment {
    const NAME: &'static str = "ip4-map-fragment";
    type Next = Next;
    type Error = Error;

    fn frame(&self, frame: &mut Frame, cx: &mut FrameCx<'_>) {
        let config = self.shared.config.load(cx.guard());
        let next = if config.next_hops.ip6.is_some() { Next::LoadBalance } else { Next::Lookup };
        let mut pieces = Vec::new();
        while let Some(mut buffer) = frame.pop() {
            let mut pkt = cx.cache().packet(&mut buffer);
            let how = *pkt.scratch::<Cut>();
            match cut(&mut pkt, (config, &how), &mut pieces, cx) {
                Ok(()) => {
                    cx.count(Error::Valid, pieces.len() as u64);
                    for piece in pieces.drain(..) {
                        cx.send(next.edge(), piece);
                    }
                    cx.cache().free(buffer);
                }
                Err(why) => {
                    for piece in pieces.drain(..) {
                        cx.cache().free(piece);
                    }
                    cx.drop(buffer, why);
                }
            }
        }
    }
}
