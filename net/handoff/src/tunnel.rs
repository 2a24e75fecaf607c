//! What tunnels carry: the packet inside an IP packet, as far as a flow needs it.
//!
//! Between two ends of a tunnel all packets have the same outer addresses, and often the same ports. So the flow of
//! what is inside is what tells packets apart. Anything that is not quite as the RFCs have it is not a tunnel's packet:
//! the outer flow decides then.

use shoal_wire::{EtherType, FromBytes, Ip4Header, Ip6Header, IpProtocol, UdpHeader};

/// Most IPv6 extension headers in front of an inner packet, and most of GTP-U.
const MOST_EXTENSIONS: usize = 4;

/// What begins where the inner packet does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Inner<'a> {
    /// An Ethernet header.
    Ethernet(&'a [u8]),
    /// An IPv4 or IPv6 header, as its first four bits say.
    Ip(&'a [u8]),
}

/// Finds what is behind a tunnel's header.
type Read = fn(&[u8]) -> Option<Inner<'_>>;

/// UDP ports that tunnels are received at, and how they are read.
const PORTS: &[(u16, Read)] = &[(4789, vxlan), (2152, gtpu), (6081, geneve), (4790, vxlan_gpe)];

/// The packet inside an IPv4 packet that is no fragment.
#[inline]
pub(crate) fn of_ip4(packet: &[u8]) -> Option<Inner<'_>> {
    let (ip, _) = Ip4Header::ref_from_prefix(packet).ok()?;
    if ip.is_fragment() {
        return None;
    }
    behind(ip.protocol(), packet.get(ip.header_len().max(Ip4Header::LEN)..)?)
}

/// The packet inside an IPv6 packet that is no fragment.
#[inline]
pub(crate) fn of_ip6(packet: &[u8]) -> Option<Inner<'_>> {
    let (ip, mut rest) = Ip6Header::ref_from_prefix(packet).ok()?;
    let mut protocol = ip.protocol();
    // RFC 2473 5.1: an encapsulation limit may stand in front, as a destination option.
    for _ in 0..MOST_EXTENSIONS {
        if !matches!(protocol, IpProtocol::IP6_HOP_BY_HOP_OPTIONS | IpProtocol::IP6_DESTINATION_OPTIONS) {
            break;
        }
        let [next, length, ..] = *rest else { return None };
        (protocol, rest) = (IpProtocol(next), rest.get((usize::from(length) + 1) * 8..)?);
    }
    behind(protocol, rest)
}

/// Whether a flow may be a tunnel's: asked of every packet, so that only those are looked into.
#[inline(always)]
pub(crate) fn may_be(protocol: IpProtocol, dst_port: u16) -> bool {
    match protocol {
        IpProtocol::TCP => false,
        IpProtocol::UDP => PORTS.iter().any(|(port, _)| *port == dst_port),
        _ => matches!(protocol, IpProtocol::IP_IN_IP | IpProtocol::IPV6 | IpProtocol::GRE),
    }
}

fn behind(protocol: IpProtocol, rest: &[u8]) -> Option<Inner<'_>> {
    match protocol {
        // RFC 2003, RFC 2473, RFC 4213.
        IpProtocol::IP_IN_IP | IpProtocol::IPV6 => Some(Inner::Ip(rest)),
        IpProtocol::GRE => gre(rest),
        IpProtocol::UDP => {
            let (udp, payload) = UdpHeader::ref_from_prefix(rest).ok()?;
            let (_, read) = PORTS.iter().find(|(port, _)| *port == udp.dst_port())?;
            read(payload)
        }
        _ => None,
    }
}

/// What a payload is by its EtherType.
fn typed(ether_type: u16, payload: &[u8]) -> Option<Inner<'_>> {
    /// Transparent Ethernet bridging.
    const BRIDGED: u16 = 0x6558;
    match ether_type {
        BRIDGED => Some(Inner::Ethernet(payload)),
        n if n == EtherType::IP4.0 || n == EtherType::IP6.0 => Some(Inner::Ip(payload)),
        _ => None,
    }
}

/// RFC 2784, with the key and the sequence number of RFC 2890; and ERSPAN, whose mirrored frames have a header of their
/// own in front, stays outside.
fn gre(header: &[u8]) -> Option<Inner<'_>> {
    const CHECKSUM: u8 = 0x80;
    const KEY: u8 = 0x20;
    const SEQUENCE: u8 = 0x10;
    let [flags, version, high, low, ..] = *header else { return None };
    // RFC 2784 2.3: reserved bits 1 to 5 but those of RFC 2890; version 0.
    if flags & 0x4f != 0 || version & 0x87 != 0 {
        return None;
    }
    let words = [CHECKSUM, KEY, SEQUENCE].iter().filter(|bit| flags & **bit != 0).count();
    typed(u16::from_be_bytes([high, low]), header.get(4 + 4 * words..)?)
}

/// RFC 7348 5: the bit that says there is a network identifier, and an Ethernet frame.
fn vxlan(header: &[u8]) -> Option<Inner<'_>> {
    let [flags, ..] = *header else { return None };
    if flags & 0x08 != 0 { header.get(8..).map(Inner::Ethernet) } else { None }
}

/// draft-ietf-nvo3-vxlan-gpe 3: what follows is told in the last byte of the first word.
fn vxlan_gpe(header: &[u8]) -> Option<Inner<'_>> {
    let [flags, _, _, next, ..] = *header else { return None };
    match (flags & 0x04 != 0, next) {
        (true, 1 | 2) => header.get(8..).map(Inner::Ip),
        (false, _) | (true, 3) => header.get(8..).map(Inner::Ethernet),
        _ => None,
    }
}

