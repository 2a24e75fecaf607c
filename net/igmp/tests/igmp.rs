//! A router that listens to groups: what it says to the routers of its link, and when.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)] // helpers of tests

use std::net::Ipv4Addr;
use std::time::Duration;

use shoal_igmp::{Igmp, IgmpError, Listen};
use shoal_module::Module;
use shoal_testkit::{PacketBuilder, Port, Rng, Router};
use shoal_wire::{IpProtocol, MacAddress, icmp4};

const MODULES: &[&Module] = &[
    &shoal_interface::MODULE,
    &shoal_adj::MODULE,
    &shoal_ethernet::MODULE,
    &shoal_fib::MODULE,
    &shoal_ip4::MODULE,
    &shoal_ip6::MODULE,
    &shoal_neighbor::MODULE,
    &shoal_arp::MODULE,
    &shoal_icmp::MODULE,
    &shoal_ip6_nd::MODULE,
    &shoal_mfib::MODULE,
    &shoal_igmp::MODULE,
];

const GROUP: Ipv4Addr = Ipv4Addr::new(232, 1, 1, 1);
const SOURCE: Ipv4Addr = Ipv4Addr::new(10, 9, 9, 9);
const ANY: Ipv4Addr = Ipv4Addr::UNSPECIFIED;
const QUERIER: [u8; 4] = [10, 0, 0, 2];
const ALERT: [u8; 4] = [148, 4, 0, 0];

fn router() -> (Router, Port) {
    let mut router = Router::new(MODULES);
    let port = router.pg(0);
    router.set_address(&port, "10.0.0.1/24");
    router.get::<Igmp>().enable(port.index()).unwrap();
    settle(&mut router, &port);
    (router, port)
}

fn settle(router: &mut Router, port: &Port) {
    router.advance(Duration::from_secs(20));
    port.received();
}

fn listen(router: &Router, port: &Port, source: Ipv4Addr, on: Listen) -> Result<(), IgmpError> {
    router.get::<Igmp>().listen(port.index(), source, GROUP, on)
}

/// The IGMP message in a frame, and where it was sent, after checking what is in front of it.
fn message(frame: &[u8]) -> (Ipv4Addr, Vec<u8>) {
    let dst = Ipv4Addr::new(frame[30], frame[31], frame[32], frame[33]);
    assert_eq!(frame[..6], MacAddress::for_ip4_multicast(dst).0);
    assert_eq!((frame[14], frame[22], frame[23]), (0x46, 1, 2), "IGMP, TTL 1, one option");
    assert_eq!(frame[26..30], [10, 0, 0, 1]);
    assert_eq!(frame[34..38], ALERT);
    assert!(icmp4::verify(&frame[38..]));
    (dst, frame[38..].to_vec())
}

fn said(port: &Port) -> Vec<(Ipv4Addr, Vec<u8>)> {
    port.received().iter().map(|frame| message(frame)).collect()
}

/// The reports within so many seconds.
fn said_within(seconds: u64, router: &mut Router, port: &Port) -> Vec<(Ipv4Addr, Vec<u8>)> {
    router.advance(Duration::from_secs(seconds));
    said(port)
}

fn query(dst: Ipv4Addr, body: &[u8]) -> Vec<u8> {
    let mut body = body.to_vec();
    icmp4::make(&mut body);
    PacketBuilder::ethernet([2, 0xaa, 0, 0, 0, 2], MacAddress::for_ip4_multicast(dst))
        .ip4(QUERIER, dst)
        .protocol(IpProtocol::IGMP)
        .options(&ALERT)
        .ttl(1)
        .payload(&body)
        .build()
}

const ALL: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 1);
const V3_ROUTERS: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 22);
/// General queries with a second to answer.
const V3: [u8; 12] = [0x11, 10, 0, 0, 0, 0, 0, 0, 2, 125, 0, 0];
const V2: [u8; 8] = [0x11, 10, 0, 0, 0, 0, 0, 0];
const V1: [u8; 8] = [0x11, 0, 0, 0, 0, 0, 0, 0];

