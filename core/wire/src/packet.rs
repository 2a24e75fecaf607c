//! A packet builder for tests and the packet generator: right by default, wrong where asked.
//!
//! ```
//! use shoal_wire::packet::Packet;
//! let (us, them) = ([2, 0xfe, 0, 0, 0, 1], [2, 0xfe, 0, 0, 0, 2]);
//! let good = Packet::ethernet(us, them).ip4([10, 0, 0, 1], [10, 0, 0, 2]).udp(1234, 5678).payload_len(18);
//! assert_eq!(good.build().len(), 60);
//! let lying = good.ip_total_len(9000).pad_to(64).build();
//! assert_eq!((lying.len(), &lying[16..18]), (64, &9000u16.to_be_bytes()[..]));
//! ```
//!
//! Calls may come in any order; a later one of the same kind replaces the earlier, except
//! [`vlan`](Packet::vlan), which adds an inner tag. Lengths and checksums are computed in
//! [`build`](Packet::build), checksums over the bytes as they are, lies included.

use std::net::{Ipv4Addr, Ipv6Addr};

use zerocopy::IntoBytes;

use crate::icmp4::{Icmp4Echo, Icmp4Type};
use crate::icmp6::{Icmp6Echo, Icmp6Type};
use crate::{
    ArpHeader, ArpOpcode, EtherType, Ip4Header, IpProtocol, MacAddress, TcpFlags, TcpHeader, UdpHeader,
};

mod bytes;

/// Where a fragment stands among its siblings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fragment {
    /// More fragments follow.
    More,
    /// The last one.
    Last,
}

/// A packet being described; see the [module](self) for an example.
#[derive(Clone, Debug, Default)]
pub struct Packet {
    ethernet: Option<(MacAddress, MacAddress)>,
    ether_type: Option<EtherType>,
    vlans: Vec<u16>,
    network: Network,
    transport: Transport,
    payload: Vec<u8>,
    pad_to: usize,
    ttl: Option<u8>,
    tos: u8,
    id: u16,
    dont_fragment: u16,
    fragment: Option<(u16, Fragment)>,
    flow_label: u32,
    options: Vec<u8>,
    extensions: Vec<(IpProtocol, Vec<u8>)>,
    lies: FieldOverrides,
}

#[derive(Clone, Debug, Default)]
enum Network {
    #[default]
    None,
    Arp(ArpHeader),
    Ip4(Ipv4Addr, Ipv4Addr),
    Ip6(Ipv6Addr, Ipv6Addr),
}

#[derive(Clone, Debug, Default)]
enum Transport {
    #[default]
    None,
    Udp(UdpHeader),
    Tcp(TcpHeader),
    Icmp4(Icmp4Echo),
    /// An ICMPv6 message without its checksum and the payload.
    Icmp6(Vec<u8>),
}

/// Values that replace the computed ones.
#[derive(Clone, Copy, Debug, Default)]
struct FieldOverrides {
    total_len: Option<u16>,
    ip_checksum: Option<u16>,
    version: Option<u8>,
    ihl: Option<u8>,
    protocol: Option<IpProtocol>,
    udp_len: Option<u16>,
    l4_checksum: Option<u16>,
}

/// What starts a packet.
impl Packet {
    /// A frame from `src` to `dst`.
    pub fn ethernet(src: impl Into<MacAddress>, dst: impl Into<MacAddress>) -> Self {
        Self { ethernet: Some((src.into(), dst.into())), ..Self::default() }
    }

    /// A packet without layer 2, as on a tunnel or a TUN interface.
    pub fn raw() -> Self {
        Self::default()
    }

    /// Broadcast "who has `target`?".
    pub fn arp_request(
        mac: impl Into<MacAddress>,
        sender: impl Into<Ipv4Addr>,
        target: impl Into<Ipv4Addr>,
    ) -> Self {
        let mac = mac.into();
        let arp = ArpHeader::new(ArpOpcode::REQUEST, mac, sender.into(), MacAddress::ZERO, target.into());
        Self::ethernet(mac, MacAddress::BROADCAST).arp(arp)
    }

