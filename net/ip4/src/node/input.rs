//! `ip4-input`: is this an IPv4 packet a router may look at? RFC 1812, 5.2.2.
//! ethernet-input -> **ip4-input** -> ip4-lookup | ip4-options | features of `ip4-unicast`

use shoal_buffer::Packet;
use shoal_derive::{ErrorCounters, NextNodes};
use shoal_graph::{Cx, Edge, FeatureArc, PacketNode};
use shoal_wire::Ip4Header;

use crate::Headers;

/// Where a packet goes next.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// On its way.
    #[node("ip4-lookup")]
    Lookup,
    /// It has options.
    #[node("ip4-options")]
    Options,
    /// A feature.
    Feature(Edge),
}

/// Why a packet is dropped here.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// ip4 length < 20
    TooShort,
    /// ip4 length > l2 length
    BadLength,
    /// bad ip4 checksum
    BadChecksum,
    /// ip4 version != 4
    #[counter("version")]
    BadVersion,
    /// ip4 header length < 20
    BadHeaderLength,
    /// ip4 fragment offset == 1
    #[counter("fragment_offset_one")]
    FragmentOffsetOne,
    /// ip4 ttl <= 0
    #[counter("time_expired")]
    TtlZero,
    /// ip4 source address is no host's
    Martian,
}

/// Checks packets.
pub struct Ip4Input {
    /// Features of packets to one host.
    pub unicast: FeatureArc,
}

/// Whether no host may use the address as its source: 0/8 (but for 0.0.0.0), 127/8, 224/4 and above.
#[cold]
fn is_martian(src: u32) -> bool {
    let top = src >> 24;
    let odd = top.wrapping_sub(1) >= 223 || top == 127;
    odd && src != 0
}

/// What every packet with a plain header must satisfy.
#[inline(always)]
fn check(ip: &Ip4Header, len: usize) -> Result<(), Error> {
    if !ip.checksum_ok() {
        return Err(Error::BadChecksum);
    }
    let total = usize::from(ip.total_length());
    if total > len {
        return Err(Error::BadLength);
    }
    if total < Ip4Header::LEN {
        return Err(Error::TooShort);
    }
    if ip.flags_and_fragment_offset() & 0x1fff == 1 {
        return Err(Error::FragmentOffsetOne);
    }
    let src = ip.src_u32();
    // 1.0.0.0 to 223.255.255.255 without 127/8, in two comparisons; what is outside is looked at again.
    if (src.wrapping_sub(1 << 24) >= 223 << 24 || src >> 24 == 127) && is_martian(src) {
        return Err(Error::Martian);
    }
    Ok(())
}

/// A packet whose first byte is not that of a plain header.
#[cold]
fn unusual(pkt: &Packet<'_>, ip: &Ip4Header) -> Result<Next, Error> {
    if ip.version() != 4 {
        return Err(Error::BadVersion);
    }
    let header = ip.header_len();
    if header < Ip4Header::LEN {
        return Err(Error::BadHeaderLength);
    }
    let options = pkt.data().get(Ip4Header::LEN..header).ok_or(Error::TooShort)?;
    if !ip.checksum_ok_with(options) {
        return Err(Error::BadChecksum);
    }
    let total = usize::from(ip.total_length());
    if total > pkt.len() {
        return Err(Error::BadLength);
    }
    if total < header {
        return Err(Error::TooShort);
    }
    if ip.fragment_offset() == 8 {
        return Err(Error::FragmentOffsetOne);
    }
    if is_martian(ip.src_u32()) {
        return Err(Error::Martian);
    }
    Ok(Next::Options)
}

impl PacketNode for Ip4Input {
    const NAME: &'static str = "ip4-input";
    type Next = Next;
    type Error = Error;
    type Trace = Headers;

    #[inline(always)]
    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, Error> {
        let rx = pkt.rx();
        cx.count_ip4(rx);
        cx.trace(pkt, || Headers::of(pkt));
        let len = pkt.len();
        let ip = pkt.header::<Ip4Header>().ok_or(Error::TooShort)?;
        let plain = ip.version_ihl() == Ip4Header::VERSION_IHL_NO_OPTIONS;
        let ttl = ip.ttl();
        let next = if plain {
            check(ip, len)?;
            Next::Lookup
        } else {
            unusual(pkt, ip)?
        };
        if ttl == 0 {
            // RFC 1812, 5.3.1: it should have been expired by the hop before, which told its sender.
            return Err(Error::TtlZero);
        }
        match cx.start_arc(&self.unicast, rx, pkt) {
            None => Ok(next),
            Some(edge) => feature(next, edge),
        }
    }
}

/// Packets with options take the slow path first and start on the arc there.
#[cold]
fn feature(next: Next, edge: Edge) -> Result<Next, Error> {
    Ok(if next == Next::Lookup { Next::Feature(edge) } else { next })
}