#[test]
fn a_change_is_said_twice() {
    let (mut router, port) = router();
    listen(&router, &port, SOURCE, Listen::Yes).unwrap();
    let allow = [0, 0, 0, 1, 5, 0, 0, 1, 232, 1, 1, 1, 10, 9, 9, 9];
    let all = said_within(5, &mut router, &port);
    assert_eq!(all.len(), 2);
    assert!(all.iter().all(|(dst, m)| *dst == V3_ROUTERS && m[0] == 0x22 && m[4..] == allow), "{all:x?}");
    listen(&router, &port, ANY, Listen::Yes).unwrap();
    let exclude = [0, 0, 0, 1, 4, 0, 0, 0, 232, 1, 1, 1];
    let all = said_within(5, &mut router, &port);
    assert_eq!(all.len(), 2);
    assert!(all.iter().all(|(_, m)| m[4..] == exclude), "{all:x?}");
    listen(&router, &port, ANY, Listen::No).unwrap();
    let include = [0, 0, 0, 1, 3, 0, 0, 1, 232, 1, 1, 1, 10, 9, 9, 9];
    assert!(said_within(5, &mut router, &port).iter().all(|(_, m)| m[4..] == include));
    listen(&router, &port, SOURCE, Listen::No).unwrap();
    let block = [0, 0, 0, 1, 6, 0, 0, 1, 232, 1, 1, 1, 10, 9, 9, 9];
    let all = said_within(5, &mut router, &port);
    assert_eq!(all.len(), 2);
    assert!(all.iter().all(|(_, m)| m[4..] == block), "{all:x?}");
    router.send(&port, query(ALL, &V3));
    assert!(said_within(5, &mut router, &port).is_empty());
}

#[test]
fn queries_are_answered_in_time_with_the_state() {
    let (mut router, port) = router();
    listen(&router, &port, SOURCE, Listen::Yes).unwrap();
    settle(&mut router, &port);
    router.send(&port, query(ALL, &V3));
    let all = said_within(1, &mut router, &port);
    assert_eq!(all.len(), 1);
    assert_eq!(all[0].1[4..], [0, 0, 0, 1, 1, 0, 0, 1, 232, 1, 1, 1, 10, 9, 9, 9]);
    // About the group, to the group: with a source that is listened to, and another one.
    let about = |source: u8| [0x11, 10, 0, 0, 232, 1, 1, 1, 2, 125, 0, 1, 10, 9, 9, source];
    router.send(&port, query(GROUP, &about(9)));
    assert_eq!(said_within(1, &mut router, &port).len(), 1);
    router.send(&port, query(GROUP, &about(8)));
    assert!(said_within(1, &mut router, &port).is_empty());
    // Of another group.
    router.send(&port, query(Ipv4Addr::new(232, 1, 1, 2), &[0x11, 10, 0, 0, 232, 1, 1, 2, 2, 125, 0, 0]));
    assert!(said_within(1, &mut router, &port).is_empty());
}

#[test]
fn routers_of_old_are_spoken_to_in_their_version() {
    let (mut router, port) = router();
    listen(&router, &port, ANY, Listen::Yes).unwrap();
    settle(&mut router, &port);
    router.send(&port, query(ALL, &V2));
    let all = said_within(3, &mut router, &port);
    assert_eq!(all.len(), 1);
    assert_eq!((all[0].0, all[0].1[0], &all[0].1[4..]), (GROUP, 0x16, &[232, 1, 1, 1][..]));
    listen(&router, &port, ANY, Listen::No).unwrap();
    let all = said_within(3, &mut router, &port);
    assert!(!all.is_empty());
    assert!(all.iter().all(|(dst, m)| *dst == Ipv4Addr::new(224, 0, 0, 2) && m[0] == 0x17));
    listen(&router, &port, ANY, Listen::Yes).unwrap();
    settle(&mut router, &port);
    router.send(&port, query(ALL, &V1));
    assert!(said_within(20, &mut router, &port).iter().all(|(dst, m)| *dst == GROUP && m[0] == 0x12));
    // They have gone.
    router.advance(Duration::from_mins(5));
    router.send(&port, query(ALL, &V3));
    assert_eq!(said_within(3, &mut router, &port)[0].1[0], 0x22);
}

