//! The hash of a frame's flow, whatever it carries.

use shoal_wire::hash::{Flow2, Flow4, Flow6, Symmetry};
use shoal_wire::{EtherType, EthernetHeader, FromBytes, Ip6Header, IpProtocol, VlanHeader};

use crate::tunnel::{self, Inner};

/// Most VLAN tags looked behind.
const MOST_TAGS: usize = 2;
/// Most tunnels looked into, one in the other.
const MOST_TUNNELS: u8 = 2;

/// Whether packets of tunnels are told apart by what is inside.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Depth {
    /// By the packet that the tunnel carries.
    Inner,
    /// By the outer header only.
    Outer,
}

/// Whether the flow label of IPv6 stands for the flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Label {
    /// It does not count.
    Ignored,
    /// A label that is not zero counts, with the addresses and nothing else (RFC 6437 2 and RFC 6438 3): so fragments
    /// stay with their flow, and nothing is looked into.
    Counts,
}

/// What a flow is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rules {
    /// Whether both directions are one flow.
    pub symmetry: Symmetry,
    /// How deep is looked.
    pub depth: Depth,
    /// What the flow label says.
    pub label: Label,
}

impl Default for Rules {
    fn default() -> Self {
        Rules { symmetry: Symmetry::Directed, depth: Depth::Inner, label: Label::Ignored }
    }
}

/// The hash of the flow a frame belongs to: by addresses, protocol and ports of IPv4 and IPv6, also behind VLAN tags and
/// inside of tunnels; of a fragment without ports; else by MAC addresses. A frame too short for its headers has the
/// hash 0.
#[inline]
pub fn hash(frame: &[u8], seed: u64, rules: Rules) -> u32 {
    ethernet(frame, seed, rules, levels(rules)).unwrap_or(0)
}

/// The hash of the flow of a packet that begins with its IP header; 0 when it is too short for it.
#[inline]
pub fn hash_ip(packet: &[u8], seed: u64, rules: Rules) -> u32 {
    ip(packet, seed, rules, levels(rules)).unwrap_or(0)
}

fn levels(rules: Rules) -> u8 {
    if rules.depth == Depth::Inner { MOST_TUNNELS } else { 0 }
}

#[inline]
fn ethernet(frame: &[u8], seed: u64, rules: Rules, levels: u8) -> Option<u32> {
    let (header, mut rest) = EthernetHeader::ref_from_prefix(frame).ok()?;
    let mut ether_type = header.ether_type();
    for _ in 0..MOST_TAGS {
        if !ether_type.is_vlan() {
            break;
        }
        let (tag, behind) = VlanHeader::ref_from_prefix(rest).ok()?;
        (ether_type, rest) = (tag.ether_type(), behind);
    }
    let flow = match ether_type {
        EtherType::IP4 => ip4(rest, seed, rules, levels),
        EtherType::IP6 => ip6(rest, seed, rules, levels),
        _ => None,
    };
    flow.or_else(|| Some(Flow2 { src: header.src(), dst: header.dst() }.hash(seed, rules.symmetry)))
}

fn ip(packet: &[u8], seed: u64, rules: Rules, levels: u8) -> Option<u32> {
    match packet.first()? >> 4 {
        4 => ip4(packet, seed, rules, levels),
        6 => ip6(packet, seed, rules, levels),
        _ => None,
    }
}

#[inline]
fn ip4(packet: &[u8], seed: u64, rules: Rules, levels: u8) -> Option<u32> {
    let flow = Flow4::of_packet(packet)?;
    let inner = if tunnel::may_be(flow.protocol, flow.dst_port) && levels > 0 {
        tunnel::of_ip4(packet).and_then(|inner| inside(inner, seed, rules, levels))
    } else {
        None
    };
    inner.or_else(|| Some(flow.hash(seed, rules.symmetry)))
}

#[inline]
fn ip6(packet: &[u8], seed: u64, rules: Rules, levels: u8) -> Option<u32> {
    if rules.label == Label::Counts {
        let (ip, _) = Ip6Header::ref_from_prefix(packet).ok()?;
        if ip.flow_label() != 0 {
            let (src, dst) = (ip.src(), ip.dst());
            let flow = Flow6 { src, dst, src_port: 0, dst_port: 0, protocol: IpProtocol(0) };
            return Some(flow.hash_labelled(seed, rules.symmetry, ip.flow_label()));
        }
    }
    let flow = Flow6::of_packet(packet)?;
    let inner = if tunnel::may_be(flow.protocol, flow.dst_port) && levels > 0 {
        tunnel::of_ip6(packet).and_then(|inner| inside(inner, seed, rules, levels))
    } else {
        None
    };
    inner.or_else(|| Some(flow.hash(seed, rules.symmetry)))
}

