//! `dslite-ce-encap`, `dslite-ce-decap`: the B4's end of the tunnel.
//! ip4-lookup -> **dslite-ce-encap** -> ip6-lookup; ip6-lookup -> **dslite-ce-decap** -> ip4-lookup | ip6-local |
//! ip6-full-reassembly-custom

use std::net::Ipv6Addr;
use std::sync::Arc;

use shoal_buffer::{Flags, Packet};
use shoal_derive::NextNodes;
use shoal_graph::{Cx, NextNodes, PacketNode};
use shoal_ip4::IcmpError;
use shoal_wire::{IntoBytes, Ip4Header, Ip6Header, IpProtocol, checksum};

use super::{Error, Trace};
use crate::shared::Shared;

/// The hop limit of tunnel packets.
const HOPS: u8 = 64;

/// A packet that leaves its checksum, or its cutting, to a device cannot do so in a tunnel.
pub(super) fn ready(pkt: &mut Packet<'_>) -> Result<(), Error> {
    if pkt.flags().has(Flags::GSO) {
        return Err(Error::TooLarge);
    }
    if pkt.flags().has(Flags::L4_CHECKSUM_OFFLOAD) {
        let total = pkt.header::<Ip4Header>().map_or(0, |ip| usize::from(ip.total_length()));
        shoal_ip4::checksum::complete(pkt, total).ok_or(Error::Malformed)?;
    }
    Ok(())
}

/// What is behind the IPv6 header of a tunnel's packet, which no node has looked at yet: an IPv4 packet that is all there.
pub(super) fn tunnelled<'p>(pkt: &'p Packet<'_>) -> Result<&'p [u8], Error> {
    let inner = pkt.data().get(Ip6Header::LEN..).ok_or(Error::Malformed)?;
    let first = *inner.first().ok_or(Error::Malformed)?;
    let header = usize::from(first & 15) * 4;
    let all = inner.get(..header).filter(|all| all.len() >= 20 && first >> 4 == 4).ok_or(Error::Malformed)?;
    let total = all.get(2..4).map_or(0, |b| b.iter().fold(0, |n, b| n << 8 | usize::from(*b)));
    let fits = checksum::verify(all) && total >= header && total + Ip6Header::LEN <= pkt.len();
    if fits { Ok(inner) } else { Err(Error::Malformed) }
}

/// Whether a packet may be too long for the way of its tunnel.
pub(super) fn may_be_cut(pkt: &Packet<'_>) -> bool {
    let total = pkt.header::<Ip4Header>().map_or(0, |ip| usize::from(ip.total_length()));
    total + Ip6Header::LEN > Ip6Header::MIN_MTU
}

/// Puts a packet into a tunnel. It has passed a router: its TTL, which is at least 2, is one less. RFC 6333, 5.3: a tunnel packet that
/// is too long for its way is cut, whatever the packet in it says of fragments. One that may be is this router's own, of which no other
/// node takes a hop off.
pub(super) fn encapsulate(
    pkt: &mut Packet<'_>,
    (src, dst): (Ipv6Addr, Ipv6Addr),
    may_be_cut: bool,
) -> Result<(), Error> {
    let ip = pkt.header_mut::<Ip4Header>().ok_or(Error::Malformed)?;
    ip.decrement_ttl();
    let (class, total) = (ip.tos(), usize::from(ip.total_length()));
    pkt.trim_to(total).ok_or(Error::Malformed)?;
    let length = u16::try_from(pkt.len()).map_err(|_| Error::TooLarge)?;
    let hops = if may_be_cut { HOPS - 1 } else { HOPS };
    let mut outer = Ip6Header::new(src, dst, IpProtocol::IP_IN_IP, hops, length);
    // RFC 2983, RFC 6040: class and congestion go along.
    outer.set_traffic_class(class);
    pkt.push(Ip6Header::LEN).ok_or(Error::TooLarge)?;
    let front = pkt.data_mut().get_mut(..Ip6Header::LEN).ok_or(Error::Malformed)?;
    front.copy_from_slice(outer.as_bytes());
    let at = pkt.current();
    let meta = pkt.meta_mut();
    meta.l3 = at;
    meta.set_fib(None);
    if may_be_cut {
        meta.flags = meta.flags.with(Flags::LOCALLY_ORIGINATED);
    }
    Ok(())
}

/// Where packets go that leave the B4.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encap {
    /// Into the tunnel.
    #[node("ip6-lookup")]
    Lookup,
    /// It has come too far: its sender gets an error.
    #[node("ip4-icmp-error")]
    IcmpError,
}

/// Packets of hosts go into the tunnel.
pub struct CeEncap {
    pub(crate) shared: Arc<Shared>,
}

impl PacketNode for CeEncap {
    const NAME: &'static str = "dslite-ce-encap";
    type Next = Encap;
    type Error = Error;
    type Trace = Trace;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Encap, Error> {
        let config = self.shared.config.load(cx.guard());
        let (b4, aftr) = config.b4.zip(config.aftr).ok_or(Error::NoTranslation)?;
        if pkt.header::<Ip4Header>().is_none_or(|ip| ip.ttl() <= 1) {
            IcmpError::TTL.ask(pkt);
            return Ok(Encap::IcmpError);
        }
        ready(pkt)?;
        let may_be_cut = may_be_cut(pkt);
        encapsulate(pkt, (b4.ip6, aftr.ip6), may_be_cut)?;
        cx.trace(pkt, || Trace { next: Encap::Lookup.edge().0, session: -1 });
        cx.count(Error::CeEncap, 1);
        Ok(Encap::Lookup)
    }
}

/// Where packets go that arrive at the B4.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decap {
    /// Out of the tunnel.
    #[node("ip4-lookup")]
    Lookup,
    /// To the router itself: the tunnel's end answers pings.
    #[node("ip6-local")]
    Local,
    /// Fragments of tunnel packets: whole ones come back. RFC 6333, 5.3.
    #[node("ip6-full-reassembly-custom")]
    Reassembly,
}

/// Packets for hosts come out of the tunnel.
pub struct CeDecap {
    pub(crate) shared: Arc<Shared>,
}

impl PacketNode for CeDecap {
    const NAME: &'static str = "dslite-ce-decap";
    type Next = Decap;
    type Error = Error;
    type Trace = Trace;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Decap, Error> {
        let ip6 = pkt.header::<Ip6Header>().copied().ok_or(Error::Malformed)?;
        if ip6.protocol() == IpProtocol::IPV6_FRAGMENTATION {
            return Ok(Decap::Reassembly);
        }
        if ip6.protocol() != IpProtocol::IP_IN_IP {
            return Ok(Decap::Local);
        }
        // Hosts behind the B4 trust what comes out of the tunnel as far as the AFTR is trusted.
        let config = self.shared.config.load(cx.guard());
        if config.aftr.is_none_or(|aftr| aftr.ip6 != ip6.src()) {
            return Err(Error::NoTranslation);
        }
        tunnelled(pkt)?;
        pkt.pull(Ip6Header::LEN).ok_or(Error::Malformed)?;
        let at = pkt.current();
        let meta = pkt.meta_mut();
        meta.l3 = at;
        meta.set_fib(None);
        cx.trace(pkt, || Trace { next: Decap::Lookup.edge().0, session: -1 });
        cx.count(Error::CeDecap, 1);
        Ok(Decap::Lookup)
    }
}