    /// "`sender` is at `mac`", to the one who asked.
    pub fn arp_reply(
        mac: impl Into<MacAddress>,
        sender: impl Into<Ipv4Addr>,
        target_mac: impl Into<MacAddress>,
        target: impl Into<Ipv4Addr>,
    ) -> Self {
        let (mac, target_mac) = (mac.into(), target_mac.into());
        let arp = ArpHeader::new(ArpOpcode::REPLY, mac, sender.into(), target_mac, target.into());
        Self::ethernet(mac, target_mac).arp(arp)
    }

    /// A broadcast announcement: sender and target address are the same (RFC 5227 section 3).
    pub fn arp_gratuitous(mac: impl Into<MacAddress>, sender: impl Into<Ipv4Addr>) -> Self {
        let sender = sender.into();
        Self::arp_request(mac, sender, sender)
    }
}

/// Layers.
impl Packet {
    /// Adds an 802.1Q tag inside those already there; the outer of two is 802.1ad.
    pub fn vlan(mut self, id: u16) -> Self {
        self.vlans.push(id);
        self
    }

    /// Carries an ARP packet.
    pub fn arp(mut self, arp: ArpHeader) -> Self {
        self.network = Network::Arp(arp);
        self
    }

    /// Carries IPv4: TTL 64, no options, identification 0.
    pub fn ip4(mut self, src: impl Into<Ipv4Addr>, dst: impl Into<Ipv4Addr>) -> Self {
        self.network = Network::Ip4(src.into(), dst.into());
        self
    }

    /// Carries IPv6: hop limit 64, no extension headers, flow label 0.
    pub fn ip6(mut self, src: impl Into<Ipv6Addr>, dst: impl Into<Ipv6Addr>) -> Self {
        self.network = Network::Ip6(src.into(), dst.into());
        self
    }

    /// Adds an IPv6 extension header behind those already there. `body` is what follows its next
    /// header and length bytes; an empty one and one that is no multiple of 8 are filled up with
    /// zeroes, which are padding in an options header.
    pub fn ip6_ext(mut self, protocol: IpProtocol, body: &[u8]) -> Self {
        self.extensions.push((protocol, body.to_vec()));
        self
    }

    /// A UDP header with length and checksum.
    pub fn udp(mut self, src_port: u16, dst_port: u16) -> Self {
        self.transport = Transport::Udp(UdpHeader::new(src_port, dst_port, 0));
        self
    }

    /// A TCP header without options.
    pub fn tcp(mut self, src_port: u16, dst_port: u16, flags: TcpFlags) -> Self {
        self.transport = Transport::Tcp(TcpHeader::new(src_port, dst_port, flags));
        self
    }

    /// An ICMP echo request.
    pub fn icmp_echo_request(mut self, id: u16, sequence: u16) -> Self {
        self.transport = Transport::Icmp4(Icmp4Echo::new(Icmp4Type::ECHO_REQUEST, id, sequence));
        self
    }

    /// An ICMP echo reply.
    pub fn icmp_echo_reply(mut self, id: u16, sequence: u16) -> Self {
        self.transport = Transport::Icmp4(Icmp4Echo::new(Icmp4Type::ECHO_REPLY, id, sequence));
        self
    }

    /// An ICMPv6 echo request.
    pub fn icmp6_echo_request(self, id: u16, sequence: u16) -> Self {
        self.icmp6(Icmp6Echo::new(Icmp6Type::ECHO_REQUEST, id, sequence).as_bytes())
    }

    /// An ICMPv6 echo reply.
    pub fn icmp6_echo_reply(self, id: u16, sequence: u16) -> Self {
        self.icmp6(Icmp6Echo::new(Icmp6Type::ECHO_REPLY, id, sequence).as_bytes())
    }

