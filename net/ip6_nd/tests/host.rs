//! A router that is configured as a host is: addresses and a default route from others' advertisements.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)] // helpers of tests

use crate::common;

use std::net::Ipv6Addr;
use std::time::Duration;

use common::*;
use shoal_adj::Adjacencies;
use shoal_fib::{Fib, FibIndex};
use shoal_ip6::Ip6;
use shoal_ip6_nd::{Autoconfigure, DefaultRoute, Nd, NdError, RaConfig};
use shoal_testkit::{PEER_MAC, Port, Rng, Router};
use shoal_wire::ip6_address::{ALL_NODES, ALL_ROUTERS};
use shoal_wire::nd::{HOP_LIMIT, PrefixFlags, RaFlags, RouterAdvertisement, RouterSolicitation};
use shoal_wire::nd_options::PrefixInformation;
use shoal_wire::{Ip6Prefix, MacAddress};

const FAR: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xffff, 0, 0, 0, 0, 1);

fn gateway(n: u16) -> Ipv6Addr {
    Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, n)
}

/// An advertisement of a router with these prefixes: prefix, valid, preferred.
fn ra(n: u16, lifetime: u16, prefixes: &[(&str, u32, u32)]) -> Vec<u8> {
    let src = gateway(n);
    let flags = PrefixFlags::ON_LINK | PrefixFlags::AUTONOMOUS;
    let bytes = message(src, ALL_NODES, |out| {
        let mut message = RouterAdvertisement::new(RaFlags::default(), lifetime).write(out);
        for (prefix, valid, preferred) in prefixes {
            let prefix = PrefixInformation::new(prefix.parse().unwrap(), flags, *valid, *preferred);
            message = message.prefix_information(&prefix);
        }
        message.source_link_layer(PEER_MAC)
    });
    frame((PEER_MAC, MacAddress::for_ip6_multicast(ALL_NODES)), (src, ALL_NODES), HOP_LIMIT, &bytes)
}

fn host(route: DefaultRoute) -> (Router, Port) {
    let (mut router, port) = quiet();
    router.get::<Nd>().set_autoconfigure(port.index(), Autoconfigure::Yes(route)).unwrap();
    router.advance(Duration::from_secs(3));
    (router, port)
}

fn addresses(router: &Router, port: &Port) -> Vec<String> {
    router.get::<Ip6>().addresses(port.index()).iter().map(ToString::to_string).collect()
}

fn default_routers(router: &Router) -> usize {
    let fib = router.get::<Fib>();
    let entry = fib.lookup(FibIndex::DEFAULT, FAR);
    let adjacencies = router.get::<Adjacencies>();
    match adjacencies.first(entry).next_hop() {
        None => 0,
        Some(_) => adjacencies.members(entry).map_or(1, |(members, _)| members.len().max(1)),
    }
}

#[test]
fn routers_are_asked_until_one_answers() {
    let (mut router, port) = host(DefaultRoute::Unwanted);
    router.advance(Duration::from_mins(1));
    let asked: Vec<_> = port.received().into_iter().filter(|f| f[54] == 133).collect();
    assert_eq!(asked.len(), 3);
    let (ethernet, ip, bytes) = open(&asked[2]);
    assert_eq!((ip.dst(), ethernet.dst()), (ALL_ROUTERS, MacAddress::for_ip6_multicast(ALL_ROUTERS)));
    let (_, options) = RouterSolicitation::check(&ip, bytes).unwrap();
    assert_eq!(options.source_link_layer(), Some(port.mac()));
    assert_eq!(router.if_counter("/net/ip6-nd/tx/rs", port.index()), 3);
    // One that comes up asks again, and is content with the first answer.
    router.interfaces().set_admin(port.index(), false).unwrap();
    router.interfaces().set_admin(port.index(), true).unwrap();
    router.advance(Duration::from_secs(1));
    router.send(&port, ra(1, 1800, &[]));
    router.advance(Duration::from_mins(1));
    assert_eq!(port.received().iter().filter(|f| f[20] == 58 && f[54] == 133).count(), 1);
}

