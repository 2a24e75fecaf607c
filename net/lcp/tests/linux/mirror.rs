//! What Linux does with images, and OSI's frames between both.

use shoal_interface::{HostNextHop, HostPath, HostRoute, HostWay};

use super::*;

/// Tells what the kernel would say of the namespace of images.
pub(super) fn hear(router: &Router, events: impl IntoIterator<Item = HostEvent>) {
    hear_as(router, EventOrigin::Announced, events);
}

pub(super) fn hear_as(router: &Router, told: EventOrigin, events: impl IntoIterator<Item = HostEvent>) {
    let said = router.get::<FakeHost>();
    let hear = said.1.borrow();
    events.into_iter().for_each(|event| hear.as_ref().unwrap()(vec![(told, event)]));
}

pub(super) fn link(up: bool, carrier: bool) -> HostEvent {
    HostEvent::Link(HostLink { up, carrier, ..host_link(7, "e0") })
}

pub(super) fn route(prefix: &str, metric: u32, way: HostWay) -> HostRoute {
    let (address, len) = prefix.split_once('/').unwrap();
    let prefix = (address.parse().unwrap(), len.parse().unwrap());
    HostRoute { table: 254, prefix, metric, protocol: HostRoute::STATIC, next_hop_id: None, way }
}

pub(super) fn via(next_hop: &str) -> HostWay {
    HostWay::via([HostPath { host_index: 7, next_hop: Some(next_hop.parse().unwrap()), weight: 1 }])
}

/// What Linux gave the entry of a prefix.
pub(super) fn given(router: &Router, prefix: &str, paths: &[shoal_fib::Path]) -> bool {
    let fib = router.get::<shoal_fib::Fib>();
    let prefix: shoal_wire::IpPrefix = prefix.parse().unwrap();
    fib.has_paths(shoal_fib::FibIndex::DEFAULT, [prefix], shoal_fib::Source::LcpRt, paths).is_ok()
}

#[test]
fn routes_of_linux_by_an_image_are_the_routers_and_the_lowest_metric_counts() {
    use shoal_fib::{Path, Via};
    let Setup { router, phy, .. } = setup();
    let to = "198.51.100.0/24";
    let path = |a: &str| [Path::next_hop(a.parse::<IpAddr>().unwrap(), phy.index())];
    let is = |metric, way, present| HostEvent::Route { route: route(to, metric, way), present };
    hear(&router, [is(20, via("10.0.0.7"), true)]);
    assert!(given(&router, to, &path("10.0.0.7")));
    hear(&router, [is(10, via("10.0.0.8"), true)]);
    assert!(given(&router, to, &path("10.0.0.8")) && !given(&router, to, &path("10.0.0.7")));
    hear(&router, [is(10, via("10.0.0.8"), false)]);
    assert!(given(&router, to, &path("10.0.0.7")));
    hear(&router, [is(5, HostWay::Prohibit, true)]);
    assert!(given(&router, to, &[Via::Prohibit.into()]));
    // What the kernel does not name when it says all there is has gone.
    hear(&router, [HostEvent::Begin(ListingCause::Start), is(20, via("10.0.0.7"), true), HostEvent::End]);
    assert!(given(&router, to, &path("10.0.0.7")) && !given(&router, to, &[Via::Prohibit.into()]));
    // By interfaces that have no image nothing leads here.
    let other = HostWay::via([HostPath { host_index: 8, next_hop: None, weight: 1 }]);
    hear(&router, [is(1, other, true)]);
    assert!(given(&router, to, &path("10.0.0.7")));
    router.get::<Lcp>().delete(phy.index()).unwrap();
    assert!(!given(&router, to, &[]), "without the image the route goes");
}

