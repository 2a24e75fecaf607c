//! A packet that was described becomes bytes.

use std::net::{Ipv4Addr, Ipv6Addr};

use zerocopy::IntoBytes;

use super::{Fragment, Network, Packet, Transport};
use crate::checksum::Sum;
use crate::{
    EtherType, EthernetHeader, Ip4Header, Ip6FragmentHeader, Ip6Header, IpProtocol, TcpHeader, UdpHeader,
    VlanHeader, icmp4,
};

/// The bytes.
impl Packet {
    /// The packet's bytes. Length fields stop at 65,535 when the packet is longer.
    pub fn build(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.link(&mut out);
        match &self.network {
            Network::Ip4(src, dst) => self.ip4_packet(*src, *dst, &mut out),
            Network::Ip6(src, dst) => self.ip6_packet(*src, *dst, &mut out),
            Network::Arp(arp) => {
                out.extend(arp.as_bytes());
                out.extend(&self.payload);
            }
            Network::None => out.extend(self.transport_bytes(|_, _| Sum::new()).1),
        }
        if out.len() < self.pad_to {
            out.resize(self.pad_to, 0);
        }
        out
    }

    fn link(&self, out: &mut Vec<u8>) {
        let Some((src, dst)) = self.ethernet else { return };
        let inner = self.ether_type.unwrap_or(match self.network {
            Network::Arp(_) => EtherType::ARP,
            Network::Ip4(..) => EtherType::IP4,
            Network::Ip6(..) => EtherType::IP6,
            // IEEE 802 local experimental EtherType 1.
            Network::None => EtherType(0x88b5),
        });
        let outer = match self.vlans.len() {
            0 => inner,
            1 => EtherType::VLAN,
            _ => EtherType::QINQ,
        };
        out.extend(EthernetHeader::new(src, dst, outer).as_bytes());
        for (n, id) in self.vlans.iter().enumerate() {
            let next = if n + 1 == self.vlans.len() { inner } else { EtherType::VLAN };
            out.extend(VlanHeader::new(*id, next).as_bytes());
        }
    }

    fn ip4_packet(&self, src: Ipv4Addr, dst: Ipv4Addr, out: &mut Vec<u8>) {
        let (protocol, payload) =
            self.transport_bytes(|protocol, len| Sum::pseudo_ip4(src, dst, protocol, len as u16));
        let header_len = Ip4Header::LEN + self.options.len();
        let total_len = self.lies.total_len.unwrap_or_else(|| saturate(header_len + payload.len()));
        let mut ip = Ip4Header::new(src, dst, protocol, self.ttl.unwrap_or(64), total_len);
        let ihl = self.lies.ihl.unwrap_or((header_len / 4).min(15) as u8);
        ip.set_version_ihl(self.lies.version.unwrap_or(4) << 4 | ihl);
        ip.set_tos(self.tos);
        ip.set_id(self.id);
        let fragment = self.fragment.map_or(0, |(offset, place)| {
            offset >> 3 | if place == Fragment::More { Ip4Header::MORE_FRAGMENTS } else { 0 }
        });
        ip.set_flags_and_fragment_offset(self.dont_fragment | fragment);
        let after = [&self.options[..], &payload].concat();
        // A receiver sums as many bytes as the header claims, so a lie about its length is only
        // found by the length check, not by accident by the checksum.
        let claimed = ip.header_len().saturating_sub(Ip4Header::LEN).min(after.len());
        let right = ip.compute_checksum_with(after.get(..claimed).unwrap_or(&[]));
        ip.set_checksum(self.lies.ip_checksum.unwrap_or(right));
        out.extend(ip.as_bytes());
        out.extend(after);
    }

