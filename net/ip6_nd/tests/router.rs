//! This router on a link: its addresses, what it advertises, what it listens to.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)] // helpers of tests

use crate::common;

use std::net::Ipv6Addr;
use std::time::Duration;

use common::*;
use shoal_ip6::Ip6;
use shoal_ip6_nd::{AddressState, Advertise, Nd, NdError, Prefix, RaConfig};
use shoal_testkit::{PEER_MAC, Port, Router};
use shoal_wire::ip6_address::{ALL_MLD2_ROUTERS, ALL_NODES, ALL_ROUTERS, link_local_of, solicited_node};
use shoal_wire::mld::{MldRecords, ROUTER_ALERT, RecordType};
use shoal_wire::nd::{HOP_LIMIT, NaFlags, PrefixFlags, RaFlags, RouterAdvertisement, RouterSolicitation};
use shoal_wire::nd_options::NdOption;
use shoal_wire::{FromBytes, Icmp6Header, MacAddress, icmp6};

const NO_SOURCE: Ipv6Addr = Ipv6Addr::UNSPECIFIED;
const RS: &str = "icmp6-router-solicitation";
const RA: &str = "icmp6-router-advertisement";

/// Frames of a type that were sent since the last look.
fn sent(port: &Port, kind: u8) -> Vec<Vec<u8>> {
    port.received().into_iter().filter(|f| f[20] == 58 && f[54] == kind).collect()
}

fn standing(router: &Router, port: &Port) -> Option<AddressState> {
    router.get::<Nd>().standing(port.index(), US)
}

#[test]
fn an_address_is_asked_for_once_before_it_is_ours() {
    // RFC 4862 5.4.
    let (mut router, port) = quiet();
    give(&mut router, &port);
    assert_eq!(standing(&router, &port), Some(AddressState::Tentative));
    hear(&mut router, SOLICITATION, &port, &ns(PEER_MAC, PEER, US));
    assert_eq!(router.error(SOLICITATION, "tentative"), 1, "it is not answered for");
    router.advance(Duration::from_secs(3));
    let questions: Vec<_> = sent(&port, 135).into_iter().filter(|f| f[62..78] == US.octets()).collect();
    let [question] = questions.as_slice() else { panic!("{} questions", questions.len()) };
    let (_, ip, bytes) = open(question);
    assert_eq!((ip.src(), ip.dst(), bytes.len()), (NO_SOURCE, solicited_node(US), 24));
    assert_eq!(standing(&router, &port), Some(AddressState::Ours));
}

#[test]
fn an_address_that_somebody_defends_is_not_used() {
    let (mut router, port) = quiet();
    give(&mut router, &port);
    hear(&mut router, ADVERTISEMENT, &port, &na(PEER_MAC, US, ALL_NODES, NaFlags::OVERRIDE));
    assert_eq!(standing(&router, &port), Some(AddressState::Duplicate));
    router.advance(Duration::from_secs(5));
    assert_eq!(standing(&router, &port), Some(AddressState::Duplicate));
    let events = router.graph().events().last(20);
    assert!(events.iter().any(|e| e.text.contains("2001:db8::1 is not used")), "{events:?}");
    // It is spoken from no more: the link-local address asks.
    port.received();
    forward(&mut router, &port, PEER);
    assert_eq!(open(&port.received_one()).1.src(), link_local_of(port.mac()));
    router.advance(Duration::from_secs(5));
}

#[test]
fn two_that_want_an_address_at_a_time_both_yield() {
    // RFC 4862 5.4.3.
    let (mut router, port) = quiet();
    give(&mut router, &port);
    hear(&mut router, SOLICITATION, &port, &ns(port.mac(), NO_SOURCE, US));
    assert_eq!(standing(&router, &port), Some(AddressState::Tentative), "our own question came back");
    hear(&mut router, SOLICITATION, &port, &ns(PEER_MAC, NO_SOURCE, US));
    assert_eq!(standing(&router, &port), Some(AddressState::Duplicate));
}

#[test]
fn an_address_that_is_ours_is_defended_and_kept() {
    let (mut router, port) = router();
    hear(&mut router, SOLICITATION, &port, &ns(PEER_MAC, NO_SOURCE, US));
    let frame = port.received_one();
    let (ethernet, ip, bytes) = open(&frame);
    // RFC 4861 7.2.4: to all nodes, not solicited.
    assert_eq!((ip.dst(), ethernet.dst()), (ALL_NODES, MacAddress::for_ip6_multicast(ALL_NODES)));
    assert_eq!(bytes[4] & NaFlags::SOLICITED.0, 0);
    for _ in 0..50 {
        hear(&mut router, ADVERTISEMENT, &port, &na(PEER_MAC, US, ALL_NODES, NaFlags::OVERRIDE));
    }
    assert_eq!(standing(&router, &port), Some(AddressState::Ours));
    let said = |e: &shoal_graph::event_log::Event| e.text.contains("uses our address");
    assert_eq!(router.graph().events().last(100).iter().filter(|e| said(e)).count(), 1, "said once");
}