#[test]
fn routes_that_name_a_next_hop_follow_it_and_go_with_it() {
    use shoal_fib::Path;
    let Setup { router, phy, .. } = setup();
    let one = |id: u32, next_hop: &str| {
        let path = HostPath { host_index: 7, next_hop: Some(next_hop.parse().unwrap()), weight: 1 };
        HostEvent::NextHop { id, hop: Some(HostNextHop::One(path)) }
    };
    let group =
        |id, all: &[(u32, u32)]| HostEvent::NextHop { id, hop: Some(HostNextHop::Group(all.to_vec())) };
    let by = |to, id, way| {
        let route = HostRoute { next_hop_id: Some(id), ..route(to, 20, way) };
        HostEvent::Route { route, present: true }
    };
    let path = |a: &str| Path::next_hop(a.parse::<IpAddr>().unwrap(), phy.index());
    let (to4, to6) = ("198.51.100.0/24", "2001:db8:5::/48");
    let silent = || HostWay::via([]);
    // The number comes after the route, which waits.
    hear(&router, [by(to4, 1, silent())]);
    assert!(!given(&router, to4, &[path("10.0.0.7")]));
    hear(&router, [one(1, "10.0.0.7"), one(2, "10.0.0.8")]);
    assert!(given(&router, to4, &[path("10.0.0.7")]));
    // A group with shares, and one that becomes another one: what the kernel writes out does not count.
    hear(&router, [group(3, &[(1, 1), (2, 3)]), by(to4, 3, via("10.0.0.9"))]);
    assert!(given(&router, to4, &[path("10.0.0.7"), path("10.0.0.8").weight(3)]));
    hear(&router, [group(3, &[(2, 1)])]);
    assert!(given(&router, to4, &[path("10.0.0.8")]));
    // A member that goes leaves the group, and the last one takes group and routes along, in both families.
    hear(&router, [group(3, &[(1, 1), (2, 1)]), one(5, "2001:db8::7"), by(to6, 5, silent())]);
    assert!(given(&router, to6, &[path("2001:db8::7")]));
    hear(&router, [HostEvent::NextHop { id: 1, hop: None }]);
    assert!(given(&router, to4, &[path("10.0.0.8")]));
    hear(&router, [link(true, false)]);
    assert!(!given(&router, to4, &[]) && !given(&router, to6, &[]));
    hear(&router, [one(2, "10.0.0.8"), group(3, &[(2, 1)]), one(5, "2001:db8::7")]);
    assert!(!given(&router, to4, &[]) && !given(&router, to6, &[]), "the routes are gone, not hidden");
}

#[test]
fn a_member_that_leaves_a_resilient_group_moves_its_own_flows_alone() {
    let Setup { router, .. } = setup();
    let one = |id: u32| {
        let next_hop = format!("10.0.0.{id}").parse().ok();
        let hop = Some(HostNextHop::One(HostPath { host_index: 7, next_hop, weight: 1 }));
        HostEvent::NextHop { id, hop }
    };
    let group = |all: &[u32]| {
        let hop = HostNextHop::Resilient(all.iter().map(|id| (*id, 1)).collect(), 64);
        HostEvent::NextHop { id: 100, hop: Some(hop) }
    };
    let by = |to: &str| {
        let route = HostRoute { next_hop_id: Some(100), ..route(to, 20, HostWay::via([])) };
        HostEvent::Route { route, present: true }
    };
    let all = [11, 12, 13, 14];
    hear(&router, all.map(one));
    hear(&router, [group(&all), by("198.51.100.0/24"), by("203.0.113.0/24")]);
    let (fib, adjacencies) = (router.get::<shoal_fib::Fib>(), router.get::<shoal_adj::Adjacencies>());
    let buckets = |to: [u8; 4]| {
        let at = fib.lookup(shoal_fib::FibIndex::DEFAULT, to);
        let (_, buckets) = adjacencies.members(at).unwrap();
        buckets.iter().map(|b| adjacencies.get(*b).next_hop().unwrap()).collect::<Vec<_>>()
    };
    let before = buckets([198, 51, 100, 1]);
    assert_eq!((before.len(), buckets([203, 0, 113, 1])), (64, before.clone()));
    // The kernel says that the member is gone, and perhaps that the group is another one.
    let gone: IpAddr = [10, 0, 0, 12].into();
    hear(&router, [HostEvent::NextHop { id: 12, hop: None }]);
    let after = buckets([198, 51, 100, 1]);
    assert!(before.iter().zip(&after).all(|(was, is)| *is != gone && (was == is || *was == gone)));
    hear(&router, [group(&[11, 13, 14])]);
    assert_eq!((buckets([198, 51, 100, 1]), buckets([203, 0, 113, 1])), (after.clone(), after.clone()));
    // It comes back and takes its share.
    hear(&router, [one(12), group(&all)]);
    let back = buckets([198, 51, 100, 1]);
    assert!(after.iter().zip(&back).all(|(was, is)| was == is || *is == gone));
    assert_eq!(back.iter().filter(|at| **at == gone).count(), 16);
}

