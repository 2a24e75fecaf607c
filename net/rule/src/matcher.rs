//! A rule as packets meet it: everything precomputed, no branch on what was left out but for the fields that a packet
//! may lack.

use std::ops::BitAnd;

use shoal_wire::{FromBytes, Ip4Header, Ip6Header, IpPrefix, IpProtocol, TcpHeader, Transport};

use crate::Rule;
use crate::rule::{Ports, has_ports};

/// An address of one family as a number.
pub trait Address: Copy + BitAnd<Output = Self> + PartialEq + Send + Sync + 'static {
    /// What of a packet is compared; `None` when its headers are cut off or wrong.
    fn fields(packet: &[u8]) -> Option<Fields<Self>>;
    /// A prefix's network and mask; nothing of a prefix of another family.
    fn masked(prefix: Option<IpPrefix>) -> (Self, Self);
}

/// What of a packet is compared with rules.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fields<A> {
    /// Source.
    pub src: A,
    /// Destination.
    pub dst: A,
    /// Transport protocol.
    pub protocol: IpProtocol,
    /// Code point.
    pub dscp: u8,
    /// Source and destination port, of a packet that has them.
    pub ports: Option<(u16, u16)>,
    /// TCP flags, of a packet that has them.
    pub tcp: Option<u8>,
}

impl<A: Address> Fields<A> {
    /// Those of the packet that starts at `packet`.
    #[inline]
    pub fn of(packet: &[u8]) -> Option<Self> {
        A::fields(packet)
    }

    #[inline(always)]
    fn new((src, dst): (A, A), dscp: u8, transport: Transport, packet: &[u8]) -> Self {
        let Transport { protocol, offset, there } = transport;
        let rest = packet.get(offset..).filter(|_| there).unwrap_or_default();
        let ports = match rest.first_chunk::<4>() {
            Some([a, b, c, d]) if has_ports(protocol) => {
                Some((u16::from_be_bytes([*a, *b]), u16::from_be_bytes([*c, *d])))
            }
            _ => None,
        };
        let tcp = if protocol == IpProtocol::TCP {
            TcpHeader::ref_from_prefix(rest).ok().map(|(tcp, _)| tcp.flags().0)
        } else {
            None
        };
        Fields { src, dst, protocol, dscp, ports, tcp }
    }
}

impl Address for u32 {
    #[inline]
    fn fields(packet: &[u8]) -> Option<Fields<u32>> {
        let (ip, _) = Ip4Header::ref_from_prefix(packet).ok()?;
        let transport = Transport::of_ip4(packet)?;
        Some(Fields::new((ip.src_u32(), ip.dst_u32()), ip.dscp(), transport, packet))
    }

    fn masked(prefix: Option<IpPrefix>) -> (u32, u32) {
        prefix.and_then(|p| p.ip4()).map_or((0, 0), |p| (p.network().to_bits(), p.mask_bits()))
    }
}

impl Address for u128 {
    #[inline]
    fn fields(packet: &[u8]) -> Option<Fields<u128>> {
        let (ip, _) = Ip6Header::ref_from_prefix(packet).ok()?;
        let transport = Transport::of_ip6(packet)?;
        Some(Fields::new((ip.src_u128(), ip.dst_u128()), ip.dscp(), transport, packet))
    }

    fn masked(prefix: Option<IpPrefix>) -> (u128, u128) {
        prefix.and_then(|p| p.ip6()).map_or((0, 0), |p| (p.network().to_bits(), p.mask_bits()))
    }
}

/// A rule of one family, ready for packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Matcher<A> {
    src: A,
    src_mask: A,
    dst: A,
    dst_mask: A,
    sport: Ports,
    dport: Ports,
    /// Each of these is compared under its mask.
    protocol: u8,
    protocol_mask: u8,
    dscp: u8,
    dscp_mask: u8,
    tcp: u8,
    tcp_mask: u8,
    /// Whether a packet without ports is out.
    asks_ports: bool,
}

const ALL_PORTS: Ports = Ports { first: 0, last: u16::MAX };

