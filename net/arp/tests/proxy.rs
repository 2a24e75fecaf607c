//! Answers for others: proxy ARP, and interfaces that borrow the addresses of another.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)] // helpers of tests

use std::net::Ipv4Addr;
use std::time::Duration;

use shoal_arp::{Neighbours, ProxyArp, ProxyError};
use shoal_fib::{Family, Fib, FibIndex, Path, Source, Via};
use shoal_ip4::{AddressError, Ip4};
use shoal_testkit::{PEER, PEER_MAC, Port, Router, STACK};
use shoal_wire::{ArpHeader, ArpOpcode, EtherType, EthernetHeader, FromBytes, Ip4Prefix, MacAddress, Packet};

fn ip4(text: &str) -> Ipv4Addr {
    text.parse().unwrap()
}

/// A router with 10.0.0.1/24 on pg0 and 10.0.1.1/24 on pg1.
fn router() -> (Router, Port, Port) {
    let mut router = Router::new(STACK);
    let (left, right) = (router.pg(0), router.pg(1));
    router.set_address(&left, "10.0.0.1/24");
    router.set_address(&right, "10.0.1.1/24");
    router.run();
    (router, left, right)
}

fn request(sender: Ipv4Addr, target: Ipv4Addr) -> Vec<u8> {
    Packet::arp_request(PEER_MAC, sender, target).pad_to(60).build()
}

fn arp_of(frame: &[u8]) -> (EthernetHeader, ArpHeader) {
    let (ethernet, rest) = EthernetHeader::read_from_prefix(frame).unwrap();
    (ethernet, ArpHeader::read_from_prefix(rest).unwrap().0)
}

#[test]
fn answers_for_a_range_where_that_is_switched_on() {
    let (mut router, left, right) = router();
    let proxy = router.get::<ProxyArp>();
    proxy.add(0, ip4("10.0.1.10"), ip4("10.0.1.20")).unwrap();
    router.send(&left, request(PEER, ip4("10.0.1.15")));
    assert!(left.received().is_empty(), "it is not switched on");
    proxy.enable(left.index(), true).unwrap();
    for (target, answered) in [("10.0.1.9", 0), ("10.0.1.10", 1), ("10.0.1.20", 1), ("10.0.1.21", 0)] {
        router.send(&left, request(PEER, ip4(target)));
        let answers = left.received();
        assert_eq!(answers.len(), answered, "{target}");
        if let Some(answer) = answers.first() {
            let (ethernet, arp) = arp_of(answer);
            assert_eq!((ethernet.src(), ethernet.dst()), (left.mac(), PEER_MAC));
            assert_eq!(arp, ArpHeader::new(ArpOpcode::REPLY, left.mac(), ip4(target), PEER_MAC, PEER));
        }
    }
    assert_eq!(router.error("arp-proxy", "proxy_arp_replies_sent"), 2);
    assert_eq!(router.error("arp-proxy", "l3_dst_address_not_local"), 2);
    // A station that asks sends next, so it is known from then on.
    assert!(router.get::<Neighbours>().get((left.index(), PEER)).is_some());
    // The other interface does not answer, nor does this one any more when it is switched off.
    router.send(&right, Packet::arp_request(PEER_MAC, ip4("10.0.1.2"), ip4("10.0.0.77")).build());
    proxy.enable(left.index(), false).unwrap();
    router.send(&left, request(PEER, ip4("10.0.1.15")));
    assert!(left.received().is_empty() && right.received().is_empty());
}

#[test]
fn a_station_on_the_asking_link_answers_for_itself() {
    // RFC 1027, 2.3.
    let (mut router, left, _) = router();
    let proxy = router.get::<ProxyArp>();
    proxy.add(0, ip4("10.0.0.0"), ip4("10.0.255.255")).unwrap();
    proxy.enable(left.index(), true).unwrap();
    router.send(&left, request(PEER, ip4("10.0.0.3")));
    assert!(left.received().is_empty());
    // Nor does the router take part in others' claims: RFC 5227, 2.1.1.
    router.send(&left, request(Ipv4Addr::UNSPECIFIED, ip4("10.0.1.15")));
    router.send(&left, Packet::arp_gratuitous(PEER_MAC, ip4("10.0.1.15")).build());
    router.send(&left, Packet::arp_reply(PEER_MAC, PEER, left.mac(), ip4("10.0.1.15")).build());
    router.send(&left, request(ip4("10.9.9.9"), ip4("10.0.1.15")));
    assert!(left.received().is_empty());
    router.send(&left, request(PEER, ip4("10.0.1.15")));
    assert_eq!(left.received().len(), 1);
}