#[test]
fn many_routes_by_one_next_hop_change_with_it_and_what_is_not_named_again_goes() {
    use shoal_fib::Path;
    let Setup { mut router, phy, .. } = setup();
    let one = |id, next_hop: &str| {
        let path = HostPath { host_index: 7, next_hop: Some(next_hop.parse().unwrap()), weight: 1 };
        HostEvent::NextHop { id, hop: Some(HostNextHop::One(path)) }
    };
    let to = |n: u32| format!("198.{}.{}.0/24", 18 + n / 256, n % 256);
    let by = |n| {
        let route = HostRoute { next_hop_id: Some(1), ..route(&to(n), 20, HostWay::via([])) };
        HostEvent::Route { route, present: true }
    };
    hear(&router, [one(1, "10.0.0.7")].into_iter().chain((0..400).map(by)));
    hear(&router, [one(1, "10.0.0.8")]);
    router.run();
    let after = [Path::next_hop("10.0.0.8".parse::<IpAddr>().unwrap(), phy.index())];
    assert!((0..400).all(|n| given(&router, &to(n), &after)));
    hear(&router, [HostEvent::Begin(ListingCause::Start), one(1, "10.0.0.8"), by(3), HostEvent::End]);
    router.run();
    assert!(given(&router, &to(3), &after) && !given(&router, &to(4), &[]));
    hear(&router, [HostEvent::Begin(ListingCause::Start), HostEvent::End]);
    assert!(!given(&router, &to(3), &[]));
}

#[test]
fn an_image_that_goes_down_takes_its_interface_and_ip4_routes_along() {
    let Setup { router, phy, .. } = setup();
    let (to4, to6) = ("198.51.100.0/24", "2001:db8:5::/48");
    let there = |to, next_hop| HostEvent::Route { route: route(to, 1, via(next_hop)), present: true };
    hear(&router, [there(to4, "10.0.0.7"), there(to6, "2001:db8::7")]);
    hear(&router, [link(false, true)]);
    assert!(!router.interfaces().data(phy.index()).unwrap().is_up());
    assert!(!given(&router, to4, &[]) && given(&router, to6, &[]), "the kernel says what becomes of IPv6");
    // The kernel forgets IPv6 addresses then; the router does not.
    let address = ("2001:db8::1".parse().unwrap(), 64);
    hear(&router, [HostEvent::Address { host_index: 7, address, present: false }]);
    assert_eq!(
        router.get::<Ip6>().addresses(phy.index()).len(),
        2 - usize::from(!has_link_local(&router, &phy))
    );
    hear(&router, [link(true, true)]);
    assert!(router.interfaces().data(phy.index()).unwrap().is_up());
}

fn has_link_local(router: &Router, phy: &Port) -> bool {
    router.get::<Ip6>().addresses(phy.index()).iter().any(|a| a.addr().is_unicast_link_local())
}

