//! `ethernet-input` passes it on, `ip4-input` and `ip4-options` look: what a router may look at at all.
//! RFC 1812, 5.2.2 and 5.3.13.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)] // helpers of tests

use crate::common;

use common::{InjectedPacket, PacketInjector, Toy, interfaces, station, to, two_hosts, udp};
use shoal_graph::PacketNode;
use shoal_ip4::UNICAST_ARC;
use shoal_testkit::{PacketBuilder, Port, Router};
use shoal_wire::{FromBytes, Icmp4Header, Icmp4Type, Ip4Header, MacAddress};

/// Sends a frame from host 1 and requires that it is dropped for exactly this reason and not answered.
fn dropped_as(router: &mut Router, a: &Port, b: &Port, frame: &[u8], why: &str) {
    let before = router.errors();
    let count = |all: &[(String, u64)]| all.iter().find(|(n, _)| n == why).map_or(0, |(_, n)| *n);
    let drops = router.if_counter("/if/drops", a.index());
    router.send(a, frame);
    let after = router.errors();
    assert_eq!(count(&after), count(&before) + 1, "{why}: {after:?}");
    assert_eq!(router.if_counter("/if/drops", a.index()), drops + 1, "{why}");
    assert!(a.received().is_empty() && b.received().is_empty(), "{why}");
}

/// Requires that the frame reaches host 2.
fn passes(router: &mut Router, a: &Port, b: &Port, frame: &[u8]) -> Vec<u8> {
    router.send(a, frame);
    assert!(a.received().is_empty());
    let sent = b.received();
    assert_eq!(sent.len(), 1, "{:?}", router.errors());
    sent[0].clone()
}

#[test]
fn drops_each_kind_of_broken_header_under_its_own_name() {
    let (mut router, a, b) = two_hosts();
    let good = udp(&a);
    let mut first_nibble = good.build();
    first_nibble[14] = 0x65;
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("ip4-input: ip4 length < 20", good.clone().build()[..14 + 19].to_vec()),
        ("ip4-input: ip4 length < 20", good.clone().ip_total_len(19).build()),
        ("ip4-input: ip4 length > l2 length", good.clone().ip_total_len(49).build()),
        ("ip4-input: ip4 length > l2 length", good.clone().ip_total_len(65_535).build()),
        ("ip4-input: bad ip4 checksum", good.clone().ip_checksum(0x1234).build()),
        ("ip4-input: ip4 version != 4", good.clone().ip_version(6).build()),
        ("ip4-input: ip4 version != 4", first_nibble),
        ("ip4-input: ip4 header length < 20", good.clone().ihl(4).build()),
        ("ip4-input: ip4 length < 20", good.clone().ihl(15).build()[..14 + 40].to_vec()),
        ("ip4-input: ip4 ttl <= 0", good.clone().ttl(0).build()),
        ("ip4-input: ip4 ttl <= 0", good.clone().options(&[1; 4]).ttl(0).build()),
    ];
    for (why, frame) in cases {
        dropped_as(&mut router, &a, &b, &frame, why);
    }
}

#[test]
fn drops_the_tiny_second_fragment_that_hides_ports_rfc_3128() {
    let (mut router, a, b) = two_hosts();
    let fragment = udp(&a).fragment(8, shoal_wire::packet::Fragment::More);
    dropped_as(&mut router, &a, &b, &fragment.build(), "ip4-input: ip4 fragment offset == 1");
    let with_options = fragment.options(&[1; 4]);
    dropped_as(&mut router, &a, &b, &with_options.build(), "ip4-input: ip4 fragment offset == 1");
}

#[test]
fn drops_sources_that_are_no_hosts_rfc_1812_5_3_7() {
    let (mut router, a, b) = two_hosts();
    for src in
        [[0; 4], [0, 0, 0, 1], [127, 0, 0, 1], [224, 0, 0, 1], [239, 9, 9, 9], [240, 0, 0, 1], [255; 4]]
    {
        let frame = to(&a).ip4(src, [10, 0, 1, 2]).udp(1, 2);
        dropped_as(&mut router, &a, &b, &frame.build(), "ip4-input: ip4 source address is no host's");
        let with_options = frame.options(&[1; 4]);
        dropped_as(&mut router, &a, &b, &with_options.build(), "ip4-input: ip4 source address is no host's");
    }
}

