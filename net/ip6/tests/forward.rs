//! `ip6-lookup`, `ip6-drop` and `ip6-rewrite`: which way, and which errors the sender gets.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)] // helpers of tests

use crate::common;

use common::{
    HOST_1, HOST_2, ends, ip, look_up_in, neighbour, route, route_in, station, table, to, told, towards,
    two_hosts, udp, via,
};
use shoal_fib::Via;
use shoal_icmp::Icmp6;
use shoal_icmp::limiter::Rate;
use shoal_interface::MtuLayer;
use shoal_ip6::Ip6;
use shoal_testkit::{PacketBuilder, Port, Router};
use shoal_wire::{EthernetHeader, FromBytes, Icmp6Type, Ip6Header, IpProtocol, MacAddress};

fn ip_of(frame: &[u8]) -> &Ip6Header {
    Ip6Header::ref_from_prefix(&frame[14..]).unwrap().0
}

fn send_to(router: &mut Router, a: &Port, dst: &str) {
    router.send(a, towards(a, dst).udp(1000, 2000).payload_len(20).build());
}

#[test]
fn a_forwarded_packet_has_the_neighbours_header_and_one_hop_less() {
    let (mut router, a, b) = two_hosts();
    router.send(&a, udp(&a).build());
    let sent = b.received_one();
    let ethernet = EthernetHeader::ref_from_prefix(&sent).unwrap().0;
    assert_eq!((ethernet.src(), ethernet.dst()), (b.mac(), station(2)));
    assert_eq!(ip_of(&sent).hop_limit(), 63);
    assert_eq!(sent[22..], udp(&a).build()[22..], "nothing else is touched");
    assert_eq!(sent[14..21], udp(&a).build()[14..21], "nothing else is touched");
}

#[test]
fn the_longest_prefix_wins() {
    let (mut router, a, b) = two_hosts();
    let c = router.pg(2);
    common::address(&router, &c, "2001:db8:2::1/64");
    neighbour(&router, &c, "2001:db8:2::2", station(3));
    route(&router, "2001:100::/24", via(HOST_2, &b));
    route(&router, "2001:100:1::/48", via("2001:db8:2::2", &c));
    route(&router, "2001:100:1:1::/63", via(HOST_2, &b));
    route(&router, "2001:100:1:1::1/128", via("2001:db8:2::2", &c));
    let cases = [
        ("2001:100::1", &b),
        ("2001:100:1:5::1", &c),
        ("2001:100:1:1::2", &b),
        ("2001:100:1:1::1", &c),
        ("2001:1ff::1", &b),
    ];
    for (dst, out) in cases {
        send_to(&mut router, &a, dst);
        assert_eq!(out.received().len(), 1, "{dst}");
    }
}

#[test]
fn routes_that_end_tell_the_sender_why_or_do_not() {
    let (mut router, a, _) = two_hosts();
    route(&router, "2001:100:2::/48", Via::Drop);
    route(&router, "2001:100:3::/48", Via::Unreachable);
    route(&router, "2001:100:4::/48", Via::Prohibit);
    let cases = [
        ("2001:100:2::1", "blackholed packets", None),
        ("2001:100:3::1", "destination unreachable by route", Some(0)),
        ("2001:100:4::1", "destination prohibited by route", Some(1)),
        ("2001:200::1", "no route to destination", None),
    ];
    for (dst, counter, code) in cases {
        send_to(&mut router, &a, dst);
        assert_eq!(router.error("ip6-drop", counter), 1);
        let answers = a.received();
        assert_eq!(answers.len(), usize::from(code.is_some()), "{counter}");
        for frame in &answers {
            assert_eq!(told(frame), (Icmp6Type::DESTINATION_UNREACHABLE, code.unwrap(), 0));
            assert_eq!(ends(frame), (ip("2001:db8::1"), ip(HOST_1)));
        }
    }
}

