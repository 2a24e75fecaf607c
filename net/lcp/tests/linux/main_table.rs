//! Namespaces as VRFs: the main table of one is the table that its interfaces are in.

use shoal_ethernet::Vid;
use shoal_fib::{Family, Fib, FibIndex, Path, Source};
use shoal_interface::{HostMulticastRoute, HostRoute, HostWay, TagKind};
use shoal_mfib::{Mfib, Prefix};

use super::mirror::{hear, route, via};
use super::*;

const TO4: &str = "198.51.100.0/24";
const TO6: &str = "2001:db8:5::/48";

/// What Linux gave the entry of a prefix in a table.
fn given(router: &Router, (table, prefix): (u32, &str), paths: &[Path]) -> bool {
    let fib = router.get::<Fib>();
    let prefix: shoal_wire::IpPrefix = prefix.parse().unwrap();
    let Ok(index) = fib.index_of(Family::of(prefix.addr()), table) else { return false };
    fib.has_paths(index, [prefix], Source::LcpRt, paths).is_ok()
}

fn there(prefix: &str, next_hop: &str) -> HostEvent {
    HostEvent::Route { route: route(prefix, 1, via(next_hop)), present: true }
}

/// An interface with an image, numbered 7 by Linux, in a table of each family.
fn in_tables(ip4: u32, ip6: u32) -> (Router, Port) {
    let mut router = Router::new(MODULES);
    let phy = router.pg(0);
    let fib = router.get::<Fib>();
    for (family, id) in [(Family::Ip4, ip4), (Family::Ip6, ip6)] {
        fib.add_table(family, id, None).unwrap();
    }
    router.get::<Ip4>().set_table(phy.index(), ip4).unwrap();
    router.get::<Ip6>().set_table(phy.index(), ip6).unwrap();
    router.set_address(&phy, "10.0.0.1/24");
    router.get::<Lcp>().create(phy.index(), "e0", Some("red")).unwrap();
    hear(&router, [HostEvent::Link(host_link(7, "e0"))]);
    (router, phy)
}

#[test]
fn routes_of_the_main_table_go_where_the_interfaces_of_the_namespace_are() {
    let (mut router, phy) = in_tables(10, 11);
    let path = |a: &str| [Path::next_hop(a.parse::<IpAddr>().unwrap(), phy.index())];
    let plain = HostRoute { table: 254, ..route("203.0.113.0/24", 1, HostWay::Blackhole) };
    hear(&router, [there(TO4, "10.0.0.7"), there(TO6, "2001:db8::7")]);
    hear(&router, [HostEvent::Route { route: plain, present: true }]);
    assert!(given(&router, (10, TO4), &path("10.0.0.7")) && !given(&router, (0, TO4), &[]));
    assert!(given(&router, (11, TO6), &path("2001:db8::7")) && !given(&router, (0, TO6), &[]));
    assert!(given(&router, (10, "203.0.113.0/24"), &[shoal_fib::Via::Drop.into()]));
    // Other tables of Linux have their numbers here.
    let numbered = HostRoute { table: 12, ..route(TO4, 1, via("10.0.0.8")) };
    hear(&router, [HostEvent::Route { route: numbered, present: true }]);
    assert!(given(&router, (12, TO4), &path("10.0.0.8")));
    let text = run(&router, "show lcp netlink", "").unwrap().to_text();
    assert!(text.contains("main table: ip4 10, ip6 11"), "{text}");
    // A second interface elsewhere: the namespace is no VRF any more.
    let other = router.pg(1);
    router.get::<Lcp>().create(other.index(), "e1", Some("red")).unwrap();
    assert!(given(&router, (0, TO4), &path("10.0.0.7")) && !given(&router, (10, TO4), &[]));
    assert!(given(&router, (0, TO6), &path("2001:db8::7")) && !given(&router, (11, TO6), &[]));
    // It goes there, too.
    router.get::<Ip4>().set_table(other.index(), 10).unwrap();
    router.run();
    assert!(given(&router, (10, TO4), &path("10.0.0.7")) && !given(&router, (0, TO4), &[]));
    assert!(given(&router, (0, TO6), &path("2001:db8::7")));
    // Its image goes; then the last one, and all routes with it.
    router.get::<Lcp>().delete(other.index()).unwrap();
    assert!(given(&router, (11, TO6), &path("2001:db8::7")) && !given(&router, (0, TO6), &[]));
    router.get::<Lcp>().delete(phy.index()).unwrap();
    let fib = router.get::<Fib>();
    for (family, id, prefix) in [(Family::Ip4, 10, TO4), (Family::Ip6, 11, TO6)] {
        let (index, prefix) =
            (fib.index_of(family, id).unwrap(), prefix.parse::<shoal_wire::IpPrefix>().unwrap());
        assert!(fib.has_paths(index, [prefix], Source::LcpRt, &[]).is_err(), "{prefix} stays");
    }
    assert!(fib.index_of(Family::Ip4, 12).is_err(), "a table that only Linux had made");
}

#[test]
fn namespaces_do_not_share_their_main_tables() {
    let (mut router, _red) = in_tables(10, 10);
    // The stand-in for Linux hears the last namespace.
    let blue = router.pg(1);
    router.get::<Lcp>().create(blue.index(), "e1", Some("blue")).unwrap();
    let by_blue = HostWay::via([shoal_interface::HostPath { host_index: 8, next_hop: None, weight: 1 }]);
    hear(&router, [HostEvent::Route { route: route(TO4, 1, by_blue), present: true }]);
    let attached = shoal_fib::Via::Attached { interface: blue.index(), source: IpAddr::from([0; 4]) };
    assert!(given(&router, (0, TO4), &[attached.into()]) && !given(&router, (10, TO4), &[]));
    let lcp = router.get::<Lcp>();
    let table = |netns: &str| lcp.table_in(&Some(netns.to_owned()), Family::Ip4, 254);
    assert_eq!((table("red"), table("blue"), table("unknown")), (10, 0, 0));
}

