//! ARP in a whole router: which requests are sent, which are answered, what is believed.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)] // helpers of tests

use std::net::Ipv4Addr;
use std::time::Duration;

use shoal_adj::{AdjKind, Adjacencies};
use shoal_arp::table::{FibEntry, Origin, WhenFull};
use shoal_arp::{Flush, NeighbourError, Neighbours, NewLimits};
use shoal_fib::{Fib, FibIndex};
use shoal_ip4::Ip4;
use shoal_testkit::{PEER, PEER_MAC, Port, Rng, Router, STACK, US};
use shoal_wire::{ArpHeader, ArpOpcode, EthernetHeader, FromBytes, MacAddress, Packet};

const STRANGER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 9);

/// A router with 10.0.0.1/24 on pg0 and 10.0.1.1/24 on pg1.
fn router() -> (Router, Port, Port) {
    let mut router = Router::new(STACK);
    let (left, right) = (router.pg(0), router.pg(1));
    router.set_address(&left, "10.0.0.1/24");
    router.set_address(&right, "10.0.1.1/24");
    router.run();
    (router, left, right)
}

fn arp_of(frame: &[u8]) -> (EthernetHeader, ArpHeader) {
    let (ethernet, rest) = EthernetHeader::read_from_prefix(frame).unwrap();
    (ethernet, ArpHeader::read_from_prefix(rest).unwrap().0)
}

fn request(sender: Ipv4Addr, target: Ipv4Addr) -> Vec<u8> {
    Packet::arp_request(PEER_MAC, sender, target).pad_to(60).build()
}

fn knows(router: &Router, port: &Port, address: Ipv4Addr) -> Option<MacAddress> {
    router.get::<Neighbours>().get((port.index(), address)).map(|n| n.mac)
}

/// A packet for PEER that comes in by pg1.
fn transit(right: &Port, n: u16) -> Vec<u8> {
    let from = [2, 0xbb, 0, 0, 0, 1];
    Packet::ethernet(from, right.mac()).ip4([10, 0, 1, 9], PEER).udp(1, 2).id(n).payload_len(20).build()
}

#[test]
fn answers_a_request_for_its_address_and_learns_who_asked() {
    let (mut router, left, _) = router();
    router.send(&left, request(PEER, US));
    let (ethernet, arp) = arp_of(&left.received_one());
    assert_eq!((ethernet.src(), ethernet.dst()), (left.mac(), PEER_MAC));
    assert_eq!(arp, ArpHeader::new(ArpOpcode::REPLY, left.mac(), US, PEER_MAC, PEER));
    assert_eq!(knows(&router, &left, PEER), Some(PEER_MAC));
    assert_eq!(router.if_counter("/net/arp/rx/requests", left.index()), 1);
    assert_eq!(router.if_counter("/net/arp/tx/replies", left.index()), 1);
}

#[test]
fn a_reply_is_no_longer_than_the_shortest_frame() {
    let (mut router, left, _) = router();
    router.send(&left, Packet::arp_request(PEER_MAC, PEER, US).pad_to(1400).build());
    assert_eq!(left.received_one().len(), 60);
    router.send(&left, Packet::arp_request(PEER_MAC, PEER, US).build());
    assert_eq!(left.received_one().len(), 42);
}

#[test]
fn the_first_packet_waits_and_leaves_when_its_neighbour_answers() {
    let (mut router, left, right) = router();
    router.send(&right, transit(&right, 7));
    let (ethernet, arp) = arp_of(&left.received_one());
    assert_eq!(
        (ethernet.dst(), arp),
        (MacAddress::BROADCAST, ArpHeader::new(ArpOpcode::REQUEST, left.mac(), US, MacAddress::ZERO, PEER),)
    );
    assert_eq!((router.get::<Neighbours>().held(), router.buffers_in_use()), (1, 1));
    router.send(&left, Packet::arp_reply(PEER_MAC, PEER, left.mac(), US).pad_to(60).build());
    let frame = left.received_one();
    let (ethernet, rest) = EthernetHeader::read_from_prefix(&frame).unwrap();
    assert_eq!((ethernet.src(), ethernet.dst()), (left.mac(), PEER_MAC));
    assert_eq!((&rest[4..6], rest[8]), (&[0, 7][..], 63), "the same packet, a hop later");
    assert_eq!(router.if_counter("/net/arp/held/sent", left.index()), 1);
    router.send(&right, transit(&right, 8));
    assert_eq!(left.received().len(), 1, "the next one is not held");
    assert_eq!(router.error("ip4-glean", "ARP requests sent"), 1);
}