impl<A: Address> Matcher<A> {
    /// Of a rule of the same family; of another it would match packets of any address.
    pub fn new(rule: &Rule) -> Self {
        let ((src, src_mask), (dst, dst_mask)) = (A::masked(rule.src), A::masked(rule.dst));
        let (set, clear) = rule.tcp.map_or((0, 0), |tcp| (tcp.set.0, tcp.clear.0));
        Matcher {
            src,
            src_mask,
            dst,
            dst_mask,
            sport: rule.sport.unwrap_or(ALL_PORTS),
            dport: rule.dport.unwrap_or(ALL_PORTS),
            protocol: rule.protocol.map_or(0, |p| p.0),
            protocol_mask: if rule.protocol.is_some() { u8::MAX } else { 0 },
            dscp: rule.dscp.unwrap_or(0),
            dscp_mask: if rule.dscp.is_some() { u8::MAX } else { 0 },
            tcp: set,
            tcp_mask: set | clear,
            asks_ports: rule.sport.is_some() || rule.dport.is_some(),
        }
    }

    /// Whether a packet is like that.
    #[inline(always)]
    pub fn matches(&self, fields: &Fields<A>) -> bool {
        fields.src & self.src_mask == self.src
            && fields.dst & self.dst_mask == self.dst
            && fields.protocol.0 & self.protocol_mask == self.protocol
            && fields.dscp & self.dscp_mask == self.dscp
            && self.ports_match(fields.ports)
            && (self.tcp_mask == 0 || fields.tcp.is_some_and(|tcp| tcp & self.tcp_mask == self.tcp))
    }

    #[inline(always)]
    fn ports_match(&self, ports: Option<(u16, u16)>) -> bool {
        let within = |ports: Ports, port| ports.first <= port && port <= ports.last;
        match ports {
            Some((sport, dport)) => within(self.sport, sport) && within(self.dport, dport),
            None => !self.asks_ports,
        }
    }
}

