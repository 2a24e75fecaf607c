//! VRFs of Linux: interfaces use the table of the one that their images are part of.

use shoal_fib::{Family, Fib, FibIndex, Path, Source, Via};
use shoal_interface::{HostRoute, HostWay};

use super::mirror::{hear, hear_as, route, via};
use super::*;

fn image(master: Option<u32>) -> HostEvent {
    HostEvent::Link(HostLink { master, ..host_link(7, "e0") })
}

fn second(master: Option<u32>) -> HostEvent {
    HostEvent::Link(HostLink { master, ..host_link(8, "e1") })
}

fn vrf(host_index: u32, table: u32) -> HostEvent {
    let kind = HostLinkKind::Vrf { table };
    HostEvent::Link(HostLink { kind, ..host_link(host_index, &format!("vrf{table}")) })
}

/// The tables of both families that packets of an interface are looked up in.
fn tables(router: &Router, interface: SwIfIndex) -> [u32; 2] {
    let fib = router.get::<Fib>();
    [
        fib.id_of(Family::Ip4, router.get::<Ip4>().fib_of(interface)).unwrap(),
        fib.id_of(Family::Ip6, router.get::<Ip6>().fib_of(interface)).unwrap(),
    ]
}

fn ids(router: &Router) -> [Vec<u32>; 2] {
    let fib = router.get::<Fib>();
    [fib.ids(Family::Ip4), fib.ids(Family::Ip6)]
}

/// What Linux gave the entry of a prefix in a table.
fn given(router: &Router, (table, prefix): (u32, &str), paths: &[Path]) -> bool {
    let fib = router.get::<Fib>();
    let prefix: shoal_wire::IpPrefix = prefix.parse().unwrap();
    let Ok(index) = fib.index_of(Family::of(prefix.addr()), table) else { return false };
    fib.has_paths(index, [prefix], Source::LcpRt, paths).is_ok()
}

fn listing(router: &Router, all: impl IntoIterator<Item = HostEvent>) {
    let begin = HostEvent::Begin(ListingCause::LinkUp);
    hear_as(router, EventOrigin::Listed, [begin].into_iter().chain(all).chain([HostEvent::End]));
}

fn address(text: &str, present: bool) -> HostEvent {
    let (address, len) = text.split_once('/').unwrap();
    let address = (address.parse().unwrap(), len.parse().unwrap());
    HostEvent::Address { host_index: 7, address, present }
}

#[test]
fn an_interface_goes_with_its_image_into_the_table_of_a_vrf_and_out_again() {
    let Setup { mut router, phy, .. } = setup();
    hear(&router, [image(None), address("10.0.0.1/24", true), address("2001:db8::1/64", true)]);
    // The image comes before the VRF.
    hear(&router, [image(Some(20))]);
    assert_eq!(tables(&router, phy.index()), [0, 0]);
    hear(&router, [vrf(20, 10)]);
    assert_eq!(tables(&router, phy.index()), [10, 10]);
    let fib = router.get::<Fib>();
    assert_eq!(fib.name_of(Family::Ip4, 10).as_deref(), Some("ipv4-VRF:10"));
    assert_eq!(router.get::<Ip4>().addresses(phy.index()).len(), 1, "the addresses go along");
    // Packets of the interface are looked up there.
    router.advance(std::time::Duration::from_secs(10));
    phy.received();
    router.send(&phy, v4(&phy).icmp_echo_request(1, 1).payload_len(20).build());
    assert_eq!(phy.received_one()[34], 0, "an echo reply");
    assert_eq!(run(&router, "show lcp vrf", "").unwrap().to_text(), "vrf10 table 10: pg0\n");
    // Another VRF, and none.
    hear(&router, [vrf(21, 11), image(Some(21))]);
    assert_eq!((tables(&router, phy.index()), ids(&router)[0].clone()), ([11, 11], vec![0, 11]));
    hear(&router, [image(None)]);
    assert_eq!((tables(&router, phy.index()), ids(&router)), ([0, 0], [vec![0], vec![0]]));
    // The VRF itself goes, and comes with another table under the same number.
    hear(&router, [image(Some(21))]);
    hear(&router, [HostEvent::Gone { host_index: 21 }]);
    assert_eq!(tables(&router, phy.index()), [0, 0]);
    hear(&router, [vrf(21, 12)]);
    assert_eq!(tables(&router, phy.index()), [12, 12]);
    // What a listing does not name is not there.
    listing(&router, [image(None), address("10.0.0.1/24", true), address("2001:db8::1/64", true)]);
    assert_eq!((tables(&router, phy.index()), ids(&router)), ([0, 0], [vec![0], vec![0]]));
}