#[test]
fn a_packet_that_waited_is_traced_until_it_is_sent() {
    let (mut router, left, right) = router();
    router.trace_add("pg-input", 1);
    router.send(&right, transit(&right, 7));
    assert_eq!(router.trace_paths().concat().last().unwrap(), "ip4-glean");
    router.send(&left, Packet::arp_reply(PEER_MAC, PEER, left.mac(), US).pad_to(60).build());
    let path = router.trace_paths().remove(0);
    assert_eq!(path[path.len() - 4..], ["ip4-glean", "ip4-rewrite", "pg0-output", "pg0-tx"]);
    assert_eq!(left.received().len(), 2);
}

#[test]
fn a_packet_that_waited_says_nothing_in_a_trace_asked_for_since() {
    let (mut router, left, right) = router();
    router.trace_add("pg-input", 1);
    router.send(&right, transit(&right, 7));
    router.graph().trace_clear();
    router.trace_add("pg-input", 1);
    router.send(&left, Packet::arp_reply(PEER_MAC, PEER, left.mac(), US).pad_to(60).build());
    let path = router.trace_paths().remove(0);
    assert_eq!(path.last().unwrap(), "arp-reply", "{}", router.trace());
    assert_eq!(left.received().len(), 2);
}

#[test]
fn a_packet_that_waited_in_vain_is_traced_to_its_end() {
    let (mut router, _, right) = router();
    // The sender gets an error; it is not known either.
    router.may_hold(1);
    router.trace_add("pg-input", 1);
    router.send(&right, transit(&right, 7));
    router.advance(Duration::from_secs(4));
    let trace = router.trace();
    assert!(trace.contains("ip4-arp-failed: "), "{trace}");
}

#[test]
fn a_packet_that_waits_may_change_threads() {
    let mut router = Router::new(STACK);
    router.graph().add_worker(None).unwrap();
    let (left, right) = (router.pg(0), router.pg(1));
    router.set_address(&left, "10.0.0.1/24");
    router.set_address(&right, "10.0.1.1/24");
    let queues = router.graph().queues();
    router.send(&right, transit(&right, 7));
    assert!(queues.is_empty() || queues.iter().all(|q| q.thread == 1));
    assert_eq!(arp_of(&left.received_one()).1.target_ip4(), PEER);
    router.send(&left, Packet::arp_reply(PEER_MAC, PEER, left.mac(), US).build());
    assert_eq!(left.received_one()[..6], PEER_MAC.0);
    router.send(&right, transit(&right, 8));
    assert_eq!(left.received_one()[..6], PEER_MAC.0);
}

#[test]
fn packets_wait_for_a_routes_next_hop_too() {
    let (mut router, left, right) = router();
    let adj = router.get::<Adjacencies>();
    let fib = router.get::<Fib>();
    let path = shoal_fib::Path::next_hop(PEER, left.index());
    let prefix: shoal_wire::IpPrefix = "198.51.100.0/24".parse().unwrap();
    fib.add(FibIndex(0), prefix, shoal_fib::Source::Cli, &[path]).unwrap();
    let index = fib.lookup(FibIndex(0), Ipv4Addr::new(198, 51, 100, 1));
    assert_eq!(adj.get(index).kind(), AdjKind::Incomplete);
    let far =
        Packet::ethernet([2, 0xbb, 0, 0, 0, 1], right.mac()).ip4([10, 0, 1, 9], [198, 51, 100, 1]).udp(1, 2);
    router.send(&right, far.build());
    assert_eq!(arp_of(&left.received_one()).1.target_ip4(), PEER);
    router.send(&left, Packet::arp_reply(PEER_MAC, PEER, left.mac(), US).build());
    assert_eq!(left.received_one()[..6], PEER_MAC.0);
    assert_eq!(adj.get(index).kind(), AdjKind::Rewrite);
}