#[test]
fn a_packet_is_looked_up_in_its_interfaces_table() {
    let (mut router, _, b) = two_hosts();
    let (c, d) = (router.pg(2), router.pg(3));
    let t7 = table(&router, 7);
    for port in [&c, &d] {
        router.get::<Ip6>().set_table(port.index(), 7).unwrap();
    }
    // The same network as in table 0.
    common::address(&router, &c, "2001:db8::1/64");
    common::address(&router, &d, "2001:db8:1::1/64");
    neighbour(&router, &d, HOST_2, station(4));
    router.send(&c, udp(&c).build());
    assert_eq!((b.received().len(), d.received().len()), (0, 1));
    // A route of one table may lead into another.
    route_in(&router, t7, "2001:100::/32", look_up_in(shoal_fib::FibIndex::DEFAULT));
    route(&router, "2001:100::/33", via(HOST_2, &b));
    send_to(&mut router, &c, "2001:100::1");
    assert_eq!((b.received().len(), d.received().len()), (1, 0));
}

#[test]
fn a_loop_of_tables_is_cut_and_counted() {
    let (mut router, a, _) = two_hosts();
    let (t7, t8) = (table(&router, 7), table(&router, 8));
    route(&router, "2001:100::/32", look_up_in(t7));
    route_in(&router, t7, "::/0", look_up_in(t8));
    route_in(&router, t8, "::/0", look_up_in(t7));
    send_to(&mut router, &a, "2001:100::1");
    assert_eq!(router.error("ip6-lookup", "route leads through too many tables"), 1);
}

#[test]
fn the_last_hop_ends_here_and_the_sender_is_told() {
    let (mut router, a, b) = two_hosts();
    for hop_limit in [0, 1] {
        router.send(&a, udp(&a).ttl(hop_limit).build());
        let answer = a.received_one();
        assert_eq!(told(&answer), (Icmp6Type::TIME_EXCEEDED, 0, 0));
        assert_eq!(answer[62..], udp(&a).ttl(hop_limit).build()[14..], "as it came");
    }
    assert_eq!(router.error("ip6-input", "ip6 ttl <= 1"), 2);
    assert!(b.received().is_empty());
}

#[test]
fn a_packet_too_big_is_never_cut_and_answered_with_the_mtu_it_may_have_rfc_8200_5() {
    let (mut router, a, b) = two_hosts();
    router.interfaces().set_mtu(b.index(), MtuLayer::Ip6, 1400).unwrap();
    let of = |total: usize| udp(&a).payload_len(total - 48).build();
    router.send(&a, of(1400));
    assert_eq!(b.received_one().len(), 1414);
    router.send(&a, of(1401));
    assert!(b.received().is_empty());
    let answer = a.received_one();
    assert_eq!(told(&answer), (Icmp6Type::PACKET_TOO_BIG, 0, 1400));
    assert_eq!(answer[14 + 40 + 8 + 7], 63, "quoted with the hop taken off, as VPP does");
    assert_eq!(router.counter("/err/ip6-input/mtu_exceeded"), 1);
    router.interfaces().set_mtu(b.index(), MtuLayer::Ip6, 1280).unwrap();
    router.send(&a, of(1400));
    assert_eq!(told(&a.received_one()).2, 1280, "the MTU is that of now");
}

#[test]
fn an_error_quotes_no_more_than_the_least_mtu_allows_rfc_4443_2_4() {
    let (mut router, a, _) = two_hosts();
    router.send(&a, udp(&a).payload_len(3000).ttl(1).build());
    let answer = a.received_one();
    told(&answer);
    assert_eq!(answer.len(), 14 + 1280);
}

#[test]
fn errors_are_limited_and_the_limit_is_counted() {
    let (mut router, a, _) = two_hosts();
    router.get::<Icmp6>().set_rate(Rate { per_second: 10, burst: 5 }).unwrap();
    router.send_all(&a, (0..100).map(|_| udp(&a).ttl(1).build()));
    assert_eq!(a.received().len(), 5);
    assert_eq!(router.error("ip6-icmp-error", "error not sent, rate limit reached"), 95);
}