#[test]
fn the_same_addresses_can_be_in_two_vrfs() {
    let Setup { mut router, phy, .. } = setup();
    let other = router.pg(1);
    router.get::<Lcp>().create(other.index(), "e1", None).unwrap();
    hear(&router, [image(None), second(None), vrf(20, 10), vrf(21, 11), image(Some(20)), second(Some(21))]);
    let same = ([10, 0, 0, 1].into(), 24);
    hear(&router, [HostEvent::Address { host_index: 8, address: same, present: true }]);
    let ip4 = router.get::<Ip4>();
    assert_eq!(ip4.addresses(other.index()), ip4.addresses(phy.index()));
    // They change places: for a moment both are in one.
    hear(&router, [image(Some(21)), second(Some(20))]);
    assert_eq!((tables(&router, phy.index())[0], tables(&router, other.index())[0]), (11, 10));
    assert_eq!((ip4.addresses(phy.index()).len(), ip4.addresses(other.index()).len()), (1, 1));
    // Out of the VRFs there is room for one; the other one comes back when there is room again.
    hear(&router, [image(None), second(None)]);
    assert_eq!((ip4.addresses(phy.index()).len(), ip4.addresses(other.index()).len()), (1, 0));
    hear(&router, [second(Some(21))]);
    assert_eq!((ip4.addresses(phy.index()).len(), ip4.addresses(other.index()).len()), (1, 1));
    // The image goes: the interface stays where it is, and the table is the operator's.
    router.get::<Lcp>().delete(other.index()).unwrap();
    assert_eq!(tables(&router, other.index()), [11, 11]);
    assert!(saved(&router).contains(&"set interface ip table pg1 11".to_owned()), "{:?}", saved(&router));
}

#[test]
fn addresses_that_linux_drops_when_an_image_moves_go_when_all_is_listed() {
    let Setup { router, phy, .. } = setup();
    let (kept, gone) = ("2001:db8::1/64", "2001:db8:1::1/64");
    let ip6 = router.get::<Ip6>();
    let has = |text: &str| ip6.addresses(phy.index()).contains(&text.parse().unwrap());
    hear(&router, [vrf(20, 10), image(None), address(kept, true), address(gone, true)]);
    hear(&router, [image(Some(20)), address(kept, false), address(gone, false), address(kept, true)]);
    assert!(has(kept) && has(gone), "not before all is listed");
    listing(&router, [image(Some(20)), vrf(20, 10), address(kept, true)]);
    assert!(has(kept) && !has(gone));
    assert_eq!(tables(&router, phy.index()), [10, 10]);
    // Where addresses are mirrored Linux gets them back.
    router.get::<Lcp>().set_sync(Sync::On);
    said(&router);
    hear(&router, [image(None), address(kept, false)]);
    listing(&router, [image(None), vrf(20, 10)]);
    assert!(has(kept));
    assert_eq!(said(&router), ["add 2001:db8::1/64"]);
}

#[test]
fn ip4_routes_by_an_image_that_moves_are_forgotten_and_ip4_addresses_stay_in_linux() {
    let Setup { router, phy, .. } = setup();
    router.get::<Lcp>().set_sync(Sync::On);
    said(&router);
    let there = HostEvent::Route { route: route("198.51.100.0/24", 1, via("10.0.0.7")), present: true };
    hear(&router, [image(None), there]);
    let path = [Path::next_hop(IpAddr::from([10, 0, 0, 7]), phy.index())];
    assert!(given(&router, (0, "198.51.100.0/24"), &path));
    hear(&router, [vrf(20, 10), image(Some(20))]);
    assert!(!given(&router, (0, "198.51.100.0/24"), &[]));
    assert!(said(&router).is_empty(), "Linux is told nothing of what it has said");
}

