//! Whole packets in the layout of VPP's `show trace`, from bytes that may be short or lie.
//!
//! Nothing here fails or reads past the slice: a header that is not all there says `truncated`.
//! Traces keep only the start of a packet, so bytes missing *after* a header are not remarked on.

use std::fmt::{self, Display, Write};

use zerocopy::FromBytes;

use crate::icmp4::{Icmp4Echo, Icmp4Error, Icmp4Header, Icmp4Type};
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

/// An IPv6 packet: its header, then UDP, TCP when they follow directly.
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
    let Ok((ip, payload)) = Ip6Header::ref_from_prefix(packet) else {
        return f.write_str("IP header truncated");
    };
    ip.fmt(f)?;
    transport(f, ip.protocol(), payload)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::IntoBytes;

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
}