/// RFC 8926 3.4: options in words of four bytes.
fn geneve(header: &[u8]) -> Option<Inner<'_>> {
    let [first, flags, high, low, ..] = *header else { return None };
    // RFC 8926 3.4: version 0. A control packet carries no user's data.
    if first & 0xc0 != 0 || flags & 0x80 != 0 {
        return None;
    }
    let options = usize::from(first & 0x3f) * 4;
    typed(u16::from_be_bytes([high, low]), header.get(8 + options..)?)
}

/// 3GPP TS 29.281 5.1: a G-PDU carries a user's packet, behind extension headers if it says so.
fn gtpu(header: &[u8]) -> Option<Inner<'_>> {
    const G_PDU: u8 = 255;
    const EXTENSION: u8 = 0x04;
    const SEQUENCE: u8 = 0x02;
    const N_PDU: u8 = 0x01;
    let [flags, message, ..] = *header else { return None };
    // Version 1, not GTP'.
    if flags & 0xf0 != 0x30 || message != G_PDU {
        return None;
    }
    if flags & (EXTENSION | SEQUENCE | N_PDU) == 0 {
        return header.get(8..).map(Inner::Ip);
    }
    let mut next = if flags & EXTENSION != 0 { *header.get(11)? } else { 0 };
    let mut rest = header.get(12..)?;
    for _ in 0..MOST_EXTENSIONS {
        if next == 0 {
            return Some(Inner::Ip(rest));
        }
        // 5.2.1: the length, in words of four bytes, counts itself and the type of what follows.
        let length = usize::from(*rest.first()?) * 4;
        next = *rest.get(length.checked_sub(1)?)?;
        rest = rest.get(length..)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use shoal_wire::Packet;

    const IP4: &[u8] = &[0x45, 0, 0, 20];
    const FRAME: &[u8] = &[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];

    fn udp(port: u16, payload: &[u8]) -> Vec<u8> {
        Packet::raw().ip4([1; 4], [2; 4]).udp(50_000, port).payload(payload).build()
    }

    #[test]
    fn each_kind_of_tunnel_is_looked_into() {
        let vxlan = [&[8, 0, 0, 0, 0, 0, 5, 0], FRAME].concat();
        assert_eq!(of_ip4(&udp(4789, &vxlan)), Some(Inner::Ethernet(FRAME)));
        let geneve = [&[1, 0, 0x65, 0x58, 0, 0, 5, 0, 9, 9, 9, 9], FRAME].concat();
        assert_eq!(of_ip4(&udp(6081, &geneve)), Some(Inner::Ethernet(FRAME)));
        let gpe = [&[0x0c, 0, 0, 1, 0, 0, 5, 0], IP4].concat();
        assert_eq!(of_ip4(&udp(4790, &gpe)), Some(Inner::Ip(IP4)));
        let gtpu = [&[0x30, 255, 0, 4, 0, 0, 0, 1], IP4].concat();
        assert_eq!(of_ip4(&udp(2152, &gtpu)), Some(Inner::Ip(IP4)));
        // With a sequence number and one extension header, as 5G has it.
        let session = [&[0x36, 255, 0, 12, 0, 0, 0, 1, 0, 7, 0, 0x85, 1, 0, 9, 0], IP4].concat();
        assert_eq!(of_ip4(&udp(2152, &session)), Some(Inner::Ip(IP4)));
        let keyed = [&[0x20, 0, 8, 0, 0, 0, 0, 5], IP4].concat();
        let gre = Packet::raw().ip4([1; 4], [2; 4]).protocol(IpProtocol::GRE).payload(&keyed).build();
        assert_eq!(of_ip4(&gre), Some(Inner::Ip(IP4)));
        let ipip = Packet::raw().ip4([1; 4], [2; 4]).protocol(IpProtocol::IP_IN_IP).payload(IP4).build();
        assert_eq!(of_ip4(&ipip), Some(Inner::Ip(IP4)));
        let limit = &[4, 1, 1, 0][..];
        let six = Packet::raw().ip6([1; 8], [2; 8]).ip6_ext(IpProtocol::IP6_DESTINATION_OPTIONS, limit);
        assert_eq!(of_ip6(&six.protocol(IpProtocol::IPV6).payload(IP4).build()), Some(Inner::Ip(IP4)));
    }

    #[test]
    fn what_is_no_tunnels_packet_is_left_alone() {
        for (port, payload) in [
            (53, &[8, 0, 0, 0, 0, 0, 5, 0, 1, 1][..]),
            // No identifier; echo request; version 2; a control packet; reserved bits.
            (4789, &[0, 0, 0, 0, 0, 0, 5, 0, 1, 1]),
            (2152, &[0x32, 1, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0]),
            (2152, &[0x50, 255, 0, 4, 0, 0, 0, 0, 0]),
            (6081, &[0, 0x80, 0x65, 0x58, 0, 0, 0, 0, 0]),
            // An extension header without a length, and a chain without an end.
            (2152, &[0x34, 255, 0, 4, 0, 0, 0, 1, 0, 0, 0, 5, 0, 0, 0, 0]),
            (2152, &[0x34, 255, 0, 4, 0, 0, 0, 1, 0, 0, 0, 5, 255, 0, 0, 0]),
        ] {
            assert_eq!(of_ip4(&udp(port, payload)), None, "{port} {payload:?}");
        }
        for header in [[0x40, 0, 8, 0], [0, 1, 8, 0], [0, 0, 0x88, 0xbe]] {
            let gre = Packet::raw().ip4([1; 4], [2; 4]).protocol(IpProtocol::GRE).payload(&header).build();
            assert_eq!(of_ip4(&gre), None, "{header:?}");
        }
    }
}