#[test]
fn no_error_is_sent_about_errors_groups_and_unspecified_sources_rfc_4443_2_4() {
    let (mut router, a, _) = two_hosts();
    let error = |kind| towards(&a, HOST_2).icmp6(&[kind, 0, 0, 0, 0, 0, 0, 0]);
    let behind = error(1).ip6_ext(IpProtocol::IP6_DESTINATION_OPTIONS, &[1, 4, 0, 0, 0, 0]);
    let cut = towards(&a, HOST_2).protocol(IpProtocol::ICMP6);
    for frame in [error(1), error(4), error(137), behind, cut] {
        router.send(&a, frame.ttl(1).build());
        assert!(a.received().is_empty());
    }
    assert_eq!(router.error("ip6-icmp-error", "no error about an icmp error"), 5);
    // About a query there may be one.
    router.send(&a, towards(&a, HOST_2).icmp6_echo_request(1, 1).ttl(1).build());
    assert_eq!(told(&a.received_one()).0, Icmp6Type::TIME_EXCEEDED);
}

#[test]
fn a_group_frame_for_one_host_is_not_forwarded() {
    let (mut router, a, b) = two_hosts();
    let frame = PacketBuilder::ethernet(station(1), MacAddress([0x33, 0x33, 0, 0, 0, 1]));
    router.send(&a, frame.ip6(ip(HOST_1), ip(HOST_2)).udp(1, 2).build());
    assert!(a.received().is_empty() && b.received().is_empty());
    assert_eq!(router.error("ip6-rewrite", "link-layer multicast is not forwarded"), 1);
}

#[test]
fn link_local_addresses_stay_on_their_link_rfc_4291_2_5_6() {
    let (mut router, a, b) = two_hosts();
    neighbour(&router, &a, "fe80::99", station(9));
    neighbour(&router, &b, "fe80::98", station(8));
    // From one: the sender gets an error that its address does not reach that far, RFC 4443, 3.1.
    router.send(&a, to(&a).ip6(ip("fe80::99"), ip(HOST_2)).udp(1, 2).build());
    let answer = a.received_one();
    assert_eq!(told(&answer), (Icmp6Type::DESTINATION_UNREACHABLE, 2, 0));
    assert_eq!((ends(&answer).1, &answer[..6]), (ip("fe80::99"), &station(9).0[..]));
    // To one, here or elsewhere.
    for dst in ["fe80::98", "fe80::99", "fe80::1234", "febf::1"] {
        send_to(&mut router, &a, dst);
        assert!(a.received().is_empty() && b.received().is_empty(), "{dst}");
    }
    assert_eq!(router.error("ip6-lookup", "link-local address of another node"), 4);
}

#[test]
fn groups_are_not_forwarded() {
    let (mut router, a, b) = two_hosts();
    route(&router, "::/0", via(HOST_2, &b));
    for dst in ["ff02::99", "ff05::1:3", "ff0e::1", "ff02::1:ff00:77"] {
        send_to(&mut router, &a, dst);
    }
    assert!(a.received().is_empty() && b.received().is_empty());
    assert_eq!(router.error("ip6-lookup", "multicast group this router has not joined"), 4);
}

#[test]
fn several_ways_share_the_flows() {
    let (mut router, a, b) = two_hosts();
    let c = router.pg(2);
    common::address(&router, &c, "2001:db8:2::1/64");
    neighbour(&router, &c, "2001:db8:2::2", station(3));
    common::route_paths(&router, "2001:100::/32", &[via(HOST_2, &b), via("2001:db8:2::2", &c)]);
    router.send_all(&a, (0..1000).map(|n| towards(&a, "2001:100::1").udp(n, 2).build()));
    let (at_b, at_c) = (b.received().len(), c.received().len());
    assert_eq!(at_b + at_c, 1000);
    assert!(at_b.abs_diff(at_c) < 200, "{at_b} and {at_c}");
}