#[test]
fn of_two_namespaces_with_a_prefix_in_one_table_the_other_ones_stays() {
    let mut router = Router::new(MODULES);
    let (one, two) = (router.pg(0), router.pg(1));
    let lcp = router.get::<Lcp>();
    lcp.create(one.index(), "e0", Some("one")).unwrap();
    let hear_one = router.get::<FakeHost>().1.take().unwrap();
    lcp.create(two.index(), "e1", Some("two")).unwrap();
    let by = |host_index, next_hop: &str| {
        let next_hop = Some(next_hop.parse().unwrap());
        HostWay::via([shoal_interface::HostPath { host_index, next_hop, weight: 1 }])
    };
    let is = |way, present| HostEvent::Route { route: route(TO4, 1, way), present };
    let path = |a: &str, phy: &Port| [Path::next_hop(a.parse::<IpAddr>().unwrap(), phy.index())];
    hear(&router, [is(by(8, "10.0.0.8"), true)]);
    hear_one(vec![(EventOrigin::Announced, is(by(7, "10.0.0.7"), true))]);
    assert!(given(&router, (0, TO4), &path("10.0.0.7", &one)));
    hear_one(vec![(EventOrigin::Announced, is(by(7, "10.0.0.7"), false))]);
    assert!(given(&router, (0, TO4), &path("10.0.0.8", &two)));
    hear(&router, [is(by(8, "10.0.0.8"), false)]);
    assert!(!given(&router, (0, TO4), &[]));
}

#[test]
fn one_that_leaves_a_vrf_of_linux_goes_back_to_its_table() {
    let (router, phy) = in_tables(10, 11);
    let tables = || {
        let fib = router.get::<Fib>();
        let ip4 = fib.id_of(Family::Ip4, router.get::<Ip4>().fib_of(phy.index())).unwrap();
        (ip4, fib.id_of(Family::Ip6, router.get::<Ip6>().fib_of(phy.index())).unwrap())
    };
    let vrf = HostLink { kind: HostLinkKind::Vrf { table: 20 }, ..host_link(30, "vrf20") };
    let image = |master| HostEvent::Link(HostLink { master, ..host_link(7, "e0") });
    hear(&router, [HostEvent::Link(vrf), image(Some(30))]);
    assert_eq!(tables(), (20, 20));
    assert_eq!(router.get::<Lcp>().table_in(&Some("red".into()), Family::Ip4, 254), 0);
    hear(&router, [image(None)]);
    assert_eq!(tables(), (10, 11));
    assert_eq!(router.get::<Lcp>().table_in(&Some("red".into()), Family::Ip6, 254), 11);
    assert_eq!(router.get::<Ip4>().addresses(phy.index()).len(), 1);
}

#[test]
fn sub_interfaces_made_for_vlans_are_where_the_main_table_is() {
    let (mut router, phy) = in_tables(10, 11);
    let kind = HostLinkKind::Vlan { of: Some(7), tag: TagKind::Dot1q, id: Vid::new(100).unwrap() };
    let vlan = HostLink { mtu: 1500, kind, ..host_link(40, "e0.100") };
    let address = ([10, 1, 0, 1].into(), 24);
    hear(&router, [HostEvent::Link(vlan), HostEvent::Address { host_index: 40, address, present: true }]);
    let sub = router.interfaces().by_name("pg0.100").unwrap();
    let fib = router.get::<Fib>();
    let table = |router: &Router| {
        let index = router.get::<Ip4>().fib_of(sub);
        router.get::<Fib>().id_of(Family::Ip4, index).unwrap()
    };
    assert_eq!(table(&router), 10);
    assert_eq!(router.get::<Ip4>().addresses(sub).len(), 1);
    // The port goes elsewhere, and the sub-interface with it.
    let ip4 = router.get::<Ip4>();
    let own = ip4.addresses(phy.index())[0];
    ip4.del_address(phy.index(), own).unwrap();
    fib.add_table(Family::Ip4, 12, None).unwrap();
    ip4.set_table(phy.index(), 12).unwrap();
    router.run();
    assert_eq!(table(&router), 12);
    assert_eq!(router.get::<Ip4>().addresses(sub).len(), 1, "its address goes along");
}

#[test]
fn multicast_routes_of_daemons_go_there_too() {
    let (mut router, phy) = in_tables(10, 10);
    let (source, group) = (IpAddr::from([10, 0, 0, 2]), IpAddr::from([239, 1, 1, 1]));
    let entry = HostMulticastRoute { table: 253, source, group, input: Some(7), outputs: Vec::new() };
    hear(&router, [HostEvent::MulticastRoute { route: entry, present: true }]);
    let prefix = Prefix::source_group(source, group).unwrap();
    let has = |router: &Router, index| router.get::<Mfib>().number(index, prefix).is_some();
    let red = router.get::<Fib>().index_of(Family::Ip4, 10).unwrap();
    assert!(has(&router, red) && !has(&router, FibIndex::DEFAULT));
    let ip4 = router.get::<Ip4>();
    let own = ip4.addresses(phy.index())[0];
    ip4.del_address(phy.index(), own).unwrap();
    ip4.set_table(phy.index(), 0).unwrap();
    router.run();
    assert!(!has(&router, red) && has(&router, FibIndex::DEFAULT));
}