#[test]
fn addresses_and_neighbours_that_linux_gets_are_the_interfaces() {
    let Setup { router, phy, .. } = setup();
    let address = ([10, 9, 0, 1].into(), 24);
    let is = |present| HostEvent::Address { host_index: 7, address, present };
    let has = || router.get::<Ip4>().addresses(phy.index()).contains(&"10.9.0.1/24".parse().unwrap());
    hear(&router, [is(true), is(true)]);
    assert!(has());
    hear(&router, [is(false)]);
    assert!(!has());
    let (peer, mac) = ([10, 0, 0, 9], MacAddress([2, 0, 0, 0, 0, 9]));
    let is = |mac| HostEvent::Neighbor { host_index: 7, address: peer.into(), mac, by_operator: true };
    let known = || router.get::<Neighbours>().get((phy.index(), peer.into())).map(|n| n.mac);
    hear(&router, [is(None)]);
    hear(&router, [is(Some(mac))]);
    assert_eq!(known(), Some(mac));
    hear(&router, [is(None)]);
    assert_eq!(known(), None);
}

#[test]
fn lcp_sync_mirrors_whether_an_interface_is_up() {
    let Setup { router, phy, .. } = setup();
    said(&router);
    router.interfaces().set_admin(phy.index(), false).unwrap();
    assert!(said(&router).is_empty(), "without it Linux decides");
    router.get::<Lcp>().set_sync(Sync::On);
    assert_eq!(said(&router)[1], "down");
    router.interfaces().set_admin(phy.index(), true).unwrap();
    assert_eq!(said(&router)[0], "up");
}

#[test]
fn packets_of_osi_protocols_pass_when_an_operator_says_so() {
    let Setup { mut router, phy, host, sink } = setup();
    let isis = |from: MacAddress, kind: u16| {
        let mut frame = PacketBuilder::arp_request(from, PEER, [10, 0, 0, 1]).build();
        frame[..6].copy_from_slice(&[1, 0x80, 0xc2, 0, 0, 0x14]);
        frame[12..14].copy_from_slice(&kind.to_be_bytes());
        frame[14..18].copy_from_slice(&[0xfe, 0xfe, 3, 0x83]);
        frame
    };
    router.send(&phy, isis(PEER_MAC, 28));
    router.send(&phy, isis(PEER_MAC, 0x8870));
    assert!(sink.take().is_empty());
    run(&router, "lcp osi-proto", "enable protocol=0xff").unwrap_err();
    run(&router, "lcp osi-proto", "enable protocol=0x81").unwrap();
    router.send(&phy, isis(PEER_MAC, 28));
    assert!(sink.take().is_empty(), "another protocol passes");
    run(&router, "lcp osi-proto", "enable protocol=0x83").unwrap();
    for kind in [28, 0x8870] {
        router.send(&phy, isis(PEER_MAC, kind));
        assert_eq!(sink.take(), [isis(PEER_MAC, kind)]);
        router.generator().inject(host, isis(phy.mac(), kind)).unwrap();
        router.run();
        assert_eq!(phy.received_one(), isis(phy.mac(), kind));
    }
    assert_eq!(run(&router, "show lcp osi-proto", "").unwrap().to_text(), "0x81\n0x83\n");
}

#[test]
fn frames_of_other_types_pass_when_an_operator_says_so() {
    let Setup { mut router, phy, host, sink } = setup();
    let lldp = |from: MacAddress| {
        let mut frame = PacketBuilder::arp_request(from, PEER, [10, 0, 0, 1]).build();
        frame[..6].copy_from_slice(&[1, 0x80, 0xc2, 0, 0, 0xe]);
        frame[12..14].copy_from_slice(&[0x88, 0xcc]);
        frame
    };
    router.send(&phy, lldp(PEER_MAC));
    router.generator().inject(host, lldp(phy.mac())).unwrap();
    router.run();
    assert!(sink.take().is_empty() && phy.received().is_empty(), "as in VPP");
    run(&router, "lcp ethertype", "enable type=0x88cc").unwrap();
    run(&router, "lcp ethertype", "enable type=35020").unwrap();
    router.send(&phy, lldp(PEER_MAC));
    assert_eq!(sink.take(), [lldp(PEER_MAC)]);
    router.generator().inject(host, lldp(phy.mac())).unwrap();
    router.run();
    assert_eq!(phy.received_one(), lldp(phy.mac()));
    assert_eq!(run(&router, "show lcp ethertype", "").unwrap().to_text(), "0x88cc\n");
    for own in ["0x0800", "0x0806", "0x86dd", "0x8100", "0x05dc"] {
        run(&router, "lcp ethertype", &format!("enable type={own}")).unwrap_err();
    }
}

