//! Messages this router sends, as whole frames.

use std::net::Ipv6Addr;

use shoal_buffer::{Buffer, Cache, Flags, Packet, SwIfIndex};
use shoal_interface::IfData;
use shoal_wire::ip6_address::ALL_NODES;
use shoal_wire::nd::{HOP_LIMIT, NaFlags, NeighborAdvertisement, NeighborSolicitation, RouterSolicitation};
use shoal_wire::{EtherType, EthernetHeader, IntoBytes, Ip6Header, IpProtocol, MacAddress};

/// Bytes in front of ICMPv6.
pub(crate) const HEADERS: usize = EthernetHeader::LEN + Ip6Header::LEN;
/// Longest frame: the smallest MTU.
pub(crate) const LONGEST: usize = EthernetHeader::LEN + Ip6Header::MIN_MTU;
/// A solicitation or advertisement of a neighbour with one link-layer address.
pub(crate) const NEIGHBOUR: usize = HEADERS + NeighborSolicitation::LEN + 8;

/// Sender and receiver of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct MessageRoute {
    pub(crate) src_mac: MacAddress,
    pub(crate) dst_mac: MacAddress,
    pub(crate) src: Ipv6Addr,
    pub(crate) dst: Ipv6Addr,
}

impl MessageRoute {
    /// To a group.
    pub(crate) fn to_group(src_mac: MacAddress, src: Ipv6Addr, dst: Ipv6Addr) -> MessageRoute {
        MessageRoute { src_mac, dst_mac: MacAddress::for_ip6_multicast(dst), src, dst }
    }

    /// Writes the headers in front of a message of `len` bytes; `first` is what the IPv6 header is followed by.
    pub(crate) fn write(&self, out: &mut [u8], first: IpProtocol, hop_limit: u8, len: usize) -> Option<()> {
        let ethernet = EthernetHeader::new(self.src_mac, self.dst_mac, EtherType::IP6);
        let ip = Ip6Header::new(self.src, self.dst, first, hop_limit, len as u16);
        out.get_mut(..EthernetHeader::LEN)?.copy_from_slice(ethernet.as_bytes());
        out.get_mut(EthernetHeader::LEN..HEADERS)?.copy_from_slice(ip.as_bytes());
        Some(())
    }
}

/// "Who has `target`?" RFC 4861 7.2.2: from the unspecified address it tells no link-layer address, so it is shorter.
pub(crate) fn solicitation(way: &MessageRoute, target: Ipv6Addr) -> Option<([u8; NEIGHBOUR], usize)> {
    let mut out = [0; NEIGHBOUR];
    let message = NeighborSolicitation::new(target).write(out.get_mut(HEADERS..)?);
    let message = if way.src.is_unspecified() { message } else { message.source_link_layer(way.src_mac) };
    let len = message.finish(way.src, way.dst)?;
    way.write(&mut out, IpProtocol::ICMP6, HOP_LIMIT, len)?;
    Some((out, HEADERS + len))
}

/// "Which routers are here?" RFC 4861 4.1.
pub(crate) fn router_solicitation(way: &MessageRoute) -> Option<([u8; NEIGHBOUR], usize)> {
    let mut out = [0; NEIGHBOUR];
    let message = RouterSolicitation::new().write(out.get_mut(HEADERS..)?);
    let message = if way.src.is_unspecified() { message } else { message.source_link_layer(way.src_mac) };
    let len = message.finish(way.src, way.dst)?;
    way.write(&mut out, IpProtocol::ICMP6, HOP_LIMIT, len)?;
    Some((out, HEADERS + len))
}

/// "I have `target`": to the host that asked, or unsolicited to all nodes.
pub(crate) fn advertisement(way: &MessageRoute, target: Ipv6Addr, flags: NaFlags) -> Option<[u8; NEIGHBOUR]> {
    let mut out = [0; NEIGHBOUR];
    let message = NeighborAdvertisement::new(target, flags).write(out.get_mut(HEADERS..)?);
    let len = message.target_link_layer(way.src_mac).finish(way.src, way.dst)?;
    way.write(&mut out, IpProtocol::ICMP6, HOP_LIMIT, len)?;
    Some(out)
}

/// Where an answer to a solicitation goes. RFC 4861 7.2.4: a solicitation from the unspecified address is answered to
/// all nodes.
pub(crate) fn answer_to(
    our_mac: MacAddress,
    us: Ipv6Addr,
    them: Ipv6Addr,
    their_mac: MacAddress,
) -> MessageRoute {
    if them.is_unspecified() {
        MessageRoute::to_group(our_mac, us, ALL_NODES)
    } else {
        MessageRoute { src_mac: our_mac, dst_mac: their_mac, src: us, dst: them }
    }
}

/// Makes a packet the answer to itself, for `interface-output` of the interface it came in by; `None` when there is no room.
pub(crate) fn answer_in_place(pkt: &mut Packet<'_>, data: &IfData, answer: &[u8]) -> Option<()> {
    pkt.set_data(answer)?;
    data.tag(pkt)?;
    let rx = pkt.rx();
    let meta = pkt.meta_mut();
    meta.tx = rx;
    let gone = Flags::LINK_MULTICAST.with(Flags::L4_CHECKSUM_OFFLOAD);
    meta.flags = meta.flags.without(gone).with(Flags::LOCALLY_ORIGINATED);
    Some(())
}

/// A frame as a packet for `interface-output`; `None` when there is no buffer.
pub(crate) fn packet(
    bytes: &[u8],
    (interface, data): (SwIfIndex, &IfData),
    cache: &mut Cache,
) -> Option<Buffer> {
    let mut buffer = cache.alloc_one()?;
    let mut pkt = cache.packet(&mut buffer);
    let fits = pkt.set_data(bytes);
    debug_assert!(fits.is_some(), "the smallest MTU fits a buffer");
    let tagged = data.tag(&mut pkt);
    debug_assert!(tagged.is_some(), "a new buffer has room in front");
    let meta = pkt.meta_mut();
    meta.tx = interface;
    meta.flags = meta.flags.with(Flags::LOCALLY_ORIGINATED);
    Some(buffer)
}
