//! What forwarding makes of addresses that are not proven, of anycast, of groups joined for others.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)] // helpers of tests

use crate::common;

use std::net::Ipv6Addr;
use std::time::Duration;

use common::*;
use shoal_fib::FibIndex;
use shoal_ip6::Ip6;
use shoal_ip6_nd::{AddressState, MODULE, Nd, Neighbours, Proxy};
use shoal_neighbor::table::{FibEntry, Origin};
use shoal_testkit::{PEER_MAC, Port, Router, STACK};
use shoal_wire::ip6_address::{ALL_MLD2_ROUTERS, ALL_NODES, link_local_of, solicited_node};
use shoal_wire::mld::{MldHeader, ROUTER_ALERT, RecordType, ReportWriter};
use shoal_wire::nd::{HOP_LIMIT, NaFlags, NeighborAdvertisement};
use shoal_wire::{
    EtherType, EthernetHeader, Icmp6Echo, Icmp6Header, Icmp6Type, IntoBytes, Ip6Header, IpProtocol,
    MacAddress, icmp6,
};

/// An echo request from PEER.
fn echo(port: &Port, dst: Ipv6Addr) -> Vec<u8> {
    let mut message = Icmp6Echo::new(Icmp6Type::ECHO_REQUEST, 7, 1).as_bytes().to_vec();
    icmp6::make(PEER, dst, &mut message);
    frame((PEER_MAC, port.mac()), (PEER, dst), 64, &message)
}

/// How many echo replies came out.
fn replies(port: &Port) -> usize {
    port.received().iter().filter(|f| f[20] == 58 && f[54] == 129).count()
}

fn known_peer(router: &Router, port: &Port) {
    let neighbours = router.get::<Neighbours>();
    neighbours.set((port.index(), PEER), PEER_MAC, Origin::Static, FibEntry::Wanted).unwrap();
}

#[test]
fn an_address_answers_only_when_it_is_proven() {
    // RFC 4862 5.4: a tentative address is not assigned in the usual sense.
    let (mut router, port) = quiet();
    give(&mut router, &port);
    known_peer(&router, &port);
    router.send(&port, echo(&port, US));
    assert_eq!(replies(&port), 0);
    assert_eq!(router.error("ip6-drop", "blackholed"), 1);
    assert_eq!(router.get::<Ip6>().source_for(PEER, FibIndex::DEFAULT), None, "it is not spoken from");
    router.advance(Duration::from_secs(3));
    port.received();
    router.send(&port, echo(&port, US));
    assert_eq!(replies(&port), 1);
    assert_eq!(router.get::<Ip6>().source_for(PEER, FibIndex::DEFAULT), Some(US));
}

#[test]
fn a_link_local_address_answers_only_when_it_is_proven() {
    let (mut router, port) = quiet();
    give(&mut router, &port);
    let [ours, peer] = ["fe80::77", "fe80::2"].map(|a| a.parse::<Ipv6Addr>().unwrap());
    router.get::<Ip6>().set_link_local(port.index(), ours).unwrap();
    let neighbours = router.get::<Neighbours>();
    neighbours.set((port.index(), peer), PEER_MAC, Origin::Static, FibEntry::Wanted).unwrap();
    let mut message = Icmp6Echo::new(Icmp6Type::ECHO_REQUEST, 7, 1).as_bytes().to_vec();
    icmp6::make(peer, ours, &mut message);
    let ask = frame((PEER_MAC, port.mac()), (peer, ours), 64, &message);
    router.send(&port, &ask);
    assert_eq!(replies(&port), 0);
    router.advance(Duration::from_secs(3));
    port.received();
    router.send(&port, &ask);
    assert_eq!(replies(&port), 1);
}