#[test]
fn a_host_without_an_address_may_speak_to_all_of_its_link_rfc_1122_3_2_1_3() {
    let (mut router, a, b) = two_hosts();
    for dst in [[255; 4], [224, 0, 0, 22]] {
        let frame = to(&a).ip4([0; 4], dst).udp(68, 67).build();
        dropped_as(&mut router, &a, &b, &frame, "ip4-drop: blackholed packets");
    }
}

#[test]
fn destinations_that_are_no_hosts_are_dropped_in_silence() {
    let (mut router, a, b) = two_hosts();
    common::route(&router, "0.0.0.0/0", common::via("10.0.1.2", &b));
    for dst in [[0, 0, 0, 0], [224, 0, 0, 5], [240, 0, 0, 1], [255; 4]] {
        let frame = to(&a).ip4([10, 0, 0, 2], dst).udp(1, 2).build();
        dropped_as(&mut router, &a, &b, &frame, "ip4-drop: blackholed packets");
    }
}

#[test]
fn a_frame_longer_than_its_packet_loses_its_padding_nowhere_but_at_the_end() {
    let (mut router, a, b) = two_hosts();
    let sent = passes(&mut router, &a, &b, &udp(&a).pad_to(100).build());
    let ip = Ip4Header::ref_from_prefix(&sent[14..]).unwrap().0;
    assert_eq!((usize::from(ip.total_length()), ip.ttl()), (48, 63));
    assert!(ip.checksum_ok());
}

#[test]
fn a_header_cut_over_two_buffers_is_too_short_not_read_past_its_end() {
    let (mut router, a, b) = two_hosts();
    let giver = PacketInjector::new(&router, &a, 0);
    giver.give(InjectedPacket { cuts: vec![14 + 10], ..InjectedPacket::from(udp(&a).build()) });
    router.run();
    assert_eq!(router.error("ip4-input", "ip4 length < 20"), 1);
    assert!(a.received().is_empty() && b.received().is_empty());
}

#[test]
fn good_options_are_forwarded_untouched() {
    let (mut router, a, b) = two_hosts();
    // No operation, router alert, record route, time stamp.
    for options in
        [&[1u8, 1, 1, 0][..], &[148, 4, 0, 0], &[7, 7, 4, 0, 0, 0, 0, 0], &[68, 8, 5, 0, 0, 0, 0, 0]]
    {
        let sent = passes(&mut router, &a, &b, &udp(&a).options(options).build());
        assert_eq!(&sent[34..34 + options.len()], options);
        let ip = Ip4Header::ref_from_prefix(&sent[14..]).unwrap().0;
        assert!(ip.checksum_ok_with(&sent[34..34 + options.len()]));
    }
}

#[test]
fn source_routes_are_dropped_rfc_7126() {
    let (mut router, a, b) = two_hosts();
    for kind in [131, 137] {
        let frame = udp(&a).options(&[kind, 7, 4, 10, 0, 1, 2, 0]).build();
        dropped_as(&mut router, &a, &b, &frame, "ip4-options: ip4 source route option");
    }
}

#[test]
fn malformed_options_are_answered_with_a_pointer_to_the_bad_byte() {
    let (mut router, a, b) = two_hosts();
    for (options, pointer) in [(&[7u8, 200, 4, 0][..], 20u8), (&[1, 1, 7, 1], 22), (&[1, 1, 1, 7], 23)] {
        router.send(&a, udp(&a).options(options).build());
        let answer = a.received_one();
        let icmp = Icmp4Header::ref_from_prefix(&answer[34..]).unwrap().0;
        assert_eq!((icmp.kind(), icmp.code()), (Icmp4Type::PARAMETER_PROBLEM, 0));
        let at = answer[38];
        assert!(at == pointer || at == pointer + 1, "{options:?}: pointer {at}");
    }
    assert_eq!(router.error("ip4-options", "ip4 options are malformed"), 3);
    assert!(b.received().is_empty());
}