#[test]
fn routes_of_a_vrf_are_in_its_table_and_those_by_it_are_looked_up_there() {
    let Setup { router, phy, .. } = setup();
    let fib = router.get::<Fib>();
    let is = |table, prefix: &str, way, present| HostEvent::Route {
        route: HostRoute { table, ..route(prefix, 0, way) },
        present,
    };
    let dev =
        |host_index| HostWay::via([shoal_interface::HostPath { host_index, next_hop: None, weight: 1 }]);
    hear(&router, [vrf(20, 10), vrf(21, 11), image(Some(20))]);
    hear(&router, [is(10, "198.51.100.0/24", via("10.0.0.7"), true)]);
    let path = [Path::next_hop(IpAddr::from([10, 0, 0, 7]), phy.index())];
    assert!(given(&router, (10, "198.51.100.0/24"), &path));
    // From the main table into the VRF, whatever the next hop, and from another VRF.
    for (from, prefix) in [(254, "198.51.100.0/24"), (11, "2001:db8:5::/48")] {
        hear(&router, [is(from, prefix, dev(20), true)]);
        let family = Family::of(prefix.parse::<shoal_wire::IpPrefix>().unwrap().addr());
        let lookup = Path::from(Via::Lookup(fib.index_of(family, 10).unwrap()));
        assert!(given(&router, (if from == 254 { 0 } else { from }, prefix), &[lookup]), "{from}");
    }
    // Into itself it would be for ever.
    hear(&router, [is(10, "203.0.113.0/24", dev(20), true)]);
    assert!(!given(&router, (10, "203.0.113.0/24"), &[]));
    assert!(run(&router, "show lcp pending", "").unwrap().to_text().contains("203.0.113.0/24 table 10"));
    // The VRF goes: routes that lead into it wait, and tables without users go.
    hear(&router, [HostEvent::Gone { host_index: 20 }]);
    assert!(!given(&router, (0, "198.51.100.0/24"), &[]) && !given(&router, (11, "2001:db8:5::/48"), &[]));
    assert_eq!(tables(&router, phy.index()), [0, 0]);
    hear(&router, [is(10, "198.51.100.0/24", via("10.0.0.7"), false)]);
    hear(&router, [is(10, "203.0.113.0/24", dev(20), false)]);
    listing(&router, [image(None), vrf(21, 11)]);
    assert_eq!(ids(&router), [vec![0], vec![0]]);
}

#[test]
fn a_table_stays_while_an_operator_has_a_use_for_it() {
    let Setup { router, .. } = setup();
    let fib = router.get::<Fib>();
    hear(&router, [vrf(20, 10), vrf(21, 11), image(Some(20))]);
    // An operator's route, and a table that an operator asks for.
    let index = fib.index_of(Family::Ip4, 10).unwrap();
    let prefix: shoal_wire::IpPrefix = "198.51.100.0/24".parse().unwrap();
    fib.add(index, prefix, Source::Cli, &[Via::Drop.into()]).unwrap();
    fib.add_table(Family::Ip6, 10, Some("red")).unwrap();
    hear(&router, [image(Some(21)), image(None)]);
    assert_eq!(ids(&router), [vec![0, 10], vec![0, 10]]);
    assert_eq!(fib.name_of(Family::Ip6, 10).as_deref(), Some("red"));
    fib.remove(index, prefix, Source::Cli).unwrap();
    fib.forget_unwanted();
    assert_eq!(ids(&router), [vec![0, 10], vec![0, 10]], "an operator has had a route there");
    assert!(fib.add_table(Family::Ip6, 10, None).is_err(), "it is the operator's now");
}

/// What would be saved of tables, addresses and pairs.
fn saved(router: &Router) -> Vec<String> {
    let mut all = shoal_module::Running::default();
    for module in MODULES {
        (module.running)(router.control(), &mut all);
    }
    let text: String = all.pieces().collect();
    let of = |line: &&str| {
        ["table", "ip address", "sub-interfaces", "lcp create"].iter().any(|w| line.contains(w))
    };
    text.lines().filter(|line| !line.starts_with('#')).filter(of).map(str::to_owned).collect()
}

