//! `ip6-input`: is this an IPv6 packet a router may look at? RFC 8200, 3; RFC 4291, 2.5 and 2.7.
//! ethernet-input -> **ip6-input** -> ip6-lookup | ip6-hop-by-hop | features of `ip6-unicast` | features of
//! `ip6-multicast` and where that arc ends
//!
//! A hop limit of 0 is not looked at here: RFC 8200, 3 has the packet's destination take it.

use shoal_buffer::{Packet, SwIfIndex};
use shoal_derive::{ErrorCounters, NextNodes};
use shoal_graph::counter::Simple;
use shoal_graph::superpath::{Opens, Plain};
use shoal_graph::{Cx, Edge, FeatureArc, PacketNode};
use shoal_infra::Guard;
use shoal_wire::{Ip6Header, IpProtocol};

use crate::Headers;

/// Where a packet goes next.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// On its way.
    #[node("ip6-lookup")]
    Lookup,
    /// It has options for every node on its way.
    #[node("ip6-hop-by-hop")]
    HopByHop,
    /// A feature, or the end of the arc of packets to a group.
    Feature(Edge),
}

/// Why a packet is dropped here.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// ip6 length < 40
    TooShort,
    /// ip6 length > l2 length
    BadLength,
    /// ip6 version != 6
    #[counter("version")]
    BadVersion,
    /// ip6 source address is no host's
    Martian,
}

/// Checks packets.
pub struct Ip6Input {
    /// Features of packets to one host.
    pub unicast: FeatureArc,
    /// Features of packets to a group.
    pub multicast: FeatureArc,
    /// IPv6 packets received, by interface.
    pub received: Simple,
}

/// Whether the source may be one that is not one host's anywhere: it begins with 00 (unspecified, loopback), fe
/// (link-local) or ff (multicast).
#[inline(always)]
fn has_odd_source(ip: &Ip6Header) -> bool {
    let [top, ..] = ip.src_bytes();
    top.wrapping_add(2) <= 2
}

/// Whether the destination is a group.
#[inline(always)]
fn is_to_group(ip: &Ip6Header) -> bool {
    let [top, ..] = ip.dst_bytes();
    *top == 0xff
}

/// RFC 4291, 2.5.3 and 2.7: no packet comes from a group or from the loopback address. 2.5.2: one from nowhere is not
/// forwarded; a host without an address (RFC 4862, 5.4.2) may speak to groups of its link.
fn is_martian(ip: &Ip6Header) -> bool {
    let (src, dst) = (ip.src(), ip.dst());
    src.is_multicast() || src.is_loopback() || src.is_unspecified() && !dst.is_multicast()
}

impl PacketNode for Ip6Input {
    const NAME: &'static str = "ip6-input";
    type Next = Next;
    type Error = Error;
    type Trace = Headers;

    #[inline(always)]
    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, Error> {
        cx.trace(pkt, || Headers::of(pkt));
        let rx = pkt.rx();
        if self.plain((), pkt) {
            self.count(rx, 1, 0, cx);
            if self.unicast.any(rx) {
                return Ok(Next::Feature(cx.run_arc(&self.unicast, rx, pkt)));
            }
            return Ok(Next::Lookup);
        }
        self.rest(pkt.reborrow(), cx.aside())
    }
}

impl Plain for Ip6Input {
    type Facts<'g> = ();

    #[inline(always)]
    fn facts(&self, interface: SwIfIndex, _: Guard<'_>) -> Option<()> {
        (!self.unicast.any(interface)).then_some(())
    }

    #[inline(always)]
    fn plain(&self, (): (), pkt: &mut Packet<'_>) -> bool {
        let len = pkt.len();
        let Some(ip) = pkt.header::<Ip6Header>() else { return false };
        ip.version_ok()
            && usize::from(ip.payload_length()) + Ip6Header::LEN <= len
            && ip.protocol() != IpProtocol::IP6_HOP_BY_HOP_OPTIONS
            && !has_odd_source(ip)
            && !is_to_group(ip)
    }

    fn count(&self, interface: SwIfIndex, packets: u64, _: u64, cx: &Cx<'_, Self>) {
        self.received.add(cx.thread(), interface.0 as usize, packets);
    }
}

impl Opens for Ip6Input {
    #[inline(always)]
    fn arc(&self) -> &FeatureArc {
        &self.unicast
    }
}

impl Ip6Input {
    /// What is wrong with the packet, or what is to be done before it is looked up.
    #[cold]
    fn rest(&self, mut pkt: Packet<'_>, cx: Cx<'_, Self>) -> Result<Next, Error> {
        let rx = pkt.rx();
        self.count(rx, 1, 0, &cx);
        let ip = pkt.header::<Ip6Header>().ok_or(Error::TooShort)?;
        if !ip.version_ok() {
            return Err(Error::BadVersion);
        }
        if usize::from(ip.payload_length()) + Ip6Header::LEN > pkt.len() {
            return Err(Error::BadLength);
        }
        if is_martian(ip) {
            return Err(Error::Martian);
        }
        if ip.protocol() == IpProtocol::IP6_HOP_BY_HOP_OPTIONS {
            // Packets with options start on the arc after their slow path.
            return Ok(Next::HopByHop);
        }
        if is_to_group(ip) {
            return Ok(Next::Feature(cx.run_arc(&self.multicast, rx, &mut pkt)));
        }
        Ok(cx.start_arc(&self.unicast, rx, &mut pkt).map_or(Next::Lookup, Next::Feature))
    }
}
