//! `ip4-lookup`, `ip4-drop`, `ip4-rewrite` and `ip4-redirect`: which way, and which errors the sender gets.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)] // helpers of tests

use crate::common;

use common::{ip, look_up_in, neighbour, route, route_in, station, table, to, two_hosts, udp, via};
use shoal_fib::Via;
use shoal_icmp::Icmp;
use shoal_icmp::limiter::Rate;
use shoal_interface::MtuLayer;
use shoal_ip::Unreachables;
use shoal_ip4::Ip4;
use shoal_testkit::{PacketBuilder, Port, Router};
use shoal_wire::{EthernetHeader, FromBytes, Icmp4Header, Icmp4Type, Ip4Header, MacAddress};

fn ip_of(frame: &[u8]) -> &Ip4Header {
    Ip4Header::ref_from_prefix(&frame[14..]).unwrap().0
}

/// Type, code and the word behind the checksum of an ICMP error.
fn icmp_of(frame: &[u8]) -> (Icmp4Type, u8, u32) {
    let icmp = Icmp4Header::ref_from_prefix(&frame[34..]).unwrap().0;
    (icmp.kind(), icmp.code(), u32::from_be_bytes(frame[38..42].try_into().unwrap()))
}

/// Host 1 sends to `dst`.
fn send_to(router: &mut Router, a: &Port, dst: [u8; 4]) {
    router.send(a, to(a).ip4([10, 0, 0, 2], dst).udp(1000, 2000).payload_len(20).build());
}

#[test]
fn a_forwarded_packet_has_the_neighbours_header_one_hop_less_and_a_right_checksum() {
    let (mut router, a, b) = two_hosts();
    router.send(&a, udp(&a).build());
    let sent = b.received_one();
    let ethernet = EthernetHeader::ref_from_prefix(&sent).unwrap().0;
    assert_eq!((ethernet.src(), ethernet.dst()), (b.mac(), station(2)));
    assert_eq!(ip_of(&sent).ttl(), 63);
    assert!(ip_of(&sent).checksum_ok());
    assert_eq!(sent[34..], udp(&a).build()[34..], "nothing else is touched");
}

#[test]
fn the_checksum_stays_right_for_every_ttl() {
    let (mut router, a, b) = two_hosts();
    for ttl in 2..=255u8 {
        router.send(&a, udp(&a).ttl(ttl).id(u16::from(ttl) * 257).build());
        let sent = b.received_one();
        assert!(ip_of(&sent).checksum_ok() && ip_of(&sent).ttl() == ttl - 1, "{ttl}");
    }
}

#[test]
fn the_longest_prefix_wins() {
    let (mut router, a, b) = two_hosts();
    let c = router.pg(2);
    common::address(&router, &c, "10.0.2.1/24");
    neighbour(&router, &c, "10.0.2.2", station(3));
    route(&router, "20.0.0.0/8", via("10.0.1.2", &b));
    route(&router, "20.1.0.0/16", via("10.0.2.2", &c));
    route(&router, "20.1.1.1/32", via("10.0.1.2", &b));
    for (dst, out) in [([20, 0, 0, 1], &b), ([20, 1, 0, 1], &c), ([20, 1, 1, 1], &b), ([20, 1, 1, 2], &c)] {
        send_to(&mut router, &a, dst);
        assert_eq!(out.received().len(), 1, "{dst:?}");
    }
}

#[test]
fn routes_that_end_tell_the_sender_why_or_do_not() {
    let (mut router, a, _) = two_hosts();
    route(&router, "20.2.0.0/16", Via::Drop);
    route(&router, "20.3.0.0/16", Via::Unreachable);
    route(&router, "20.4.0.0/16", Via::Prohibit);
    let cases = [
        ([20, 2, 0, 1], "blackholed packets", None),
        ([20, 3, 0, 1], "destination unreachable by route", Some(1)),
        ([20, 4, 0, 1], "destination prohibited by route", Some(10)),
        ([30, 0, 0, 1], "no route to destination", None),
    ];
    for (dst, counter, code) in cases {
        send_to(&mut router, &a, dst);
        assert_eq!(router.error("ip4-drop", counter), 1);
        let told = a.received();
        assert_eq!(told.len(), usize::from(code.is_some()), "{counter}");
        for frame in &told {
            assert_eq!(icmp_of(frame), (Icmp4Type::DESTINATION_UNREACHABLE, code.unwrap(), 0));
            assert_eq!((ip_of(frame).src(), ip_of(frame).dst()), (ip("10.0.0.1"), ip("10.0.0.2")));
        }
    }
}

