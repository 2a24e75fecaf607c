//! Sub-interfaces in layer 3: what they send has their tags, and they share what is their port's.

#![allow(clippy::indexing_slicing, clippy::unwrap_used, clippy::panic)] // helpers of tests

use std::net::{Ipv4Addr, Ipv6Addr};
use std::rc::Rc;
use std::time::Duration;

use shoal_arp::Neighbours;
use shoal_arp::table::{FibEntry, Origin};
use shoal_ethernet::{Ethernet, Exact, Inner, Match, TagKind, Vid};
use shoal_interface::{IfFlags, InterfaceError, MtuLayer, OUTPUT_ARC, SwIfIndex};
use shoal_ip4::Ip4;
use shoal_ip6::Ip6;
use shoal_testkit::{PEER_MAC, PacketBuilder, Port, Router, STACK};
use shoal_wire::{EtherType, MacAddress};

const HOST: MacAddress = MacAddress([2, 0xaa, 0, 0, 0, 1]);
const A: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const B: Ipv4Addr = Ipv4Addr::new(10, 0, 1, 2);
const US_A: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const A6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2);
const B6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 2);
const ONE_TAG: [u8; 4] = [0x81, 0x00, 0, 100];
const TWO_TAGS: [u8; 8] = [0x88, 0xa8, 0, 10, 0x81, 0x00, 0, 20];

/// A router with pg0.100 (802.1Q, 10.0.0.1/24, 2001:db8::1/64) and pg1.8 (802.1ad 10, inner 20, 10.0.1.1/24,
/// 2001:db8:1::1/64), all up.
struct Setup {
    router: Router,
    ports: [Port; 2],
    subs: [SwIfIndex; 2],
}

fn vid(id: u16) -> Vid {
    Vid::new(id).unwrap()
}

fn two_tags() -> Match {
    Match::Tags { kind: TagKind::Dot1ad, outer: vid(10), inner: Inner::Id(vid(20)), exact: Exact::Yes }
}

fn setup() -> Setup {
    let mut modules = STACK.to_vec();
    modules.push(&shoal_ip6_nd::MODULE);
    let mut router = Router::new(&modules);
    let ports = [router.pg(0), router.pg(1)];
    let ethernet: Rc<Ethernet> = router.get();
    let one = ethernet.create_sub(ports[0].index(), 100, Match::exact_dot1q(vid(100))).unwrap();
    let two = ethernet.create_sub(ports[1].index(), 8, two_tags()).unwrap();
    for (sub, address, address6) in
        [(one, "10.0.0.1/24", "2001:db8::1/64"), (two, "10.0.1.1/24", "2001:db8:1::1/64")]
    {
        router.interfaces().set_admin(sub, true).unwrap();
        router.get::<Ip4>().add_address(sub, address.parse().unwrap()).unwrap();
        router.get::<Ip6>().add_address(sub, address6.parse().unwrap()).unwrap();
    }
    router.advance(Duration::from_secs(3));
    let setup = Setup { router, ports, subs: [one, two] };
    setup.ports.iter().for_each(|port| drop(port.received()));
    setup
}

/// A frame with tags behind its addresses.
fn tagged(tags: &[u8], frame: Vec<u8>) -> Vec<u8> {
    [&frame[..12], tags, &frame[12..]].concat()
}

impl Setup {
    fn know(&self, at: usize, address: Ipv4Addr) {
        let key = (self.subs[at], address);
        self.router.get::<Neighbours>().set(key, PEER_MAC, Origin::Static, FibEntry::Wanted).unwrap();
    }

    fn know6(&self, at: usize, address: Ipv6Addr) {
        let neighbours = self.router.get::<shoal_ip6_nd::Neighbours>();
        neighbours.set((self.subs[at], address), PEER_MAC, Origin::Static, FibEntry::Wanted).unwrap();
    }

    fn counts(&self, what: &str, interface: SwIfIndex) -> u64 {
        self.router.if_counter(what, interface)
    }

