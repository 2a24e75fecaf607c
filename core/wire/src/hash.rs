//! Flow hashes: the same number for every packet of a flow, to pick a path, a queue or a worker.
//!
//! The 5-tuple is mixed with two rounds of MurmurHash3's 64-bit finaliser (Appleby, public domain):
//! each input bit flips each output bit about half the time, in two multiplications a round. It is
//! not keyed against an attacker who knows the seed; take the seed from the system's random source.
//! IPv6 addresses are folded to 64 bits first, by one wide multiplication each.
//!
//! Which fields count is [`FlowHash`](crate::FlowHash)'s to say.

use std::net::{Ipv4Addr, Ipv6Addr};

use zerocopy::FromBytes;
use zerocopy::byteorder::network_endian::U16;

use crate::ip6_ext::{Ip6ExtHeaders, is_extension};
use crate::{Ip4Header, Ip6Header, IpProtocol, MacAddress};

/// Whether both directions of a flow hash alike.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Symmetry {
    /// Source and destination are told apart.
    Directed,
    /// Both directions give the same hash: for sessions that must meet on one worker.
    Symmetric,
}

/// The 5-tuple of an IPv4 packet; ports are 0 when the protocol has none.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Flow4 {
    /// Source address.
    pub src: Ipv4Addr,
    /// Destination address.
    pub dst: Ipv4Addr,
    /// Source port.
    pub src_port: u16,
    /// Destination port.
    pub dst_port: u16,
    /// Protocol.
    pub protocol: IpProtocol,
}

impl Flow4 {
    /// The flow of the IPv4 packet that starts at `packet`; `None` when its fixed header is cut off.
    ///
    /// Every fragment has ports 0, the first one too, so that fragments of a packet stay together.
    #[inline]
    pub fn of_packet(packet: &[u8]) -> Option<Self> {
        let (ip, _) = Ip4Header::ref_from_prefix(packet).ok()?;
        let l4 = if ip.is_fragment() { None } else { packet.get(ip.header_len().max(Ip4Header::LEN)..) };
        let (src_port, dst_port) = ports(ip.protocol(), l4.unwrap_or(&[]));
        Some(Self { src: ip.src(), dst: ip.dst(), src_port, dst_port, protocol: ip.protocol() })
    }

    /// A 32-bit hash.
    #[inline(always)]
    pub fn hash(&self, seed: u64, symmetry: Symmetry) -> u32 {
        let (a, b) = ordered(
            u64::from(self.src.to_bits()) << 16 | u64::from(self.src_port),
            u64::from(self.dst.to_bits()) << 16 | u64::from(self.dst_port),
            symmetry,
        );
        let first = mix(seed ^ a ^ u64::from(self.protocol.0) << 48);
        (mix(first ^ b.rotate_left(16)) >> 32) as u32
    }
}

/// The 5-tuple of an IPv6 packet; ports are 0 when the protocol has none or the packet is a fragment.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Flow6 {
    /// Source address.
    pub src: Ipv6Addr,
    /// Destination address.
    pub dst: Ipv6Addr,
    /// Source port.
    pub src_port: u16,
    /// Destination port.
    pub dst_port: u16,
    /// The upper layer's protocol, behind extension headers too; of every fragment, the number of the
    /// fragment header, so that fragments of a packet stay together.
    pub protocol: IpProtocol,
}

impl Flow6 {
    /// The flow of the IPv6 packet that starts at `packet`; `None` when its header is cut off.
    ///
    /// Every fragment has ports 0, the first one too, so that fragments of a packet stay together. A
    /// chain of headers that cannot be walked leaves the protocol at which it stops.
    #[inline]
    pub fn of_packet(packet: &[u8]) -> Option<Self> {
        let (ip, l4) = Ip6Header::ref_from_prefix(packet).ok()?;
        let (protocol, l4) =
            if is_extension(ip.protocol()) { upper_layer(packet) } else { (ip.protocol(), l4) };
        let (src_port, dst_port) = ports(protocol, l4);
        Some(Self { src: ip.src(), dst: ip.dst(), src_port, dst_port, protocol })
    }

    /// A 32-bit hash.
    #[inline(always)]
    pub fn hash(&self, seed: u64, symmetry: Symmetry) -> u32 {
        self.hash_labelled(seed, symmetry, 0)
    }