#[test]
fn a_duplicate_never_answers_and_others_do() {
    let (mut router, port) = quiet();
    give(&mut router, &port);
    known_peer(&router, &port);
    hear(&mut router, ADVERTISEMENT, &port, &na(PEER_MAC, US, ALL_NODES, NaFlags::OVERRIDE));
    router.get::<Ip6>().add_address(port.index(), "2001:db8::5/64".parse().unwrap()).unwrap();
    router.advance(Duration::from_secs(4));
    port.received();
    assert_eq!(router.get::<Nd>().standing(port.index(), US), Some(AddressState::Duplicate));
    router.send(&port, echo(&port, US));
    assert_eq!(replies(&port), 0);
    let second: Ipv6Addr = "2001:db8::5".parse().unwrap();
    router.send(&port, echo(&port, second));
    assert_eq!(replies(&port), 1);
    assert_eq!(router.get::<Ip6>().source_for(PEER, FibIndex::DEFAULT), Some(second));
    // Adding it again is the operator's way to try again.
    let address = "2001:db8::1/64".parse().unwrap();
    router.get::<Ip6>().del_address(port.index(), address).unwrap();
    router.get::<Ip6>().add_address(port.index(), address).unwrap();
    router.advance(Duration::from_secs(3));
    port.received();
    router.send(&port, echo(&port, US));
    assert_eq!(replies(&port), 1);
}

#[test]
fn an_interface_that_comes_up_proves_its_addresses_again() {
    let (mut router, port) = router();
    known_peer(&router, &port);
    router.interfaces().set_link(port.index(), false).unwrap();
    router.run();
    assert_eq!(
        router.get::<Nd>().standing(port.index(), US),
        Some(AddressState::Ours),
        "no station can take it now"
    );
    router.interfaces().set_link(port.index(), true).unwrap();
    router.run();
    router.send(&port, echo(&port, US));
    assert_eq!(replies(&port), 0);
    router.advance(Duration::from_secs(3));
    port.received();
    router.send(&port, echo(&port, US));
    assert_eq!(replies(&port), 1);
}

#[test]
fn no_duplicate_address_question_is_sent_unless_that_is_switched_on() {
    // As VPP: an address works at once.
    let mut modules = STACK.to_vec();
    modules.push(&MODULE);
    let mut router = Router::new(&modules);
    let port = router.pg(0);
    assert_eq!(router.get::<Nd>().dad_transmits(), 0);
    give(&mut router, &port);
    assert_eq!(router.get::<Nd>().standing(port.index(), US), Some(AddressState::Ours));
}

#[test]
fn an_address_made_of_the_mac_address_is_not_asked_for() {
    let (mut router, port) = quiet();
    give(&mut router, &port);
    let nd = router.get::<Nd>();
    assert_eq!(nd.standing(port.index(), US), Some(AddressState::Tentative));
    assert_eq!(nd.standing(port.index(), link_local_of(port.mac())), Some(AddressState::Ours));
}

#[test]
fn without_detection_and_on_loopbacks_an_address_is_ours_at_once() {
    let (mut router, port) = quiet();
    let loopback = router.interfaces().create_loopback(None, None).unwrap();
    router.get::<Ip6>().add_address(loopback, "2001:db8:5::1/64".parse().unwrap()).unwrap();
    let far: Ipv6Addr = "2001:db8:5::1".parse().unwrap();
    assert_eq!(router.get::<Nd>().standing(loopback, far), Some(AddressState::Ours), "although it is down");
    router.interfaces().set_admin(loopback, true).unwrap();
    router.get::<Nd>().set_dad_transmits(0);
    give(&mut router, &port);
    known_peer(&router, &port);
    port.received();
    for address in [US, far] {
        router.send(&port, echo(&port, address));
        assert_eq!(replies(&port), 1, "{address}");
    }
}

#[test]
fn the_subnet_router_anycast_address_is_answered_for() {
    // RFC 4291 2.6.1; RFC 4861 7.2.7: without override.
    let (mut router, port) = router();
    known_peer(&router, &port);
    let anycast: Ipv6Addr = "2001:db8::".parse().unwrap();
    router.send(&port, ns(PEER_MAC, PEER, anycast));
    let answer = port.received_one();
    let (_, ip, bytes) = open(&answer);
    let (na, _) = NeighborAdvertisement::check(&ip, bytes).unwrap();
    assert_eq!((na.target(), na.flags()), (anycast, NaFlags::ROUTER | NaFlags::SOLICITED));
    router.send(&port, echo(&port, anycast));
    assert_eq!(replies(&port), 1);
    // No station can learn it for itself.
    hear(&mut router, SOLICITATION, &port, &ns(PEER_MAC, anycast, US));
    assert_eq!(router.error(SOLICITATION, "source_is_local"), 1);
    // RFC 4291 2.8: its solicited-node group is joined, and left with the address.
    assert!(router.get::<Nd>().groups(port.index()).contains(&solicited_node(anycast)));
    router.get::<Ip6>().del_all(port.index()).unwrap();
    assert!(router.get::<Nd>().groups(port.index()).is_empty());
}