    /// Any ICMPv6 message, such as those of [`nd`](crate::nd): its bytes, maybe without the data that
    /// [`payload`](Self::payload) adds. The checksum is computed.
    pub fn icmp6(mut self, message: &[u8]) -> Self {
        self.transport = Transport::Icmp6(message.to_vec());
        self
    }

    /// These bytes after the last header.
    pub fn payload(mut self, bytes: &[u8]) -> Self {
        self.payload = bytes.to_vec();
        self
    }

    /// `n` bytes 0, 1, 2 ... after the last header.
    pub fn payload_len(mut self, n: usize) -> Self {
        self.payload = (0..n).map(|i| i as u8).collect();
        self
    }

    /// Zeroes after the packet until the frame has `bytes`: 60 is the shortest Ethernet frame.
    pub fn pad_to(mut self, bytes: usize) -> Self {
        self.pad_to = bytes;
        self
    }
}

/// Fields that packets have different values of.
impl Packet {
    /// Time to live or hop limit.
    pub fn ttl(mut self, ttl: u8) -> Self {
        self.ttl = Some(ttl);
        self
    }

    /// DSCP and ECN, or the traffic class.
    pub fn tos(mut self, tos: u8) -> Self {
        self.tos = tos;
        self
    }

    /// Flow label, 20 bits.
    pub fn flow_label(mut self, label: u32) -> Self {
        self.flow_label = label;
        self
    }

    /// IPv4 identification, or that of an IPv6 fragment.
    pub fn id(mut self, id: u16) -> Self {
        self.id = id;
        self
    }

    /// Sets the IPv4 flag "don't fragment".
    pub fn dont_fragment(mut self) -> Self {
        self.dont_fragment = Ip4Header::DONT_FRAGMENT;
        self
    }

    /// Makes a fragment at `offset` bytes, rounded down to a multiple of 8; over IPv6 by a fragment
    /// header behind all other extension headers. A transport header asked for is still written:
    /// leave it out of later fragments.
    pub fn fragment(mut self, offset: u16, place: Fragment) -> Self {
        self.fragment = Some((offset, place));
        self
    }

    /// IPv4 options, padded with zeroes to a multiple of 4; past 40 bytes the header length, which
    /// cannot say it, stays 60.
    pub fn options(mut self, options: &[u8]) -> Self {
        self.options = options.to_vec();
        self.options.resize(options.len().next_multiple_of(4), 0);
        self
    }

    /// The protocol number; needed without a transport header, else a lie.
    pub fn protocol(mut self, protocol: IpProtocol) -> Self {
        self.lies.protocol = Some(protocol);
        self
    }

    /// The EtherType; needed for a payload that is none of this crate's, else a lie.
    pub fn ether_type(mut self, ether_type: EtherType) -> Self {
        self.ether_type = Some(ether_type);
        self
    }
}

/// Overrides: wrong values for tests.
impl Packet {
    /// IPv4 total length or IPv6 payload length.
    pub fn ip_total_len(mut self, bytes: u16) -> Self {
        self.lies.total_len = Some(bytes);
        self
    }

    /// IPv4 header checksum.
    pub fn ip_checksum(mut self, checksum: u16) -> Self {
        self.lies.ip_checksum = Some(checksum);
        self
    }

    /// IP version, 0 to 15.
    pub fn ip_version(mut self, version: u8) -> Self {
        self.lies.version = Some(version & 0xf);
        self
    }

    /// IPv4 header length in words of 4 bytes, 0 to 15. The checksum is made over the bytes it claims.
    pub fn ihl(mut self, words: u8) -> Self {
        self.lies.ihl = Some(words & 0xf);
        self
    }

    /// UDP length in bytes.
    pub fn udp_len(mut self, bytes: u16) -> Self {
        self.lies.udp_len = Some(bytes);
        self
    }