    /// A 32-bit hash in which the flow label counts too (RFC 6438).
    #[inline(always)]
    pub fn hash_labelled(&self, seed: u64, symmetry: Symmetry, flow_label: u32) -> u32 {
        let (a, b) =
            ordered(end6(self.src, self.src_port, seed), end6(self.dst, self.dst_port, seed), symmetry);
        finish6(a, b, self.protocol, flow_label)
    }
}

/// An address and a port in 64 bits. The halves of the address are multiplied to 128 bits, of which every bit depends
/// on both; the lower half is added again so that a half that is zero does not hide the other.
#[inline(always)]
fn end6(addr: Ipv6Addr, port: u16, seed: u64) -> u64 {
    let bits = addr.to_bits();
    let (high, low) = ((bits >> 64) as u64, bits as u64);
    let product = u128::from(high ^ seed ^ 0x9e37_79b9_7f4a_7c15) * u128::from(low ^ 0xa076_1d64_78bd_642f);
    ((product >> 64) as u64 ^ product as u64).wrapping_add(low).wrapping_add(u64::from(port) << 24)
}

#[inline(always)]
fn finish6(a: u64, b: u64, protocol: IpProtocol, flow_label: u32) -> u32 {
    let first = mix(a ^ u64::from(protocol.0) << 48 ^ u64::from(flow_label) << 20);
    (mix(first ^ b.rotate_left(16)) >> 32) as u32
}

/// Protocol and bytes of the upper layer behind extension headers.
#[cold]
fn upper_layer(packet: &[u8]) -> (IpProtocol, &[u8]) {
    let Some(mut headers) = Ip6ExtHeaders::of_packet(packet) else { return (IpProtocol::IP6_NONXT, &[]) };
    for header in &mut headers {
        if header.is_ok_and(|header| header.fragment().is_some_and(|fragment| !fragment.is_atomic())) {
            return (IpProtocol::IPV6_FRAGMENTATION, &[]);
        }
    }
    (headers.protocol(), packet.get(headers.offset()..).unwrap_or(&[]))
}

/// Source and destination of a link: for frames that carry neither IPv4 nor IPv6.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Flow2 {
    /// Source address.
    pub src: MacAddress,
    /// Destination address.
    pub dst: MacAddress,
}

impl Flow2 {
    /// A 32-bit hash.
    #[inline]
    pub fn hash(&self, seed: u64, symmetry: Symmetry) -> u32 {
        let bits = |MacAddress([a, b, c, d, e, f])| u64::from_be_bytes([0, 0, a, b, c, d, e, f]);
        let (a, b) = ordered(bits(self.src), bits(self.dst), symmetry);
        (mix(mix(seed ^ a) ^ b.rotate_left(16)) >> 32) as u32
    }
}

#[inline(always)]
fn ports(protocol: IpProtocol, l4: &[u8]) -> (u16, u16) {
    if !matches!(protocol, IpProtocol::TCP | IpProtocol::UDP | IpProtocol::SCTP | IpProtocol::UDP_LITE) {
        return (0, 0);
    }
    <[U16; 2]>::ref_from_prefix(l4).map_or((0, 0), |([src, dst], _)| (src.get(), dst.get()))
}

#[inline(always)]
fn ordered(a: u64, b: u64, symmetry: Symmetry) -> (u64, u64) {
    match symmetry {
        Symmetry::Directed => (a, b),
        Symmetry::Symmetric => (a.min(b), a.max(b)),
    }
}

