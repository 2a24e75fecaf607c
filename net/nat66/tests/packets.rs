//! Packets through both nodes: each comes out as the one that was made with the other address.

use shoal_testkit::{Rng, fuzz_all_nodes};
use shoal_wire::{IpProtocol, TcpFlags};

use crate::bed::{A, B, EA, HOST, Make, bed, frame, ip};

const KINDS: [Make; 8] = [
    |p| p.tcp(5000, 80, TcpFlags::SYN).payload(b"odd"),
    |p| p.udp(5000, 53).payload(b"even"),
    |p| p.icmp6_echo_request(7, 1).payload(b"ping!"),
    |p| p.ip6_ext(IpProtocol::IP6_DESTINATION_OPTIONS, &[1, 4, 0, 0, 0, 0]).udp(5, 6).payload(b"x"),
    |p| p.ip6_ext(IpProtocol::IPV6_FRAGMENTATION, &[0, 1, 0, 0, 0, 7]).udp(5, 6).payload(b"first fr"),
    |p| {
        let p = p.ip6_ext(IpProtocol::IPV6_FRAGMENTATION, &[0, 64, 0, 0, 0, 7]);
        p.protocol(IpProtocol::UDP).payload(b"a later fragment")
    },
    |p| p.protocol(IpProtocol::GRE).payload(b"no checksum of addresses"),
    |p| p.protocol(IpProtocol::IP6_NONXT),
];

#[test]
fn what_a_host_sends_leaves_with_its_outside_address_and_answers_come_back() {
    let mut bed = bed();
    for make in KINDS {
        let (sent, left) = (bed.sent((A, B), make), bed.left((EA, B), make));
        assert_eq!(bed.out(sent), [left]);
        let (asked, came) = (bed.asked((B, EA), make), bed.came((B, A), make));
        assert_eq!(bed.back(asked), [came]);
    }
    let mapping = bed.nat.mappings()[0];
    assert_eq!(mapping.packets, 16);
    assert!(mapping.bytes > 16 * 40);
    let count = |name| bed.router.counter(name);
    assert_eq!((count("/nat66/in2out"), count("/nat66/out2in")), (8, 8));
}

#[test]
fn a_host_without_a_mapping_and_traffic_that_stays_inside_are_left_alone() {
    let mut bed = bed();
    let make: Make = |p| p.udp(1, 2);
    let (sent, left) = (bed.sent(("fd00::6", B), make), bed.left(("fd00::6", B), make));
    assert_eq!(bed.out(sent), [left]);
    // Inside there is no other side.
    let (sent, came) = (bed.sent((A, "fd00::7"), make), bed.came((A, "fd00::7"), make));
    assert!(bed.out(sent).is_empty());
    // A redirect follows.
    assert_eq!(bed.inside.received()[0], came);
    // To the router itself: its answer goes to the host's own address.
    let ping: Make = |p| p.icmp6_echo_request(7, 1);
    let sent = bed.sent((A, "2001:db8:1::1"), ping);
    assert!(bed.out(sent).is_empty());
    assert_eq!(bed.inside.received().len(), 1);
    // A destination that no mapping has.
    let asked = bed.asked((B, "fd00::6"), make);
    assert_eq!(bed.back(asked).len(), 1);
    assert_eq!(bed.nat.mappings()[0].packets, 0);
}

#[test]
fn two_hosts_reach_each_other_by_their_outside_addresses() {
    let mut bed = bed();
    let (c, ec) = ("fd00::7", "2001:db8:f::7");
    bed.nat.add_mapping(ip(c), ip(ec), 0).unwrap();
    for make in KINDS {
        let (sent, came) = (bed.sent((A, ec), make), bed.came((EA, c), make));
        assert!(bed.out(sent).is_empty());
        assert_eq!(bed.inside.received(), [came]);
        let (sent, came) = (bed.sent((c, EA), make), bed.came((ec, A), make));
        assert!(bed.out(sent).is_empty());
        assert_eq!(bed.inside.received(), [came]);
    }
    // An error of one about the other's packet.
    let inner = frame((HOST, HOST), (EA, c), 60).udp(5, 6).build();
    let sent = frame((HOST, bed.inside.mac()), (c, EA), 64).icmp6(&error(&inner[14..])).build();
    let inner = frame((HOST, HOST), (A, ec), 60).udp(5, 6).build();
    let came = frame((bed.inside.mac(), HOST), (ec, A), 63).icmp6(&error(&inner[14..])).build();
    assert!(bed.out(sent).is_empty());
    assert_eq!(bed.inside.received(), [came]);
}