#[test]
fn only_a_few_packets_wait_and_one_request_is_sent_for_all() {
    let (mut router, left, right) = router();
    let packets: Vec<_> = (0..200).map(|n| transit(&right, n)).collect();
    router.send_all(&right, &packets);
    assert_eq!(left.received().len(), 1);
    assert_eq!(router.get::<Neighbours>().held(), 4);
    assert_eq!(router.error("ip4-glean", "ARP requests throttled"), 196);
    assert_eq!(router.buffers_in_use(), 4);
    router.send(&left, request(PEER, US));
    assert_eq!(left.received().len(), 5, "the reply and the four");
}

#[test]
fn a_silent_neighbour_is_asked_three_times_then_the_sender_is_told() {
    let (mut router, left, right) = router();
    // Only where the operator wants it: RFC 1812, 5.2.7.1.
    shoal_ip4::Unreachables::of(router.control()).send(true);
    router.send(&right, transit(&right, 7));
    for _ in 0..2 {
        assert_eq!(left.received().len(), 1);
        router.advance(Duration::from_secs(1));
    }
    assert_eq!(left.received().len(), 1);
    router.advance(Duration::from_secs(1));
    assert!(left.received().is_empty());
    assert_eq!(router.error("ip4-arp-failed", "neighbour did not answer ARP"), 1);
    assert_eq!(router.error("ip4-icmp-error", "dest_unreach_sent"), 1);
    // The error itself now waits for its own neighbour.
    assert_eq!(arp_of(&right.received_one()).1.target_ip4(), Ipv4Addr::new(10, 0, 1, 9));
    router.advance(Duration::from_secs(3));
    assert_eq!(router.buffers_in_use(), 0, "no error about an error");
}

#[test]
fn probes_of_its_address_are_answered_but_not_learnt() {
    // RFC 5227 section 2.1.1.
    let (mut router, left, _) = router();
    router.send(&left, request(Ipv4Addr::UNSPECIFIED, US));
    assert_eq!(arp_of(&left.received_one()).1.sender_ip4(), US);
    router.send(&left, request(Ipv4Addr::UNSPECIFIED, PEER));
    assert!(left.received().is_empty() && router.get::<Neighbours>().list().is_empty());
    assert_eq!(router.error("arp-reply", "gratuitous_arp"), 1);
}

#[test]
fn an_announcement_changes_what_is_known_and_adds_nothing() {
    let (mut router, left, _) = router();
    let announce = |mac: [u8; 6]| Packet::arp_gratuitous(mac, PEER).pad_to(60).build();
    router.send(&left, announce([2, 0xcc, 0, 0, 0, 1]));
    assert_eq!(knows(&router, &left, PEER), None);
    router.send(&left, request(PEER, US));
    left.received();
    router.send(&left, announce([2, 0xcc, 0, 0, 0, 1]));
    assert_eq!(knows(&router, &left, PEER), Some(MacAddress([2, 0xcc, 0, 0, 0, 1])));
    assert_eq!(router.if_counter("/net/arp/rx/gratuitous", left.index()), 2);
    assert!(left.received().is_empty());
    // Two routers that share an address may take turns quickly.
    for mac in [3, 1, 3, 1] {
        router.send(&left, announce([2, 0xcc, 0, 0, 0, mac]));
        assert_eq!(knows(&router, &left, PEER), Some(MacAddress([2, 0xcc, 0, 0, 0, mac])));
    }
}

#[test]
fn a_fact_that_is_known_is_passed_on_once_in_a_while() {
    let (mut router, left, _) = router();
    router.send(&left, request(PEER, US));
    let again: Vec<_> = (0..200).map(|_| request(PEER, US)).collect();
    router.advance(Duration::from_secs(1));
    router.send_all(&left, &again);
    assert_eq!(router.error("arp-reply", "l3_src_address_learned"), 2);
    assert_eq!(left.received().len(), 201);
}