#[test]
fn what_an_audit_finds_is_mended_and_told_and_what_waits_says_for_what() {
    let Setup { router, .. } = setup();
    let lcp = router.get::<Lcp>();
    let there = |to, way| HostEvent::Route { route: route(to, 20, way), present: true };
    let eth9 = HostEvent::Link(host_link(9, "eth9"));
    let by_eth9 = HostWay::via([HostPath { host_index: 9, next_hop: None, weight: 1 }]);
    let (kept, gone, other, new) =
        ("198.51.100.0/24", "203.0.113.0/24", "2001:db8:1::/48", "2001:db8:2::/48");
    hear(
        &router,
        [link(true, true), eth9.clone(), there(kept, via("10.0.0.7")), there(gone, via("10.0.0.7"))],
    );
    hear(&router, [there(other, via("fe80::7")), there("192.0.2.0/24", by_eth9.clone())]);

    // What waits, and for what.
    assert_eq!(
        run(&router, "show lcp pending", "").unwrap().to_text(),
        "192.0.2.0/24 table 254 metric 20 waits for an image of this router: eth9 is none\n"
    );
    let numbered = HostRoute { next_hop_id: Some(5), ..route("192.0.2.0/25", 20, HostWay::via([])) };
    hear(&router, [HostEvent::Route { route: numbered, present: true }]);
    assert!(
        run(&router, "show lcp pending", "")
            .unwrap()
            .to_text()
            .contains("192.0.2.0/25 table 254 metric 20 waits for next hop 5, which Linux has not named")
    );

    // An audit that finds all as it was.
    assert_eq!(run(&router, "lcp audit", "").unwrap().to_text(), "");
    assert!(router.get::<FakeHost>().0.borrow().contains(&"audit".to_string()));
    let all = |more: Vec<HostEvent>| {
        let begin = HostEvent::Begin(ListingCause::Audit);
        let links = [link(true, true), eth9.clone()];
        [begin]
            .into_iter()
            .chain(links)
            .chain([there(kept, via("10.0.0.7"))])
            .chain(more)
            .chain([HostEvent::End])
    };
    let same =
        vec![there(gone, via("10.0.0.7")), there(other, via("fe80::7")), there("192.0.2.0/24", by_eth9)];
    hear_as(&router, EventOrigin::Listed, all(same));
    assert_eq!(lcp.drift().len(), 1, "the route that names next hop 5 is not in the list: {:?}", lcp.drift());
    assert!(
        run(&router, "show lcp drift", "")
            .unwrap()
            .to_text()
            .ends_with("audit: route 192.0.2.0/25 table 254 was not there any more\n")
    );

    // One that finds a route gone, one another, and one that was not known.
    hear_as(
        &router,
        EventOrigin::Listed,
        all(vec![there(other, via("fe80::8")), there(new, via("fe80::7"))]),
    );
    let told = run(&router, "show lcp drift", "").unwrap().to_text();
    for line in [
        "route 2001:db8:1::/48 table 254 metric 20 was another",
        "route 2001:db8:2::/48 table 254 metric 20 was not known",
        "route 203.0.113.0/24 table 254 was not there any more",
    ] {
        assert!(told.contains(line), "{told}");
    }
    let json = run(&router, "show lcp netlink", "").unwrap().to_json();
    let one = &json["namespaces"][0];
    assert_eq!(one["announced"]["routes"], 5, "{json}");
    assert_eq!(one["listings"]["audit"], 2, "{json}");
    assert_eq!((&one["installed"], &one["pending"]), (&3.into(), &0.into()), "{json}");
    assert_eq!(one["differences"], 5, "{json}");
    let text = run(&router, "show lcp netlink", "").unwrap().to_text();
    assert!(
        text.contains("listings: start 0, lost 0, link-up 0, audit 2") && text.contains("last: audit, "),
        "{text}"
    );
    // What is only announced, and what a listing after a start says, is no difference.
    hear_as(
        &router,
        EventOrigin::Listed,
        [
            HostEvent::Begin(ListingCause::Start),
            link(true, true),
            there(kept, via("10.0.0.9")),
            HostEvent::End,
        ],
    );
    assert_eq!(lcp.drift().len(), 5);
}

