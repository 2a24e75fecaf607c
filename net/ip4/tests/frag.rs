//! `ip4-frag`: fragments are put together again by the rules of RFC 791, and must give what was sent.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)] // helpers of tests

use crate::common;

use std::collections::BTreeMap;

use common::{InjectedPacket, PacketInjector, to, two_hosts, udp};
use shoal_buffer::Flags;
use shoal_interface::MtuLayer;
use shoal_testkit::{PacketBuilder, Port, Rng, Router};
use shoal_wire::packet::Fragment;
use shoal_wire::{FromBytes, Ip4Header, IpProtocol, TcpFlags};

fn ip(frame: &[u8]) -> &Ip4Header {
    Ip4Header::ref_from_prefix(&frame[14..]).unwrap().0
}

/// A host's reassembly: the options of the first fragment and the payload, if the fragments fit together without
/// holes and overlaps.
fn reassemble(fragments: &[Vec<u8>]) -> (Vec<u8>, Vec<u8>) {
    let mut parts = BTreeMap::new();
    let (mut options, mut end) = (Vec::new(), None);
    for frame in fragments {
        let header = ip(frame);
        let (len, total) = (header.header_len(), usize::from(header.total_length()));
        assert_eq!(frame.len(), 14 + total);
        assert!(header.checksum_ok_with(&frame[34..14 + len]));
        let at = usize::from(header.flags_and_fragment_offset() & 0x1fff) * 8;
        let body = frame[14 + len..].to_vec();
        if header.flags_and_fragment_offset() & Ip4Header::MORE_FRAGMENTS == 0 {
            assert_eq!(end.replace(at + body.len()), None, "two last fragments");
        } else {
            assert!(body.len().is_multiple_of(8) && !body.is_empty());
        }
        if at == 0 {
            options = frame[34..14 + len].to_vec();
        }
        assert!(parts.insert(at, body).is_none(), "an offset twice");
    }
    let mut payload = Vec::new();
    for (at, body) in parts {
        assert_eq!(at, payload.len(), "a hole or an overlap");
        payload.extend(body);
    }
    assert_eq!(Some(payload.len()), end);
    (options, payload)
}

/// Router, ports and the MTU of the way to host 2.
fn narrow(mtu: u32) -> (Router, Port, Port) {
    let (router, a, b) = two_hosts();
    router.interfaces().set_mtu(b.index(), MtuLayer::Ip4, mtu).unwrap();
    (router, a, b)
}

#[test]
fn what_is_cut_can_be_put_together_whatever_its_length_and_the_mtu() {
    let mut rng = Rng::new(Rng::seed(11));
    for mtu in [68, 69, 75, 76, 576, 1400, 1500, 4000, 9000] {
        let (mut router, a, b) = narrow(mtu);
        for _ in 0..30 {
            let n = rng.below(3 * mtu as usize).min(8900);
            let sent = udp(&a).id(rng.next_u64() as u16).payload_len(n).build();
            router.send(&a, &sent);
            let got = b.received();
            assert!(got.iter().all(|f| f.len() <= 14 + mtu as usize), "mtu {mtu}");
            assert!(got.iter().all(|f| ip(f).id() == ip(&sent).id() && ip(f).ttl() == 63));
            assert_eq!(reassemble(&got), (Vec::new(), sent[34..].to_vec()), "mtu {mtu}, {n} bytes");
            if n + 28 <= mtu as usize {
                assert_eq!(got.len(), 1);
            }
        }
    }
}

#[test]
fn each_fragment_of_a_traced_packet_is_traced_until_it_is_sent() {
    let (mut router, a, b) = narrow(300);
    router.trace_add("pg-input", 1);
    router.send(&a, udp(&a).payload_len(500).build());
    assert_eq!(b.received().len(), 2);
    let trace = router.trace();
    assert!(trace.contains("ip4-frag: IPv4 mtu: 300 fragments: 2\n"), "{trace}");
    assert_eq!(trace.lines().filter(|l| l.starts_with("pg1-output: ")).count(), 2, "{trace}");
    assert_eq!(trace.lines().filter(|l| l.starts_with("pg1-tx: ")).count(), 2, "{trace}");
    let path = router.trace_paths().remove(0);
    assert_eq!(path[path.len() - 4..], ["ip4-frag", "ip4-rewrite", "pg1-output", "pg1-tx"]);
}

#[test]
fn fragments_of_an_untraced_packet_are_not_traced() {
    let (mut router, a, b) = narrow(300);
    router.trace_add("pg-input", 1);
    router.send_all(&a, [udp(&a).payload_len(20).build(), udp(&a).payload_len(500).build()]);
    assert_eq!(b.received().len(), 3);
    assert_eq!(router.trace_paths().len(), 1);
    assert!(!router.trace().contains("ip4-frag"), "{}", router.trace());
}

#[test]
fn fragments_of_fragments_fit_into_the_whole() {
    let (mut router, a, b) = narrow(300);
    let whole = udp(&a).payload_len(4000).build();
    let payload = &whole[34..];
    let mut got = Vec::new();
    for (n, part) in payload.chunks(1200).enumerate() {
        let place = if (n + 1) * 1200 < payload.len() { Fragment::More } else { Fragment::Last };
        let piece = to(&a).ip4([10, 0, 0, 2], [10, 0, 1, 2]).protocol(IpProtocol::UDP).payload(part);
        router.send(&a, piece.fragment(n as u16 * 1200, place).build());
        got.extend(b.received());
    }
    assert!(got.len() > 14);
    assert_eq!(reassemble(&got).1, payload);
}

