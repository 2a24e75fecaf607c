//! Whole packets in the layout of VPP's `show trace`, from bytes that may be short or lie.
//!
//! Nothing here fails or reads past the slice: a header that is not all there says `truncated`.
//! Traces keep only the start of a packet, so bytes missing *after* a header are not remarked on.

use std::fmt::{self, Display, Write};

use zerocopy::{FromBytes, Immutable, KnownLayout, Unaligned};

use crate::icmp4::{Icmp4Echo, Icmp4Error, Icmp4Header, Icmp4Type};
use crate::icmp6::{Icmp6Echo, Icmp6Error, Icmp6Header, Icmp6Type};
use crate::ip6_ext::{Ip6ExtError, Ip6ExtHeaders};
use crate::mld::{MldHeader, MldRecords};
use crate::nd::{
    NeighborAdvertisement, NeighborSolicitation, Redirect, RouterAdvertisement, RouterSolicitation,
};
use crate::{
    ArpHeader, EtherType, EthernetHeader, Ip4Header, Ip6Header, IpProtocol, TcpHeader, UdpHeader, VlanHeader,
};

/// An IPv4 packet: its header, then UDP, TCP or ICMP unless it is a later fragment.
///
/// ```
/// assert_eq!(shoal_wire::describe_ip4(&[0x45, 0]).to_string(), "IP header truncated");
/// ```
pub fn describe_ip4(packet: &[u8]) -> impl Display + '_ {
    fmt::from_fn(move |f| ip4(f, packet))
}

/// An IPv6 packet: its header, its extension headers, then UDP, TCP or ICMPv6 unless it is a later
/// fragment. One line for each extension header: its name and length, or what a fragment says.
pub fn describe_ip6(packet: &[u8]) -> impl Display + '_ {
    fmt::from_fn(move |f| ip6(f, packet))
}

/// An ARP packet for Ethernet and IPv4.
pub fn describe_arp(packet: &[u8]) -> impl Display + '_ {
    fmt::from_fn(move |f| match ArpHeader::ref_from_prefix(packet) {
        Ok((arp, _)) => arp.fmt(f),
        Err(_) => f.write_str("ARP header truncated"),
    })
}

/// An Ethernet frame's header with up to two VLAN tags on one line, without what it carries:
/// `IP4: 02:fe:00:00:00:01 -> 02:fe:00:00:00:02 802.1q vlan 10`.
pub fn describe_ethernet(frame: &[u8]) -> impl Display + '_ {
    fmt::from_fn(move |f| ethernet(f, frame).map(|_| ()))
}

/// An Ethernet frame with everything this crate can name inside it.
pub fn describe_frame(frame: &[u8]) -> impl Display + '_ {
    fmt::from_fn(move |f| {
        let (ether_type, payload) = ethernet(f, frame)?;
        match ether_type {
            Some(EtherType::IP4) => write!(f, "\n{}", describe_ip4(payload)),
            Some(EtherType::IP6) => write!(f, "\n{}", describe_ip6(payload)),
            Some(EtherType::ARP) => write!(f, "\n{}", describe_arp(payload)),
            _ => Ok(()),
        }
    })
}

/// `what` with `columns` spaces before every line but the first, as a trace nests its layers.
pub fn indented(columns: usize, what: impl Display) -> impl Display {
    struct Indenter<'a, 'b>(&'a mut fmt::Formatter<'b>, usize);
    impl fmt::Write for Indenter<'_, '_> {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            for line in text.split_inclusive('\n') {
                self.0.write_str(line)?;
                if line.ends_with('\n') {
                    write!(self.0, "{:1$}", "", self.1)?;
                }
            }
            Ok(())
        }
    }
    fmt::from_fn(move |f| write!(Indenter(f, columns), "{what}"))
}