#[test]
fn senders_are_told_of_missing_routes_when_the_operator_wants_it_rfc_1812_5_2_7_1() {
    let (mut router, a, _) = two_hosts();
    for told in [true, false] {
        Unreachables::of(router.control()).send(told);
        send_to(&mut router, &a, [30, 0, 0, 1]);
        assert_eq!(a.received().len(), usize::from(told));
    }
    assert_eq!(router.error("ip4-drop", "no_route"), 2);
}

#[test]
fn a_packet_is_looked_up_in_its_interfaces_table() {
    let (mut router, _, b) = two_hosts();
    let (c, d) = (router.pg(2), router.pg(3));
    let t7 = table(&router, 7);
    for port in [&c, &d] {
        router.get::<Ip4>().set_table(port.index(), 7).unwrap();
    }
    // The same network as in table 0.
    common::address(&router, &c, "10.0.0.1/24");
    common::address(&router, &d, "10.0.1.1/24");
    neighbour(&router, &d, "10.0.1.2", station(4));
    router.send(&c, udp(&c).build());
    assert_eq!((b.received().len(), d.received().len()), (0, 1));
    // A route of one table may lead into another.
    route_in(&router, t7, "10.0.1.2/32", look_up_in(shoal_fib::FibIndex::DEFAULT));
    router.send(&c, udp(&c).build());
    assert_eq!((b.received().len(), d.received().len()), (1, 0));
}

#[test]
fn a_loop_of_tables_is_cut_and_counted() {
    let (mut router, a, _) = two_hosts();
    let (t7, t8) = (table(&router, 7), table(&router, 8));
    route(&router, "20.0.0.0/8", look_up_in(t7));
    route_in(&router, t7, "0.0.0.0/0", look_up_in(t8));
    route_in(&router, t8, "0.0.0.0/0", look_up_in(t7));
    send_to(&mut router, &a, [20, 0, 0, 1]);
    assert_eq!(router.error("ip4-lookup", "route leads through too many tables"), 1);
    assert_eq!(router.if_counter("/if/drops", a.index()), 1);
}

#[test]
fn a_packet_goes_through_as_many_as_eight_other_tables() {
    let (mut router, a, b) = two_hosts();
    let tables: Vec<_> = (1..=9).map(|id| table(&router, id)).collect();
    route(&router, "20.0.0.0/8", look_up_in(tables[0]));
    for pair in tables.windows(2) {
        route_in(&router, pair[0], "20.0.0.0/8", look_up_in(pair[1]));
        route_in(&router, pair[0], "20.7.0.0/16", via("10.0.1.2", &b));
    }
    route_in(&router, tables[7], "20.8.0.0/16", via("10.0.1.2", &b));
    route_in(&router, tables[8], "20.9.0.0/16", via("10.0.1.2", &b));
    for (dst, got) in [([20, 7, 0, 1], 1), ([20, 8, 0, 1], 1), ([20, 9, 0, 1], 0)] {
        send_to(&mut router, &a, dst);
        assert_eq!(b.received().len(), got, "{dst:?}");
    }
}

#[test]
fn the_last_hop_ends_here_and_the_sender_is_told() {
    let (mut router, a, b) = two_hosts();
    router.send(&a, udp(&a).ttl(1).build());
    let told = a.received_one();
    assert_eq!(icmp_of(&told), (Icmp4Type::TIME_EXCEEDED, 0, 0));
    assert_eq!(router.counter("/err/ip4-input/time_expired"), 1);
    assert!(b.received().is_empty());
    // RFC 792: the header and at least 8 bytes of the packet, as they came.
    assert_eq!(told[42..42 + 28], udp(&a).ttl(1).build()[14..14 + 28]);
}

#[test]
fn a_packet_too_big_is_answered_with_the_mtu_it_may_have_rfc_1191() {
    let (mut router, a, b) = two_hosts();
    router.interfaces().set_mtu(b.index(), MtuLayer::Ip4, 1400).unwrap();
    let of = |total: usize| udp(&a).payload_len(total - 28).dont_fragment().build();
    router.send(&a, of(1400));
    assert_eq!(b.received_one().len(), 1414);
    router.send(&a, of(1401));
    assert!(b.received().is_empty());
    assert_eq!(icmp_of(&a.received_one()), (Icmp4Type::DESTINATION_UNREACHABLE, 4, 1400));
    assert_eq!(router.counter("/err/ip4-input/mtu_exceeded"), 1);
    router.interfaces().set_mtu(b.index(), MtuLayer::Ip4, 1300).unwrap();
    router.send(&a, of(1400));
    assert_eq!(icmp_of(&a.received_one()).2, 1300, "the MTU is that of now");
}