#[test]
fn no_other_station_may_claim_our_address() {
    let (mut router, left, _) = router();
    router.send(&left, Packet::arp_gratuitous(PEER_MAC, US).build());
    router.send(&left, request(US, PEER));
    router.send(&left, Packet::arp_reply(PEER_MAC, US, left.mac(), US).build());
    assert_eq!(router.error("arp-reply", "IP4 source address matches local interface"), 3);
    assert!(left.received().is_empty() && router.get::<Neighbours>().list().is_empty());
}

#[test]
fn strangers_are_neither_answered_nor_learnt() {
    let (mut router, left, right) = router();
    router.send(&left, request(STRANGER, US));
    // A station of the other link is a stranger here.
    router.send(&left, request(Ipv4Addr::new(10, 0, 1, 2), US));
    assert_eq!(router.error("arp-reply", "IP4 source address not local to subnet"), 2);
    router.send(&left, request(PEER, STRANGER));
    assert_eq!(router.error("arp-reply", "IP4 destination address not local to subnet"), 1);
    router.send(&left, request(PEER, Ipv4Addr::UNSPECIFIED));
    assert_eq!(router.error("arp-input", "l3_dst_address_unset"), 1);
    let broadcast = Ipv4Addr::new(10, 0, 0, 255);
    router.send(&left, request(broadcast, US));
    assert!(left.received().is_empty() && right.received().is_empty());
    assert!(router.get::<Neighbours>().list().is_empty());
}

#[test]
fn refuses_senders_that_are_no_single_station() {
    let (mut router, left, _) = router();
    let frame = |ethernet: MacAddress, arp: MacAddress| {
        let header = ArpHeader::new(ArpOpcode::REQUEST, arp, PEER, MacAddress::ZERO, US);
        Packet::ethernet(ethernet, MacAddress::BROADCAST).arp(header).build()
    };
    for group in [MacAddress::ZERO, MacAddress::BROADCAST, MacAddress([1, 0, 0x5e, 0, 0, 1])] {
        router.send(&left, frame(PEER_MAC, group));
    }
    assert_eq!(router.error("arp-input", "sender_is_group"), 3);
    router.send(&left, frame(PEER_MAC, MacAddress([2, 9, 9, 9, 9, 9])));
    assert_eq!(router.error("arp-reply", "l2_address_mismatch"), 1);
    assert!(left.received().is_empty() && router.get::<Neighbours>().list().is_empty());
}

#[test]
fn a_virtual_routers_reply_names_the_address_it_shares() {
    // RFC 9568 7.3: the frame comes from the router's own address.
    let (mut router, left, _) = router();
    let shared = MacAddress([0, 0, 0x5e, 0, 1, 9]);
    let frame = |opcode: ArpOpcode| {
        let header = ArpHeader::new(opcode, shared, PEER, left.mac(), US);
        Packet::ethernet(PEER_MAC, left.mac()).arp(header).build()
    };
    router.send(&left, frame(ArpOpcode::REQUEST));
    assert_eq!(knows(&router, &left, PEER), None, "a request is not one");
    router.send(&left, frame(ArpOpcode::REPLY));
    assert_eq!(knows(&router, &left, PEER), Some(shared));
}

#[test]
fn an_announcement_of_another_network_is_counted_as_vpp_does() {
    let (mut router, left, _) = router();
    router.send(&left, Packet::arp_gratuitous(PEER_MAC, Ipv4Addr::new(10, 0, 9, 9)).build());
    assert_eq!(router.error("arp-reply", "l3_dst_address_not_local"), 1);
}

#[test]
fn counts_every_field_that_lies() {
    let (mut router, left, _) = router();
    let good = request(PEER, US);
    let cases = [
        (15, "l2_type_not_ethernet"),
        (17, "l3_type_not_ip4"),
        (18, "address_sizes"),
        (19, "address_sizes"),
        (21, "opcode_not_request"),
    ];
    for (n, (byte, counter)) in cases.into_iter().enumerate() {
        let before = router.error("arp-input", counter);
        let mut bad = good.clone();
        bad[byte] ^= 0x40;
        router.send(&left, bad);
        assert_eq!(router.error("arp-input", counter), before + 1, "case {n}");
    }
    assert!(left.received().is_empty());
}