#[test]
fn packets_with_options_meet_the_features_that_all_others_meet() {
    let (mut router, a, b) = two_hosts();
    for toy in [Toy::<0>::NAME, Toy::<1>::NAME] {
        router.graph().enable_feature(UNICAST_ARC, toy, a.index(), true).unwrap();
    }
    passes(&mut router, &a, &b, &udp(&a).options(&[1; 4]).build());
    assert_eq!(router.error("toy-first", "a toy saw the packet"), 1);
    assert_eq!(router.error("toy-second", "a toy saw the packet"), 1);
    let bad = udp(&a).options(&[1; 4]).payload(&[common::DROPPED_BYTE]).build();
    dropped_as(&mut router, &a, &b, &bad, "toy-first: a toy did not like the packet");
}

#[test]
fn an_interface_without_ip4_takes_no_packets_with_or_without_options() {
    let (mut router, _, b) = two_hosts();
    let c = router.pg(2);
    for frame in [udp(&c), udp(&c).options(&[1; 4])] {
        let why = "ip4-not-enabled: ip4 is not enabled on the interface";
        dropped_as(&mut router, &c, &b, &frame.build(), why);
    }
}

#[test]
fn features_run_in_the_order_they_declare_on_the_interface_they_are_enabled_on() {
    let (mut router, a, b) = two_hosts();
    let (first, second) = (Toy::<0>::NAME, Toy::<1>::NAME);
    router.graph().enable_feature(UNICAST_ARC, second, a.index(), true).unwrap();
    router.trace_add("pg-input", 10);
    passes(&mut router, &a, &b, &udp(&a).build());
    router.graph().enable_feature(UNICAST_ARC, first, a.index(), true).unwrap();
    passes(&mut router, &a, &b, &udp(&a).build());
    router.graph().enable_feature(UNICAST_ARC, second, a.index(), false).unwrap();
    passes(&mut router, &a, &b, &udp(&a).build());
    let toys = |path: &Vec<String>| path.iter().filter(|n| n.starts_with("toy")).cloned().collect::<Vec<_>>();
    let seen: Vec<_> = router.trace_paths().iter().map(toys).collect();
    assert_eq!(seen, [vec![second], vec![first, second], vec![first]]);
    // Not from the other side.
    let back = PacketBuilder::ethernet(station(2), b.mac()).ip4([10, 0, 1, 2], [10, 0, 0, 2]).udp(1, 2);
    router.send(&b, back.build());
    assert_eq!(a.received().len(), 1);
    assert_eq!(router.error(first, "a toy saw the packet"), 2);
}

#[test]
fn a_broadcast_frame_for_one_host_is_not_forwarded_rfc_1812_5_3_4() {
    let (mut router, a, b) = two_hosts();
    for mac in [MacAddress::BROADCAST, MacAddress([1, 0, 0x5e, 0, 0, 1])] {
        let frame = PacketBuilder::ethernet(station(1), mac).ip4([10, 0, 0, 2], [10, 0, 1, 2]).udp(1, 2);
        let why = "ip4-rewrite: link-layer broadcast is not forwarded";
        dropped_as(&mut router, &a, &b, &frame.clone().build(), why);
        // Nor may it be answered, RFC 1122, 3.2.2.
        router.send(&a, frame.ttl(1).build());
        assert!(a.received().is_empty() && b.received().is_empty());
    }
    // One to the router itself is taken in.
    let echo = PacketBuilder::ethernet(station(1), MacAddress::BROADCAST).ip4([10, 0, 0, 2], [10, 0, 0, 1]);
    router.send(&a, echo.icmp_echo_request(1, 1).build());
    assert_eq!(router.error("ip4-icmp-echo-request", "echo request to a broadcast or multicast address"), 1);
}

#[test]
fn an_interface_that_goes_down_takes_nothing_and_sends_nothing() {
    let (mut router, a, b) = two_hosts();
    interfaces(&router).set_admin(a.index(), false).unwrap();
    dropped_as(&mut router, &a, &b, &udp(&a).build(), "ethernet-input: interface is down");
    let back = PacketBuilder::ethernet(station(2), b.mac()).ip4([10, 0, 1, 2], [10, 0, 0, 2]).udp(1, 2);
    router.send(&b, back.build());
    router.advance(std::time::Duration::from_secs(10));
    assert!(a.received().is_empty());
    interfaces(&router).set_admin(a.index(), true).unwrap();
    passes(&mut router, &a, &b, &udp(&a).build());
}
