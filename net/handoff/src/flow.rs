//! The hash of a frame's flow, whatever it carries.

use shoal_wire::hash::{Flow2, Flow4, Flow6, Symmetry};
use shoal_wire::{EtherType, EthernetHeader, FromBytes, VlanHeader};

/// Most VLAN tags looked behind.
const MOST_TAGS: usize = 2;

/// The hash of the flow a frame belongs to: by addresses and ports of IPv4 and IPv6, also behind VLAN tags, else by
/// MAC addresses. A frame too short for its headers has the hash 0.
pub fn hash(frame: &[u8], seed: u64, symmetry: Symmetry) -> u32 {
    let Ok((header, mut rest)) = EthernetHeader::ref_from_prefix(frame) else { return 0 };
    let mut ether_type = header.ether_type();
    for _ in 0..MOST_TAGS {
        if !ether_type.is_vlan() {
            break;
        }
        let Ok((tag, behind)) = VlanHeader::ref_from_prefix(rest) else { return 0 };
        (ether_type, rest) = (tag.ether_type(), behind);
    }
    let ip = match ether_type {
        EtherType::IP4 => Flow4::of_packet(rest).map(|flow| flow.hash(seed, symmetry)),
        EtherType::IP6 => Flow6::of_packet(rest).map(|flow| flow.hash(seed, symmetry)),
        _ => None,
    };
    ip.unwrap_or_else(|| Flow2 { src: header.src(), dst: header.dst() }.hash(seed, symmetry))
}

/// The hash of the flow of a packet that begins with its IP header; 0 when it is too short for it.
pub fn hash_ip(packet: &[u8], seed: u64, symmetry: Symmetry) -> u32 {
    let flow = match packet.first().map(|b| b >> 4) {
        Some(4) => Flow4::of_packet(packet).map(|flow| flow.hash(seed, symmetry)),
        Some(6) => Flow6::of_packet(packet).map(|flow| flow.hash(seed, symmetry)),
        _ => None,
    };
    flow.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use shoal_wire::Packet;

    const A: [u8; 6] = [2, 0, 0, 0, 0, 1];
    const B: [u8; 6] = [2, 0, 0, 0, 0, 2];

    fn udp(from: ([u8; 4], u16), to: ([u8; 4], u16)) -> Vec<u8> {
        Packet::ethernet(A, B).ip4(from.0, to.0).udp(from.1, to.1).payload_len(20).build()
    }

    #[test]
    fn a_flow_hashes_alike_behind_tags_and_without_ethernet() {
        let frame = udp(([10, 0, 0, 1], 5), ([10, 0, 0, 2], 6));
        let plain = hash(&frame, 7, Symmetry::Directed);
        assert_eq!(hash_ip(&frame[14..], 7, Symmetry::Directed), plain);
        let tag = [0x81, 0x00, 0x00, 0x05];
        let tagged = [&frame[..12], &tag, &frame[12..]].concat();
        assert_eq!(hash(&tagged, 7, Symmetry::Directed), plain);
        let twice = [&frame[..12], &[0x88, 0xa8, 0, 9], &tag, &frame[12..]].concat();
        assert_eq!(hash(&twice, 7, Symmetry::Directed), plain);
    }

    #[test]
    fn both_directions_hash_alike_only_when_symmetric() {
        let there = udp(([10, 0, 0, 1], 5), ([10, 0, 0, 2], 6));
        let back = udp(([10, 0, 0, 2], 6), ([10, 0, 0, 1], 5));
        assert_eq!(hash(&there, 1, Symmetry::Symmetric), hash(&back, 1, Symmetry::Symmetric));
        assert_ne!(hash(&there, 1, Symmetry::Directed), hash(&back, 1, Symmetry::Directed));
        let arp = |src: [u8; 6], dst: [u8; 6]| [dst.as_slice(), &src, &[8, 6]].concat();
        assert_eq!(hash(&arp(A, B), 1, Symmetry::Symmetric), hash(&arp(B, A), 1, Symmetry::Symmetric));
        assert_ne!(hash(&arp(A, B), 1, Symmetry::Directed), hash(&arp(B, A), 1, Symmetry::Directed));
    }

    #[test]
    fn frames_cut_at_every_length_are_survived() {
        let frame = udp(([10, 0, 0, 1], 5), ([10, 0, 0, 2], 6));
        let tagged = [&frame[..12], &[0x81, 0, 0, 5], &frame[12..]].concat();
        for whole in [&frame, &tagged] {
            for n in 0..whole.len() {
                hash(&whole[..n], 1, Symmetry::Symmetric);
                hash_ip(&whole[..n], 1, Symmetry::Directed);
            }
        }
        assert_eq!(hash(&frame[..13], 1, Symmetry::Directed), 0);
    }
}