#[test]
fn drops_arp_cut_at_every_length() {
    let (mut router, left, _) = router();
    let whole = Packet::arp_request(PEER_MAC, PEER, US).build();
    for len in 14..whole.len() {
        router.send(&left, &whole[..len]);
    }
    assert_eq!(router.error("arp-input", "too_short"), 28);
    assert!(left.received().is_empty());
    router.send(&left, &whole);
    left.received_one();
}

#[test]
fn an_interface_without_ip_has_no_arp() {
    let mut router = Router::new(STACK);
    let port = router.pg(0);
    router.send(&port, request(PEER, US));
    assert_eq!(router.error("arp-disabled", "disabled"), 1);
    assert!(port.received().is_empty());
}

#[test]
fn a_scan_of_the_network_holds_no_more_than_its_share_of_buffers() {
    let mut router = Router::new(STACK);
    let (left, right) = (router.pg(0), router.pg(1));
    router.set_address(&left, "10.0.0.1/16");
    router.set_address(&right, "10.9.1.1/24");
    let from = [2, 0xbb, 0, 0, 0, 1];
    let to = |n: u16| Ipv4Addr::from_bits(0x0a00_0100 + u32::from(n));
    let packets: Vec<_> = (0..3000)
        .map(|n| Packet::ethernet(from, right.mac()).ip4([10, 9, 1, 9], to(n)).udp(1, 2).build())
        .collect();
    for chunk in packets.chunks(200) {
        router.send_all(&right, chunk);
    }
    let neighbours = router.get::<Neighbours>();
    assert!(neighbours.held() <= 1024 && neighbours.held() > 500, "{}", neighbours.held());
    assert!(left.received().len() <= 1024);
    router.advance(Duration::from_secs(10));
    assert_eq!(neighbours.held(), 0);
    right.received();
}

#[test]
fn a_flood_of_stations_stops_at_the_limit() {
    let (mut router, left, _) = router();
    let neighbours = router.get::<Neighbours>();
    neighbours.set_limits(NewLimits { entries: Some(10), ..NewLimits::default() });
    let requests: Vec<_> = (2..200).map(|n| request(Ipv4Addr::new(10, 0, 0, n), US)).collect();
    router.send_all(&left, &requests);
    assert_eq!(neighbours.list().len(), 10);
    assert_eq!(router.if_counter("/net/arp/refused", left.index()), 188);
    assert_eq!(left.received().len(), 198, "they are answered all the same");
    neighbours.set_limits(NewLimits { when_full: Some(WhenFull::Recycle), ..NewLimits::default() });
    router.advance(Duration::from_secs(1));
    router.send(&left, request(Ipv4Addr::new(10, 0, 0, 200), US));
    assert_eq!(
        (neighbours.list().len(), knows(&router, &left, Ipv4Addr::new(10, 0, 0, 200))),
        (10, Some(PEER_MAC))
    );
}

#[test]
fn an_old_neighbour_is_asked_itself_and_removed_when_silent() {
    let (mut router, left, _) = router();
    let neighbours = router.get::<Neighbours>();
    neighbours.set_limits(NewLimits { age: Some(Duration::from_secs(30)), ..NewLimits::default() });
    router.send(&left, request(PEER, US));
    left.received();
    router.advance(Duration::from_secs(29));
    assert!(left.received().is_empty());
    router.advance(Duration::from_millis(1500));
    let (ethernet, arp) = arp_of(&left.received_one());
    assert_eq!((ethernet.dst(), arp.target_ip4(), arp.sender_ip4()), (PEER_MAC, PEER, US));
    router.send(&left, Packet::arp_reply(PEER_MAC, PEER, left.mac(), US).build());
    router.advance(Duration::from_secs(20));
    assert!(knows(&router, &left, PEER).is_some() && left.received().is_empty(), "it answered");
    router.advance(Duration::from_secs(20));
    assert_eq!((left.received().len(), knows(&router, &left, PEER)), (3, None));
}