fn ethernet<'a>(
    f: &mut fmt::Formatter<'_>,
    frame: &'a [u8],
) -> Result<(Option<EtherType>, &'a [u8]), fmt::Error> {
    const TRUNCATED: &str = "ethernet header truncated";
    let Ok((header, mut rest)) = EthernetHeader::ref_from_prefix(frame) else {
        f.write_str(TRUNCATED)?;
        return Ok((None, &[]));
    };
    let mut ether_type = header.ether_type();
    let mut tags = [None; 2];
    for tag in &mut tags {
        if !ether_type.is_vlan() {
            break;
        }
        let Ok((vlan, after)) = VlanHeader::ref_from_prefix(rest) else {
            f.write_str(TRUNCATED)?;
            return Ok((None, &[]));
        };
        *tag = Some((ether_type, *vlan));
        (ether_type, rest) = (vlan.ether_type(), after);
    }
    write!(f, "{}: {} -> {}", ether_type, header.src(), header.dst())?;
    for (announced_by, vlan) in tags.into_iter().flatten() {
        let standard = if announced_by == EtherType::VLAN { "802.1q" } else { "802.1ad" };
        write!(f, " {standard} vlan {vlan}")?;
    }
    Ok((Some(ether_type), rest))
}

fn ip4(f: &mut fmt::Formatter<'_>, packet: &[u8]) -> fmt::Result {
    let Ok((ip, _)) = Ip4Header::ref_from_prefix(packet) else {
        return f.write_str("IP header truncated");
    };
    let options = packet.get(Ip4Header::LEN..ip.header_len());
    ip.fmt_with(f, options)?;
    // A header length that cannot be hides where the next layer starts; a later fragment has none.
    let Some(payload) = packet.get(ip.header_len().max(Ip4Header::LEN)..) else {
        return f.write_str("\nIP options truncated");
    };
    if options.is_none() || ip.fragment_offset() != 0 {
        return Ok(());
    }
    match ip.protocol() {
        IpProtocol::ICMP => icmp4(f, payload),
        protocol => transport(f, protocol, payload),
    }
}

fn ip6(f: &mut fmt::Formatter<'_>, packet: &[u8]) -> fmt::Result {
    let Ok((ip, _)) = Ip6Header::ref_from_prefix(packet) else {
        return f.write_str("IP header truncated");
    };
    ip.fmt(f)?;
    let Some(mut headers) = Ip6ExtHeaders::of_packet(packet) else { return Ok(()) };
    let mut later = false;
    for header in &mut headers {
        let header = match header {
            Ok(header) => header,
            Err(Ip6ExtError::Truncated { .. }) => return f.write_str("\nIP extension header truncated"),
            Err(error) => return write!(f, "\n{error}"),
        };
        match header.fragment() {
            Some(fragment) => {
                write!(f, "\n{}: {fragment}", header.protocol)?;
                later = fragment.offset() != 0;
            }
            None => write!(f, "\n{}: length {}", header.protocol, header.bytes.len())?,
        }
    }
    let payload = packet.get(headers.offset()..).unwrap_or(&[]);
    match headers.protocol() {
        _ if later => Ok(()),
        IpProtocol::ICMP6 => icmp6(f, payload),
        protocol => transport(f, protocol, payload),
    }
}

fn transport(f: &mut fmt::Formatter<'_>, protocol: IpProtocol, payload: &[u8]) -> fmt::Result {
    match protocol {
        IpProtocol::UDP => {
            f.write_char('\n')?;
            match UdpHeader::ref_from_prefix(payload) {
                Ok((udp, _)) => udp.fmt(f),
                Err(_) => f.write_str("UDP header truncated"),
            }
        }
        IpProtocol::TCP => {
            f.write_char('\n')?;
            match TcpHeader::ref_from_prefix(payload) {
                Ok((tcp, _)) => tcp.fmt(f),
                Err(_) => f.write_str("TCP header truncated"),
            }
        }
        _ => Ok(()),
    }
}

fn icmp4(f: &mut fmt::Formatter<'_>, payload: &[u8]) -> fmt::Result {
    f.write_char('\n')?;
    let Ok((header, _)) = Icmp4Header::ref_from_prefix(payload) else {
        return f.write_str("ICMP header truncated");
    };
    match header.kind() {
        Icmp4Type::ECHO_REQUEST | Icmp4Type::ECHO_REPLY => match Icmp4Echo::ref_from_prefix(payload) {
            Ok((echo, _)) => write!(f, "{echo}"),
            Err(_) => write!(f, "{header} truncated"),
        },
        kind if kind.is_error() => match Icmp4Error::ref_from_prefix(payload) {
            Ok((error, _)) => write!(f, "{error}"),
            Err(_) => write!(f, "{header} truncated"),
        },
        _ => write!(f, "{header}"),
    }
}