    fn ip6_packet(&self, src: Ipv6Addr, dst: Ipv6Addr, out: &mut Vec<u8>) {
        let (mut protocol, payload) =
            self.transport_bytes(|protocol, len| Sum::pseudo_ip6(src, dst, protocol, len as u32));
        // From the last header to the first: each names the one behind it.
        let mut headers = Vec::new();
        if let Some((offset, place)) = self.fragment {
            let fragment = Ip6FragmentHeader::new(protocol, offset, place, u32::from(self.id));
            headers.push(fragment.as_bytes().to_vec());
            protocol = IpProtocol::IPV6_FRAGMENTATION;
        }
        for (kind, body) in self.extensions.iter().rev() {
            let len = (body.len() + 2).next_multiple_of(8);
            // RFC 4302 2.2: the length of an authentication header is in words of 4 bytes, less two.
            let units = if *kind == IpProtocol::IPSEC_AH { len / 4 - 2 } else { len / 8 - 1 };
            let mut header = vec![protocol.0, units.min(255) as u8];
            header.extend(body);
            header.resize(len, 0);
            headers.push(header);
            protocol = *kind;
        }
        headers.reverse();
        let body = [headers.concat(), payload].concat();
        let len = self.lies.total_len.unwrap_or_else(|| saturate(body.len()));
        let mut ip = Ip6Header::new(src, dst, protocol, self.ttl.unwrap_or(64), len);
        ip.set_version(self.lies.version.unwrap_or(6));
        ip.set_traffic_class(self.tos);
        ip.set_flow_label(self.flow_label);
        out.extend(ip.as_bytes());
        out.extend(body);
    }

    /// Transport header and payload; `pseudo` starts the checksum for a protocol and a length in bytes.
    fn transport_bytes(&self, pseudo: impl Fn(IpProtocol, usize) -> Sum) -> (IpProtocol, Vec<u8>) {
        let sum_of = |mut sum: Sum, header: &[u8]| {
            sum.add(header);
            sum.add(&self.payload);
            sum
        };
        let lie = self.lies.l4_checksum;
        let (protocol, header) = match self.transport.clone() {
            // RFC 3692: protocol 253 is for experiments.
            Transport::None => (IpProtocol(253), Vec::new()),
            Transport::Udp(mut udp) => {
                let len = UdpHeader::LEN + self.payload.len();
                udp.set_length(self.lies.udp_len.unwrap_or_else(|| saturate(len)));
                let right = sum_of(pseudo(IpProtocol::UDP, len), udp.as_bytes()).finish_udp();
                udp.set_checksum(lie.unwrap_or(right));
                (IpProtocol::UDP, udp.as_bytes().to_vec())
            }
            Transport::Tcp(mut tcp) => {
                let len = TcpHeader::LEN + self.payload.len();
                let right = sum_of(pseudo(IpProtocol::TCP, len), tcp.as_bytes()).finish();
                tcp.set_checksum(lie.unwrap_or(right));
                (IpProtocol::TCP, tcp.as_bytes().to_vec())
            }
            Transport::Icmp4(mut echo) => {
                let mut message = [echo.as_bytes(), &self.payload].concat();
                icmp4::make(&mut message);
                let right = message.get(2..4).map_or(0, |c| c.iter().fold(0, |n, b| n << 8 | u16::from(*b)));
                echo.header.set_checksum(lie.unwrap_or(right));
                (IpProtocol::ICMP, echo.as_bytes().to_vec())
            }
            Transport::Icmp6(mut message) => {
                let len = message.len() + self.payload.len();
                if let Some(field) = message.get_mut(2..4) {
                    field.fill(0);
                }
                let right = sum_of(pseudo(IpProtocol::ICMP6, len), &message).finish();
                if let Some(field) = message.get_mut(2..4) {
                    field.copy_from_slice(&lie.unwrap_or(right).to_be_bytes());
                }
                (IpProtocol::ICMP6, message)
            }
        };
        (self.lies.protocol.unwrap_or(protocol), [&header[..], &self.payload].concat())
    }
}

fn saturate(bytes: usize) -> u16 {
    u16::try_from(bytes).unwrap_or(u16::MAX)
}