#[test]
fn a_proxys_solicitations_get_through_forwarding() {
    let (mut router, port) = router();
    let (nd, far): (_, Ipv6Addr) = (router.get::<Nd>(), "2001:db8::77:8899".parse().unwrap());
    router.send(&port, ns(PEER_MAC, PEER, far));
    assert_eq!(router.error("ip6-lookup", "group"), 1);
    nd.set_proxy(port.index(), far, Proxy::Answer).unwrap();
    nd.set_proxy(port.index(), far, Proxy::Answer).unwrap();
    router.run();
    port.received();
    router.send(&port, ns(PEER_MAC, PEER, far));
    let answer = port.received_one();
    assert_eq!(NeighborAdvertisement::check(&open(&answer).1, open(&answer).2).unwrap().0.target(), far);
    assert!(router.get::<Ip6>().groups(port.index()).contains(&solicited_node(far)));
    nd.set_proxy(port.index(), far, Proxy::Ignore).unwrap();
    router.run();
    port.received();
    router.send(&port, ns(PEER_MAC, PEER, far));
    assert_eq!(router.error("ip6-lookup", "group"), 2);
    assert!(port.received().is_empty());
    // Groups of the router's own addresses stay.
    nd.set_proxy(port.index(), "2001:db8::9:0:0:1".parse().unwrap(), Proxy::Answer).unwrap();
    nd.set_proxy(port.index(), "2001:db8::9:0:0:1".parse().unwrap(), Proxy::Ignore).unwrap();
    router.send(&port, ns(PEER_MAC, PEER, US));
    assert!(port.received().iter().any(|f| f[54] == 136));
}

/// A frame with hop-by-hop options that alert routers, and a message of listener discovery.
fn listener(src: Ipv6Addr, dst: Ipv6Addr, hops: u8, message: &[u8]) -> Vec<u8> {
    let ethernet = EthernetHeader::new(PEER_MAC, MacAddress::for_ip6_multicast(dst), EtherType::IP6);
    let ip = Ip6Header::new(src, dst, IpProtocol(0), hops, (ROUTER_ALERT.len() + message.len()) as u16);
    [ethernet.as_bytes(), ip.as_bytes(), &ROUTER_ALERT, message].concat()
}

#[test]
fn reports_of_hosts_are_counted_and_no_more() {
    let (mut router, port) = router();
    let (host, group): (Ipv6Addr, Ipv6Addr) = ("fe80::9".parse().unwrap(), "ff05::1:3".parse().unwrap());
    let mut out = [0; 200];
    let report = ReportWriter::new(&mut out).record(RecordType::CHANGE_TO_EXCLUDE, group, &[]);
    let len = report.finish(host, ALL_MLD2_ROUTERS).unwrap();
    let whole = listener(host, ALL_MLD2_ROUTERS, 1, &out[..len]);
    router.send(&port, &whole);
    let mut done = [0; MldHeader::LEN];
    let routers = "ff02::2".parse().unwrap();
    MldHeader::new(Icmp6Type::MULTICAST_LISTENER_DONE, group).write(&mut done, host, routers).unwrap();
    router.send(&port, listener(host, routers, 1, &done));
    const NODE: &str = "icmp6-multicast-listener-report";
    assert_eq!(router.error(NODE, "listener reports received"), 2);
    assert_eq!(router.if_counter("/net/ip6-nd/rx/mld-report", port.index()), 2);
    assert_eq!(router.error("ip6-icmp-input", "unknown type"), 0);
    // From elsewhere, or from no link-local address.
    router.send(&port, listener(host, ALL_MLD2_ROUTERS, 2, &out[..len]));
    let far: Ipv6Addr = "2001:db8::9".parse().unwrap();
    let len = ReportWriter::new(&mut out).join(group).finish(far, ALL_MLD2_ROUTERS).unwrap();
    router.send(&port, listener(far, ALL_MLD2_ROUTERS, 1, &out[..len]));
    assert_eq!(router.error(NODE, "listener reports that break a rule of RFC 3810 5.2"), 2);
    for len in 14..whole.len() {
        router.send(&port, &whole[..len]);
    }
    assert_eq!(router.error(NODE, "listener reports received"), 2);
    assert!(port.received().is_empty());
}