fn icmp6(f: &mut fmt::Formatter<'_>, payload: &[u8]) -> fmt::Result {
    f.write_char('\n')?;
    let Ok((header, _)) = Icmp6Header::read_from_prefix(payload) else {
        return f.write_str("ICMP header truncated");
    };
    match header.kind() {
        Icmp6Type::ECHO_REQUEST | Icmp6Type::ECHO_REPLY => all_of::<Icmp6Echo>(f, header, payload),
        Icmp6Type::ROUTER_SOLICITATION => all_of::<RouterSolicitation>(f, header, payload),
        Icmp6Type::ROUTER_ADVERTISEMENT => all_of::<RouterAdvertisement>(f, header, payload),
        Icmp6Type::NEIGHBOR_SOLICITATION => all_of::<NeighborSolicitation>(f, header, payload),
        Icmp6Type::NEIGHBOR_ADVERTISEMENT => all_of::<NeighborAdvertisement>(f, header, payload),
        Icmp6Type::REDIRECT => all_of::<Redirect>(f, header, payload),
        Icmp6Type::MULTICAST_LISTENER_REPORT_V2 => listener_report(f, header, payload),
        kind if kind.is_listener_discovery() => all_of::<MldHeader>(f, header, payload),
        kind if kind.is_error() => all_of::<Icmp6Error>(f, header, payload),
        _ => write!(f, "{header}"),
    }
}