#[test]
fn ranges_belong_to_a_table_and_may_lie_within_each_other() {
    let (mut router, left, _) = router();
    let (proxy, fib) = (router.get::<ProxyArp>(), router.get::<Fib>());
    fib.add_table(Family::Ip4, 7, None).unwrap();
    proxy.add(7, ip4("10.0.1.10"), ip4("10.0.1.20")).unwrap();
    proxy.enable(left.index(), true).unwrap();
    router.send(&left, request(PEER, ip4("10.0.1.15")));
    assert!(left.received().is_empty(), "the interface is not in table 7");
    proxy.add(0, ip4("10.0.1.1"), ip4("10.0.1.200")).unwrap();
    proxy.add(0, ip4("10.0.1.10"), ip4("10.0.1.11")).unwrap();
    proxy.add(0, ip4("10.0.1.10"), ip4("10.0.1.11")).unwrap();
    router.send(&left, request(PEER, ip4("10.0.1.15")));
    assert_eq!(left.received().len(), 1);
    assert_eq!(proxy.ranges().len(), 3);
    proxy.remove(0, ip4("10.0.1.1"), ip4("10.0.1.200")).unwrap();
    router.send(&left, request(PEER, ip4("10.0.1.15")));
    assert!(left.received().is_empty());
    router.interfaces().delete(left.index()).unwrap();
    assert!(proxy.enabled().is_empty());
}

#[test]
fn operations_name_what_is_wrong() {
    let (router, ..) = router();
    let proxy = router.get::<ProxyArp>();
    proxy.add(0, ip4("10.0.1.10"), ip4("10.0.1.20")).unwrap();
    let text = |e: Result<(), ProxyError>| e.unwrap_err().to_string();
    assert_eq!(
        text(proxy.remove(0, ip4("10.0.1.11"), ip4("10.0.1.20"))),
        "10.0.1.11 to 10.0.1.20 is not answered for in table 0, nearest 10.0.1.10 to 10.0.1.20"
    );
    assert!(text(proxy.add(0, ip4("10.0.1.2"), ip4("10.0.1.1"))).contains("is empty"));
    assert!(text(proxy.add(0, ip4("10.0.1.2"), ip4("224.0.0.1"))).contains("of no host"));
    assert!(text(proxy.add(0, ip4("0.0.0.1"), ip4("10.0.0.1"))).contains("of no host"));
    assert!(text(proxy.add(9, ip4("10.0.1.2"), ip4("10.0.1.3"))).contains('9'));
    for n in 0..4095u32 {
        proxy.add(0, Ipv4Addr::from_bits(0x0b00_0000 + n), Ipv4Addr::from_bits(0x0b00_0000 + n)).unwrap();
    }
    assert_eq!(proxy.add(0, ip4("12.0.0.1"), ip4("12.0.0.1")), Err(ProxyError::Full(4096)));
}

#[test]
fn a_host_with_this_routers_address_is_answered_for_others_and_not_learnt() {
    // The kernel's image of an interface has the interface's address.
    let (mut router, left, _) = unnumbered();
    let proxy = router.get::<ProxyArp>();
    proxy.add(0, ip4("10.9.0.0"), ip4("10.9.0.255")).unwrap();
    router.send(&left, request(LENT, ip4("10.9.0.77")));
    assert!(left.received().is_empty(), "it is not switched on");
    proxy.enable(left.index(), true).unwrap();
    router.send(&left, request(LENT, ip4("10.9.0.77")));
    let (_, arp) = arp_of(&left.received_one());
    assert_eq!((arp.sender_ip4(), arp.sender_mac()), (ip4("10.9.0.77"), left.mac()));
    assert!(router.get::<Neighbours>().list().is_empty());
}

#[test]
fn what_is_cut_or_lies_is_not_answered() {
    let (mut router, left, _) = router();
    let proxy = router.get::<ProxyArp>();
    proxy.add(0, ip4("10.0.1.10"), ip4("10.0.1.20")).unwrap();
    proxy.enable(left.index(), true).unwrap();
    let whole = request(PEER, ip4("10.0.1.15"));
    for len in 14..42 {
        router.send(&left, &whole[..len]);
    }
    for len in 0..28 {
        router.inject("arp-proxy", left.index(), &whole[14..14 + len]);
    }
    router.run();
    assert_eq!(router.error("arp-proxy", "too_short"), 28);
    assert!(left.received().is_empty());
}