/// Port unreachable.
fn error(inner: &[u8]) -> Vec<u8> {
    let mut message = vec![1, 4, 0, 0, 0, 0, 0, 0];
    message.extend(inner);
    message
}

#[test]
fn errors_are_about_the_packet_that_was_sent() {
    let mut bed = bed();
    for make in KINDS {
        let inner = |ends| make(frame((HOST, HOST), ends, 60)).build()[14..].to_vec();
        let message = error(&inner((EA, B)));
        let asked = frame((crate::bed::FAR, bed.outside.mac()), (B, EA), 64).icmp6(&message).build();
        let message = error(&inner((A, B)));
        let came = frame((bed.inside.mac(), HOST), (B, A), 63).icmp6(&message).build();
        assert_eq!(bed.back(asked), [came]);
        // The other way: of the host, and of a router before it that has no outside address.
        for (from, to) in [(A, EA), ("fd00::8", EA)] {
            let message = error(&inner((B, A)));
            let sent = frame((HOST, bed.inside.mac()), (from, B), 64).icmp6(&message).build();
            let message = error(&inner((B, EA)));
            let left = frame((bed.outside.mac(), crate::bed::FAR), (to, B), 63).icmp6(&message).build();
            assert_eq!(bed.out(sent), [left]);
        }
    }
}

#[test]
fn a_sender_whose_packet_ends_here_is_told_by_the_address_it_knows() {
    let mut bed = bed();
    let make: Make = |p| p.udp(1, 2).ttl(1);
    let sent = bed.sent((A, B), make);
    assert!(bed.out(sent).is_empty());
    let told = bed.inside.received();
    assert_eq!((told.len(), told[0][54]), (1, 3), "time exceeded");
    assert_eq!(told[0][38..54], ip(A).octets());
    assert_eq!(told[0][70..86], ip(A).octets(), "the packet in it has the host's own address");
    let asked = bed.asked((B, EA), make);
    assert!(bed.back(asked).is_empty());
    let told = bed.outside.received();
    assert_eq!((told.len(), told[0][54]), (1, 3));
    assert_eq!(told[0][86..102], ip(EA).octets());
}

#[test]
fn what_is_cut_short_is_dropped_and_counted() {
    let mut bed = bed();
    // TCP of four bytes, an error about nothing, extension headers that lead beyond the end.
    let makes: [Make; 3] = [
        |p| p.protocol(IpProtocol::TCP).payload(&[0, 1, 0, 2]),
        |p| p.icmp6(&[1, 4, 0, 0, 0, 0, 0, 0, 0x60, 0, 0, 0]),
        |p| p.protocol(IpProtocol::IP6_DESTINATION_OPTIONS).payload(&[17, 200, 0, 0]),
    ];
    for make in makes {
        let (sent, asked) = (bed.sent((A, B), make), bed.asked((B, EA), make));
        assert!(bed.out(sent).is_empty());
        assert!(bed.back(asked).is_empty());
    }
    assert_eq!(bed.router.error("nat66-in2out", "unknown"), 3);
    assert_eq!(bed.router.error("nat66-out2in", "unknown"), 3);
}

#[test]
fn a_mapping_of_another_vrf_is_for_its_hosts_alone() {
    let mut bed = bed();
    let make: Make = |p| p.udp(1, 2);
    bed.nat.add_mapping(ip("fd00::6"), ip("2001:db8:f::6"), 7).unwrap();
    let (sent, left) = (bed.sent(("fd00::6", B), make), bed.left(("fd00::6", B), make));
    assert_eq!(bed.out(sent), [left], "this host is in VRF 0");
    // Its answers are looked for in VRF 7, where no way is.
    let asked = bed.asked((B, "2001:db8:f::6"), make);
    assert!(bed.back(asked).is_empty());
}

#[test]
fn the_trace_has_vpps_words() {
    let mut bed = bed();
    bed.router.trace_add("pg-input", 5);
    let sent = bed.sent((A, B), |p| p.udp(1, 2));
    bed.out(sent);
    let asked = bed.asked((B, EA), |p| p.udp(1, 2));
    bed.back(asked);
    let trace = bed.router.trace();
    for line in ["NAT66-in2out: sw_if_index 1, next index 0", "NAT66-out2in: sw_if_index 2, next index 0"] {
        assert!(trace.contains(line), "{trace}");
    }
}

#[test]
fn rubbish_does_no_harm_to_any_node() {
    let seed = Rng::seed(66);
    let mut off = crate::bed::plain();
    off.router.may_hold(2000);
    fuzz_all_nodes(&mut off.router, seed, 200);
    let mut bed = bed();
    bed.router.may_hold(2000);
    fuzz_all_nodes(&mut bed.router, seed, 1000);
}
