//! Redirects: which senders get one, what the message says, and which get none. RFC 4861 4.5, 8.2.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)] // helpers of tests

use crate::common;

use std::net::Ipv6Addr;
use std::time::Duration;

use common::*;
use shoal_fib::{Fib, FibIndex, Path, Source};
use shoal_ip6::Ip6;
use shoal_ip6_nd::Neighbours;
use shoal_neighbor::table::{FibEntry, Origin};
use shoal_testkit::{PEER_MAC, Port, Router};
use shoal_wire::nd::{HOP_LIMIT, Redirect};
use shoal_wire::nd_options::NdOption;
use shoal_wire::{EtherType, EthernetHeader, IntoBytes, Ip6Header, IpProtocol, MacAddress};

const NODE: &str = "ip6-redirect";
const FAR: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xffff, 0, 0, 0, 0, 1);
const OTHER: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 3);
const GATEWAY: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 9);
const NEAR: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 2);

fn mac(n: u8) -> MacAddress {
    MacAddress([2, 0xaa, 0, 0, 0, n])
}

/// A router whose link has two hosts and a router that leads far away; `via` is how it is named.
fn link(via: Ipv6Addr) -> (Router, Port) {
    let (router, port) = router();
    let neighbours = router.get::<Neighbours>();
    for (address, n) in [(PEER, 2), (NEAR, 2), (OTHER, 3), (GATEWAY, 9), (via, 9)] {
        neighbours.set((port.index(), address), mac(n), Origin::Static, FibEntry::Wanted).unwrap();
    }
    let path = Path::next_hop(via, port.index());
    let prefix: shoal_wire::IpPrefix = "2001:db8:ffff::/48".parse().unwrap();
    router.get::<Fib>().add(FibIndex(0), prefix, Source::Cli, &[path]).unwrap();
    (router, port)
}

/// A packet to the router's station.
fn packet(port: &Port, src: Ipv6Addr, dst: Ipv6Addr, len: usize) -> Vec<u8> {
    let ethernet = EthernetHeader::new(PEER_MAC, port.mac(), EtherType::IP6);
    let ip = Ip6Header::new(src, dst, IpProtocol::UDP, 64, len as u16);
    [ethernet.as_bytes(), ip.as_bytes(), &vec![7; len]].concat()
}

/// What was sent: redirects, and packets that were forwarded.
fn sent(port: &Port) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
    port.received().into_iter().partition(|f| f[20] == 58 && f[54] == 137)
}

#[test]
fn no_redirect_names_its_receiver_or_goes_to_a_link_that_a_program_feeds() {
    let (mut router, port) = link(GATEWAY);
    router.send(&port, packet(&port, PEER, PEER, 100));
    let (redirects, forwarded) = sent(&port);
    assert_eq!((redirects.len(), forwarded.len()), (0, 1));
    router.interfaces().set_fed(port.index());
    router.send(&port, packet(&port, PEER, FAR, 100));
    let (redirects, forwarded) = sent(&port);
    assert_eq!((redirects.len(), forwarded.len()), (0, 1));
}

#[test]
fn a_host_is_told_of_the_router_that_is_nearer_and_its_packet_forwarded() {
    let (mut router, port) = link(GATEWAY);
    let original = packet(&port, PEER, FAR, 100);
    router.send(&port, &original);
    let (redirects, forwarded) = sent(&port);
    assert_eq!((redirects.len(), forwarded.len()), (1, 1));
    assert_eq!(forwarded[0][..6], mac(9).0);
    let (ethernet, ip, bytes) = open(&redirects[0]);
    let ours = router.get::<Ip6>().link_local(port.index()).unwrap();
    assert_eq!((ip.src(), ip.dst(), ip.hop_limit(), ethernet.dst()), (ours, PEER, HOP_LIMIT, mac(2)));
    let (message, options) = Redirect::check(&ip, bytes).unwrap();
    assert_eq!((message.target(), message.destination()), (GATEWAY, FAR));
    assert_eq!(options.target_link_layer(), Some(mac(9)));
    let quoted = |o| if let NdOption::RedirectedHeader(quote) = o { Some(quote) } else { None };
    let quote = options.clone().find_map(quoted);
    // 140 bytes, rounded down to 8; as the packet came.
    assert_eq!(quote, Some(&original[14..14 + 136]));
    assert_eq!(router.error(NODE, "redirects sent"), 1);
    let counts = router.get::<shoal_icmp::Icmp6>().counts();
    assert!(counts.iter().any(|c| (c.kind.0, c.tx) == (137, 1)));
}

#[test]
fn a_destination_on_the_same_link_is_its_own_target() {
    let (mut router, port) = link(GATEWAY);
    // From its link-local address, too: the message finds back on the link it came from.
    for from in [PEER, NEAR] {
        router.send(&port, packet(&port, from, OTHER, 1400));
        let (redirects, forwarded) = sent(&port);
        assert_eq!((redirects.len(), forwarded.len()), (1, 1), "{from}");
        let (ethernet, ip, bytes) = open(&redirects[0]);
        assert_eq!((ip.dst(), ethernet.dst()), (from, mac(2)));
        let (message, options) = Redirect::check(&ip, bytes).unwrap();
        assert_eq!((message.target(), message.destination()), (OTHER, OTHER));
        assert_eq!(options.target_link_layer(), Some(mac(3)));
        assert!(bytes.len() + 40 <= 1280, "fits the smallest MTU");
    }
}

#[test]
fn no_redirect_is_sent_that_a_host_would_not_believe_or_cannot_use() {
    let (mut router, port) = link("2001:db8::9".parse().unwrap());
    // RFC 4861 8.1: a router is believed by its link-local address only.
    router.send(&port, packet(&port, PEER, FAR, 20));
    assert_eq!(router.error(NODE, "no_link_local"), 1);
    // From another network, and to a group of stations.
    router.send(&port, packet(&port, "2001:db8:5::5".parse().unwrap(), OTHER, 20));
    let mut many = packet(&port, PEER, OTHER, 20);
    many[..6].copy_from_slice(&[0x33, 0x33, 0, 0, 0, 1]);
    router.send(&port, many);
    let (redirects, forwarded) = sent(&port);
    assert_eq!((redirects.len(), forwarded.len()), (0, 2));
}

#[test]
fn a_packet_that_leaves_by_another_interface_is_no_reason() {
    let (mut router, port) = link(GATEWAY);
    forward(&mut router, &port, OTHER);
    let (redirects, forwarded) = sent(&port);
    assert_eq!((redirects.len(), forwarded.len()), (0, 1));
}

#[test]
fn a_flood_is_forwarded_whole_and_told_of_within_the_limit() {
    let (mut router, port) = link(GATEWAY);
    router.send_all(&port, (0..500).map(|_| packet(&port, PEER, FAR, 20)));
    let (redirects, forwarded) = sent(&port);
    assert_eq!((redirects.len(), forwarded.len()), (100, 500));
    assert_eq!(router.error(NODE, "rate_limited"), 400);
    router.advance(Duration::from_millis(500));
    router.send_all(&port, (0..500).map(|_| packet(&port, PEER, FAR, 20)));
    assert_eq!(sent(&port).0.len(), 50);
}

#[test]
fn headers_that_are_cut_do_no_harm() {
    let (mut router, port) = link(GATEWAY);
    let good = packet(&port, PEER, FAR, 60);
    for len in 0..good.len() {
        put(&mut router, NODE, port.index(), &good[..len], 14);
        router.run();
    }
    port.received();
}