#[test]
fn neighbours_are_not_aged_by_default() {
    let (mut router, left, _) = router();
    router.send(&left, request(PEER, US));
    left.received();
    router.advance(Duration::from_hours(24));
    assert!(left.received().is_empty() && knows(&router, &left, PEER).is_some());
}

#[test]
fn going_down_forgets_what_was_learnt_and_keeps_what_was_said() {
    let (mut router, left, right) = router();
    let fixed = Ipv4Addr::new(10, 0, 0, 7);
    router.set_neighbour(&left, fixed, PEER_MAC);
    router.send(&left, request(PEER, US));
    router.send(&right, transit(&right, 1));
    left.received();
    router.interfaces().set_admin(left.index(), false).unwrap();
    router.run();
    assert_eq!((knows(&router, &left, PEER), knows(&router, &left, fixed)), (None, Some(PEER_MAC)));
    router.interfaces().set_admin(left.index(), true).unwrap();
    router.run();
    let to_fixed =
        Packet::ethernet([2, 0xbb, 0, 0, 0, 1], right.mac()).ip4([10, 0, 1, 9], fixed).udp(1, 2).build();
    router.send(&right, to_fixed);
    assert_eq!(left.received_one()[..6], PEER_MAC.0);
}

#[test]
fn deleting_an_interface_frees_packets_that_wait_there() {
    let (mut router, left, right) = router();
    router.send(&right, transit(&right, 1));
    left.received();
    assert_eq!(router.buffers_in_use(), 1);
    router.set_neighbour(&left, PEER, PEER_MAC);
    left.received();
    router.run();
    router.interfaces().delete(left.index()).unwrap();
    router.run();
    assert_eq!((router.get::<Neighbours>().list().len(), router.buffers_in_use()), (0, 0));
}

#[test]
fn operations_name_what_is_wrong() {
    let (router, left, _) = router();
    let n = router.get::<Neighbours>();
    let set = |a: [u8; 4], mac: [u8; 6], origin| {
        n.set((left.index(), a.into()), mac.into(), origin, FibEntry::Wanted)
    };
    let station = [2, 0, 0, 0, 0, 9];
    assert_eq!(
        set([224, 0, 0, 1], station, Origin::Static),
        Err(NeighbourError::NoHost([224, 0, 0, 1].into()))
    );
    assert!(matches!(set([10, 0, 0, 9], [0; 6], Origin::Static), Err(NeighbourError::NoStation(_))));
    assert!(matches!(
        set([10, 0, 0, 9], [3, 0, 0, 0, 0, 1], Origin::Dynamic),
        Err(NeighbourError::NoStation(_))
    ));
    assert_eq!(set([10, 0, 0, 9], [3, 0, 0, 0, 0, 1], Origin::Static), Ok(()), "a cluster's address");
    assert!(matches!(set([10, 0, 0, 9], station, Origin::Dynamic), Err(NeighbourError::Static(..))));
    assert!(matches!(n.remove((left.index(), STRANGER)), Err(NeighbourError::NoNeighbour(..))));
    let last = Ipv4Addr::new(255, 255, 255, 250);
    assert!(n.remove_many(left.index(), last, 7).unwrap_err().to_string().contains("at most 6"));
    let gone = shoal_interface::SwIfIndex(99);
    assert!(matches!(n.remove((gone, PEER)), Err(NeighbourError::Interface(_))));
    n.flush(None, Flush::All);
    assert!(n.list().is_empty());
}

#[test]
fn a_neighbour_brings_its_host_route_and_takes_it_along() {
    let (router, left, _) = router();
    let (n, fib) = (router.get::<Neighbours>(), router.get::<Fib>());
    let adj = router.get::<Adjacencies>();
    let kind = |a: Ipv4Addr| adj.get(fib.lookup(FibIndex(0), a)).kind();
    n.set((left.index(), PEER), PEER_MAC, Origin::Dynamic, FibEntry::Wanted).unwrap();
    assert_eq!(kind(PEER), AdjKind::Rewrite);
    n.set((left.index(), PEER), PEER_MAC, Origin::Dynamic, FibEntry::Unwanted).unwrap();
    assert_eq!(kind(PEER), AdjKind::Glean);
    n.set((left.index(), PEER), PEER_MAC, Origin::Dynamic, FibEntry::Wanted).unwrap();
    n.remove((left.index(), PEER)).unwrap();
    assert_eq!(kind(PEER), AdjKind::Glean);
}