/// What the forwarding table has of prefixes that are told, and what is counted.
fn what_is_known(Setup { router, phy, .. }: &Setup, prefixes: &[String]) -> Vec<String> {
    let fib = router.get::<shoal_fib::Fib>();
    let mut all: Vec<String> = Vec::new();
    for (prefix, table) in prefixes.iter().flat_map(|prefix| [(prefix, 0), (prefix, 10)]) {
        let prefix: shoal_wire::IpPrefix = prefix.parse().unwrap();
        let Ok(index) = fib.index_of(shoal_fib::Family::of(prefix.addr()), table) else { continue };
        for source in [shoal_fib::Source::LcpRt, shoal_fib::Source::LcpRtDynamic] {
            for next_hop in ["10.0.0.7", "10.0.0.8", "2001:db8::7", "2001:db8::8"] {
                let path = shoal_fib::Path::next_hop(next_hop.parse::<IpAddr>().unwrap(), phy.index());
                if fib.has_paths(index, [prefix], source, &[path]).is_ok() {
                    all.push(format!("{table} {prefix} {source:?} {next_hop}"));
                }
            }
            if fib.has_paths(index, [prefix], source, &[shoal_fib::Via::Prohibit.into()]).is_ok() {
                all.push(format!("{table} {prefix} {source:?} prohibit"));
            }
        }
    }
    let lcp = router.get::<Lcp>();
    let tables = fib.ids(shoal_fib::Family::Ip4);
    let info = lcp.followed().remove(0);
    let counts = (info.announced.routes, info.prefixes, info.installed, info.pending);
    let mut pending = Vec::new();
    let mut after = None;
    while let Some(route) = lcp.next_pending(after.as_ref()) {
        pending.push(route.key);
        after = Some((route.netns, route.key));
    }
    all.push(format!("{counts:?} {pending:?} {tables:?}"));
    all
}

#[test]
fn what_is_told_together_has_the_same_effect_as_one_after_the_other() {
    let mut random = Rng::new(Rng::seed(0x5eed_0019));
    let prefixes: Vec<String> = (0..12)
        .map(|n| if n % 2 == 0 { format!("198.51.{n}.0/24") } else { format!("2001:db8:{n}::/48") })
        .collect();
    for _ in 0..30 {
        let [one_by_one, together] = [setup(), setup()];
        let mut waiting = Vec::new();
        for _ in 0..random.below(120) {
            let to = &prefixes[random.below(12)];
            let number = 1 + random.below(3) as u32;
            let next_hop = match (to.contains(':'), random.below(2)) {
                (false, 0) => "10.0.0.7",
                (false, _) => "10.0.0.8",
                (true, 0) => "2001:db8::7",
                (true, _) => "2001:db8::8",
            };
            let way = match random.below(8) {
                0 => HostWay::Prohibit,
                // By an interface that has no image.
                1 => HostWay::via([HostPath { host_index: 9, next_hop: None, weight: 1 }]),
                _ => via(next_hop),
            };
            let mut route = route(to, [20, 30][random.below(2)], way);
            route.table = [254, 10][random.below(2)];
            route.protocol = [HostRoute::STATIC, 186][random.below(2)];
            route.next_hop_id = (random.below(4) == 0).then_some(number);
            let hop = HostPath { host_index: 7, next_hop: Some(next_hop.parse().unwrap()), weight: 1 };
            waiting.push(match random.below(20) {
                0 => HostEvent::NextHop { id: number, hop: Some(HostNextHop::One(hop)) },
                1 => HostEvent::NextHop { id: number, hop: None },
                2 => HostEvent::Begin(ListingCause::Lost),
                3 => HostEvent::End,
                4 => link(random.below(2) == 0, true),
                n => HostEvent::Route { route, present: n < 15 },
            });
            if random.below(10) == 0 {
                hear(&one_by_one.router, waiting.iter().cloned());
                let all = waiting.drain(..).map(|event| (EventOrigin::Announced, event)).collect();
                together.router.get::<FakeHost>().1.borrow().as_ref().unwrap()(all);
                let [is, was] = [&together, &one_by_one].map(|setup| what_is_known(setup, &prefixes));
                assert_eq!(is, was);
            }
        }
    }
}

