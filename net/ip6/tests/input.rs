//! `ip6-input` and `ip6-hop-by-hop`: what a router may look at at all. RFC 8200, 3 and 4; RFC 4291, 2.5 and 2.7.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)] // helpers of tests

use crate::common;

use common::{
    HOST_1, HOST_2, InjectedPacket, PacketInjector, Toy, ip, station, to, told, towards, two_hosts, udp,
};
use shoal_graph::PacketNode;
use shoal_ip6::UNICAST_ARC;
use shoal_testkit::{PacketBuilder, Port, Router};
use shoal_wire::{Icmp6Type, IpProtocol, MacAddress};

const HOP: IpProtocol = IpProtocol::IP6_HOP_BY_HOP_OPTIONS;

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
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("ip6-input: ip6 length < 40", good.build()[..14 + 39].to_vec()),
        ("ip6-input: ip6 length > l2 length", good.clone().ip_total_len(29).build()),
        ("ip6-input: ip6 length > l2 length", good.clone().ip_total_len(65_535).build()),
        ("ip6-input: ip6 version != 6", good.clone().ip_version(4).build()),
        ("ip6-input: ip6 version != 6", good.clone().ip_version(0).build()),
    ];
    for (why, frame) in cases {
        dropped_as(&mut router, &a, &b, &frame, why);
    }
    assert_eq!(router.if_counter("/if/ip6", a.index()), 5);
}

#[test]
fn drops_sources_that_are_no_hosts() {
    let (mut router, a, b) = two_hosts();
    for src in ["::", "::1", "ff02::1", "ff0e::5"] {
        let frame = to(&a).ip6(ip(src), ip(HOST_2)).udp(1, 2);
        dropped_as(&mut router, &a, &b, &frame.build(), "ip6-input: ip6 source address is no host's");
    }
    // RFC 4862, 5.4.2: a host without an address asks a group.
    let asks = to(&a).ip6(ip("::"), ip("ff02::1:ff00:77")).udp(1, 2);
    let why = "ip6-lookup: multicast group this router has not joined";
    dropped_as(&mut router, &a, &b, &asks.build(), why);
}

#[test]
fn destinations_that_are_no_hosts_are_dropped_in_silence() {
    let (mut router, a, b) = two_hosts();
    common::route(&router, "::/0", common::via(HOST_2, &b));
    for dst in ["::", "::1"] {
        dropped_as(&mut router, &a, &b, &towards(&a, dst).udp(1, 2).build(), "ip6-drop: blackholed packets");
    }
}

#[test]
fn a_header_cut_over_two_buffers_is_too_short_not_read_past_its_end() {
    let (mut router, a, b) = two_hosts();
    let giver = PacketInjector::new(&router, &a, 0);
    giver.give(InjectedPacket { cuts: vec![14 + 30], ..InjectedPacket::from(udp(&a).build()) });
    router.run();
    assert_eq!(router.error("ip6-input", "ip6 length < 40"), 1);
    assert!(a.received().is_empty() && b.received().is_empty());
}

#[test]
fn an_interface_without_ip6_takes_none() {
    let (mut router, _, b) = two_hosts();
    let c = router.pg(2);
    let why = "ip6-not-enabled: ip6 is not enabled on the interface";
    dropped_as(&mut router, &c, &b, &udp(&c).build(), why);
    dropped_as(&mut router, &c, &b, &udp(&c).ip6_ext(HOP, &[1, 4, 0, 0, 0, 0]).build(), why);
}

#[test]
fn hop_by_hop_options_that_may_be_skipped_are_forwarded_untouched() {
    let (mut router, a, b) = two_hosts();
    // Padding; an unknown option that may be skipped; a router alert (RFC 2711).
    for body in [&[1u8, 4, 0, 0, 0, 0][..], &[0x1e, 4, 1, 2, 3, 4], &[5, 2, 0, 0, 1, 0]] {
        let frame = udp(&a).ip6_ext(HOP, body).build();
        let sent = passes(&mut router, &a, &b, &frame);
        assert_eq!(sent[54..], frame[54..]);
    }
    assert_eq!(router.error("ip6-hop-by-hop", "packets with a router alert"), 1);
}