/// A router whose pg0 borrows the address of loop0, 10.9.0.1/24, with a route to a host behind pg0.
fn unnumbered() -> (Router, Port, Port) {
    let mut router = Router::new(STACK);
    let (left, right) = (router.pg(0), router.pg(1));
    router.set_address(&right, "10.0.1.1/24");
    let loopback = router.interfaces().create_loopback(None, None).unwrap();
    router.interfaces().set_admin(loopback, true).unwrap();
    let ip4 = router.get::<Ip4>();
    ip4.add_address(loopback, "10.9.0.1/24".parse().unwrap()).unwrap();
    ip4.set_unnumbered(left.index(), Some(loopback)).unwrap();
    let attached = Via::Attached { interface: left.index(), source: Ipv4Addr::UNSPECIFIED.into() };
    let host: Ip4Prefix = "10.9.0.5/32".parse().unwrap();
    router.get::<Fib>().add(FibIndex(0), host, Source::Cli, &[Path::from(attached)]).unwrap();
    router.run();
    (router, left, right)
}

const HOST: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 5);
const LENT: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 1);

#[test]
fn an_unnumbered_interface_speaks_from_a_borrowed_address() {
    let (mut router, left, right) = unnumbered();
    let packet = Packet::ethernet([2, 0xbb, 0, 0, 0, 1], right.mac()).ip4([10, 0, 1, 9], HOST).udp(1, 7);
    router.send(&right, packet.build());
    let (_, arp) = arp_of(&left.received_one());
    assert_eq!((arp.sender_ip4(), arp.target_ip4(), arp.sender_mac()), (LENT, HOST, left.mac()));
    router.send(&left, Packet::arp_reply(PEER_MAC, HOST, left.mac(), LENT).build());
    assert_eq!(left.received_one()[..6], PEER_MAC.0);
    assert_eq!(router.get::<Ip4>().source_for(HOST, FibIndex(0)), Some(LENT));
}

#[test]
fn stations_of_the_lenders_network_are_answered_and_learnt_there() {
    let (mut router, left, right) = unnumbered();
    let (other, stranger) = (Ipv4Addr::new(10, 9, 0, 6), Ipv4Addr::new(10, 8, 0, 6));
    router.send(&left, request(other, LENT));
    assert_eq!(arp_of(&left.received_one()).1.sender_ip4(), LENT);
    // It is reached without a route, as in VPP: what ARP knows is a host route.
    let packet = Packet::ethernet([2, 0xbb, 0, 0, 0, 1], right.mac()).ip4([10, 0, 1, 9], other).udp(1, 7);
    router.send(&right, packet.build());
    let frames: Vec<_> =
        left.received().into_iter().filter(|f| f[12..14] == EtherType::IP4.0.to_be_bytes()).collect();
    assert_eq!((frames.len(), &frames[0][..6]), (1, &PEER_MAC.0[..]));
    // At the other end of such a link may be a station of no network: it is answered and not entered.
    router.send(&left, request(stranger, LENT));
    assert_eq!(arp_of(&left.received_one()).1.target_ip4(), stranger);
    assert!(router.get::<Neighbours>().get((left.index(), stranger)).is_none());
    router.send(&left, request(Ipv4Addr::new(10, 0, 1, 6), LENT));
    assert!(left.received().is_empty(), "a station of another link");
    assert_eq!(router.error("arp-reply", "IP4 source address not local to subnet"), 1);
    // And what it sends is forwarded: IPv4 runs there.
    let out = Packet::ethernet(PEER_MAC, left.mac()).ip4(other, [10, 0, 1, 9]).udp(1, 7);
    router.set_neighbour(&right, Ipv4Addr::new(10, 0, 1, 9), MacAddress([2, 0xbb, 0, 0, 0, 1]));
    router.send(&left, out.build());
    assert_eq!(right.received().len(), 1);
}

#[test]
fn what_is_borrowed_follows_the_lender() {
    let (mut router, left, _) = unnumbered();
    let ip4 = router.get::<Ip4>();
    let loopback = router.interfaces().by_name("loop0").unwrap();
    router.send(&left, request(Ipv4Addr::new(10, 9, 0, 6), LENT));
    assert_eq!(router.get::<Neighbours>().list().len(), 1);
    ip4.del_all(loopback).unwrap();
    ip4.add_address(loopback, "10.7.0.1/24".parse().unwrap()).unwrap();
    router.run();
    assert!(router.get::<Neighbours>().list().is_empty(), "they are on no network of ours");
    left.received();
    router.send(&left, request(Ipv4Addr::new(10, 7, 0, 6), Ipv4Addr::new(10, 7, 0, 1)));
    assert_eq!(arp_of(&left.received_one()).1.sender_ip4(), Ipv4Addr::new(10, 7, 0, 1));
    router.interfaces().delete(loopback).unwrap();
    router.run();
    assert_eq!((ip4.lender(left.index()), ip4.primary(left.index())), (None, None));
    router.send(&left, request(Ipv4Addr::new(10, 7, 0, 6), Ipv4Addr::new(10, 7, 0, 1)));
    assert_eq!(router.error("arp-disabled", "disabled"), 1);
}