#[test]
fn routes_that_are_told_together_need_their_table_until_the_last_one_goes() {
    let Setup { router, .. } = setup();
    let fib = router.get::<shoal_fib::Fib>();
    let all = |present: bool| {
        let one = |n: u32| {
            let route = HostRoute { table: 77, ..route(&format!("198.51.{n}.0/24"), 20, via("10.0.0.7")) };
            (EventOrigin::Announced, HostEvent::Route { route, present })
        };
        (0..100).map(one).collect::<Vec<_>>()
    };
    let hear_all = |events| router.get::<FakeHost>().1.borrow().as_ref().unwrap()(events);
    let is_there = || fib.index_of(shoal_fib::Family::Ip4, 77).is_ok();
    hear_all(all(true));
    // Said again, they need it no more often.
    hear_all(all(true));
    let mut first = all(false);
    let last = first.split_off(99);
    hear_all(first);
    assert!(is_there());
    hear_all(last);
    assert!(!is_there());
}

#[test]
fn what_becomes_of_very_many_routes_takes_its_time_and_leaves_what_is_told_meanwhile() {
    const MANY: u32 = 5000;
    let Setup { mut router, .. } = setup();
    let to = |n: u32| format!("20.{}.{}.0/24", n / 256, n % 256);
    let is = |n: u32, id: Option<u32>| {
        let route = HostRoute { next_hop_id: id, ..route(&to(n), 20, via("10.0.0.7")) };
        HostEvent::Route { route, present: true }
    };
    let installed = |router: &Router| router.get::<Lcp>().followed().remove(0).installed;
    let hop = HostPath { host_index: 7, next_hop: Some("10.0.0.7".parse().unwrap()), weight: 1 };
    let one = || HostEvent::NextHop { id: 1, hop: Some(HostNextHop::One(hop)) };
    let all = |id| (0..MANY).map(move |n| is(n, id));
    // The image goes down, and half of the routes are told again at once.
    hear(&router, all(None));
    assert_eq!(installed(&router), 5000);
    hear(&router, [link(false, true), link(true, true)]);
    assert!(installed(&router) > 2500, "it is not done at once");
    hear(&router, (0..MANY / 2).map(|n| is(n, None)));
    router.run();
    assert_eq!(installed(&router), 2500);
    // The same of routes that name a next hop.
    hear(&router, [one()]);
    hear(&router, all(Some(1)));
    assert_eq!(installed(&router), 5000);
    hear(&router, [HostEvent::NextHop { id: 1, hop: None }, one()]);
    hear(&router, (0..MANY / 4).map(|n| is(n, Some(1))));
    router.run();
    assert_eq!(installed(&router), 1250);
    // What a listing names stays, and what is told between its end and the work on it.
    hear(&router, all(None));
    router.run();
    let named = (0..1000).map(|n| is(n, None));
    let begin = [HostEvent::Begin(ListingCause::Lost), link(true, true)];
    hear(&router, begin.into_iter().chain(named).chain([HostEvent::End]));
    hear(&router, (4000..MANY).map(|n| is(n, None)));
    router.run();
    assert_eq!(installed(&router), 2000);
    assert_eq!(router.get::<Lcp>().followed()[0].drifted, 3000 + 1);
}