/// The whole fixed part of a message, or its header and that there is no more.
fn all_of<T>(f: &mut fmt::Formatter<'_>, header: Icmp6Header, payload: &[u8]) -> fmt::Result
where
    T: FromBytes + KnownLayout + Immutable + Unaligned + Display,
{
    match T::ref_from_prefix(payload) {
        Ok((message, _)) => write!(f, "{message}"),
        Err(_) => write!(f, "{header} truncated"),
    }
}

fn listener_report(f: &mut fmt::Formatter<'_>, header: Icmp6Header, payload: &[u8]) -> fmt::Result {
    let Some(records) = MldRecords::of_message(payload) else { return write!(f, "{header} truncated") };
    write!(f, "{header}")?;
    // A trace has room for some records, not for all that a packet can carry.
    for record in records.take(8) {
        write!(f, "\n  {} {}, {} sources", record.kind, record.group, record.sources.len())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::IntoBytes;
    use crate::packet::{Fragment, Packet};

    fn udp_packet() -> Vec<u8> {
        let ip = Ip4Header::new([10, 0, 0, 1].into(), [10, 0, 0, 2].into(), IpProtocol::UDP, 64, 46);
        [ip.as_bytes(), UdpHeader::new(1234, 5678, 26).as_bytes(), &[0; 18]].concat()
    }

    #[test]
    fn names_the_layer_that_is_cut_off() {
        let packet = udp_packet();
        for cut in 0..packet.len() {
            let text = describe_ip4(&packet[..cut]).to_string();
            match cut {
                0..20 => assert_eq!(text, "IP header truncated"),
                20..28 => assert!(text.ends_with("\nUDP header truncated"), "{text}"),
                _ => assert!(text.ends_with("\nUDP: 1234 -> 5678\n  length 26, checksum 0x0000"), "{text}"),
            }
        }
    }

    #[test]
    fn a_header_length_that_cannot_be_stops_before_the_next_layer() {
        let mut packet = udp_packet();
        packet[0] = 0x44;
        let text = describe_ip4(&packet).to_string();
        assert!(text.contains("version 4, header length 16"), "{text}");
        assert!(!text.contains("1234 -> 5678"), "{text}");
        packet[0] = 0x4f;
        assert!(describe_ip4(&packet).to_string().ends_with("\nIP options truncated"));
    }

    #[test]
    fn a_later_fragment_shows_no_ports() {
        let mut packet = udp_packet();
        packet[7] = 1;
        assert!(!describe_ip4(&packet).to_string().contains("1234"));
    }

    #[test]
    fn vlan_tags_stand_on_the_ethernet_line() {
        let mut frame = vec![0xff; 12];
        frame.extend([0x88, 0xa8, 0, 20, 0x81, 0, 0xa0, 10, 8, 0]);
        let mac = "ff:ff:ff:ff:ff:ff";
        let want = format!("IP4: {mac} -> {mac} 802.1ad vlan 20 802.1q vlan 10 priority 5");
        assert_eq!(describe_ethernet(&frame).to_string(), want);
        assert_eq!(describe_ethernet(&frame[..21]).to_string(), "ethernet header truncated");
        frame.extend(udp_packet());
        assert!(describe_frame(&frame).to_string().contains("\nUDP: 10.0.0.1 -> 10.0.0.2\n  tos"));
    }

    #[test]
    fn indents_every_line_but_the_first() {
        assert_eq!(indented(2, "a\n b\nc").to_string(), "a\n   b\n  c");
    }

    fn six() -> Packet {
        Packet::raw().ip6([0x2001, 0xdb8, 0, 0, 0, 0, 0, 1], [0xfe80, 0, 0, 0, 0, 0, 0, 2])
    }

    /// What stands behind the IPv6 header.
    fn after_ip6(packet: &[u8]) -> String {
        let text = describe_ip6(packet).to_string();
        text.splitn(3, '\n').nth(2).unwrap_or_default().to_owned()
    }

    #[test]
    fn extension_headers_have_a_line_each() {
        let packet = six()
            .ip6_ext(IpProtocol::IP6_HOP_BY_HOP_OPTIONS, &[5, 2, 0, 0])
            .fragment(0, Fragment::More)
            .id(9)
            .udp(1234, 5678)
            .build();
        let want = "IP6_HOP_BY_HOP_OPTIONS: length 8\n\
                    IPV6_FRAGMENTATION: fragment id 0x00000009 offset 0, flags MORE_FRAGMENTS\n\
                    UDP: 1234 -> 5678\n";
        assert!(after_ip6(&packet).starts_with(want), "{}", after_ip6(&packet));
        for cut in 40..packet.len() {
            let text = after_ip6(&packet[..cut]);
            match cut {
                40..56 => assert!(text.ends_with("IP extension header truncated"), "{text}"),
                56..64 => assert!(text.ends_with("\nUDP header truncated"), "{text}"),
                _ => {}
            }
        }
        let later = six().fragment(8, Fragment::Last).protocol(IpProtocol::UDP).payload_len(20).build();
        assert_eq!(after_ip6(&later), "IPV6_FRAGMENTATION: fragment id 0x00000000 offset 8");
        let endless = (0..9).fold(six(), |p, _| p.ip6_ext(IpProtocol::IP6_DESTINATION_OPTIONS, &[]));
        assert!(after_ip6(&endless.build()).ends_with("\nmore than 8 IPv6 extension headers"));
    }

    #[test]
    fn icmp6_messages_are_named_or_truncated() {
        let target = "2001:db8::9".parse().unwrap();
        let solicitation = six().icmp6(NeighborSolicitation::new(target).as_bytes()).build();
        let text = after_ip6(&solicitation);
        assert!(text.starts_with("ICMP neighbor_solicitation checksum 0x"), "{text}");
        assert!(text.ends_with("\n  target address 2001:db8::9"), "{text}");
        assert!(after_ip6(&solicitation[..50]).ends_with(" truncated"));
        assert_eq!(after_ip6(&solicitation[..42]), "ICMP header truncated");
        assert!(after_ip6(&six().icmp6_echo_request(7, 1).build()).ends_with(" id 7"));
        let error = six().icmp6(Icmp6Error::packet_too_big(1400).as_bytes()).build();
        assert!(after_ip6(&error).ends_with(" mtu 1400"));
        let mut report = [0; 28];
        crate::mld::ReportWriter::new(&mut report).join(target).finish(target, target).unwrap();
        let text = after_ip6(&six().icmp6(&report).build());
        assert!(text.ends_with("\n  change_to_exclude 2001:db8::9, 0 sources"), "{text}");
    }
}