    /// UDP from A to B as pg0 receives it.
    fn udp(&self) -> PacketBuilder {
        PacketBuilder::ethernet(HOST, self.ports[0].mac()).ip4(A, B).udp(1000, 2000).payload_len(20)
    }

    /// What pg1 sent of UDP over IPv4, and nothing of what the router says for itself.
    fn forwarded(&self) -> Vec<Vec<u8>> {
        let udp = |frame: &Vec<u8>| frame.get(20..22) == Some(&[8, 0]) && frame.get(31) == Some(&17);
        self.ports[1].received().into_iter().filter(udp).collect()
    }

    fn send(&mut self, frame: &[u8]) {
        let Setup { router, ports, .. } = self;
        router.send(&ports[0], frame);
    }
}

#[test]
fn packets_leave_by_a_sub_interface_with_its_tags_and_count_for_both() {
    let mut setup = setup();
    setup.know(1, B);
    setup.know6(1, B6);
    let (port, sub) = (setup.ports[1].index(), setup.subs[1]);
    let before = [port, sub].map(|i| setup.counts("/if/tx", i));
    setup.send(&tagged(&ONE_TAG, setup.udp().build()));
    let sent = setup.ports[1].received_one();
    let expected = PacketBuilder::ethernet(setup.ports[1].mac(), PEER_MAC).ip4(A, B).udp(1000, 2000);
    assert_eq!(sent, tagged(&TWO_TAGS, expected.ttl(63).payload_len(20).build()));
    let udp6 = PacketBuilder::ethernet(HOST, setup.ports[0].mac()).ip6(A6, B6).udp(7, 9).payload_len(20);
    setup.send(&tagged(&ONE_TAG, udp6.build()));
    let sent = setup.ports[1].received_one();
    let expected = PacketBuilder::ethernet(setup.ports[1].mac(), PEER_MAC).ip6(A6, B6).udp(7, 9);
    assert_eq!(sent, tagged(&TWO_TAGS, expected.ttl(63).payload_len(20).build()));
    for (interface, before) in [port, sub].into_iter().zip(before) {
        assert_eq!(setup.counts("/if/tx", interface) - before, 2);
    }
    assert_eq!(setup.counts("/if/rx", setup.subs[0]), 2);
}

#[test]
fn a_burst_to_and_from_sub_interfaces_passes_whole() {
    let mut setup = setup();
    setup.know(1, B);
    let (port, sub) = (setup.ports[1].index(), setup.subs[1]);
    let before = [port, sub].map(|i| setup.counts("/if/tx", i));
    let plain = setup.udp().build();
    let frames: Vec<Vec<u8>> = (0..300)
        .map(|n| {
            if n % 3 == 0 {
                tagged(&[0x81, 0, 0, 99], plain.clone())
            } else {
                tagged(&ONE_TAG, plain.clone())
            }
        })
        .collect();
    let Setup { router, ports, .. } = &mut setup;
    router.send_all(&ports[0], frames);
    assert_eq!(ports[1].received().len(), 200);
    assert_eq!(setup.router.error("ethernet-input", "unknown vlan"), 100);
    for (interface, before) in [port, sub].into_iter().zip(before) {
        assert_eq!(setup.counts("/if/tx", interface) - before, 200);
    }
}

#[test]
fn arp_asks_and_answers_with_tags() {
    let mut setup = setup();
    let request = PacketBuilder::arp_request(HOST, A, US_A).build();
    setup.send(&tagged(&ONE_TAG, request.clone()));
    let reply = PacketBuilder::arp_reply(setup.ports[0].mac(), US_A, HOST, A).build();
    let sent = setup.ports[0].received_one();
    assert_eq!(sent[..46], tagged(&ONE_TAG, reply)[..46]);
    // Without the tag no interface takes it.
    setup.send(&request);
    assert!(setup.ports[0].received().is_empty());
    // The other side is asked for, and what waited leaves when the answer comes.
    setup.send(&tagged(&ONE_TAG, setup.udp().build()));
    let ours = setup.ports[1].mac();
    let asked = setup.ports[1].received_one();
    let request = PacketBuilder::arp_request(ours, Ipv4Addr::new(10, 0, 1, 1), B).build();
    assert_eq!(asked[..50], tagged(&TWO_TAGS, request)[..50]);
    let reply = PacketBuilder::arp_reply(PEER_MAC, B, ours, Ipv4Addr::new(10, 0, 1, 1)).build();
    let Setup { router, ports, .. } = &mut setup;
    router.send(&ports[1], tagged(&TWO_TAGS, reply));
    let sent = ports[1].received_one();
    assert_eq!(sent[..20], tagged(&TWO_TAGS, PacketBuilder::ethernet(ours, PEER_MAC).build())[..20]);
}

