//! VLANs that are made in Linux on images: each has a sub-interface.

use shoal_ethernet::{Ethernet, Match, Vid};
use shoal_interface::{MtuLayer, TagKind};

use super::mirror::{hear, hear_as};
use super::*;

const IMAGE: u32 = 7;

fn on(host_index: u32, name: &str, of: u32, tag: TagKind, id: u16) -> HostLink {
    let kind = HostLinkKind::Vlan { of: Some(of), tag, id: Vid::new(id).unwrap() };
    HostLink { kind, mtu: 1500, ..host_link(host_index, name) }
}

fn vlan(host_index: u32, id: u16) -> HostLink {
    on(host_index, &format!("e0.{id}"), IMAGE, TagKind::Dot1q, id)
}

fn names(router: &Router) -> Vec<String> {
    let interfaces = router.interfaces();
    let all = interfaces.indices().into_iter().filter_map(|i| interfaces.name(i).ok());
    all.filter(|name| name.contains('.')).collect()
}

fn address(host_index: u32, text: &str) -> HostEvent {
    let (address, len) = text.split_once('/').unwrap();
    let address = (address.parse().unwrap(), len.parse().unwrap());
    HostEvent::Address { host_index, address, present: true }
}

#[test]
fn a_vlan_of_linux_has_a_sub_interface_that_comes_and_goes_with_it() {
    let Setup { router, phy, .. } = setup();
    let lcp = router.get::<Lcp>();
    lcp.set_auto_subint(Sync::On);
    said(&router);
    hear(&router, [HostEvent::Link(host_link(IMAGE, "e0")), HostEvent::Link(vlan(30, 100))]);
    hear(&router, [address(30, "10.1.0.1/24"), address(30, "2001:db8:100::1/64")]);
    assert_eq!(names(&router), ["pg0.100"]);
    assert!(said(&router).is_empty(), "no image is made for it");
    let sub = router.interfaces().by_name("pg0.100").unwrap();
    let data = router.interfaces().data(sub).unwrap();
    assert!(data.is_up() && data.mtu == 1500);
    assert_eq!(router.get::<Ip4>().addresses(sub), ["10.1.0.1/24".parse().unwrap()]);
    assert!(
        run(&router, "show lcp", "")
            .unwrap()
            .to_text()
            .contains("itf-pair: [1] pg0.100 pg100 e0.100 30 type tap\n")
    );
    assert_eq!(run(&router, "show lcp vlan", "").unwrap().to_text(), "e0.100 on e0 802.1Q 100: pg0.100\n");
    // State and MTU are Linux's; an operator does not take it away.
    hear(&router, [HostEvent::Link(HostLink { up: false, mtu: 1400, ..vlan(30, 100) })]);
    let data = router.interfaces().data(sub).unwrap();
    assert!(!data.is_up() && data.mtu == 1400);
    assert!(matches!(lcp.delete(sub), Err(LcpError::OfLinux(_))));
    hear(&router, [HostEvent::Link(HostLink { name: "customer".into(), ..vlan(30, 100) })]);
    assert!(router.interfaces().data(sub).unwrap().is_up());
    assert!(run(&router, "show lcp", "").unwrap().to_text().contains(" customer 30 type tap"));
    hear(&router, [HostEvent::Gone { host_index: 30 }]);
    assert!(names(&router).is_empty() && lcp.list().len() == 1);
    // The port's image goes, and all on it with it.
    hear(&router, [HostEvent::Link(vlan(31, 5)), HostEvent::Link(vlan(32, 6))]);
    assert_eq!(names(&router), ["pg0.5", "pg0.6"]);
    lcp.delete(phy.index()).unwrap();
    assert!(names(&router).is_empty() && lcp.list().is_empty());
}