#[test]
fn wrong_loans_are_refused_by_name() {
    let (router, left, right) = unnumbered();
    let ip4 = router.get::<Ip4>();
    let loopback = router.interfaces().by_name("loop0").unwrap();
    let text = |e: Result<(), AddressError>| e.unwrap_err().to_string();
    ip4.del_all(right.index()).unwrap();
    assert!(
        text(ip4.set_unnumbered(right.index(), Some(left.index())))
            .ends_with("pg0 has none of its own, use loop0")
    );
    assert!(
        text(ip4.set_unnumbered(right.index(), Some(right.index()))).ends_with("it cannot lend to itself")
    );
    assert!(text(ip4.set_unnumbered(loopback, Some(right.index()))).contains("pg0 borrows from loop0"));
    ip4.set_unnumbered(right.index(), None).unwrap();
    router.get::<Fib>().add_table(Family::Ip4, 7, None).unwrap();
    ip4.set_table(right.index(), 7).unwrap();
    assert!(
        text(ip4.set_unnumbered(right.index(), Some(loopback)))
            .ends_with("pg1 uses table 7 and loop0 table 0")
    );
    ip4.set_unnumbered(left.index(), None).unwrap();
    assert!(!router.interfaces().data(left.index()).unwrap().flags().has(shoal_interface::IfFlags::IP4));
}

#[test]
fn an_interface_may_have_addresses_and_borrow_others() {
    let (mut router, _, right) = unnumbered();
    let ip4 = router.get::<Ip4>();
    let loopback = router.interfaces().by_name("loop0").unwrap();
    let lent = ip4.primary(loopback);
    ip4.set_unnumbered(right.index(), Some(loopback)).unwrap();
    assert_eq!(ip4.primary(right.index()), lent, "it speaks from what it borrows");
    ip4.add_address(right.index(), "10.8.0.1/24".parse().unwrap()).unwrap();
    assert!(ip4.is_own([10, 8, 0, 1].into(), FibIndex::DEFAULT));
    ip4.set_unnumbered(right.index(), None).unwrap();
    assert_eq!(ip4.primary(right.index()), Some([10, 0, 1, 1].into()));
    router.run();
}

#[test]
fn of_a_network_of_two_the_other_end_is_asked_for_at_once() {
    let (mut router, left, _) = router();
    let ip4 = router.get::<Ip4>();
    for (ours, other) in [("10.7.0.1/31", [10, 7, 0, 0]), ("10.7.0.2/31", [10, 7, 0, 3])] {
        ip4.add_address(left.index(), ours.parse().unwrap()).unwrap();
        router.run();
        assert_eq!(left.received_one()[38..42], other, "{ours}");
        ip4.del_address(left.index(), ours.parse().unwrap()).unwrap();
    }
    // Or as soon as the interface is up.
    router.interfaces().set_admin(left.index(), false).unwrap();
    ip4.add_address(left.index(), "10.7.0.1/31".parse().unwrap()).unwrap();
    router.run();
    assert!(left.received().is_empty());
    router.interfaces().set_admin(left.index(), true).unwrap();
    router.run();
    assert_eq!(left.received().iter().filter(|f| f[38..42] == [10, 7, 0, 0]).count(), 1);
}

#[test]
fn a_flood_of_requests_for_others_is_bounded() {
    let (mut router, left, _) = router();
    let proxy = router.get::<ProxyArp>();
    proxy.add(0, ip4("10.0.1.0"), ip4("10.0.1.255")).unwrap();
    proxy.enable(left.index(), true).unwrap();
    let all: Vec<_> = (0..2000).map(|n| request(PEER, Ipv4Addr::new(10, 0, 1, n as u8))).collect();
    router.send_all(&left, &all);
    assert!(left.received().len() > 1900, "each is answered");
    assert_eq!(router.get::<Neighbours>().list().len(), 1);
    router.advance(Duration::from_secs(1));
    assert_eq!(router.buffers_in_use(), 0);
}