#[test]
fn neighbour_discovery_asks_and_answers_with_tags() {
    let mut setup = setup();
    let udp6 = PacketBuilder::ethernet(HOST, setup.ports[0].mac()).ip6(A6, B6).udp(7, 9).payload_len(20);
    setup.send(&tagged(&ONE_TAG, udp6.build()));
    let asked = setup.ports[1].received_one();
    assert_eq!((&asked[12..20], &asked[20..22]), (&TWO_TAGS[..], &EtherType::IP6.0.to_be_bytes()[..]));
    assert_eq!(asked[22 + 40], 135, "a solicitation");
    // The same message from the other side, turned round: it asks for the router's address.
    let mut question = asked.clone();
    question[6..12].copy_from_slice(&HOST.0);
    let solicited = |frame: &mut Vec<u8>, src: Ipv6Addr, target: Ipv6Addr, mac: MacAddress| {
        let group = shoal_wire::ip6_address::solicited_node(target);
        let message = {
            let mut out = [0; 64];
            let len = shoal_wire::nd::NeighborSolicitation::new(target)
                .write(&mut out)
                .source_link_layer(mac)
                .finish(src, group)
                .unwrap();
            out[..len].to_vec()
        };
        frame[..6].copy_from_slice(&MacAddress::for_ip6_multicast(group).0);
        frame[22 + 8..22 + 24].copy_from_slice(&src.octets());
        frame[22 + 24..22 + 40].copy_from_slice(&group.octets());
        frame[62..62 + message.len()].copy_from_slice(&message);
    };
    solicited(&mut question, B6, Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 1), HOST);
    let Setup { router, ports, .. } = &mut setup;
    router.send(&ports[1], &question);
    let sent = ports[1].received();
    let answer = sent.iter().find(|frame| frame[62] == 136).expect("an advertisement");
    assert_eq!((&answer[..6], &answer[12..20]), (&HOST.0[..], &TWO_TAGS[..]));
    // The question told where B is: what waited for it has left, with tags.
    assert!(sent.iter().any(|frame| frame[22 + 6] == 17 && frame[12..20] == TWO_TAGS));
}

#[test]
fn echo_requests_are_answered_by_the_way_they_came() {
    let mut setup = setup();
    setup.know(0, A);
    setup.know6(0, A6);
    let echo = PacketBuilder::ethernet(HOST, setup.ports[0].mac()).ip4(A, US_A).icmp_echo_request(1, 1);
    setup.send(&tagged(&ONE_TAG, echo.build()));
    let sent = setup.ports[0].received_one();
    assert_eq!((&sent[12..16], sent[18 + 20]), (&ONE_TAG[..], 0), "an echo reply");
    let us = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
    let echo = PacketBuilder::ethernet(HOST, setup.ports[0].mac()).ip6(A6, us).icmp6_echo_request(1, 1);
    setup.send(&tagged(&ONE_TAG, echo.build()));
    let sent = setup.ports[0].received_one();
    assert_eq!((&sent[12..16], sent[18 + 40]), (&ONE_TAG[..], 129));
}

