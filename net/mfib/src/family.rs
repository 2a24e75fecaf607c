//! What differs between the families, so that nodes are written once.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use shoal_adj::{Family, Link};
use shoal_buffer::{Packet, SwIfIndex};
use shoal_interface::IfTable;
use shoal_wire::ip6_address::is_link_local;
use shoal_wire::{Ip4Header, Ip6Header, IpProtocol};

/// What a packet that is too long for an interface comes to.
pub(crate) enum TooLong {
    /// It goes to the node that deals with it.
    Next,
    /// It ends.
    Drop,
}

/// A family of addresses.
pub(crate) trait Ip: Copy + Send + Sync + 'static {
    const FAMILY: Family;
    const LINK: Link;
    const LOOKUP: &'static str;
    const RPF: &'static str;
    const REPLICATE: &'static str;
    const REWRITE: &'static str;
    const MULTICAST_ARC: &'static str;
    const OUTPUT_ARC: &'static str;
    /// Next nodes of the lookup: RPF check; the lookup of packets to one host, or local delivery of IGMP.
    const LOOKUP_NEXT: &'static [&'static str];
    const RPF_NEXT: &'static [&'static str];
    /// Next nodes of the replication: rewrite, local delivery, itself.
    const REPLICATE_NEXT: &'static [&'static str];
    /// Who deals with packets that are too long.
    const REWRITE_NEXT: &'static [&'static str];
    /// Whether the lookup of packets to one host knows the groups of links.
    const UNICAST_KNOWS_LINKS: bool;
    /// How many low bytes of the group are in its Ethernet address.
    const MAC_BYTES: usize;

    type Headers: fmt::Display + Send;

    fn headers(pkt: &Packet<'_>) -> Self::Headers;
    /// Source and group.
    fn addresses(pkt: &Packet<'_>) -> Option<(u128, u128)>;
    /// The table packets received on an interface are looked up in.
    fn table(interfaces: &IfTable, interface: SwIfIndex) -> u32;
    /// Whether a packet must not leave its link, because of its group or its source.
    fn stays_on_link(source: u128, group: u128) -> bool;
    /// Whether it is about who listens, and so for routers and listeners of the link, whatever its group.
    fn is_membership(pkt: &Packet<'_>) -> bool;
    /// Hops left, and length in bytes.
    fn hops_and_length(pkt: &Packet<'_>) -> Option<(u8, usize)>;
    /// Takes a hop off.
    fn decrement(pkt: &mut Packet<'_>) -> Option<()>;
    fn too_long(pkt: &mut Packet<'_>, mtu: u16) -> TooLong;
    /// The Ethernet address's end.
    fn mac_end(group: u128) -> [u8; 4];
}

#[derive(Clone, Copy)]
pub(crate) struct Ip4;

#[derive(Clone, Copy)]
pub(crate) struct Ip6;

/// Whether a group's packets never leave their link: RFC 5771, 4; RFC 4291, 2.7 (scopes 0 to 2; RFC 7346).
pub(crate) fn is_link_group(family: Family, group: u128) -> bool {
    match family {
        Family::Ip4 => group >> 8 == 0xe0_0000,
        Family::Ip6 => group >> 120 == 0xff && group >> 112 & 0xf <= 2,
    }
}

impl Ip for Ip4 {
    const FAMILY: Family = Family::Ip4;
    const LINK: Link = Link::Ip4;
    const LOOKUP: &'static str = "ip4-mfib-forward-lookup";
    const RPF: &'static str = "ip4-mfib-forward-rpf";
    const REPLICATE: &'static str = "ip4-replicate";
    const REWRITE: &'static str = "ip4-rewrite-mcast";
    const MULTICAST_ARC: &'static str = shoal_ip4::MULTICAST_ARC;
    const OUTPUT_ARC: &'static str = shoal_ip4::OUTPUT_ARC;
    const LOOKUP_NEXT: &'static [&'static str] = &[Self::RPF, "ip4-local"];
    const RPF_NEXT: &'static [&'static str] = &[Self::REPLICATE];
    const REPLICATE_NEXT: &'static [&'static str] = &[Self::REWRITE, "ip4-local", Self::REPLICATE];
    const REWRITE_NEXT: &'static [&'static str] = &["ip4-frag"];
    const UNICAST_KNOWS_LINKS: bool = false;
    const MAC_BYTES: usize = 3;

    type Headers = shoal_ip4::Headers;

    fn headers(pkt: &Packet<'_>) -> Self::Headers {
        shoal_ip4::Headers::of(pkt)
    }

    #[inline]
    fn addresses(pkt: &Packet<'_>) -> Option<(u128, u128)> {
        let ip = pkt.header::<Ip4Header>()?;
        Some((ip.src().to_bits().into(), ip.dst_u32().into()))
    }

    #[inline]
    fn table(interfaces: &IfTable, interface: SwIfIndex) -> u32 {
        interfaces.ip4_table(interface)
    }

    #[inline]
    fn stays_on_link(source: u128, group: u128) -> bool {
        let source = Ipv4Addr::from_bits(source as u32);
        // RFC 3927, 7: no router forwards packets from link-local addresses.
        is_link_group(Family::Ip4, group) || source.is_link_local() || source.is_unspecified()
    }

    #[inline]
    fn is_membership(pkt: &Packet<'_>) -> bool {
        pkt.header::<Ip4Header>().is_some_and(|ip| ip.protocol() == IpProtocol::IGMP)
    }

    #[inline]
    fn hops_and_length(pkt: &Packet<'_>) -> Option<(u8, usize)> {
        let ip = pkt.header::<Ip4Header>()?;
        Some((ip.ttl(), ip.total_length().into()))
    }

    #[inline]
    fn decrement(pkt: &mut Packet<'_>) -> Option<()> {
        pkt.header_mut::<Ip4Header>()?.decrement_ttl();
        Some(())
    }

    fn too_long(pkt: &mut Packet<'_>, _: u16) -> TooLong {
        // RFC 1112, 7.2: no errors are sent about packets to groups.
        let cut = pkt.header::<Ip4Header>().is_some_and(|ip| !ip.dont_fragment());
        if cut { TooLong::Next } else { TooLong::Drop }
    }

    #[inline]
    fn mac_end(group: u128) -> [u8; 4] {
        // RFC 1112, 6.4: 23 bits.
        (group as u32 & 0x7f_ffff).to_be_bytes()
    }
}

impl Ip for Ip6 {
    const FAMILY: Family = Family::Ip6;
    const LINK: Link = Link::Ip6;
    const LOOKUP: &'static str = "ip6-mfib-forward-lookup";
    const RPF: &'static str = "ip6-mfib-forward-rpf";
    const REPLICATE: &'static str = "ip6-replicate";
    const REWRITE: &'static str = "ip6-rewrite-mcast";
    const MULTICAST_ARC: &'static str = shoal_ip6::MULTICAST_ARC;
    const OUTPUT_ARC: &'static str = shoal_ip6::OUTPUT_ARC;
    const LOOKUP_NEXT: &'static [&'static str] = &[Self::RPF, "ip6-lookup"];
    const RPF_NEXT: &'static [&'static str] = &[Self::REPLICATE];
    const REPLICATE_NEXT: &'static [&'static str] = &[Self::REWRITE, "ip6-local", Self::REPLICATE];
    const REWRITE_NEXT: &'static [&'static str] = &["ip6-icmp-error"];
    const UNICAST_KNOWS_LINKS: bool = true;
    const MAC_BYTES: usize = 4;

    type Headers = shoal_ip6::Headers;

    fn headers(pkt: &Packet<'_>) -> Self::Headers {
        shoal_ip6::Headers::of(pkt)
    }

    #[inline]
    fn addresses(pkt: &Packet<'_>) -> Option<(u128, u128)> {
        let ip = pkt.header::<Ip6Header>()?;
        Some((ip.src().to_bits(), ip.dst_u128()))
    }

    #[inline]
    fn table(interfaces: &IfTable, interface: SwIfIndex) -> u32 {
        interfaces.ip6_table(interface)
    }

    #[inline]
    fn stays_on_link(source: u128, group: u128) -> bool {
        let source = Ipv6Addr::from_bits(source);
        // RFC 4291, 2.5.6 and 2.5.2.
        is_link_group(Family::Ip6, group) || is_link_local(source) || source.is_unspecified()
    }

    #[inline]
    fn is_membership(_: &Packet<'_>) -> bool {
        // ip6-lookup knows the groups of links, and MLD is from their addresses.
        false
    }

    #[inline]
    fn hops_and_length(pkt: &Packet<'_>) -> Option<(u8, usize)> {
        let ip = pkt.header::<Ip6Header>()?;
        Some((ip.hop_limit(), Ip6Header::LEN + usize::from(ip.payload_length())))
    }

    #[inline]
    fn decrement(pkt: &mut Packet<'_>) -> Option<()> {
        pkt.header_mut::<Ip6Header>()?.decrement_hop_limit();
        Some(())
    }

    fn too_long(pkt: &mut Packet<'_>, mtu: u16) -> TooLong {
        // RFC 4443, 2.4 (e.3): "packet too big" is one of the two errors that packets to groups get, for path MTU
        // discovery to work.
        shoal_ip6::IcmpError::too_big(mtu).ask(pkt);
        TooLong::Next
    }

    #[inline]
    fn mac_end(group: u128) -> [u8; 4] {
        // RFC 2464, 7.
        (group as u32).to_be_bytes()
    }
}
