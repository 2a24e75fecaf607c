//! Where a packet's transport header is, whatever lies before it.

use zerocopy::FromBytes;

use crate::ip6_ext::{Ip6ExtHeaders, is_extension};
use crate::{Ip4Header, Ip6Header, IpProtocol};

/// A packet's transport header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transport {
    /// The protocol. Of a later fragment of an IPv6 packet it is that of the first header of what was cut.
    pub protocol: IpProtocol,
    /// Where the header starts, in bytes from the start of the network header; maybe past what is there.
    pub offset: usize,
    /// Whether there is one: a later fragment has none.
    pub there: bool,
}

impl Transport {
    /// Of the IPv4 packet that starts at `packet`; `None` when its header is cut off or wrong.
    #[inline]
    pub fn of_ip4(packet: &[u8]) -> Option<Self> {
        let (ip, _) = Ip4Header::ref_from_prefix(packet).ok()?;
        let offset = ip.header_len();
        let later = ip.fragment_offset() != 0;
        (offset >= Ip4Header::LEN).then_some(Transport { protocol: ip.protocol(), offset, there: !later })
    }

    /// Of the IPv6 packet that starts at `packet`; `None` when its header or an extension header is cut off or wrong.
    #[inline]
    pub fn of_ip6(packet: &[u8]) -> Option<Self> {
        let (ip, _) = Ip6Header::ref_from_prefix(packet).ok()?;
        if !is_extension(ip.protocol()) {
            return Some(Transport { protocol: ip.protocol(), offset: Ip6Header::LEN, there: true });
        }
        Self::behind_extensions(packet)
    }

    #[cold]
    fn behind_extensions(packet: &[u8]) -> Option<Self> {
        let mut headers = Ip6ExtHeaders::of_packet(packet)?;
        let mut there = true;
        for header in headers.by_ref() {
            if let Some(fragment) = header.ok()?.fragment() {
                there &= fragment.offset() == 0;
            }
        }
        Some(Transport { protocol: headers.protocol(), offset: headers.offset(), there })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Fragment;
    use crate::{Packet, TcpFlags};

    fn of(frame: &[u8]) -> Option<Transport> {
        match frame[14] >> 4 {
            4 => Transport::of_ip4(&frame[14..]),
            _ => Transport::of_ip6(&frame[14..]),
        }
    }

    fn ip4() -> Packet {
        Packet::ethernet([2; 6], [2; 6]).ip4([10, 0, 0, 1], [10, 0, 0, 2])
    }

    fn ip6() -> Packet {
        let (src, dst): (std::net::Ipv6Addr, std::net::Ipv6Addr) =
            ("2001:db8::1".parse().unwrap(), "2001:db8::2".parse().unwrap());
        Packet::ethernet([2; 6], [2; 6]).ip6(src, dst)
    }

    #[test]
    fn is_found_behind_options_and_extension_headers() {
        let tcp = |at| Some(Transport { protocol: IpProtocol::TCP, offset: at, there: true });
        assert_eq!(of(&ip4().tcp(1, 2, TcpFlags::SYN).build()), tcp(20));
        assert_eq!(of(&ip4().options(&[1; 8]).tcp(1, 2, TcpFlags::SYN).build()), tcp(28));
        assert_eq!(of(&ip6().tcp(1, 2, TcpFlags::SYN).build()), tcp(40));
        let hop = IpProtocol::IP6_HOP_BY_HOP_OPTIONS;
        assert_eq!(of(&ip6().ip6_ext(hop, &[1, 4, 0, 0, 0, 0]).tcp(1, 2, TcpFlags::SYN).build()), tcp(48));
    }

    #[test]
    fn a_later_fragment_has_none() {
        let first = of(&ip4().fragment(0, Fragment::More).udp(1, 2).build()).unwrap();
        assert!(first.there);
        let later = of(&ip4().fragment(64, Fragment::Last).udp(1, 2).build()).unwrap();
        assert!(!later.there && later.protocol == IpProtocol::UDP);
        let fragment = IpProtocol::IPV6_FRAGMENTATION;
        let later = of(&ip6().ip6_ext(fragment, &[0, 64, 0, 0, 0, 7]).udp(1, 2).build()).unwrap();
        assert!(!later.there && later.protocol == IpProtocol::UDP, "{later:?}");
    }

    #[test]
    fn what_is_cut_off_has_none() {
        let hop = IpProtocol::IP6_HOP_BY_HOP_OPTIONS;
        let whole = ip6().ip6_ext(hop, &[1, 4, 0, 0, 0, 0]).udp(1, 2).build();
        for n in 0..48 {
            assert_eq!(Transport::of_ip6(&whole[14..14 + n]), None, "{n}");
        }
        assert_eq!(Transport::of_ip4(&[0x41; 20]), None);
        assert_eq!(Transport::of_ip4(&[0x45; 19]), None);
    }
}