#[test]
fn a_sub_interface_has_its_ports_mtu_unless_it_has_its_own() {
    let mut setup = setup();
    setup.know(1, B);
    setup.know(0, A);
    let interfaces = Rc::clone(setup.router.interfaces());
    let (port, sub) = (setup.ports[1].index(), setup.subs[1]);
    let mtu = |interface| interfaces.data(interface).unwrap().mtu;
    let big = |setup: &Setup| {
        let frame = setup.udp().dont_fragment().payload_len(1200).build();
        tagged(&ONE_TAG, frame)
    };
    assert_eq!((mtu(port), mtu(sub), interfaces.info(sub).unwrap().mtu.l3), (9000, 9000, 0));
    interfaces.set_mtu(port, MtuLayer::L3, 1000).unwrap();
    assert_eq!(mtu(sub), 1000);
    setup.send(&big(&setup));
    assert!(setup.ports[1].received().is_empty());
    let told = setup.ports[0].received_one();
    assert_eq!((&told[12..16], told[18 + 20], told[18 + 21]), (&ONE_TAG[..], 3, 4), "the sender is told");
    interfaces.set_mtu(sub, MtuLayer::L3, 1300).unwrap();
    interfaces.set_mtu(port, MtuLayer::L3, 1400).unwrap();
    assert_eq!(mtu(sub), 1300);
    setup.send(&big(&setup));
    assert_eq!(setup.ports[1].received().len(), 1);
    interfaces.set_mtu(sub, MtuLayer::L3, 0).unwrap();
    assert_eq!((mtu(sub), interfaces.info(sub).unwrap().link_mtu), (1400, 1400));
    assert!(interfaces.set_mtu(port, MtuLayer::L3, 0).is_err());
    assert!(interfaces.set_mtu(sub, MtuLayer::L3, 63).is_err());
}

#[test]
fn a_sub_interface_is_up_only_while_its_port_is() {
    let mut setup = setup();
    setup.know(1, B);
    let interfaces = Rc::clone(setup.router.interfaces());
    let (port, sub) = (setup.ports[1].index(), setup.subs[1]);
    let frame = tagged(&ONE_TAG, setup.udp().build());
    interfaces.set_admin(port, false).unwrap();
    let flags = interfaces.data(sub).unwrap().flags();
    assert!(flags.has(IfFlags::ADMIN_UP) && !flags.has(IfFlags::LINK_UP));
    setup.send(&frame);
    assert!(setup.forwarded().is_empty(), "nothing leaves by a port that is down");
    interfaces.set_admin(sub, false).unwrap();
    assert_eq!(interfaces.set_admin(sub, true), Err(InterfaceError::PortDown("pg1".into())));
    interfaces.set_admin(port, true).unwrap();
    setup.send(&frame);
    assert!(setup.forwarded().is_empty(), "nor by a sub-interface that is down");
    interfaces.set_admin(sub, true).unwrap();
    setup.know(1, B);
    setup.send(&frame);
    assert_eq!(setup.forwarded().len(), 1);
}

#[test]
fn a_new_mac_address_of_the_port_is_that_of_its_sub_interfaces() {
    let mut setup = setup();
    setup.know(1, B);
    let interfaces = Rc::clone(setup.router.interfaces());
    let new = MacAddress([2, 0xfe, 0, 0, 9, 9]);
    interfaces.set_mac(setup.ports[1].index(), new).unwrap();
    setup.send(&tagged(&ONE_TAG, setup.udp().build()));
    assert_eq!(setup.forwarded()[0][6..12], new.0);
    // As in VPP there is one address of a port and its sub-interfaces, no matter by which of them it is set.
    let other = MacAddress([2, 0xfe, 0, 0, 9, 8]);
    interfaces.set_mac(setup.subs[1], other).unwrap();
    assert_eq!(interfaces.data(setup.ports[1].index()).unwrap().mac(), other);
    setup.send(&tagged(&ONE_TAG, setup.udp().build()));
    assert_eq!(setup.forwarded()[0][6..12], other.0);
}