/// One tunnel further in. Not inlined: it comes back to where it was called.
#[inline(never)]
fn inside(inner: Inner<'_>, seed: u64, rules: Rules, levels: u8) -> Option<u32> {
    match inner {
        Inner::Ethernet(frame) => ethernet(frame, seed, rules, levels - 1),
        Inner::Ip(packet) => ip(packet, seed, rules, levels - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shoal_wire::Packet;
    use shoal_wire::packet::Fragment;

    const A: [u8; 6] = [2, 0, 0, 0, 0, 1];
    const B: [u8; 6] = [2, 0, 0, 0, 0, 2];
    const DIRECTED: Rules =
        Rules { symmetry: Symmetry::Directed, depth: Depth::Inner, label: Label::Ignored };
    const SYMMETRIC: Rules = Rules { symmetry: Symmetry::Symmetric, ..DIRECTED };
    const OUTER: Rules = Rules { depth: Depth::Outer, ..DIRECTED };
    const LABEL: Rules = Rules { label: Label::Counts, ..DIRECTED };

    fn udp(from: ([u8; 4], u16), to: ([u8; 4], u16)) -> Vec<u8> {
        Packet::ethernet(A, B).ip4(from.0, to.0).udp(from.1, to.1).payload_len(20).build()
    }

    fn udp6(from: u16, to: u16, label: u32) -> Packet {
        Packet::raw()
            .ip6([0x2001, 0, 0, 0, 0, 0, 0, 1], [0x2001, 0, 0, 0, 0, 0, 0, 2])
            .udp(from, to)
            .flow_label(label)
    }

    #[test]
    fn a_flow_hashes_alike_behind_tags_and_without_ethernet() {
        let frame = udp(([10, 0, 0, 1], 5), ([10, 0, 0, 2], 6));
        let plain = hash(&frame, 7, DIRECTED);
        assert_eq!(hash_ip(&frame[14..], 7, DIRECTED), plain);
        let tag = [0x81, 0x00, 0x00, 0x05];
        let tagged = [&frame[..12], &tag, &frame[12..]].concat();
        assert_eq!(hash(&tagged, 7, DIRECTED), plain);
        let twice = [&frame[..12], &[0x88, 0xa8, 0, 9], &tag, &frame[12..]].concat();
        assert_eq!(hash(&twice, 7, DIRECTED), plain);
    }

    #[test]
    fn both_directions_hash_alike_only_when_symmetric() {
        let there = udp(([10, 0, 0, 1], 5), ([10, 0, 0, 2], 6));
        let back = udp(([10, 0, 0, 2], 6), ([10, 0, 0, 1], 5));
        assert_eq!(hash(&there, 1, SYMMETRIC), hash(&back, 1, SYMMETRIC));
        assert_ne!(hash(&there, 1, DIRECTED), hash(&back, 1, DIRECTED));
        let arp = |src: [u8; 6], dst: [u8; 6]| [dst.as_slice(), &src, &[8, 6]].concat();
        assert_eq!(hash(&arp(A, B), 1, SYMMETRIC), hash(&arp(B, A), 1, SYMMETRIC));
        assert_ne!(hash(&arp(A, B), 1, DIRECTED), hash(&arp(B, A), 1, DIRECTED));
    }

    /// An inner packet in every kind of tunnel, over both families.
    fn tunnels(inner: &[u8]) -> Vec<Vec<u8>> {
        let frame = [&[2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 8][..], &ether_type(inner), inner].concat();
        let six = inner[0] >> 4 == 6;
        let next = if six { IpProtocol::IPV6 } else { IpProtocol::IP_IN_IP };
        let with = |header: &[u8], payload: &[u8]| [header, payload].concat();
        let vxlan = with(&[8, 0, 0, 0, 0, 0, 5, 0], &frame);
        let gre = with(&[[0, 0], ether_type(inner)].concat(), inner);
        let bridged = with(&[0, 0, 0x65, 0x58], &frame);
        let gtpu = with(&[0x30, 255, 0, 0, 0, 0, 0, 1], inner);
        let mut all = Vec::new();
        for outer in [Packet::raw().ip4([192, 0, 2, 1], [192, 0, 2, 2]), Packet::raw().ip6([9; 8], [8; 8])] {
            all.push(outer.clone().udp(7, 4789).payload(&vxlan).build());
            all.push(outer.clone().udp(2152, 2152).payload(&gtpu).build());
            all.push(outer.clone().protocol(IpProtocol::GRE).payload(&gre).build());
            all.push(outer.clone().protocol(IpProtocol::GRE).payload(&bridged).build());
            all.push(outer.protocol(next).payload(inner).build());
        }
        all
    }

    fn ether_type(packet: &[u8]) -> [u8; 2] {
        if packet[0] >> 4 == 6 { [0x86, 0xdd] } else { [8, 0] }
    }

    #[test]
    fn tunnels_are_looked_into_and_only_when_asked() {
        let inner4 = udp(([10, 0, 0, 1], 5), ([10, 0, 0, 2], 6))[14..].to_vec();
        let back4 = udp(([10, 0, 0, 2], 6), ([10, 0, 0, 1], 5))[14..].to_vec();
        for (inner, other) in [(inner4, back4), (udp6(5, 6, 0).build(), udp6(6, 5, 0).build())] {
            let (wanted, backwards) = (hash_ip(&inner, 3, DIRECTED), hash_ip(&other, 3, SYMMETRIC));
            for (packet, other) in tunnels(&inner).into_iter().zip(tunnels(&other)) {
                assert_eq!(hash_ip(&packet, 3, DIRECTED), wanted, "{packet:02x?}");
                assert_eq!(hash_ip(&other, 3, SYMMETRIC), backwards);
                assert_eq!(hash_ip(&packet, 3, OUTER), hash_ip(&other, 3, OUTER), "one outer flow");
                assert_ne!(hash_ip(&packet, 3, OUTER), wanted);
            }
            // Two tunnels deep, and no deeper.
            let twice = tunnels(&tunnels(&inner)[0]);
            assert!(twice.iter().all(|p| hash_ip(p, 3, DIRECTED) == wanted));
            let thrice = tunnels(&twice[4])[4].clone();
            assert_ne!(hash_ip(&thrice, 3, DIRECTED), wanted);
        }
    }

    #[test]
    fn fragments_stay_together_inside_and_outside() {
        let base = || Packet::raw().ip4([1, 1, 1, 1], [2, 2, 2, 2]);
        let first = base().udp(5, 6).fragment(0, Fragment::More).build();
        let later = base().protocol(IpProtocol::UDP).payload_len(40).fragment(8, Fragment::Last).build();
        assert_eq!(hash_ip(&first, 1, DIRECTED), hash_ip(&later, 1, DIRECTED));
        for (a, b) in tunnels(&first).iter().zip(tunnels(&later)) {
            assert_eq!(hash_ip(a, 1, DIRECTED), hash_ip(&b, 1, DIRECTED));
        }
        // The pieces of a tunnel's own packet: only the first one has the inner header, so none is looked into.
        let outer = || Packet::raw().ip4([3; 4], [4; 4]).protocol(IpProtocol::IP_IN_IP);
        let first = outer().payload(&first).fragment(0, Fragment::More).build();
        let later = outer().payload_len(40).fragment(8, Fragment::Last).build();
        assert_eq!(hash_ip(&first, 1, DIRECTED), hash_ip(&later, 1, DIRECTED));
    }

    #[test]
    fn a_flow_label_stands_for_the_flow_when_it_counts() {
        let of = |packet: Packet, rules| hash_ip(&packet.build(), 1, rules);
        assert_eq!(of(udp6(1, 2, 5), LABEL), of(udp6(3, 4, 5), LABEL));
        assert_ne!(of(udp6(1, 2, 5), LABEL), of(udp6(1, 2, 6), LABEL));
        assert_eq!(of(udp6(1, 2, 5), DIRECTED), of(udp6(1, 2, 6), DIRECTED));
        // A sender that sets none.
        assert_eq!(of(udp6(1, 2, 0), LABEL), of(udp6(1, 2, 0), DIRECTED));
        let late = udp6(1, 2, 5).payload_len(9).fragment(64, Fragment::Last);
        assert_eq!(of(late, LABEL), of(udp6(1, 2, 5), LABEL), "RFC 6437: pieces carry the label too");
    }

    #[test]
    fn frames_cut_at_every_length_are_survived() {
        let frame = udp(([10, 0, 0, 1], 5), ([10, 0, 0, 2], 6));
        let tagged = [&frame[..12], &[0x81, 0, 0, 5], &frame[12..]].concat();
        let mut all = vec![frame.clone(), tagged];
        all.extend(tunnels(&frame[14..]).iter().map(|p| [&[0; 12][..], &ether_type(p), p].concat()));
        for whole in &all {
            for n in 0..whole.len() {
                for rules in [DIRECTED, SYMMETRIC, OUTER, LABEL] {
                    hash(&whole[..n], 1, rules);
                    hash_ip(whole.get(14..n).unwrap_or_default(), 1, rules);
                }
            }
        }
        assert_eq!(hash(&frame[..13], 1, DIRECTED), 0);
    }
}