const _: () = assert!(size_of::<Matcher<u32>>() <= 32, "two rules of IPv4 share a cache line");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TcpMask;
    use shoal_adj::Family;
    use shoal_wire::packet::Fragment;
    use shoal_wire::{Packet, TcpFlags};

    fn ip4() -> Packet {
        Packet::ethernet([2; 6], [2; 6]).ip4([10, 1, 2, 3], [20, 0, 0, 1])
    }

    fn ip6() -> Packet {
        let (src, dst): (std::net::Ipv6Addr, std::net::Ipv6Addr) =
            ("2001:db8:1::1".parse().unwrap(), "2001:db8:2::2".parse().unwrap());
        Packet::ethernet([2; 6], [2; 6]).ip6(src, dst)
    }

    fn matches(rule: Rule, packet: &Packet) -> bool {
        let (rule, frame) = (rule.checked().unwrap(), packet.clone().build());
        match rule.family {
            Family::Ip4 => Matcher::<u32>::new(&rule).matches(&Fields::of(&frame[14..]).unwrap()),
            Family::Ip6 => Matcher::<u128>::new(&rule).matches(&Fields::of(&frame[14..]).unwrap()),
        }
    }

    fn ports(first: u16, last: u16) -> Option<Ports> {
        Some(Ports { first, last })
    }

    #[test]
    fn each_field_decides() {
        for (family, packet, near, far) in [
            (Family::Ip4, ip4(), "10.1.0.0/16", "10.2.0.0/16"),
            (Family::Ip6, ip6(), "2001:db8:1::/48", "2001:db8:3::/48"),
        ] {
            let any = Rule::any(family);
            let packet = packet.tos(46 << 2).tcp(1000, 443, TcpFlags::SYN);
            assert!(matches(any, &packet));
            assert!(matches(Rule { src: Some(near.parse().unwrap()), ..any }, &packet));
            assert!(!matches(Rule { src: Some(far.parse().unwrap()), ..any }, &packet));
            assert!(!matches(Rule { dst: Some(near.parse().unwrap()), ..any }, &packet));
            assert!(matches(Rule { protocol: Some(IpProtocol::TCP), ..any }, &packet));
            assert!(!matches(Rule { protocol: Some(IpProtocol::UDP), ..any }, &packet));
            assert!(matches(Rule { sport: ports(1000, 1000), dport: ports(400, 443), ..any }, &packet));
            assert!(!matches(Rule { sport: ports(1000, 1000), dport: ports(400, 442), ..any }, &packet));
            assert!(!matches(Rule { sport: ports(1001, 1001), ..any }, &packet));
            assert!(matches(Rule { dscp: Some(46), ..any }, &packet));
            assert!(!matches(Rule { dscp: Some(0), ..any }, &packet));
            let tcp = |set, clear| Rule { tcp: Some(TcpMask { set, clear }), ..any };
            assert!(matches(tcp(TcpFlags::SYN, TcpFlags::ACK), &packet));
            assert!(!matches(tcp(TcpFlags::ACK, TcpFlags::SYN), &packet));
            assert!(!matches(tcp(TcpFlags(0), TcpFlags::SYN), &packet));
        }
    }

    #[test]
    fn ports_and_flags_are_not_those_of_other_protocols_nor_of_later_fragments() {
        let any = Rule::any(Family::Ip4);
        let dport = Rule { dport: ports(0, u16::MAX), ..any };
        assert!(matches(dport, &ip4().udp(1, 2)));
        assert!(!matches(dport, &ip4().icmp_echo_request(1, 1)));
        assert!(!matches(dport, &ip4().fragment(64, Fragment::Last).udp(1, 2)));
        assert!(matches(any, &ip4().fragment(64, Fragment::Last).udp(1, 2)));
        let syn = TcpMask { set: TcpFlags::SYN, clear: TcpFlags(0) };
        assert!(!matches(Rule { tcp: Some(syn), ..any }, &ip4().udp(1, 2)));
        let fragment = IpProtocol::IPV6_FRAGMENTATION;
        let later = ip6().ip6_ext(fragment, &[0, 64, 0, 0, 0, 7]).udp(1, 2);
        assert!(!matches(Rule { family: Family::Ip6, dport: ports(0, u16::MAX), ..any }, &later));
    }

    #[test]
    fn packets_cut_at_every_length_are_survived() {
        for frame in [ip4().tcp(1, 2, TcpFlags::SYN).build(), ip6().tcp(1, 2, TcpFlags::SYN).build()] {
            for n in 14..frame.len() {
                let _ = Fields::<u32>::of(&frame[14..n]);
                let _ = Fields::<u128>::of(&frame[14..n]);
            }
        }
    }

    #[test]
    fn rules_that_contradict_themselves_are_refused_and_others_shown_as_they_were_said() {
        let any = Rule::any(Family::Ip4);
        let wrong = |rule: Rule| rule.checked().unwrap_err().to_string();
        let other = Rule { src: Some("2001:db8::/32".parse().unwrap()), ..any };
        assert_eq!(wrong(other), "2001:db8::/32 is no prefix of ip4, the family of the rule's packets");
        let icmp = Rule { protocol: Some(IpProtocol::ICMP), dport: ports(1, 2), ..any };
        assert_eq!(wrong(icmp), "ICMP has no ports; those of tcp, udp, udp-lite, sctp and dccp do");
        assert_eq!(wrong(Rule { dport: ports(9, 2), ..any }), "ports 9-2 end before they begin");
        let tcp = Some(TcpMask { set: TcpFlags::SYN, clear: TcpFlags::SYN });
        assert!(wrong(Rule { tcp, ..any }).contains("SYN"));
        assert!(wrong(Rule { dscp: Some(64), ..any }).contains("63"));
        let tcp = Some(TcpMask { set: TcpFlags::SYN, clear: TcpFlags::ACK });
        let rule = Rule {
            src: Some("10.1.2.3/8".parse().unwrap()),
            protocol: Some(IpProtocol::TCP),
            sport: ports(5, 5),
            dport: ports(80, 90),
            dscp: Some(46),
            tcp,
            ..any
        };
        let shown = "ip4 src 10.0.0.0/8 proto tcp sport 5 dport 80-90 dscp 46 tcp-flags syn,!ack";
        assert_eq!(rule.checked().unwrap().to_string(), shown);
    }
}