#[test]
fn names_follow_the_ports_until_a_sub_interface_has_its_own() {
    let setup = setup();
    let interfaces = setup.router.interfaces();
    let (port, sub) = (setup.ports[1].index(), setup.subs[1]);
    interfaces.rename(port, "wan").unwrap();
    assert_eq!((interfaces.name(sub).unwrap().as_str(), interfaces.by_name("pg1.8")), ("wan.8", None));
    interfaces.rename(sub, "customer").unwrap();
    interfaces.rename(port, "uplink").unwrap();
    assert_eq!(interfaces.name(sub).unwrap(), "customer");
}

#[test]
fn features_of_the_ports_output_run_for_its_sub_interfaces() {
    let setup = setup();
    let (graph, interfaces) = (setup.router.graph(), setup.router.interfaces());
    let (port, sub) = (setup.ports[1].index(), setup.subs[1]);
    let arc = graph.arc(OUTPUT_ARC).unwrap();
    let own = arc.enabled(sub);
    interfaces.collect_detailed(port, true).unwrap();
    let collects = arc.enabled(port);
    assert_ne!(collects, 0);
    assert_eq!(arc.enabled(sub), own | collects);
    let (late, takes) = (setup.router.get::<Ethernet>(), Match::exact_dot1q(vid(9)));
    let late = late.create_sub(port, 9, takes).unwrap();
    assert_eq!(arc.enabled(late) & collects, collects, "one that comes later has them too");
    interfaces.collect_detailed(sub, true).unwrap();
    interfaces.collect_detailed(port, false).unwrap();
    assert_eq!((arc.enabled(port), arc.enabled(sub)), (0, own | collects), "its own stay");
    interfaces.collect_detailed(sub, false).unwrap();
    assert_eq!(arc.enabled(sub), own);
}

#[test]
fn only_sub_interfaces_with_exact_match_are_routed() {
    let setup = setup();
    let ethernet = setup.router.get::<Ethernet>();
    let port = setup.ports[0].index();
    let loose =
        |outer, inner| Match::Tags { kind: TagKind::Dot1q, outer: vid(outer), inner, exact: Exact::No };
    let refused = [
        ethernet.create_sub(port, 1, loose(1, Inner::None)).unwrap(),
        ethernet.create_sub(port, 2, loose(2, Inner::Any)).unwrap(),
        ethernet.create_sub(port, 3, Match::Default).unwrap(),
    ];
    for (number, sub) in (1..).zip(refused) {
        let why = format!(
            "sub-interface without exact-match doesn't support IP addressing: create pg0.{number} with exact-match"
        );
        let ip4 = setup.router.get::<Ip4>();
        let (a4, a6) = ("10.9.0.1/24".parse().unwrap(), "2001:db8:9::1/64".parse().unwrap());
        assert_eq!(ip4.add_address(sub, a4).unwrap_err().to_string(), why);
        assert_eq!(setup.router.get::<Ip6>().add_address(sub, a6).unwrap_err().to_string(), why);
        assert_eq!(setup.router.get::<Ip6>().enable(sub, true).unwrap_err().to_string(), why);
        assert_eq!(ip4.set_unnumbered(sub, Some(setup.subs[0])).unwrap_err().to_string(), why);
    }
    let untagged = ethernet.create_sub(port, 4, Match::Untagged).unwrap();
    setup.router.get::<Ip4>().add_address(untagged, "10.9.0.1/24".parse().unwrap()).unwrap();
}

#[test]
fn what_was_under_way_to_a_sub_interface_that_goes_is_dropped() {
    let mut setup = setup();
    setup.know(1, B);
    let frame = tagged(&ONE_TAG, setup.udp().build());
    for round in 0..20 {
        let Setup { router, ports, subs } = &mut setup;
        let output = router.graph().node("interface-output").unwrap();
        {
            let mut main = router.graph().main();
            let mut buffer = main.cache().alloc_data(&frame).unwrap();
            main.cache().packet(&mut buffer).meta_mut().tx = subs[1];
            main.inject(output, buffer);
        }
        router.get::<Ethernet>().delete_sub(subs[1]).unwrap();
        router.send(&ports[0], &frame);
        assert!(ports[1].received().is_empty(), "round {round}");
        subs[1] = router.get::<Ethernet>().create_sub(ports[1].index(), 8, two_tags()).unwrap();
        router.interfaces().set_admin(subs[1], true).unwrap();
        router.get::<Ip4>().add_address(subs[1], "10.0.1.1/24".parse().unwrap()).unwrap();
        setup.know(1, B);
        setup.send(&frame);
        assert_eq!(setup.ports[1].received().len(), 1, "round {round}");
    }
    assert_eq!(setup.router.buffers_in_use(), 0);
}