#[test]
fn a_host_that_could_go_straight_is_redirected_and_its_packet_forwarded() {
    let (mut router, a, _) = two_hosts();
    neighbour(&router, &a, "10.0.0.3", station(3));
    route(&router, "20.0.0.0/8", via("10.0.0.3", &a));
    send_to(&mut router, &a, [20, 0, 0, 1]);
    let sent = a.received();
    assert_eq!(sent.len(), 2);
    let (redirect, forwarded): (Vec<_>, Vec<_>) = sent.iter().partition(|f| f[23] == 1);
    assert_eq!(icmp_of(redirect[0]), (Icmp4Type::REDIRECT, 1, u32::from(ip("10.0.0.3"))));
    assert_eq!(ip_of(redirect[0]).dst(), ip("10.0.0.2"));
    assert_eq!((ip_of(forwarded[0]).ttl(), &forwarded[0][..6]), (63, &station(3).0[..]));
}

#[test]
fn no_redirect_goes_to_another_network_or_answers_a_broadcast() {
    let (mut router, a, _) = two_hosts();
    neighbour(&router, &a, "10.0.0.3", station(3));
    route(&router, "20.0.0.0/8", via("10.0.0.3", &a));
    // RFC 1812, 5.2.7.2: the sender is on the network of the interface, the packet has no source route.
    router.send(&a, to(&a).ip4([10, 9, 9, 9], [20, 0, 0, 1]).udp(1, 2).build());
    assert_eq!(a.received_one()[23], 17);
    let broadcast = PacketBuilder::ethernet(station(1), MacAddress::BROADCAST);
    router.send(&a, broadcast.ip4([10, 0, 0, 2], [20, 0, 0, 1]).udp(1, 2).build());
    assert!(a.received().iter().all(|f| f[23] != 1));
}

#[test]
fn a_directed_broadcast_is_dropped_unless_allowed_rfc_2644() {
    let (mut router, a, b) = two_hosts();
    send_to(&mut router, &a, [10, 0, 1, 255]);
    assert!(b.received().is_empty());
    router.get::<Ip4>().set_directed_broadcast(b.index(), true).unwrap();
    send_to(&mut router, &a, [10, 0, 1, 255]);
    assert_eq!(b.received_one()[..6], [255; 6]);
    router.get::<Ip4>().set_directed_broadcast(b.index(), false).unwrap();
    send_to(&mut router, &a, [10, 0, 1, 255]);
    // The network's own address, too: the old form of a broadcast.
    send_to(&mut router, &a, [10, 0, 1, 0]);
    assert!(b.received().is_empty() && a.received().is_empty());
    assert_eq!(router.error("ip4-drop", "blackholed packets"), 3);
}

#[test]
fn icmp_errors_are_limited_and_the_limit_is_counted() {
    let (mut router, a, _) = two_hosts();
    router.get::<Icmp>().set_rate(Rate { per_second: 10, burst: 5 }).unwrap();
    router.send_all(&a, (0..100).map(|_| udp(&a).ttl(1).build()));
    assert_eq!(a.received().len(), 5);
    assert_eq!(router.error("ip4-icmp-error", "error not sent, rate limit reached"), 95);
    router.advance(std::time::Duration::from_secs(1));
    router.send_all(&a, (0..100).map(|_| udp(&a).ttl(1).build()));
    assert_eq!(a.received().len(), 5, "a second fills the bucket");
}

#[test]
fn no_error_is_sent_about_errors_fragments_and_groups_rfc_1122() {
    let (mut router, a, _) = two_hosts();
    let (src, dst) = ([10, 0, 0, 2], [10, 0, 1, 2]);
    let error =
        to(&a).ip4(src, dst).protocol(shoal_wire::IpProtocol::ICMP).payload(&[3, 1, 0, 0, 0, 0, 0, 0]);
    let later = udp(&a).fragment(800, shoal_wire::packet::Fragment::Last);
    let unspecified = to(&a).ip4([0, 0, 0, 0], dst).udp(1, 2);
    for frame in [error, later, unspecified] {
        router.send(&a, frame.ttl(1).build());
        assert!(a.received().is_empty());
    }
    // About a query there may be one.
    router.send(&a, to(&a).ip4(src, dst).icmp_echo_request(1, 1).ttl(1).build());
    assert_eq!(icmp_of(&a.received_one()).0, Icmp4Type::TIME_EXCEEDED);
}

#[test]
fn an_icmp_error_quotes_no_more_than_576_bytes_allow_rfc_1812() {
    let (mut router, a, _) = two_hosts();
    router.send(&a, udp(&a).payload_len(3000).ttl(1).build());
    let told = a.received_one();
    assert_eq!(ip_of(&told).total_length(), 576);
    assert_eq!(told.len(), 14 + 576);
    assert_eq!(shoal_wire::checksum::checksum(&told[34..]), 0, "over two segments, too");
}
