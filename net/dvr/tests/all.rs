//! Routes that bridge, in both families.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // helpers of tests

use std::time::Duration;

use shoal_adj::Family;
use shoal_bridge::{Bridges, Role, Settings};
use shoal_buffer::Flags;
use shoal_ethernet::{Ethernet, Exact, Inner, Match, TagKind, Vid};
use shoal_fib::{Fib, FibIndex, Source, Via};
use shoal_interface::SwIfIndex;
use shoal_ip4::Ip4;
use shoal_ip6::Ip6;
use shoal_l2::{L2, TagOp, TagRewrite};
use shoal_module::Module;
use shoal_mss_clamp::{Directions, MssClamp, Setting};
use shoal_testkit::{PacketBuilder, Port, Router};
use shoal_wire::{IpPrefix, IpProtocol};

const MODULES: &[&Module] = &[
    &shoal_interface::MODULE,
    &shoal_adj::MODULE,
    &shoal_ethernet::MODULE,
    &shoal_l2::MODULE,
    &shoal_fib::MODULE,
    &shoal_ip4::MODULE,
    &shoal_ip6::MODULE,
    &shoal_arp::MODULE,
    &shoal_icmp::MODULE,
    &shoal_ip6_nd::MODULE,
    &shoal_bridge::MODULE,
    &shoal_mss_clamp::MODULE,
    &shoal_dvr::MODULE,
];
const FAMILIES: [Family; 2] = [Family::Ip4, Family::Ip6];
const HOST: [u8; 6] = [2, 0xaa, 0, 0, 0, 1];

/// A bridge domain of a routed interface, two ports, and a sub-interface for tag 93 of a third one.
struct World {
    router: Router,
    ports: Vec<Port>,
    sub: SwIfIndex,
    mac: [u8; 6],
}

fn sub(router: &Router, port: &Port, id: u16) -> SwIfIndex {
    let outer = Vid::new(id).unwrap();
    let takes = Match::Tags { kind: TagKind::Dot1q, outer, inner: Inner::None, exact: Exact::Yes };
    let sub = router.get::<Ethernet>().create_sub(port.index(), id.into(), takes).unwrap();
    router.interfaces().set_admin(sub, true).unwrap();
    sub
}

fn address(router: &Router, interface: SwIfIndex) {
    router.get::<Ip4>().add_address(interface, "10.1.0.1/24".parse().unwrap()).unwrap();
    router.get::<Ip6>().add_address(interface, "2001:db8:1::1/64".parse().unwrap()).unwrap();
}

fn world() -> World {
    let mut router = Router::new(MODULES);
    let bridges = router.get::<Bridges>();
    bridges.create(1, Settings::default()).unwrap();
    let ports: Vec<Port> = (0..3).map(|n| router.pg(n)).collect();
    let sub = sub(&router, &ports[2], 93);
    let bvi = router.interfaces().create_bvi(None, None).unwrap();
    router.interfaces().set_admin(bvi, true).unwrap();
    for port in [ports[0].index(), ports[1].index(), sub] {
        bridges.join(port, 1, 0, Role::Normal).unwrap();
    }
    bridges.join(bvi, 1, 0, Role::Bvi).unwrap();
    let ids = [Vid::new(93).unwrap(), Vid::new(0).unwrap()];
    router.get::<L2>().set_tags(sub, TagRewrite { op: TagOp::Pop1, kind: TagKind::Dot1q, ids }).unwrap();
    address(&router, bvi);
    router.advance(Duration::from_secs(3));
    for port in &ports {
        drop(port.received());
    }
    let mac = router.interfaces().data(bvi).unwrap().mac().0;
    World { router, ports, sub, mac }
}

fn prefix(family: Family) -> IpPrefix {
    match family {
        Family::Ip4 => "10.10.10.0/24".parse().unwrap(),
        Family::Ip6 => "2001:db8:10::/64".parse().unwrap(),
    }
}

fn bridge_by(router: &Router, family: Family, interface: SwIfIndex) {
    let paths = [Via::Dvr { interface }.into()];
    router.get::<Fib>().add(FibIndex::DEFAULT, prefix(family), Source::Cli, &paths).unwrap();
}

fn packet(family: Family, to: [u8; 6]) -> PacketBuilder {
    let frame = PacketBuilder::ethernet(HOST, to);
    match family {
        Family::Ip4 => frame.ip4([1, 1, 1, 1], [10, 10, 10, 10]),
        Family::Ip6 => frame.ip6([0x2001, 0xdb8, 9, 0, 0, 0, 0, 1], [0x2001, 0xdb8, 0x10, 0, 0, 0, 0, 10]),
    }
}

fn tagged(frame: &[u8], id: u8) -> Vec<u8> {
    [&frame[..12], &[0x81, 0, 0, id], &frame[12..]].concat()
}