#[test]
fn another_listeners_report_is_enough_for_a_router_of_version_2() {
    let (mut router, port) = router();
    listen(&router, &port, ANY, Listen::Yes).unwrap();
    settle(&mut router, &port);
    router.send(&port, query(GROUP, &[0x11, 100, 0, 0, 232, 1, 1, 1]));
    let mut report = vec![0x16, 0, 0, 0, 232, 1, 1, 1];
    icmp4::make(&mut report);
    router.send(&port, query(GROUP, &report));
    assert!(said_within(20, &mut router, &port).is_empty());
}

#[test]
fn what_lies_or_floods_is_counted_and_bounded() {
    let (mut router, port) = router();
    listen(&router, &port, ANY, Listen::Yes).unwrap();
    settle(&mut router, &port);
    let mut lying = query(ALL, &[0x11, 10, 0, 0, 0, 0, 0, 0, 2, 125, 0xff, 0xff]);
    router.send(&port, &lying);
    assert_eq!(router.error("igmp-input", "igmp message is cut short or lies about its length"), 1);
    lying[40] ^= 1;
    router.send(&port, &lying);
    assert_eq!(router.error("igmp-input", "bad igmp checksum"), 1);
    router.send(
        &port,
        PacketBuilder::ethernet([2, 0, 0, 0, 0, 9], MacAddress::for_ip4_multicast(ALL))
            .ip4(QUERIER, ALL)
            .protocol(IpProtocol::IGMP)
            .options(&ALERT)
            .ttl(2)
            .payload(&V2)
            .build(),
    );
    assert_eq!(router.error("igmp-input", "igmp message from beyond the link"), 1);
    let mut plain = V2.to_vec();
    icmp4::make(&mut plain);
    router.send(
        &port,
        PacketBuilder::ethernet([2, 0, 0, 0, 0, 9], MacAddress::for_ip4_multicast(ALL))
            .ip4(QUERIER, ALL)
            .protocol(IpProtocol::IGMP)
            .ttl(1)
            .payload(&plain)
            .build(),
    );
    assert_eq!(router.error("igmp-input", "igmp query without router alert"), 1);
    assert!(said_within(5, &mut router, &port).is_empty());
    // A flood is answered as one query is.
    router.send_all(&port, vec![query(ALL, &V3); 2000]);
    assert_eq!(said_within(5, &mut router, &port).len(), 1);
    let mut rng = Rng::new(11);
    for _ in 0..300 {
        let len = rng.below(40);
        let mut bytes = query(GROUP, &rng.bytes(len));
        bytes.truncate(14 + rng.below(bytes.len() - 13));
        router.send(&port, bytes);
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    let (router, port) = router();
    let igmp = router.get::<Igmp>();
    let try_to = |source: [u8; 4], group: [u8; 4], on| {
        igmp.listen(port.index(), source.into(), group.into(), on).unwrap_err().to_string()
    };
    assert!(try_to([0; 4], [10, 0, 0, 1], Listen::Yes).contains("not a group that can be listened to"));
    assert!(try_to([0; 4], [224, 0, 0, 5], Listen::Yes).contains("224.0.0.5 is not a group"));
    assert!(try_to([224, 0, 1, 1], [232, 0, 0, 5], Listen::Yes).contains("224.0.1.1 is not the address"));
    assert_eq!(try_to([0; 4], [232, 0, 0, 5], Listen::No), "pg0 does not listen to (0.0.0.0, 232.0.0.5)");
    assert_eq!(igmp.enable(port.index()).unwrap_err().to_string(), "IGMP is enabled on pg0 already");
    listen(&router, &port, SOURCE, Listen::Yes).unwrap();
    assert!(matches!(listen(&router, &port, SOURCE, Listen::Yes), Err(IgmpError::Listening(..))));
    igmp.disable(port.index()).unwrap();
    assert_eq!(igmp.disable(port.index()).unwrap_err().to_string(), "IGMP is not enabled on pg0");
    assert!(matches!(listen(&router, &port, SOURCE, Listen::Yes), Err(IgmpError::NotEnabled(_))));
    for entry in
        router.get::<shoal_mfib::Mfib>().entries(shoal_fib::Family::Ip4, shoal_fib::FibIndex::DEFAULT)
    {
        assert_eq!(entry.sources, [shoal_mfib::Source::Special]);
    }
}