#[test]
fn all_vlans_of_a_port_come_and_go() {
    let setup = setup();
    let (ethernet, interfaces) = (setup.router.get::<Ethernet>(), setup.router.interfaces());
    let port = setup.ports[1].index();
    let before = interfaces.indices().len();
    for _ in 0..2 {
        let all: Vec<SwIfIndex> = (1..=4094)
            .map(|id| ethernet.create_sub(port, 10_000 + u32::from(id), Match::exact_dot1q(vid(id))).unwrap())
            .collect();
        interfaces.set_mtu(port, MtuLayer::L3, 1500).unwrap();
        assert!(all.iter().all(|sub| interfaces.data(*sub).unwrap().mtu == 1500));
        for sub in all {
            ethernet.delete_sub(sub).unwrap();
        }
        assert_eq!(interfaces.indices().len(), before);
    }
}

#[test]
fn sub_interfaces_have_tables_of_their_own_and_borrow_addresses() {
    let mut setup = setup();
    let (ethernet, ip4) = (setup.router.get::<Ethernet>(), setup.router.get::<Ip4>());
    let fib = setup.router.get::<shoal_fib::Fib>();
    fib.add_table(shoal_adj::Family::Ip4, 7, None).unwrap();
    let [a, b] = setup.ports.each_ref().map(shoal_testkit::Port::index);
    let customer = ethernet.create_sub(a, 7, Match::exact_dot1q(vid(7))).unwrap();
    let out = ethernet.create_sub(b, 7, Match::exact_dot1q(vid(7))).unwrap();
    for (sub, address) in [(customer, "10.0.0.1/24"), (out, "10.0.1.1/24")] {
        ip4.set_table(sub, 7).unwrap();
        setup.router.interfaces().set_admin(sub, true).unwrap();
        ip4.add_address(sub, address.parse().unwrap()).unwrap();
        let host = if sub == out { B } else { A };
        let arp = setup.router.get::<Neighbours>();
        arp.set((sub, host), PEER_MAC, Origin::Static, FibEntry::Wanted).unwrap();
    }
    setup.know(1, B);
    setup.ports[1].received();
    // The same packet by two VLANs: each leaves by the table of its own.
    let packet = setup.udp().build();
    setup.send(&tagged(&[0x81, 0, 0, 7], packet.clone()));
    assert_eq!(setup.ports[1].received_one()[12..18], [0x81, 0, 0, 7, 8, 0]);
    setup.send(&tagged(&ONE_TAG, packet));
    assert_eq!(setup.ports[1].received_one()[12..20], TWO_TAGS);
    // One that borrows asks with the address of the lender.
    let lent = ethernet.create_sub(b, 9, Match::exact_dot1q(vid(9))).unwrap();
    setup.router.interfaces().set_admin(lent, true).unwrap();
    ip4.set_unnumbered(lent, Some(setup.subs[1])).unwrap();
    let host = Ipv4Addr::new(10, 0, 1, 77);
    let arp = setup.router.get::<Neighbours>();
    arp.set((lent, host), PEER_MAC, Origin::Static, FibEntry::Wanted).unwrap();
    let packet = PacketBuilder::ethernet(HOST, setup.ports[0].mac()).ip4(A, host).udp(1, 2).build();
    setup.send(&tagged(&ONE_TAG, packet));
    assert_eq!(setup.ports[1].received_one()[12..18], [0x81, 0, 0, 9, 8, 0]);
}