#[test]
fn only_options_with_the_copy_bit_go_into_later_fragments_rfc_791() {
    let (mut router, a, b) = narrow(576);
    // Record route (not copied), then a stream identifier (copied).
    let options = [7, 7, 4, 0, 0, 0, 0, 136, 4, 9, 9, 0];
    router.send(&a, udp(&a).options(&options).payload_len(1500).build());
    let got = b.received();
    assert!(got.len() >= 3);
    assert_eq!(&got[0][34..46], options);
    for later in &got[1..] {
        assert_eq!(ip(later).header_len(), 24);
        assert_eq!(&later[34..38], [136, 4, 9, 9]);
    }
    assert_eq!(reassemble(&got).1.len(), 1508);
}

#[test]
fn padding_of_the_frame_does_not_come_into_a_fragment() {
    let (mut router, a, b) = narrow(576);
    let sent = udp(&a).payload_len(1000).build();
    router.send(&a, [&sent[..], &[0xee; 50]].concat());
    assert_eq!(reassemble(&b.received()).1, sent[34..]);
}

#[test]
fn a_fragment_that_would_end_beyond_the_longest_packet_is_dropped() {
    let (mut router, a, b) = narrow(576);
    // Cut, its later pieces would begin at 0 again and be put into somebody else's packet.
    let piece = to(&a).ip4([10, 0, 0, 2], [10, 0, 1, 2]).protocol(IpProtocol::UDP).payload_len(1400);
    for place in [Fragment::More, Fragment::Last] {
        router.send(&a, piece.clone().fragment(65_528, place).build());
    }
    assert!(b.received().is_empty());
    assert_eq!(router.error("ip4-frag", "packet or MTU too short to cut"), 0);
    assert_eq!(router.error("ip4-frag", "fragment ends beyond the longest packet"), 2);
}

#[test]
fn a_checksum_left_to_the_device_is_completed_before_the_packet_is_cut() {
    let (mut router, a, b) = narrow(576);
    let giver = PacketInjector::new(&router, &a, 0);
    let start = || to(&a).ip4([10, 0, 0, 2], [10, 0, 1, 2]);
    let cases: [(PacketBuilder, u16, IpProtocol); 2] = [
        (start().udp(1000, 2000), 6, IpProtocol::UDP),
        (start().tcp(1000, 2000, TcpFlags::ACK), 16, IpProtocol::TCP),
    ];
    for (packet, checksum_offset, protocol) in cases {
        let right = packet.payload_len(1201).build();
        let mut given = right.clone();
        // What a device is given: the sum of the pseudo-header, not complemented.
        let addresses = (ip(&right).src(), ip(&right).dst());
        let length = (right.len() - 34) as u16;
        let pseudo =
            shoal_wire::checksum::Sum::pseudo_ip4(addresses.0, addresses.1, protocol, length).folded();
        let at = 34 + usize::from(checksum_offset);
        given[at..at + 2].copy_from_slice(&pseudo.to_be_bytes());
        for cuts in [vec![], vec![60], vec![34, 8, 333]] {
            let flags = Flags::L4_CHECKSUM_OFFLOAD;
            giver.give(InjectedPacket {
                flags,
                checksum_offset,
                l4: 34,
                cuts,
                ..InjectedPacket::from(given.clone())
            });
            router.run();
            assert_eq!(reassemble(&b.received()).1, right[34..], "{protocol:?}: {:?}", router.errors());
        }
    }
}

#[test]
fn without_buffers_a_packet_is_cut_whole_or_not_at_all() {
    let (mut router, ports) = common::with_buffers(2, 64);
    let (a, b) = (&ports[0], &ports[1]);
    common::address(&router, a, "10.0.0.1/24");
    common::address(&router, b, "10.0.1.1/24");
    common::neighbour(&router, b, "10.0.1.2", common::station(2));
    router.interfaces().set_mtu(b.index(), MtuLayer::Ip4, 68).unwrap();
    // 8,000 bytes in 48-byte pieces are far more than there are buffers.
    router.send(a, udp(a).payload_len(8000).build());
    assert!(b.received().is_empty());
    assert_eq!(router.error("ip4-frag", "no buffer for a fragment"), 1);
    assert_eq!(router.buffers_in_use(), 0);
    let small = udp(a).payload_len(200).build();
    router.send(a, &small);
    assert_eq!(reassemble(&b.received()).1, small[34..]);
}

#[test]
fn the_longest_packet_is_cut_for_the_shortest_mtu() {
    for n in [12_280, 12_288, 12_296, 65_507] {
        let (mut router, a, b) = narrow(68);
        router.interfaces().set_mtu(a.index(), MtuLayer::L3, 65_535).unwrap();
        let sent = udp(&a).id(7).payload_len(n).build();
        router.send(&a, &sent);
        let got = b.received();
        assert_eq!(got.len(), (n + 8).div_ceil(48));
        assert_eq!(reassemble(&got), (Vec::new(), sent[34..].to_vec()));
        assert_eq!(router.error("ip4-frag", "fragments sent"), got.len() as u64);
        assert_eq!(router.error("ip4-frag", "packets cut"), 1);
    }
}

#[test]
fn without_buffers_for_all_of_many_pieces_none_is_kept() {
    let (mut router, mut ports) = common::with_buffers(2, 700);
    let (b, a) = (ports.pop().unwrap(), ports.pop().unwrap());
    common::address(&router, &a, "10.0.0.1/24");
    common::address(&router, &b, "10.0.1.1/24");
    common::neighbour(&router, &b, "10.0.1.2", common::station(2));
    router.interfaces().set_mtu(b.index(), MtuLayer::Ip4, 68).unwrap();
    router.send(&a, udp(&a).payload_len(65_000).build());
    assert!(b.received().len() < 700);
    assert_eq!(router.error("ip4-frag", "no buffer for a fragment"), 1);
}