#[test]
fn an_address_is_made_of_an_advertised_prefix_and_proven() {
    let (mut router, port) = host(DefaultRoute::Unwanted);
    router.send(&port, ra(1, 1800, &[("2001:db8:7::/64", 3600, 1800)]));
    assert_eq!(addresses(&router, &port), ["2001:db8:7:0:fe:ff:fe00:0/64"]);
    assert_eq!(default_routers(&router), 0, "no default route is wanted");
    router.advance(Duration::from_secs(3));
    let ours: Ipv6Addr = "2001:db8:7:0:fe:ff:fe00:0".parse().unwrap();
    let asked = |f: &Vec<u8>| f[20] == 58 && f[54] == 135 && f[62..78] == ours.octets();
    assert_eq!(port.received().iter().filter(|f| asked(f)).count(), 1, "RFC 4862 5.4");
    let (_, made) = router.get::<Nd>().autoconfigured(port.index()).unwrap();
    assert_eq!(made[0].left, Some(Duration::from_secs(3597)));
    // It ends without a renewal.
    router.advance(Duration::from_mins(50));
    assert_eq!(addresses(&router, &port).len(), 1);
    router.send(&port, ra(1, 1800, &[("2001:db8:7::/64", 3600, 1800)]));
    router.advance(Duration::from_mins(50));
    assert_eq!(addresses(&router, &port).len(), 1);
    router.advance(Duration::from_secs(601));
    assert!(addresses(&router, &port).is_empty());
}

#[test]
fn no_advertisement_takes_an_address_away_at_once() {
    // RFC 4862 5.5.3 (e).
    let (mut router, port) = host(DefaultRoute::Unwanted);
    router.send(&port, ra(1, 0, &[("2001:db8:7::/64", u32::MAX, u32::MAX)]));
    router.send(&port, ra(2, 0, &[("2001:db8:7::/64", 0, 0)]));
    router.advance(Duration::from_secs(7100));
    assert_eq!(addresses(&router, &port).len(), 1);
    router.advance(Duration::from_secs(200));
    assert!(addresses(&router, &port).is_empty());
}

/// Router advertisements sent since the last look, by their lifetimes.
fn advertised(port: &Port) -> Vec<u16> {
    let frames = port.received();
    let all = frames.iter().filter(|f| f[20] == 58 && f[54] == 134);
    all.map(|f| u16::from_be_bytes([f[60], f[61]])).collect()
}

#[test]
fn an_interface_that_is_configured_as_a_host_is_no_router_of_its_link() {
    // RFC 4861 6.2.2.
    let (mut router, port) = host(DefaultRoute::Wanted);
    router.send(&port, ra(1, 1800, &[("2001:db8:7::/64", 3600, 1800)]));
    router.advance(Duration::from_mins(10));
    router.interfaces().set_admin(port.index(), false).unwrap();
    router.interfaces().set_admin(port.index(), true).unwrap();
    router.advance(Duration::from_mins(10));
    assert!(advertised(&port).is_empty());
    // Nor when it is asked, or told to say something.
    let asks = message(gateway(7), ALL_ROUTERS, |out| RouterSolicitation::new().write(out));
    let to = (PEER_MAC, MacAddress::for_ip6_multicast(ALL_ROUTERS));
    router.send(&port, frame(to, (gateway(7), ALL_ROUTERS), HOP_LIMIT, &asks));
    let nd = router.get::<Nd>();
    nd.cease(port.index()).unwrap();
    nd.set_ra_config(port.index(), RaConfig::default()).unwrap();
    router.advance(Duration::from_mins(10));
    assert!(advertised(&port).is_empty());
    // When it is no longer, it is a router as before.
    nd.set_autoconfigure(port.index(), Autoconfigure::No).unwrap();
    router.advance(Duration::from_mins(1));
    assert!(advertised(&port).contains(&600));
}

#[test]
fn a_router_that_becomes_a_host_says_so_once() {
    // RFC 4861 6.2.5.
    let (mut router, port) = router();
    let nd = router.get::<Nd>();
    router.advance(Duration::from_secs(30));
    assert!(advertised(&port).contains(&600));
    nd.set_autoconfigure(port.index(), Autoconfigure::Yes(DefaultRoute::Wanted)).unwrap();
    nd.set_autoconfigure(port.index(), Autoconfigure::Yes(DefaultRoute::Unwanted)).unwrap();
    router.advance(Duration::from_mins(10));
    assert_eq!(advertised(&port), [0]);
    nd.set_autoconfigure(port.index(), Autoconfigure::No).unwrap();
    router.advance(Duration::from_mins(1));
    assert!(advertised(&port).contains(&600));
}