/// MurmurHash3's fmix64, behind a constant so that zero does not map to zero.
#[inline(always)]
const fn mix(value: u64) -> u64 {
    let mut x = value ^ 0x9e37_79b9_7f4a_7c15;
    x = (x ^ x >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    x = (x ^ x >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    x ^ x >> 33
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{Fragment, Packet};

    fn flow(n: u32) -> Flow4 {
        let [high @ .., c, d] = n.to_be_bytes();
        Flow4 {
            src: [10, 0, high[0], high[1]].into(),
            dst: [10, 1, 0, 1].into(),
            src_port: u16::from_be_bytes([c, d]),
            dst_port: 80,
            protocol: IpProtocol::TCP,
        }
    }

    #[test]
    fn both_directions_meet_only_when_symmetric() {
        let there = flow(7);
        let back = Flow4 { src: there.dst, dst: there.src, src_port: 80, dst_port: there.src_port, ..there };
        assert_eq!(there.hash(1, Symmetry::Symmetric), back.hash(1, Symmetry::Symmetric));
        assert_ne!(there.hash(1, Symmetry::Directed), back.hash(1, Symmetry::Directed));
        assert_ne!(there.hash(1, Symmetry::Directed), there.hash(2, Symmetry::Directed));
        let six = |src: u16, dst: u16| Flow6 {
            src: [src, 0, 0, 0, 0, 0, 0, 1].into(),
            dst: [dst, 0, 0, 0, 0, 0, 0, 1].into(),
            src_port: src,
            dst_port: dst,
            protocol: IpProtocol::UDP,
        };
        assert_eq!(six(1, 2).hash(0, Symmetry::Symmetric), six(2, 1).hash(0, Symmetry::Symmetric));
        assert_ne!(six(1, 2).hash(0, Symmetry::Directed), six(2, 1).hash(0, Symmetry::Directed));
    }

    #[test]
    fn consecutive_flows_fill_buckets_evenly() {
        for shift in [0, 16] {
            for symmetry in [Symmetry::Directed, Symmetry::Symmetric] {
                let mut buckets = [0u32; 64];
                (0..64_000u32).for_each(|n| buckets[flow(n << shift).hash(0, symmetry) as usize % 64] += 1);
                // A mean of 1,000 with a deviation of 32: five deviations either way.
                assert!(buckets.iter().all(|n| (840..1160).contains(n)), "{buckets:?}");
            }
        }
    }

    #[test]
    fn consecutive_addresses_of_ip6_fill_buckets_evenly() {
        // The network, the subnet, the host and the port count up in turn.
        for shift in [96, 64, 32, 0] {
            for symmetry in [Symmetry::Directed, Symmetry::Symmetric] {
                let mut buckets = [0u32; 64];
                for n in 0..64_000u32 {
                    let flow = Flow6 {
                        src: Ipv6Addr::from_bits(0x2001_0db8 << 96 ^ u128::from(n) << shift),
                        dst: Ipv6Addr::LOCALHOST,
                        src_port: 1024,
                        dst_port: 80,
                        protocol: IpProtocol::TCP,
                    };
                    let flow = if shift == 0 { Flow6 { src_port: n as u16, ..flow } } else { flow };
                    buckets[flow.hash(0, symmetry) as usize % 64] += 1;
                }
                assert!(buckets.iter().all(|n| (840..1160).contains(n)), "{shift} {buckets:?}");
            }
        }
    }

    #[test]
    fn fragments_of_one_ip6_packet_hash_alike_and_options_hide_no_ports() {
        let base = || Packet::raw().ip6([1; 8], [2; 8]).ip6_ext(IpProtocol::IP6_DESTINATION_OPTIONS, &[]);
        let first = base().udp(5, 6).fragment(0, Fragment::More).build();
        let later = base().protocol(IpProtocol::UDP).payload_len(40).fragment(8, Fragment::Last).build();
        assert_eq!(Flow6::of_packet(&first), Flow6::of_packet(&later));
        // RFC 6946: an atomic fragment has no siblings to stay with.
        for whole in [base().udp(5, 6), base().udp(5, 6).fragment(0, Fragment::Last)] {
            let flow = Flow6::of_packet(&whole.build()).unwrap();
            assert_eq!((flow.src_port, flow.dst_port, flow.protocol), (5, 6, IpProtocol::UDP));
        }
    }

    #[test]
    fn fragments_of_one_packet_hash_alike() {
        let base = || Packet::raw().ip4([1, 1, 1, 1], [2, 2, 2, 2]);
        let first = base().udp(5, 6).fragment(0, Fragment::More).build();
        let later = base().protocol(IpProtocol::UDP).payload_len(40).fragment(8, Fragment::Last).build();
        assert_eq!(Flow4::of_packet(&first), Flow4::of_packet(&later));
        let whole = Flow4::of_packet(&base().udp(5, 6).options(&[1, 1, 1, 1]).build()).unwrap();
        assert_eq!((whole.src_port, whole.dst_port), (5, 6));
    }
}