#[test]
fn advertises_what_the_operator_says_byte_by_byte() {
    let (mut router, port) = router();
    let nd = router.get::<Nd>();
    let prefix = Prefix { valid_secs: 3600, preferred_secs: 1800, ..Prefix::default() };
    let hidden = Prefix { advertise: Advertise::No, ..prefix };
    let config = RaConfig {
        managed: Advertise::Yes,
        lifetime_secs: 900,
        prefixes: vec![
            ("2001:db8:1::/64".parse().unwrap(), prefix),
            ("2001:db8:2::/64".parse().unwrap(), hidden),
        ],
        ..RaConfig::default()
    };
    nd.set_ra_config(port.index(), config).unwrap();
    router.advance(Duration::from_secs(4));
    let frame = sent(&port, 134).remove(0);
    let (ethernet, ip, bytes) = open(&frame);
    let src = link_local_of(port.mac());
    assert_eq!((ethernet.dst(), ethernet.src()), (MacAddress([0x33, 0x33, 0, 0, 0, 1]), port.mac()));
    assert_eq!((ip.src(), ip.dst(), ip.hop_limit()), (src, ALL_NODES, 255));
    assert!(icmp6::verify(src, ALL_NODES, bytes));
    let mut want = vec![134, 0, bytes[2], bytes[3], 64, 0x80, 3, 132, 0, 0, 0, 0, 0, 0, 0, 0];
    want.extend([1, 1]);
    want.extend(port.mac().0);
    let mtu = router.interfaces().data(port.index()).unwrap().mtu.to_be_bytes();
    want.extend([5, 1, 0, 0, 0, 0, mtu[0], mtu[1]]);
    want.extend([3, 4, 64, 0xc0, 0, 0, 0x0e, 0x10, 0, 0, 7, 8, 0, 0, 0, 0]);
    want.extend([0x20, 1, 0x0d, 0xb8, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(bytes, want);
    let (ra, options) = RouterAdvertisement::check(&ip, bytes).unwrap();
    assert_eq!((ra.flags(), ra.router_lifetime_secs()), (RaFlags::MANAGED, 900));
    let prefixes = options.into_iter().filter(|o| matches!(o, NdOption::PrefixInformation(_)));
    assert_eq!(prefixes.count(), 1);
}

#[test]
fn advertisements_come_quickly_at_first_and_then_now_and_then() {
    let (mut router, port) = quiet();
    give(&mut router, &port);
    router.advance(Duration::from_secs(2 + 16 * 3 + 1));
    assert_eq!(sent(&port, 134).len(), 4, "three at most 16 seconds apart");
    router.advance(Duration::from_secs(2000));
    let n = sent(&port, 134).len();
    assert!((10..=14).contains(&n), "{n} in 2000 seconds, 150 to 200 apart");
}

#[test]
fn solicitations_are_answered_but_not_all_the_time() {
    // RFC 4861 6.2.6.
    let (mut router, port) = router();
    router.advance(Duration::from_mins(1));
    port.received();
    let from: Ipv6Addr = "fe80::2".parse().unwrap();
    let rs = |n: u16| {
        let src = Ipv6Addr::from_bits(from.to_bits() + u128::from(n));
        let bytes =
            message(src, ALL_ROUTERS, |out| RouterSolicitation::new().write(out).source_link_layer(PEER_MAC));
        let to = MacAddress::for_ip6_multicast(ALL_ROUTERS);
        frame((PEER_MAC, to), (src, ALL_ROUTERS), HOP_LIMIT, &bytes)
    };
    for n in 0..200 {
        hear(&mut router, RS, &port, &rs(n));
    }
    router.advance(Duration::from_millis(600));
    assert_eq!(sent(&port, 134).len(), 1);
    assert_eq!(router.if_counter("/net/ip6-nd/rx/rs", port.index()), 200);
    for n in 0..300 {
        hear(&mut router, RS, &port, &rs(n));
        router.advance(Duration::from_millis(100));
    }
    let n = sent(&port, 134).len();
    assert!((7..=11).contains(&n), "{n} in 30 seconds");
    // To the one who asked alone, if the operator wants so.
    let config = RaConfig { unicast: Advertise::Yes, ..RaConfig::default() };
    router.get::<Nd>().set_ra_config(port.index(), config).unwrap();
    router.advance(Duration::from_mins(2));
    port.received();
    hear(&mut router, RS, &port, &rs(7));
    router.advance(Duration::from_millis(600));
    let answer = sent(&port, 134).remove(0);
    assert_eq!((open(&answer).0.dst(), open(&answer).1.dst().to_string()), (PEER_MAC, "fe80::9".into()));
    // RFC 4861 6.1.1.
    let mut routed = rs(1);
    routed[21] = 254;
    hear(&mut router, RS, &port, &routed);
    assert_eq!(router.error(RS, "hop_limit"), 1);
}

#[test]
fn a_router_that_stops_says_so() {
    // RFC 4861 6.2.5.
    let (mut router, port) = router();
    let nd = router.get::<Nd>();
    nd.set_ra_config(port.index(), RaConfig { send: Advertise::No, ..RaConfig::default() }).unwrap();
    router.run();
    let last = sent(&port, 134).remove(0);
    assert_eq!(last[60..62], [0, 0], "a lifetime of 0");
    router.advance(Duration::from_mins(10));
    assert!(sent(&port, 134).is_empty());
}

#[test]
fn refuses_what_hosts_must_not_be_told() {
    let (router, port) = router();
    let nd = router.get::<Nd>();
    let set = |config| nd.set_ra_config(port.index(), config);
    let base = RaConfig::default;
    assert!(matches!(set(RaConfig { interval: (3, 3), ..base() }), Err(NdError::Range { most: 1800, .. })));
    assert!(matches!(
        set(RaConfig { interval: (190, 200), ..base() }),
        Err(NdError::Range { most: 150, .. })
    ));
    assert!(matches!(set(RaConfig { lifetime_secs: 100, ..base() }), Err(NdError::Range { least: 200, .. })));
    let prefix = |text: &str, p: Prefix| RaConfig { prefixes: vec![(text.parse().unwrap(), p)], ..base() };
    assert!(matches!(set(prefix("fe80::/64", Prefix::default())), Err(NdError::NoPrefix(_))));
    let long = Prefix { preferred_secs: 9, valid_secs: 8, flags: PrefixFlags::ON_LINK, ..Prefix::default() };
    assert!(matches!(set(prefix("2001:db8::/64", long)), Err(NdError::Lifetimes { .. })));
    assert_eq!(nd.ra_config(port.index()), base());
    assert!(nd.set_ra_config(shoal_interface::SwIfIndex(99), base()).is_err());
}

/// An advertisement of another router.
fn other_router(src: &str, hops: u8) -> Vec<u8> {
    let src = src.parse().unwrap();
    let ra = RouterAdvertisement::new(RaFlags::MANAGED, 1800).with_hop_limit(64);
    let bytes = message(src, ALL_NODES, |out| ra.write(out).source_link_layer(PEER_MAC));
    frame((PEER_MAC, MacAddress::for_ip6_multicast(ALL_NODES)), (src, ALL_NODES), hops, &bytes)
}

#[test]
fn advertisements_of_others_are_compared_and_those_from_afar_refused() {
    let (mut router, port) = router();
    hear(&mut router, RA, &port, &other_router("fe80::99", 64));
    assert_eq!(router.error(RA, "hop_limit"), 1);
    hear(&mut router, RA, &port, &other_router("2001:db8::99", 255));
    assert_eq!(router.error(RA, "router_advertisement_source_not_link_local"), 1);
    let heard: Ipv6Addr = "fe80::99".parse().unwrap();
    assert_eq!(knows(&router, &port, heard), None);
    hear(&mut router, RA, &port, &other_router("fe80::99", 255));
    hear(&mut router, RA, &port, &other_router("fe80::99", 255));
    assert_eq!(router.error(RA, "router_advertisements_rx"), 2);
    assert_eq!(knows(&router, &port, heard), Some(PEER_MAC));
    // RFC 4861 6.2.7, and only when it is news.
    let events = router.graph().events().last(50);
    assert_eq!(events.iter().filter(|e| e.text.contains("advertises another managed flag")).count(), 1);
    for n in 0..100 {
        hear(&mut router, RA, &port, &other_router(&format!("fe80::{n:x}"), 255));
    }
}

#[test]
fn groups_are_reported_twice_and_again_when_a_router_asks() {
    // RFC 3810 6.1, 6.2.
    let (mut router, port) = quiet();
    give(&mut router, &port);
    router.advance(Duration::from_secs(4));
    let reports =
        |port: &Port| -> Vec<Vec<u8>> { port.received().into_iter().filter(|f| f[20] == 0).collect() };
    let all = reports(&port);
    assert!(all.len() >= 2);
    let (ethernet, ip, rest) = open(&all[0]);
    assert_eq!(
        (ethernet.dst().0, ip.dst(), ip.hop_limit()),
        ([0x33, 0x33, 0, 0, 0, 0x16], ALL_MLD2_ROUTERS, 1)
    );
    assert_eq!(rest[..8], ROUTER_ALERT);
    assert!(icmp6::verify(ip.src(), ip.dst(), &rest[8..]));
    assert_eq!(Icmp6Header::read_from_prefix(&rest[8..]).unwrap().0.kind().0, 143);
    // What a report says.
    let groups = |frame: &[u8]| -> Vec<(RecordType, Ipv6Addr)> {
        let message = &open(frame).2[8..];
        MldRecords::of_message(message).unwrap().map(|r| (r.kind, r.group)).collect()
    };
    let said: Vec<_> = all.iter().flat_map(|f| groups(f)).collect();
    for group in [ALL_ROUTERS, solicited_node(US)] {
        let n = said.iter().filter(|r| **r == (RecordType::CHANGE_TO_EXCLUDE, group)).count();
        assert_eq!(n, 2, "{group}");
    }
    assert!(said.iter().all(|(_, group)| *group != ALL_NODES));
    let query = [130, 0, 0, 0, 0x03, 0xe8, 0, 0].into_iter().chain([0; 16]).chain([2, 125, 0, 0]);
    let mut query: Vec<u8> = query.collect();
    let (src, dst) = ("fe80::77".parse().unwrap(), ALL_NODES);
    icmp6::make(src, dst, &mut query);
    let asked = |hops| frame((PEER_MAC, MacAddress::for_ip6_multicast(dst)), (src, dst), hops, &query);
    hear(&mut router, "icmp6-multicast-listener-query", &port, &asked(255));
    router.advance(Duration::from_millis(1100));
    assert!(reports(&port).is_empty(), "from afar");
    hear(&mut router, "icmp6-multicast-listener-query", &port, &asked(1));
    router.advance(Duration::from_millis(1100));
    let answer: Vec<_> = reports(&port).iter().flat_map(|f| groups(f)).collect();
    assert!(answer.contains(&(RecordType::MODE_IS_EXCLUDE, solicited_node(US))), "{answer:?}");
    router.get::<Ip6>().enable(port.index(), true).unwrap();
    router.get::<Ip6>().del_address(port.index(), "2001:db8::1/64".parse().unwrap()).unwrap();
    router.run();
    let left: Vec<_> = reports(&port).iter().flat_map(|f| groups(f)).collect();
    assert_eq!(left, [(RecordType::CHANGE_TO_INCLUDE, solicited_node(US))]);
    assert!(router.get::<Nd>().groups(port.index()).contains(&ALL_ROUTERS));
}

#[test]
fn a_router_of_mld_version_1_is_answered_in_its_version() {
    let (mut router, port) = router();
    let (src, us): (Ipv6Addr, Ipv6Addr) = ("fe80::77".parse().unwrap(), US);
    let mut query: Vec<u8> = [130, 0, 0, 0, 0x03, 0xe8, 0, 0].into_iter().chain([0; 16]).collect();
    icmp6::make(src, ALL_NODES, &mut query);
    let way = (PEER_MAC, MacAddress::for_ip6_multicast(ALL_NODES));
    let asked = frame(way, (src, ALL_NODES), 1, &query);
    router.advance(Duration::from_secs(5));
    port.received();
    hear(&mut router, "icmp6-multicast-listener-query", &port, &asked);
    router.advance(Duration::from_millis(1100));
    let all = port.received();
    let said = |frames: &[Vec<u8>], kind: u8| -> Vec<(Ipv6Addr, Ipv6Addr)> {
        let message = |frame: &Vec<u8>| {
            let (_, ip, message) = open(frame);
            let message = &message[8..];
            let group: [u8; 16] = message.get(8..24)?.try_into().ok()?;
            (message[0] == kind && message.len() == 24).then(|| (ip.dst(), Ipv6Addr::from(group)))
        };
        frames.iter().filter_map(message).collect()
    };
    let reports = said(&all, 131);
    // RFC 2710 8: a report goes to its group.
    assert!(reports.contains(&(solicited_node(us), solicited_node(us))), "{reports:?}");
    assert!(reports.iter().all(|(dst, group)| dst == group && *group != ALL_NODES));
    router.get::<Ip6>().enable(port.index(), true).unwrap();
    router.get::<Ip6>().del_address(port.index(), "2001:db8::1/64".parse().unwrap()).unwrap();
    router.run();
    assert_eq!(said(&port.received(), 132), [(ALL_ROUTERS, solicited_node(us))]);
    // It has gone.
    router.advance(Duration::from_mins(5));
    port.received();
    hear(&mut router, "icmp6-multicast-listener-query", &port, &asked);
    router.run();
}