#[test]
fn prefixes_that_cannot_be_are_ignored() {
    let (mut router, port) = host(DefaultRoute::Wanted);
    let bad = [
        ("2001:db8::/48", 60, 60),
        ("fe80::/64", 60, 60),
        ("ff02::/64", 60, 60),
        ("2001:db8:9::/64", 60, 61),
    ];
    router.send(&port, ra(1, 0, &bad));
    router.send(&port, ra(1, 0, &[("2001:db8:9::/64", 0, 0)]));
    assert!(addresses(&router, &port).is_empty());
    assert_eq!(default_routers(&router), 0);
}

#[test]
fn endless_advertisements_find_an_end() {
    let (mut router, port) = host(DefaultRoute::Wanted);
    for n in 1..200u16 {
        router.send(&port, ra(n, 1800, &[(&format!("2001:db8:{n:x}::/64"), 3600, 1800)]));
        router.advance(Duration::from_millis(200));
    }
    assert_eq!(addresses(&router, &port).len(), 8);
    assert_eq!(default_routers(&router), 8);
    router.get::<Nd>().set_autoconfigure(port.index(), Autoconfigure::No).unwrap();
    assert!(addresses(&router, &port).is_empty());
    assert_eq!(default_routers(&router), 0);
    assert_eq!(router.get::<Fib>().check(), Vec::<String>::new());
    port.received();
}

#[test]
fn routers_share_the_default_route_while_they_live() {
    let (mut router, port) = host(DefaultRoute::Wanted);
    router.send(&port, ra(1, 1800, &[]));
    router.send(&port, ra(2, 600, &[]));
    assert_eq!(default_routers(&router), 2);
    router.advance(Duration::from_secs(601));
    assert_eq!(default_routers(&router), 1);
    // RFC 4861 6.3.4: it says itself that it is none any more.
    router.send(&port, ra(1, 0, &[]));
    assert_eq!(default_routers(&router), 0);
    router.send(&port, ra(1, 1800, &[]));
    router.get::<Nd>().set_autoconfigure(port.index(), Autoconfigure::Yes(DefaultRoute::Unwanted)).unwrap();
    assert_eq!(default_routers(&router), 0);
    port.received();
}

#[test]
fn an_address_of_the_operator_stays_his() {
    let (mut router, port) = host(DefaultRoute::Unwanted);
    let own: Ip6Prefix = "2001:db8:7:0:fe:ff:fe00:0/64".parse().unwrap();
    router.get::<Ip6>().add_address(port.index(), own).unwrap();
    router.send(&port, ra(1, 0, &[("2001:db8:7::/64", 60, 60)]));
    router.advance(Duration::from_secs(100));
    router.get::<Nd>().set_autoconfigure(port.index(), Autoconfigure::No).unwrap();
    assert_eq!(addresses(&router, &port).len(), 1);
}

#[test]
fn an_interface_that_is_not_asked_to_gets_nothing_and_errors_say_why() {
    let (mut router, port) = router();
    router.send(&port, ra(1, 1800, &[("2001:db8:7::/64", 3600, 1800)]));
    assert_eq!(addresses(&router, &port), ["2001:db8::1/64"]);
    assert_eq!(default_routers(&router), 0);
    let none = router.get::<Nd>().set_autoconfigure(port.index(), Autoconfigure::No);
    assert_eq!(none, Err(NdError::NotAutoconfigured("pg0".into())));
    router.get::<Nd>().set_autoconfigure(port.index(), Autoconfigure::Yes(DefaultRoute::Wanted)).unwrap();
    router.send(&port, ra(1, 1800, &[("2001:db8:7::/64", 3600, 1800)]));
    router.interfaces().delete(port.index()).unwrap();
    router.advance(Duration::from_hours(2));
    assert_eq!(default_routers(&router), 0);
    assert_eq!(router.get::<Fib>().check(), Vec::<String>::new());
}

#[test]
fn rubbish_configures_no_host() {
    let (mut router, port) = host(DefaultRoute::Wanted);
    let mut rng = Rng::new(Rng::seed(11));
    let good = ra(1, 1800, &[("2001:db8:7::/64", 3600, 1800)]);
    for len in 14..good.len() {
        router.send(&port, &good[..len]);
    }
    for _ in 0..500 {
        let mut bad = good.clone();
        let at = 54 + rng.below(bad.len() - 54);
        bad[at] ^= 1 << rng.below(8);
        router.send(&port, &bad);
    }
    assert!(addresses(&router, &port).is_empty(), "the sum is wrong");
    port.received();
}