    /// Checksum of UDP (0: none), TCP, ICMP or ICMPv6.
    pub fn l4_checksum(mut self, checksum: u16) -> Self {
        self.lies.l4_checksum = Some(checksum);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checksum::Sum;
    use crate::{FromBytes, describe_frame, icmp4, udp};
    use crate::{Ip6FragmentHeader, icmp6};

    const US: [u8; 6] = [2, 0xfe, 0, 0, 0, 1];
    const THEM: [u8; 6] = [2, 0xfe, 0, 0, 0, 2];

    fn udp() -> Packet {
        Packet::ethernet(US, THEM).ip4([10, 0, 0, 1], [10, 0, 0, 2]).udp(1234, 5678).payload_len(18)
    }

    #[test]
    fn computes_lengths_and_checksums() {
        let bytes = udp().ttl(63).dont_fragment().build();
        let text = describe_frame(&bytes).to_string();
        assert!(text.starts_with("IP4: 02:fe:00:00:00:01 -> 02:fe:00:00:00:02\nUDP: 10.0.0.1 -> 10.0.0.2\n"));
        assert!(text.contains("ttl 63, length 46,") && text.contains("flags DONT_FRAGMENT"), "{text}");
        assert!(!text.contains("should be") && text.contains("length 26,"), "{text}");
        let mut datagram = bytes[34..].to_vec();
        datagram[6..8].fill(0);
        let right = udp::checksum_ip4([10, 0, 0, 1].into(), [10, 0, 0, 2].into(), &datagram);
        assert_eq!(bytes[40..42], right.to_be_bytes());
    }

    #[test]
    fn tells_the_lies_it_is_asked_for() {
        let (ip, _) = Ip4Header::read_from_prefix(&udp().ip_version(6).ihl(4).build()[14..]).unwrap();
        assert_eq!((ip.version_ihl(), ip.checksum_ok()), (0x64, true));
        let (ip, _) = Ip4Header::read_from_prefix(&udp().ip_checksum(0x1234).build()[14..]).unwrap();
        assert_eq!(ip.checksum(), 0x1234);
        let bytes = udp().ip_total_len(19).udp_len(7).l4_checksum(0).pad_to(100).build();
        assert_eq!((bytes.len(), bytes[17], &bytes[38..42]), (100, 19, &[0, 7, 0, 0][..]));
    }

    #[test]
    fn options_lengthen_the_header_and_are_summed() {
        let bytes = udp().options(&[148, 4, 0, 0, 1]).build();
        let (ip, rest) = Ip4Header::read_from_prefix(&bytes[14..]).unwrap();
        assert_eq!((ip.header_len(), ip.total_length()), (28, 54));
        assert!(ip.checksum_ok_with(&rest[..8]));
    }

    #[test]
    fn fragments_carry_offset_and_place() {
        let bytes = udp().dont_fragment().fragment(1480, Fragment::More).build();
        let (ip, _) = Ip4Header::read_from_prefix(&bytes[14..]).unwrap();
        assert_eq!((ip.fragment_offset(), ip.more_fragments(), ip.dont_fragment()), (1480, true, true));
        let (ip, _) =
            Ip4Header::read_from_prefix(&udp().fragment(1480, Fragment::Last).build()[14..]).unwrap();
        assert!(!ip.more_fragments() && ip.is_fragment());
    }

    #[test]
    fn tags_stack_from_the_outside_in() {
        let text = describe_frame(&udp().vlan(20).vlan(10).build()).to_string();
        assert!(text.contains(" 802.1ad vlan 20 802.1q vlan 10\nUDP: "), "{text}");
    }

    #[test]
    fn builds_the_three_arp_packets() {
        let text = |p: Packet| describe_frame(&p.pad_to(60).build()).to_string();
        let request = text(Packet::arp_request(US, [10, 0, 0, 1], [10, 0, 0, 2]));
        assert!(request.starts_with("ARP: 02:fe:00:00:00:01 -> ff:ff:ff:ff:ff:ff\nrequest, "), "{request}");
        let reply = text(Packet::arp_reply(US, [10, 0, 0, 1], THEM, [10, 0, 0, 2]));
        assert!(reply.ends_with("02:fe:00:00:00:01/10.0.0.1 -> 02:fe:00:00:00:02/10.0.0.2"), "{reply}");
        let gratuitous = text(Packet::arp_gratuitous(US, [10, 0, 0, 1]));
        assert!(gratuitous.ends_with("/10.0.0.1 -> 00:00:00:00:00:00/10.0.0.1"), "{gratuitous}");
    }

    #[test]
    fn echo_and_tcp_have_right_checksums() {
        let echo =
            Packet::raw().ip4([1, 1, 1, 1], [2, 2, 2, 2]).icmp_echo_request(1, 2).payload_len(57).build();
        assert!(icmp4::verify(&echo[20..]));
        let tcp =
            Packet::raw().ip4([1, 1, 1, 1], [2, 2, 2, 2]).tcp(1, 2, TcpFlags::SYN).payload_len(3).build();
        let mut sum = Sum::pseudo_ip4([1, 1, 1, 1].into(), [2, 2, 2, 2].into(), IpProtocol::TCP, 23);
        sum.add(&tcp[20..]);
        assert_eq!(sum.folded(), 0xffff);
        let (a, b) = ([0x2001u16, 0xdb8, 0, 0, 0, 0, 0, 1], [0xfe80u16, 0, 0, 0, 0, 0, 0, 2]);
        let six = Packet::raw().ip6(a, b).udp(5, 6).payload_len(3).build();
        let mut sum = Sum::pseudo_ip6(a.into(), b.into(), IpProtocol::UDP, 11);
        sum.add(&six[40..]);
        assert_eq!((six.len(), sum.folded()), (51, 0xffff));
    }

    #[test]
    fn extension_headers_chain_and_are_filled_up() {
        let (a, b) = ([0x2001u16, 0xdb8, 0, 0, 0, 0, 0, 1], [0xfe80u16, 0, 0, 0, 0, 0, 0, 2]);
        let packet = Packet::raw()
            .ip6(a, b)
            .flow_label(0x12345)
            .ip6_ext(IpProtocol::IP6_HOP_BY_HOP_OPTIONS, &[5, 2, 0, 0])
            .ip6_ext(IpProtocol::IP6_DESTINATION_OPTIONS, &[1, 5, 0, 0, 0, 0, 0])
            .id(7)
            .fragment(0, Fragment::More)
            .tcp(1, 2, TcpFlags::SYN)
            .payload_len(3);
        let bytes = packet.build();
        let (ip, rest) = crate::Ip6Header::read_from_prefix(&bytes).unwrap();
        assert_eq!((ip.flow_label(), ip.payload_length(), ip.protocol().0), (0x12345, 8 + 16 + 8 + 23, 0));
        assert_eq!(rest[..10], [60, 0, 5, 2, 0, 0, 0, 0, 44, 1]);
        let (fragment, segment) = Ip6FragmentHeader::read_from_prefix(&rest[24..]).unwrap();
        assert_eq!(fragment, Ip6FragmentHeader::new(IpProtocol::TCP, 0, Fragment::More, 7));
        let mut sum = Sum::pseudo_ip6(a.into(), b.into(), IpProtocol::TCP, 23);
        sum.add(segment);
        assert_eq!(sum.folded(), 0xffff);
    }

    #[test]
    fn icmp6_has_a_right_checksum_or_the_lie() {
        let (a, b) = ([0xfe80u16, 0, 0, 0, 0, 0, 0, 1], [0xfe80u16, 0, 0, 0, 0, 0, 0, 2]);
        let echo = Packet::raw().ip6(a, b).icmp6_echo_reply(1, 2).payload_len(57);
        let bytes = echo.build();
        assert_eq!((bytes[6], bytes[40]), (58, 129));
        assert!(icmp6::verify(a.into(), b.into(), &bytes[40..]));
        assert_eq!(echo.clone().l4_checksum(0x1234).build()[42..44], [0x12, 0x34]);
        assert_eq!(echo.icmp6(&[1]).payload(&[]).build().len(), 41);
    }
}