#[test]
fn very_many_routes_of_zebra_go_in_slices_when_they_come_by_its_own_connection() {
    const MANY: u32 = 5000;
    let Setup { mut router, .. } = setup();
    let of = |n: u32, protocol: u8| {
        let route = route(&format!("20.{}.{}.0/24", n / 256, n % 256), 20, via("10.0.0.7"));
        HostEvent::Route { route: HostRoute { protocol, ..route }, present: true }
    };
    const BGP: u8 = 186;
    let installed = |router: &Router| router.get::<Lcp>().followed().remove(0).installed;
    // Every tenth is an operator's.
    hear(&router, (0..MANY).map(|n| of(n, if n % 10 == 0 { HostRoute::STATIC } else { BGP })));
    assert_eq!(installed(&router), 5000);
    let lcp = router.get::<Lcp>();
    let netns = lcp.followed().remove(0).netns;
    lcp.zebra_is_connected(&netns, true);
    assert!(installed(&router) > 2500, "it is not done at once");
    // What the kernel says of zebra's routes meanwhile is passed over.
    hear(&router, [of(1, BGP)]);
    router.run();
    assert_eq!(installed(&router), 500);
}

#[test]
fn very_many_routes_of_a_namespace_go_in_slices_after_its_last_pair_and_those_told_again_stay() {
    const MANY: u32 = 5000;
    let Setup { mut router, phy, .. } = setup();
    let is = |n: u32| HostEvent::Route {
        route: route(&format!("20.{}.{}.0/24", n / 256, n % 256), 20, via("10.0.0.7")),
        present: true,
    };
    let lcp = router.get::<Lcp>();
    let in_fib = |router: &Router| {
        let fib = router.get::<shoal_fib::Fib>();
        let there = |n: &u32| {
            let prefix: shoal_wire::IpPrefix = format!("20.{}.{}.0/24", n / 256, n % 256).parse().unwrap();
            fib.entry(shoal_fib::FibIndex::DEFAULT, prefix).is_ok()
        };
        (0..MANY).filter(there).count()
    };
    hear(&router, (0..MANY).map(is));
    assert_eq!(in_fib(&router), 5000);
    lcp.delete(phy.index()).unwrap();
    assert!(in_fib(&router) > 2500, "it is not done at once");
    // Nothing is heard of the namespace any more.
    assert_eq!(lcp.followed().len(), 1);
    router.run();
    assert_eq!((in_fib(&router), lcp.followed().len()), (0, 0));
    // A pair that comes back meanwhile: what Linux still has stays, and its listing says so.
    lcp.create(phy.index(), "e0", None).unwrap();
    let begin = || [HostEvent::Begin(ListingCause::Start), link(true, true)];
    let listing = |some: std::ops::Range<u32>| {
        begin().into_iter().chain(some.map(is)).chain([HostEvent::End]).collect::<Vec<_>>()
    };
    hear(&router, listing(0..MANY));
    router.run();
    assert_eq!(in_fib(&router), 5000);
    lcp.delete(phy.index()).unwrap();
    lcp.create(phy.index(), "e0", None).unwrap();
    hear(&router, listing(1000..2000));
    assert!(in_fib(&router) > 2500, "it is not done at once");
    router.run();
    assert_eq!((in_fib(&router), lcp.followed().remove(0).installed), (1000, 1000));
    // It goes, comes and goes again, faster than its routes.
    hear(&router, (0..MANY).map(is));
    lcp.delete(phy.index()).unwrap();
    lcp.create(phy.index(), "e0", None).unwrap();
    lcp.delete(phy.index()).unwrap();
    router.run();
    assert_eq!((in_fib(&router), lcp.followed().len()), (0, 0));
}