#[test]
fn what_comes_from_off_the_link_is_dropped_and_counted() {
    // RFC 4861 6.1.2.
    let (mut router, port) = router();
    let mut out = vec![0; 16];
    out[0] = 134;
    let ra = |src: Ipv6Addr, hops: u8| {
        let mut bytes = out.clone();
        icmp6::make(src, ALL_NODES, &mut bytes);
        frame((PEER_MAC, MacAddress::for_ip6_multicast(ALL_NODES)), (src, ALL_NODES), hops, &bytes)
    };
    let near: Ipv6Addr = "fe80::9".parse().unwrap();
    router.send(&port, ra(near, HOP_LIMIT - 1));
    assert_eq!(router.error("ip6-icmp-input", "invalid hop limit for type"), 1);
    router.send(&port, ra(PEER, HOP_LIMIT));
    assert_eq!(router.error("icmp6-router-advertisement", "router_advertisement_source_not_link_local"), 1);
    router.send(&port, ra(near, HOP_LIMIT));
    assert_eq!(router.error("icmp6-router-advertisement", "router advertisements received"), 1);
    assert_eq!(Icmp6Header::LEN, 4);
}

#[test]
fn an_unnumbered_interface_speaks_from_borrowed_addresses() {
    let (mut router, port) = quiet();
    let loopback = router.interfaces().create_loopback(None, None).unwrap();
    router.interfaces().set_admin(loopback, true).unwrap();
    let ip6 = router.get::<Ip6>();
    ip6.add_address(loopback, "2001:db8::1/64".parse().unwrap()).unwrap();
    ip6.set_unnumbered(port.index(), Some(loopback)).unwrap();
    router.advance(Duration::from_secs(3));
    port.received();
    // A station of the lender's network is answered, learnt and reached.
    router.send(&port, ns(PEER_MAC, PEER, US));
    let answer = port.received_one();
    let (na, _) = NeighborAdvertisement::check(&open(&answer).1, open(&answer).2).unwrap();
    assert_eq!((na.target(), knows(&router, &port, PEER)), (US, Some(PEER_MAC)));
    forward(&mut router, &port, PEER);
    assert_eq!(port.received_one()[..6], PEER_MAC.0);
    router.send(&port, echo(&port, US));
    assert_eq!(replies(&port), 1);
    assert_eq!(ip6.source_for(PEER, FibIndex::DEFAULT), Some(US));
    // A host behind it is asked for from the interface's own link-local address.
    let host: Ipv6Addr = "2001:db8::55".parse().unwrap();
    let path = shoal_fib::Path::next_hop(host, port.index());
    let fib = router.get::<shoal_fib::Fib>();
    fib.add(FibIndex::DEFAULT, shoal_wire::Ip6Prefix::host(host), shoal_fib::Source::Cli, &[path]).unwrap();
    forward(&mut router, &port, host);
    assert_eq!(Some(open(&port.received_one()).1.src()), ip6.link_local(port.index()));
    // What is borrowed follows the lender.
    ip6.del_all(loopback).unwrap();
    router.run();
    assert_eq!(knows(&router, &port, PEER), None);
    assert!(!ip6.groups(port.index()).contains(&solicited_node(US)));
    ip6.add_address(loopback, "2001:db8:2::1/64".parse().unwrap()).unwrap();
    let (other, peer): (Ipv6Addr, Ipv6Addr) =
        ("2001:db8:2::1".parse().unwrap(), "2001:db8:2::2".parse().unwrap());
    port.received();
    router.send(&port, ns(PEER_MAC, peer, other));
    assert!(port.received().iter().any(|f| f[54] == 136));
    ip6.add_address(port.index(), "2001:db8:3::1/64".parse().unwrap()).unwrap();
    ip6.del_address(port.index(), "2001:db8:3::1/64".parse().unwrap()).unwrap();
    router.interfaces().delete(loopback).unwrap();
    router.run();
    assert_eq!(ip6.on(port.index()).borrows, None);
    assert_eq!(ip6.link_local(port.index()), None, "nothing else keeps IPv6 there");
    router.advance(Duration::from_secs(5));
}