#[test]
fn what_linux_has_in_a_vrf_is_not_saved_but_what_an_operator_needs_is() {
    let Setup { mut router, phy, .. } = setup();
    let other = router.pg(1);
    router.get::<Lcp>().create(other.index(), "e1", None).unwrap();
    let given = ([10, 9, 0, 1].into(), 24);
    let of_linux = HostEvent::Address { host_index: 8, address: given, present: true };
    let before = saved(&router);
    assert_eq!(before.len(), 4, "{before:?}");
    hear(&router, [vrf(20, 10), image(None), second(Some(20)), of_linux]);
    assert_eq!(tables(&router, other.index()), [10, 10]);
    assert_eq!(saved(&router), before, "Linux says all of that again");
    // The operator's addresses are in that table, too, once they are there.
    hear(&router, [image(Some(20))]);
    let now = saved(&router);
    for line in [
        "ip table add 10",
        "ip6 table add 10",
        "set interface ip table pg0 10",
        "set interface ip6 table pg0 10",
        "set interface ip address pg0 10.0.0.1/24",
    ] {
        assert!(now.iter().any(|l| l == line), "{line}: {now:?}");
    }
    assert_eq!(now.len(), before.len() + 4, "{now:?}");
    // Out of the VRF the address is one as any other, as it would have been without it.
    hear(&router, [image(None), second(None)]);
    let mut with = before.clone();
    with.push("set interface ip address pg1 10.9.0.1/24".to_owned());
    let mut now = saved(&router);
    now.sort();
    with.sort();
    assert_eq!(now, with);
    // An operator's own binding is saved, whatever Linux says.
    hear(&router, [image(Some(20))]);
    let ip4 = router.get::<Ip4>();
    ip4.del_all(phy.index()).unwrap();
    router.get::<Ip6>().del_all(phy.index()).unwrap();
    assert!(!saved(&router).iter().any(|line| line.contains("table")), "{:?}", saved(&router));
    ip4.set_table(phy.index(), 10).unwrap();
    assert!(saved(&router).contains(&"ip table add 10".to_owned()), "{:?}", saved(&router));
}

#[test]
fn a_tun_goes_along_so_that_what_linux_sends_is_routed_by_the_vrf() {
    let mut router = Router::new(MODULES);
    let phy = router.pg(0);
    let lcp = router.get::<Lcp>();
    let host = lcp.create_of(phy.index(), "e0", None, shoal_interface::HostLayer::Ip).unwrap();
    hear(&router, [vrf(20, 10), image(Some(20))]);
    assert_eq!((tables(&router, phy.index()), tables(&router, host)), ([10, 10], [10, 10]));
    hear(&router, [image(None)]);
    assert_eq!((tables(&router, host), ids(&router)), ([0, 0], [vec![0], vec![0]]));
}

#[test]
fn vrfs_with_impossible_tables_are_counted_and_change_nothing() {
    let Setup { router, phy, .. } = setup();
    for table in [0, u32::MAX] {
        hear(&router, [vrf(20, 10), image(Some(20)), vrf(21, table), image(Some(21)), image(Some(21))]);
        assert_eq!(tables(&router, phy.index()), [10, 10], "it stays where it was");
        let text = run(&router, "show lcp vrf", "").unwrap().to_text();
        assert!(text.contains(&format!("vrf{table} table {table} is none here: pg0\n")), "{text}");
        hear(&router, [image(Some(20))]);
    }
    let json = run(&router, "show lcp netlink", "").unwrap().to_json();
    assert_eq!(json["namespaces"][0]["refused"], 2, "{json}");
    // The main table is table 0 as a VRF, too.
    hear(&router, [vrf(21, 254), image(Some(21))]);
    assert_eq!(tables(&router, phy.index()), [0, 0]);
}

#[test]
fn vrfs_that_come_and_go_leave_nothing() {
    let Setup { router, phy, .. } = setup();
    let fib = router.get::<Fib>();
    let locks = |router: &Router| {
        let fib = router.get::<Fib>();
        Family::ALL.map(|family| fib.table(family, FibIndex::DEFAULT).unwrap().locks)
    };
    let before = locks(&router);
    let mut rng = Rng::new(7);
    for _ in 0..600 {
        let (vrf_index, table) = (20 + rng.below(3) as u32, 10 + rng.below(4) as u32);
        let event = match rng.below(6) {
            0 => HostEvent::Gone { host_index: vrf_index },
            1 => vrf(vrf_index, table),
            2 => image(Some(vrf_index)),
            3 => image(None),
            4 => {
                let way = HostWay::via([shoal_interface::HostPath {
                    host_index: if rng.below(2) == 0 { 7 } else { vrf_index },
                    next_hop: None,
                    weight: 1,
                }]);
                let prefix = ["198.51.100.0/24", "2001:db8:5::/48"][rng.below(2)];
                let route = HostRoute { table, ..route(prefix, 0, way) };
                HostEvent::Route { route, present: rng.below(2) == 0 }
            }
            _ => HostEvent::Begin(ListingCause::Audit),
        };
        let listed = matches!(event, HostEvent::Begin(_));
        hear(&router, [event]);
        if listed {
            hear(&router, [image(None), HostEvent::End]);
        }
        assert_eq!(fib.check(), Vec::<String>::new());
    }
    hear(&router, [HostEvent::Begin(ListingCause::Audit), image(None), HostEvent::End]);
    assert_eq!((ids(&router), tables(&router, phy.index())), ([vec![0], vec![0]], [0, 0]));
    assert_eq!(locks(&router), before);
}