#[test]
fn frames_of_a_vlan_go_tagged_through_the_image_of_the_port() {
    let Setup { mut router, phy, host, sink } = setup();
    hear(&router, [HostEvent::Link(host_link(IMAGE, "e0")), HostEvent::Link(vlan(30, 100))]);
    hear(&router, [HostEvent::Link(on(31, "e0.10", IMAGE, TagKind::Dot1ad, 10))]);
    hear(&router, [HostEvent::Link(on(32, "c20", 31, TagKind::Dot1q, 20))]);
    assert_eq!(names(&router), ["pg0.100", "pg0.10", "pg0.100020"]);
    hear(&router, [address(30, "10.1.0.1/24"), address(32, "10.2.0.1/24")]);
    router.run();
    phy.received();
    sink.take();
    let udp = |net| {
        PacketBuilder::ethernet(PEER_MAC, phy.mac()).ip4([10, net, 0, 2], [10, net, 0, 1]).udp(1000, 179)
    };
    let one = udp(1).vlan(100).build();
    router.send(&phy, &one);
    assert_eq!(sink.take(), std::slice::from_ref(&one));
    let two = udp(2).vlan(10).vlan(20).build();
    router.send(&phy, &two);
    assert_eq!(sink.take(), [two]);
    // What Linux sends leaves as it is.
    let back = PacketBuilder::ethernet(phy.mac(), PEER_MAC)
        .ip4([10, 1, 0, 1], PEER)
        .udp(179, 1000)
        .vlan(100)
        .build();
    router.generator().inject(host, back.clone()).unwrap();
    router.run();
    assert_eq!(phy.received(), [back]);
    // A VLAN with an address of its own gets frames to that.
    let own = MacAddress([2, 0, 0, 0, 1, 0]);
    hear(&router, [HostEvent::Link(HostLink { mac: Some(own), ..vlan(30, 100) })]);
    router.send(&phy, &one);
    assert_eq!(sink.take(), [as_seen(&one, own.0)]);
    // Without the image's port nothing of it is left.
    hear(&router, [HostEvent::Gone { host_index: 30 }]);
    router.send(&phy, &one);
    assert!(sink.take().is_empty());
}

#[test]
fn an_operators_sub_interface_is_taken_and_left_there() {
    let Setup { router, phy, .. } = setup();
    let (lcp, ethernet) = (router.get::<Lcp>(), router.get::<Ethernet>());
    let exact = |id| Match::exact_dot1q(Vid::new(id).unwrap());
    let sub = ethernet.create_sub(phy.index(), 7, exact(100)).unwrap();
    lcp.set_sync(Sync::On);
    said(&router);
    hear(&router, [HostEvent::Link(host_link(IMAGE, "e0")), HostEvent::Link(vlan(30, 100))]);
    assert_eq!((names(&router), lcp.list().len()), (vec!["pg0.7".to_owned()], 2));
    // What the router changes is changed at the VLAN.
    router.get::<Ip4>().add_address(sub, "10.1.0.1/24".parse().unwrap()).unwrap();
    router.interfaces().set_mtu(sub, MtuLayer::L3, 1300).unwrap();
    router.interfaces().set_admin(sub, false).unwrap();
    let told = said(&router);
    for what in ["30: Address((10.1.0.1, 24), true)", "30: Mtu(1300)", "30: Up(false)"] {
        assert!(told.iter().any(|told| told == what), "{told:?}");
    }
    hear(&router, [HostEvent::Gone { host_index: 30 }]);
    assert_eq!((names(&router), lcp.list().len()), (vec!["pg0.7".to_owned()], 1));
    // One with an image of its own keeps that.
    lcp.create(sub, "own", None).unwrap();
    hear(&router, [HostEvent::Link(vlan(30, 100))]);
    let text = run(&router, "show lcp vlan", "").unwrap().to_text();
    assert_eq!(
        text,
        "e0.100 on e0 802.1Q 100: not followed: the sub-interface with these tags has another image\n"
    );
    // A number that is another one's.
    ethernet.create_sub(phy.index(), 101, exact(8)).unwrap();
    hear(&router, [HostEvent::Link(vlan(31, 101))]);
    assert!(names(&router).contains(&"pg0.5000".to_owned()), "{:?}", names(&router));
}