#[test]
fn packets_leave_as_they_came_and_tags_are_those_of_the_interface() {
    for family in FAMILIES {
        let mut w = world();
        let frame = packet(family, w.mac).udp(1234, 1234).payload_len(100).build();
        let (a, b, c) = (w.ports[0].clone(), w.ports[1].clone(), w.ports[2].clone());
        bridge_by(&w.router, family, b.index());
        w.router.send(&a, &frame);
        assert_eq!(b.received_one(), frame, "no address and no hop limit changes");
        w.router.send(&c, tagged(&frame, 93));
        assert_eq!(b.received_one(), frame, "the tag stays where it belongs");
        bridge_by(&w.router, family, w.sub);
        w.router.send(&a, &frame);
        assert_eq!(c.received_one(), tagged(&frame, 93));
        assert!(b.received().is_empty());
    }
}

#[test]
fn packets_of_a_routed_sub_interface_go_out_without_its_tag() {
    for family in FAMILIES {
        let mut w = world();
        let (a, b) = (w.router.pg(9), w.ports[1].clone());
        let routed = sub(&w.router, &a, 7);
        w.router.get::<Ip4>().add_address(routed, "10.7.0.1/24".parse().unwrap()).unwrap();
        w.router.get::<Ip6>().add_address(routed, "2001:db8:7::1/64".parse().unwrap()).unwrap();
        w.router.advance(Duration::from_secs(3));
        drop(a.received());
        bridge_by(&w.router, family, b.index());
        let frame = packet(family, a.mac().0).udp(1, 2).payload_len(100).build();
        w.router.send(&a, tagged(&frame, 7));
        assert_eq!(b.received_one(), frame);
    }
}

#[test]
fn features_of_the_output_arc_run_before_a_packet_is_bridged() {
    for family in FAMILIES {
        let mut w = world();
        let (a, b) = (w.ports[0].clone(), w.ports[1].clone());
        bridge_by(&w.router, family, b.index());
        let tx = Some(Setting { directions: Directions { rx: false, tx: true }, mss: 1000 });
        w.router.get::<MssClamp>().set(b.index(), [tx, tx]).unwrap();
        // A SYN that asks for segments of 1460 bytes.
        let tcp = [0, 1, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 6 << 4, 2, 0, 0, 0, 0, 0, 0, 2, 4, 5, 180];
        let syn = packet(family, w.mac).payload(&tcp).protocol(IpProtocol::TCP).build();
        w.router.send(&a, &syn);
        let sent = b.received_one();
        assert_eq!((&sent[..14], sent.len()), (&syn[..14], syn.len()));
        let at = if family == Family::Ip4 { 34 } else { 54 };
        assert_eq!(sent[at + 22..at + 24], 1000u16.to_be_bytes());
    }
}

#[test]
fn nothing_is_bridged_without_a_header_or_out_of_an_interface_that_is_routed() {
    for family in FAMILIES {
        let mut w = world();
        let (a, b) = (w.ports[0].clone(), w.router.pg(9));
        let frame = packet(family, w.mac).udp(1, 2).build();
        bridge_by(&w.router, family, w.ports[1].index());
        let (lookup, node) = match family {
            Family::Ip4 => ("ip4-lookup", "ip4-dvr-dpo"),
            Family::Ip6 => ("ip6-lookup", "ip6-dvr-dpo"),
        };
        let why = "packet has no Ethernet header to be bridged with";
        let own = shoal_testkit::node::run(&mut w.router, lookup, &frame[14..], |pkt| {
            pkt.meta_mut().flags = Flags::LOCALLY_ORIGINATED;
        });
        assert!(own.dropped(), "{own:?}");
        let rx = a.index();
        let bare =
            shoal_testkit::node::run(&mut w.router, lookup, &frame[14..], |pkt| pkt.meta_mut().rx = rx);
        assert!(bare.dropped(), "what lies in front is no header: {bare:?}");
        assert_eq!(w.router.error(node, why), 2);
        bridge_by(&w.router, family, b.index());
        w.router.send(&a, &frame);
        assert!(b.received().is_empty());
        assert_eq!(w.router.error("l2-output", "L2 output to interface not in L2 mode or deleted"), 1);
    }
}

#[test]
fn the_last_feature_is_there_while_a_route_bridges() {
    let w = world();
    let port = w.ports[1].index();
    let on = |w: &World| {
        let arc = w.router.graph().arc("ip4-output").unwrap();
        arc.any(port)
    };
    assert!(!on(&w));
    bridge_by(&w.router, Family::Ip4, port);
    assert!(on(&w));
    w.router.get::<Fib>().remove(FibIndex::DEFAULT, prefix(Family::Ip4), Source::Cli).unwrap();
    assert!(!on(&w));
}