#[test]
fn a_neighbour_without_host_route_still_gets_its_packets() {
    let (mut router, left, right) = router();
    let n = router.get::<Neighbours>();
    n.set((left.index(), PEER), PEER_MAC, Origin::Static, FibEntry::Unwanted).unwrap();
    router.send(&right, transit(&right, 1));
    let frames = left.received();
    assert!(frames.iter().any(|f| f[..6] == PEER_MAC.0), "{}", frames.len());
}

#[test]
fn random_bytes_do_no_harm() {
    let (mut router, left, _) = router();
    let good = request(PEER, US);
    let mut seed = 0x1234_5678_9abc_def0_u64;
    for _ in 0..2000 {
        let mut frame = good.clone();
        for byte in &mut frame[14..42] {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            if seed >> 61 == 0 {
                *byte = (seed >> 32) as u8;
            }
        }
        router.send(&left, &frame);
    }
    assert!(left.received().len() <= 2000);
}

#[test]
fn neighbours_leave_with_their_network() {
    let (mut router, left, right) = router();
    let fixed = Ipv4Addr::new(10, 0, 0, 7);
    router.set_neighbour(&left, fixed, PEER_MAC);
    router.send(&left, request(PEER, US));
    let waits =
        Packet::ethernet([2, 0xbb, 0, 0, 0, 1], right.mac()).ip4([10, 0, 1, 9], [10, 0, 0, 8]).udp(1, 2);
    router.send(&right, waits.build());
    assert_eq!(router.buffers_in_use(), 1);
    router.get::<Ip4>().del_address(left.index(), "10.0.0.1/24".parse().unwrap()).unwrap();
    router.run();
    assert_eq!((knows(&router, &left, PEER), knows(&router, &left, fixed)), (None, Some(PEER_MAC)));
    assert_eq!(router.buffers_in_use(), 0);
    left.received();
}

#[test]
fn host_routes_follow_their_interface_into_another_table() {
    let (router, left, _) = router();
    let (n, fib, ip4) = (router.get::<Neighbours>(), router.get::<Fib>(), router.get::<Ip4>());
    n.set((left.index(), PEER), PEER_MAC, Origin::Static, FibEntry::Wanted).unwrap();
    let other = fib.add_table(shoal_fib::Family::Ip4, 7, None).unwrap();
    ip4.del_all(left.index()).unwrap();
    ip4.set_table(left.index(), 7).unwrap();
    ip4.add_address(left.index(), "10.0.0.1/24".parse().unwrap()).unwrap();
    let kind = |table| router.get::<Adjacencies>().get(fib.lookup(table, PEER)).kind();
    assert_eq!((kind(FibIndex(0)), kind(other)), (AdjKind::None, AdjKind::Rewrite));
}

#[test]
fn rubbish_harms_no_node() {
    let (mut router, left, _) = router();
    let (mut rng, good) = (Rng::new(Rng::seed(2)), request(PEER, US));
    for node in ["arp-input", "arp-reply", "ip4-arp", "ip4-glean", "ip4-arp-failed"] {
        for n in 0..500 {
            let mut bytes = good.get(14..).unwrap().to_vec();
            bytes.truncate(rng.below(47));
            if n % 2 == 0 {
                bytes = rng.bytes(bytes.len());
            }
            router.inject(node, left.index(), &bytes);
            router.run();
        }
    }
    left.received();
    router.send(&left, request(PEER, US));
    assert!(left.received().iter().any(|f| f[..6] == PEER_MAC.0));
    router.advance(Duration::from_secs(5));
    assert_eq!(router.get::<Neighbours>().held(), 0);
}