#[test]
fn unknown_hop_by_hop_options_do_what_their_bits_say_rfc_8200_4_2() {
    let (mut router, a, b) = two_hosts();
    let discard = udp(&a).ip6_ext(HOP, &[0x5e, 4, 0, 0, 0, 0]);
    let why = "ip6-hop-by-hop: unknown hop-by-hop option asks for discard";
    dropped_as(&mut router, &a, &b, &discard.build(), why);
    for kind in [0x9e, 0xde] {
        router.send(&a, udp(&a).ip6_ext(HOP, &[kind, 4, 0, 0, 0, 0]).build());
        assert_eq!(told(&a.received_one()), (Icmp6Type::PARAMETER_PROBLEM, 2, 42));
    }
    // To a group, 10 gets an error and 11 does not.
    let group = |kind| towards(&a, "ff05::77").udp(1, 2).ip6_ext(HOP, &[kind, 4, 0, 0, 0, 0]);
    router.send(&a, group(0x9e).build());
    assert_eq!(told(&a.received_one()), (Icmp6Type::PARAMETER_PROBLEM, 2, 42));
    dropped_as(&mut router, &a, &b, &group(0xde).build(), why);
    assert!(b.received().is_empty());
}

#[test]
fn a_hop_by_hop_header_that_lies_about_its_length_is_dropped() {
    let (mut router, a, b) = two_hosts();
    let mut frame = udp(&a).ip6_ext(HOP, &[1, 4, 0, 0, 0, 0]).build();
    frame[14 + 41] = 200;
    router.send(&a, frame);
    assert!(a.received().is_empty() && b.received().is_empty());
    let errors = ["hop-by-hop options are cut short", "too many or too long extension headers"];
    assert_eq!(errors.iter().map(|e| router.error("ip6-hop-by-hop", e)).sum::<u64>(), 1);
}

#[test]
fn packets_with_options_meet_the_features_that_all_others_meet() {
    let (mut router, a, b) = two_hosts();
    for toy in [Toy::<0>::NAME, Toy::<1>::NAME] {
        router.graph().enable_feature(UNICAST_ARC, toy, a.index(), true).unwrap();
    }
    passes(&mut router, &a, &b, &udp(&a).build());
    passes(&mut router, &a, &b, &udp(&a).ip6_ext(HOP, &[1, 4, 0, 0, 0, 0]).build());
    assert_eq!(router.error("toy-first", "a toy saw the packet"), 2);
    assert_eq!(router.error("toy-second", "a toy saw the packet"), 2);
    let bad = udp(&a).ip6_ext(HOP, &[1, 4, 0, 0, 0, 0]).payload(&[common::DROPPED_BYTE]).build();
    dropped_as(&mut router, &a, &b, &bad, "toy-first: a toy did not like the packet");
}

#[test]
fn extension_headers_of_others_are_not_looked_at() {
    let (mut router, a, b) = two_hosts();
    let many =
        (0..40).fold(udp(&a), |p, _| p.ip6_ext(IpProtocol::IP6_DESTINATION_OPTIONS, &[0xde, 4, 0, 0, 0, 0]));
    passes(&mut router, &a, &b, &many.build());
    passes(&mut router, &a, &b, &udp(&a).ip6_ext(IpProtocol::IPV6_ROUTE, &[0, 9, 0, 0, 0, 0]).build());
}

#[test]
fn a_packet_from_host_to_all_of_the_link_comes_in() {
    let (mut router, a, _) = two_hosts();
    let frame = PacketBuilder::ethernet(station(1), MacAddress([0x33, 0x33, 0, 0, 0, 1]));
    router.send(&a, frame.ip6(ip(HOST_1), ip("ff02::1")).icmp6_echo_request(1, 2).build());
    let reply = a.received_one();
    assert_eq!(told(&reply).0, Icmp6Type::ECHO_REPLY);
    assert_eq!(common::ends(&reply), (ip("2001:db8::1"), ip(HOST_1)));
}