#[test]
fn what_is_no_vlan_of_an_image_makes_nothing() {
    let Setup { router, .. } = setup();
    hear(&router, [HostEvent::Link(host_link(IMAGE, "e0")), HostEvent::Link(host_link(9, "eth9"))]);
    let elsewhere = HostLinkKind::Vlan { of: None, tag: TagKind::Dot1q, id: Vid::new(4).unwrap() };
    let all = [
        on(30, "eth9.4", 9, TagKind::Dot1q, 4),
        on(31, "nothing.4", 99, TagKind::Dot1q, 4),
        HostLink { kind: elsewhere, ..host_link(32, "far") },
        on(33, "priority", IMAGE, TagKind::Dot1q, 0),
        on(34, "itself", 34, TagKind::Dot1q, 4),
        on(36, "round", 37, TagKind::Dot1q, 4),
        on(37, "about", 36, TagKind::Dot1q, 4),
    ];
    hear(&router, all.map(HostEvent::Link));
    assert!(names(&router).is_empty(), "{:?}", names(&router));
    hear(&router, [HostEvent::Link(vlan(40, 4)), HostEvent::Link(on(41, "in", 40, TagKind::Dot1ad, 5))]);
    hear(&router, [HostEvent::Link(on(42, "two", 40, TagKind::Dot1q, 6))]);
    hear(&router, [HostEvent::Link(on(43, "three", 42, TagKind::Dot1q, 7))]);
    assert_eq!(names(&router), ["pg0.4", "pg0.40006"]);
    let text = run(&router, "show lcp vlan", "").unwrap().to_text();
    for why in [
        "in on e0.4 802.1ad 5: not followed: its inner tag",
        "three on two 802.1Q 7: not followed: it has more",
    ] {
        assert!(text.contains(why), "{text}");
    }
    let json = run(&router, "show lcp netlink", "").unwrap().to_json();
    let one = &json["namespaces"][0];
    assert_eq!((&one["vlans"], &one["refused"]), (&2.into(), &3.into()), "{json}");
    // One below the other, as Linux tells it.
    for host_index in [43, 42, 41, 40] {
        hear(&router, [HostEvent::Gone { host_index }]);
    }
    assert!(names(&router).is_empty());
}

#[test]
fn vlans_that_are_there_already_are_found_with_the_image() {
    let mut router = Router::new(MODULES);
    let (first, phy) = (router.pg(0), router.pg(1));
    let lcp = router.get::<Lcp>();
    lcp.create(first.index(), "e0", None).unwrap();
    // What is to be `e1`, of an earlier start, with a VLAN in a VRF.
    let vrf = HostLink { kind: HostLinkKind::Vrf { table: 10 }, ..host_link(20, "red") };
    let of_e1 = HostLink { master: Some(20), ..on(30, "e1.4", 8, TagKind::Dot1q, 4) };
    let inner = on(31, "c5", 30, TagKind::Dot1q, 5);
    let links = [host_link(8, "e1"), vrf, of_e1, inner].map(HostEvent::Link);
    hear_as(&router, EventOrigin::Listed, links);
    hear_as(&router, EventOrigin::Listed, [address(30, "10.1.0.1/24")]);
    assert!(names(&router).is_empty());
    router.interfaces().set_admin(phy.index(), true).unwrap();
    lcp.create(phy.index(), "e1", None).unwrap();
    assert_eq!(names(&router), ["pg1.4", "pg1.40005"]);
    let (sub, ip4) = (router.interfaces().by_name("pg1.4").unwrap(), router.get::<Ip4>());
    assert_eq!(ip4.addresses(sub), ["10.1.0.1/24".parse().unwrap()]);
    assert_ne!(ip4.fib_of(sub), shoal_fib::FibIndex::DEFAULT);
    // The port goes down and up, and its VLANs with it.
    router.interfaces().set_admin(phy.index(), false).unwrap();
    router.interfaces().set_admin(sub, false).unwrap();
    router.interfaces().set_admin(phy.index(), true).unwrap();
    assert!(router.interfaces().data(sub).unwrap().is_up());
    // An operator may take the sub-interface; the port may go.
    router.get::<Ethernet>().delete_sub(sub).unwrap();
    assert_eq!(names(&router), ["pg1.40005"]);
    router.interfaces().delete(phy.index()).unwrap();
    router.run();
    assert!(names(&router).is_empty() && lcp.list().len() == 1);
}

#[test]
fn vlans_that_come_and_go_leave_nothing() {
    let Setup { router, .. } = setup();
    let lcp = router.get::<Lcp>();
    hear(&router, [HostEvent::Link(host_link(IMAGE, "e0"))]);
    let mut rng = Rng::new(11);
    for _ in 0..400 {
        let host_index = 30 + rng.below(6) as u32;
        let event = match rng.below(3) {
            0 => HostEvent::Gone { host_index },
            1 => HostEvent::Link(vlan(host_index, 1 + rng.below(4) as u16)),
            _ => {
                let of = 30 + rng.below(6) as u32;
                let tag = if rng.below(2) == 0 { TagKind::Dot1q } else { TagKind::Dot1ad };
                HostEvent::Link(on(host_index, "x", of, tag, rng.below(4) as u16))
            }
        };
        hear(&router, [event]);
        assert_eq!(names(&router).len() + 1, lcp.list().len());
    }
    let listed =
        [HostEvent::Begin(ListingCause::Audit), HostEvent::Link(host_link(IMAGE, "e0")), HostEvent::End];
    hear_as(&router, EventOrigin::Listed, listed);
    assert!(names(&router).is_empty() && lcp.list().len() == 1);
}
