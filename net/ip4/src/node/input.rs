//! `ip4-input`: is this an IPv4 packet a router may look at? RFC 1812, 5.2.2.
//! ethernet-input -> **ip4-input** -> ip4-lookup | ip4-options | features of `ip4-unicast` | features of `ip4-multicast`
//! and where that arc ends

use shoal_buffer::{Packet, SwIfIndex};
use shoal_derive::{ErrorCounters, NextNodes};
use shoal_graph::counter::Simple;
use shoal_graph::superpath::{Opens, Plain};
use shoal_graph::{Cx, Edge, FeatureArc, PacketNode};
use shoal_infra::Guard;
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
    /// A feature, or the end of the arc of packets to a group.
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
    TtlZero,
    /// ip4 source address is no host's
    Martian,
}

/// Checks packets.
pub struct Ip4Input {
    /// Features of packets to one host.
    pub unicast: FeatureArc,
    /// Features of packets to a group.
    pub multicast: FeatureArc,
    /// IPv4 packets received, by interface.
    pub received: Simple,
}

/// First bytes of addresses that no host may use as its source: 0, 127, 224 and above.
#[expect(clippy::indexing_slicing, reason = "evaluated by the compiler, which stops at a wrong index")]
static ODD_SOURCE: [bool; 256] = {
    let mut odd = [false; 256];
    let mut top = 224;
    while top < 256 {
        odd[top] = true;
        top += 1;
    }
    odd[0] = true;
    odd[127] = true;
    odd
};

/// Whether no host may use the source address, or only one that has none yet.
#[inline(always)]
fn has_odd_source(ip: &Ip4Header) -> bool {
    let [top, ..] = ip.src_bytes();
    ODD_SOURCE.get(usize::from(*top)).copied().unwrap_or(true)
}

/// Whether the fragment offset may be 8: half of it is looked at, which other offsets rarely have.
#[inline(always)]
fn may_overwrite_ports(ip: &Ip4Header) -> bool {
    let [_, low] = ip.flags_and_fragment_offset().to_be_bytes();
    low == 1
}

/// Whether the destination is no single host's: a group, or beyond.
#[inline(always)]
fn has_odd_destination(ip: &Ip4Header) -> bool {
    let [top, ..] = ip.dst_bytes();
    *top >= 224
}

/// RFC 1812, 5.3.7: such packets are not forwarded. A host without an address (RFC 1122, 3.2.1.3) may speak to all of
/// its link: to 255.255.255.255 for DHCP, to a group for IGMP.
fn is_martian(ip: &Ip4Header) -> bool {
    let dst = ip.dst();
    has_odd_source(ip) && !(ip.src().is_unspecified() && (dst.is_broadcast() || dst.is_multicast()))
}

impl PacketNode for Ip4Input {
    const NAME: &'static str = "ip4-input";
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

impl Plain for Ip4Input {
    type Facts<'g> = ();

    #[inline(always)]
    fn facts(&self, interface: SwIfIndex, _: Guard<'_>) -> Option<()> {
        (!self.unicast.any(interface)).then_some(())
    }

    #[inline(always)]
    fn plain(&self, (): (), pkt: &mut Packet<'_>) -> bool {
        let len = pkt.len();
        let Some(ip) = pkt.header::<Ip4Header>() else { return false };
        let total = usize::from(ip.total_length());
        ip.version_ihl() == Ip4Header::VERSION_IHL_NO_OPTIONS
            && ip.checksum_ok()
            // Both bounds of the length in one comparison: `len` is at least a header.
            && total.wrapping_sub(Ip4Header::LEN) <= len.wrapping_sub(Ip4Header::LEN)
            && !may_overwrite_ports(ip)
            && !has_odd_source(ip)
            && !has_odd_destination(ip)
            && ip.ttl() != 0
    }

    fn count(&self, interface: SwIfIndex, packets: u64, _: u64, cx: &Cx<'_, Self>) {
        self.received.add(cx.thread(), interface.0 as usize, packets);
    }
}

impl Opens for Ip4Input {
    #[inline(always)]
    fn arc(&self) -> &FeatureArc {
        &self.unicast
    }
}

impl Ip4Input {
    /// What is wrong with the packet, or what is to be done before it is looked up.
    #[cold]
    fn rest(&self, mut pkt: Packet<'_>, cx: Cx<'_, Self>) -> Result<Next, Error> {
        let rx = pkt.rx();
        self.count(rx, 1, 0, &cx);
        let ip = pkt.header::<Ip4Header>().ok_or(Error::TooShort)?;
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
        if is_martian(ip) {
            return Err(Error::Martian);
        }
        if ip.ttl() == 0 {
            // RFC 1812, 5.3.1: it should have been expired by the hop before, which told its sender.
            return Err(Error::TtlZero);
        }
        if header > Ip4Header::LEN {
            // Packets with options start on the arc after their slow path.
            return Ok(Next::Options);
        }
        if ip.dst().is_multicast() {
            return Ok(Next::Feature(cx.run_arc(&self.multicast, rx, &mut pkt)));
        }
        Ok(cx.start_arc(&self.unicast, rx, &mut pkt).map_or(Next::Lookup, Next::Feature))
    }
}
