//! `ethernet-input`: frames for this station go on by their type, all others are dropped under a name.

#![allow(clippy::indexing_slicing, clippy::unwrap_used)] // helpers of tests

use std::rc::Rc;

use shoal_buffer::{Flags, Packet};
use shoal_derive::ErrorCounters;
use shoal_ethernet::{Ethernet, Exact, Inner, Match, TagKind, Vid};
use shoal_graph::{Cx, NoNext, PacketNode};
use shoal_interface::{IfFlags, Layer, SwIfIndex};
use shoal_module::{Control, InitError, Module};
use shoal_testkit::{PacketBuilder, Port, Rng, Router, node};
use shoal_wire::EtherType;

/// Stands where a protocol would, and says what came.
struct Sink<const N: usize>;

#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
enum Taken {
    /// taken
    One,
    /// taken, was sent to a group
    Group,
}

impl<const N: usize> PacketNode for Sink<N> {
    const NAME: &'static str = ["ip4-input", "arp-input", "ip6-input"][N];
    type Next = NoNext;
    type Error = Taken;
    type Trace = String;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<NoNext, Taken> {
        cx.trace(pkt, || format!("{:02x?}", pkt.data()));
        Err(if pkt.flags().has(Flags::LINK_MULTICAST) { Taken::Group } else { Taken::One })
    }
}

static SINKS: Module = Module { name: "sinks", init: sinks, ..Module::NONE };

fn sinks(control: &Rc<Control>) -> Result<(), InitError> {
    let graph = control.graph()?;
    graph.add_packet(Sink::<0>)?;
    graph.add_packet(Sink::<1>)?;
    graph.add_packet(Sink::<2>)?;
    control.get::<Ethernet>()?.register(EtherType::ARP, "arp-input", "sinks")
}

fn router() -> (Router, Port) {
    let mut router = Router::new(&[&shoal_ethernet::MODULE, &SINKS]);
    let port = router.pg(0);
    (router, port)
}

const PEER: [u8; 6] = [2, 0xaa, 0, 0, 0, 1];

fn counted(router: &mut Router, port: &Port, frame: &[u8], what: &str) {
    let before = router.errors();
    router.send(port, frame);
    let after = router.errors();
    let changed: Vec<_> =
        after.iter().filter(|e| !before.contains(e)).map(|(name, _)| name.as_str()).collect();
    assert_eq!(changed, [what]);
}

#[test]
fn frames_go_on_by_their_type_without_their_header() {
    let (mut router, port) = router();
    let ip4 = PacketBuilder::ethernet(PEER, port.mac()).ip4([1, 1, 1, 1], [2, 2, 2, 2]).build();
    counted(&mut router, &port, &ip4, "ip4-input: taken");
    let arp = PacketBuilder::arp_reply(PEER, [1, 1, 1, 1], port.mac(), [2, 2, 2, 2]).build();
    counted(&mut router, &port, &arp, "arp-input: taken");
    let passed = node::run(&mut router, "ethernet-input", &ip4, |pkt| pkt.meta_mut().rx = port.index());
    assert_eq!(passed.said("ip4-input"), Some(format!("{:02x?}", &ip4[14..]).as_str()));
}

#[test]
fn frames_to_groups_are_taken_and_marked() {
    let (mut router, port) = router();
    for dst in [[255; 6], [1, 0, 0x5e, 0, 0, 1], [0x33, 0x33, 0, 0, 0, 1]] {
        let (to_ip, to_arp) = (PacketBuilder::ethernet(PEER, dst), PacketBuilder::ethernet(PEER, dst));
        let before = router.error("ip4-input", "taken, was sent to a group");
        router.send(&port, to_ip.ip4([1, 1, 1, 1], [2, 2, 2, 2]).build());
        assert_eq!(router.error("ip4-input", "taken, was sent to a group"), before + 1);
        router.send(&port, to_arp.ether_type(EtherType::ARP).build());
        assert_eq!(router.error("arp-input", "taken, was sent to a group"), before + 1);
    }
}

#[test]
fn frames_for_other_stations_are_dropped_whatever_they_carry() {
    let (mut router, port) = router();
    let mut other = port.mac();
    for bit in [1, 2, 7] {
        other.0[5] = port.mac().0[5] ^ (1 << bit);
        for kind in [EtherType::IP4, EtherType::ARP, EtherType(0x9999)] {
            let frame = PacketBuilder::ethernet(PEER, other).ether_type(kind).payload_len(46).build();
            let before = router.error("ethernet-input", "l3 mac mismatch");
            router.send(&port, frame);
            assert_eq!(router.error("ethernet-input", "l3 mac mismatch"), before + 1);
        }
    }
}

#[test]
fn packets_without_a_taker_are_dropped_under_their_own_name() {
    let (mut router, port) = router();
    let to_us = || PacketBuilder::ethernet(PEER, port.mac()).payload_len(46);
    let group = PacketBuilder::ethernet([3, 0, 0, 0, 0, 1], port.mac()).ether_type(EtherType::ARP);
    let ip4 = [1, 1, 1, 1];
    counted(&mut router, &port, &to_us().vlan(7).ip4(ip4, ip4).build(), "ethernet-input: unknown vlan");
    counted(
        &mut router,
        &port,
        &to_us().ether_type(EtherType(46)).build(),
        "ethernet-input: 802.3 frame without a type",
    );
    let unknown = to_us().ether_type(EtherType(0x88b5)).build();
    counted(&mut router, &port, &unknown, "ethernet-input: unknown ethernet type");
    counted(&mut router, &port, &group.build(), "ethernet-input: source mac is a group address");
    assert_eq!(router.if_counter("/if/drops", port.index()), 4);
}

#[test]
fn two_tags_are_an_unknown_vlan_too() {
    let (mut router, port) = router();
    let frame = PacketBuilder::ethernet(PEER, port.mac()).vlan(5).vlan(6).ip4([1; 4], [2; 4]).build();
    counted(&mut router, &port, &frame, "ethernet-input: unknown vlan");
}

#[test]
fn a_frame_cut_short_at_any_byte_of_its_header_is_too_short() {
    let (mut router, port) = router();
    let frame = PacketBuilder::ethernet(PEER, port.mac()).ip4([1; 4], [2; 4]).build();
    for n in 0..14 {
        router.send(&port, &frame[..n]);
    }
    assert_eq!(router.error("ethernet-input", "frame is shorter than an Ethernet header"), 14);
    router.send(&port, &frame[..14]);
    assert_eq!(router.error("ip4-input", "taken"), 1, "nothing of it is ethernet's business any more");
}

#[test]
fn an_interface_that_is_down_takes_nothing() {
    let (mut router, port) = router();
    let frame = PacketBuilder::ethernet(PEER, port.mac()).ip4([1; 4], [2; 4]).build();
    router.interfaces().set_admin(port.index(), false).unwrap();
    counted(&mut router, &port, &frame, "ethernet-input: interface is down");
}

#[test]
fn a_new_mac_address_counts_from_the_next_frame_on() {
    let (mut router, port) = router();
    let new = shoal_wire::MacAddress([2, 0, 0, 0, 0, 0x77]);
    router.interfaces().set_mac(port.index(), new).unwrap();
    let old = PacketBuilder::ethernet(PEER, port.mac()).ip4([1; 4], [2; 4]).build();
    counted(&mut router, &port, &old, "ethernet-input: l3 mac mismatch");
    let frame = PacketBuilder::ethernet(PEER, new).ip4([1; 4], [2; 4]).build();
    counted(&mut router, &port, &frame, "ip4-input: taken");
}

/// A frame with tags: types and ids, the outer one first.
fn tagged(dst: [u8; 6], tags: &[(u16, u16)]) -> Vec<u8> {
    let plain = PacketBuilder::ethernet(PEER, dst).ip4([1; 4], [2; 4]).build();
    let tag = |(kind, id): &(u16, u16)| [kind.to_be_bytes(), id.to_be_bytes()].concat();
    [&plain[..12], &tags.iter().flat_map(tag).collect::<Vec<u8>>(), &plain[12..]].concat()
}

fn tags(outer: u16, inner: Inner, exact: Exact) -> Match {
    Match::Tags { kind: TagKind::Dot1q, outer: Vid::new(outer).unwrap(), inner, exact }
}

fn ethernet(router: &Router) -> Rc<Ethernet> {
    router.control().get::<Ethernet>().unwrap()
}

/// A sub-interface that is up.
fn sub(router: &Router, port: &Port, number: u32, takes: Match) -> SwIfIndex {
    let index = ethernet(router).create_sub(port.index(), number, takes).unwrap();
    router.interfaces().set_admin(index, true).unwrap();
    index
}

/// The interface a frame is received by in the end; `None`: it is dropped as of an unknown VLAN.
fn taken_by(router: &mut Router, port: &Port, all: &[SwIfIndex], tags: &[(u16, u16)]) -> Option<SwIfIndex> {
    let count = |router: &Router| -> Vec<u64> {
        all.iter().map(|i| router.graph().graph_counters().rx.sum(i.0 as usize).0).collect()
    };
    let (before, passed) = (count(router), router.error("ip4-input", "taken"));
    let unknown = router.error("ethernet-input", "unknown vlan");
    router.send(port, tagged(port.mac().0, tags));
    if router.error("ethernet-input", "unknown vlan") > unknown {
        return None;
    }
    assert_eq!(router.error("ip4-input", "taken"), passed + 1, "{tags:?}");
    let after = count(router);
    let at = before.iter().zip(&after).position(|(before, after)| after > before);
    Some(at.map_or(port.index(), |at| all[at]))
}

#[test]
fn frames_with_tags_go_to_the_first_sub_interface_that_takes_them() {
    let (mut router, port) = router();
    let (q, ad, old) = (0x8100, 0x88a8, 0x9100);
    let id = |n| Inner::Id(Vid::new(n).unwrap());
    let s_tag =
        Match::Tags { kind: TagKind::Dot1ad, outer: Vid::new(10).unwrap(), inner: id(20), exact: Exact::Yes };
    let only = sub(&router, &port, 10, tags(10, Inner::None, Exact::Yes));
    let both = sub(&router, &port, 11, tags(10, id(20), Exact::Yes));
    let any = sub(&router, &port, 12, tags(10, Inner::Any, Exact::No));
    let more = sub(&router, &port, 30, tags(30, Inner::None, Exact::No));
    let service = sub(&router, &port, 40, s_tag);
    let all = [only, both, any, more, service];
    let mut by = |tags: &[(u16, u16)]| taken_by(&mut router, &port, &all, tags);
    assert_eq!(by(&[(q, 10)]), Some(only));
    assert_eq!(by(&[(old, 10)]), Some(only), "all types but 802.1ad are looked up alike");
    assert_eq!(by(&[(q, 0xe00a)]), Some(only), "priority and eligibility are no part of the id");
    assert_eq!(by(&[(q, 10), (q, 20)]), Some(both));
    assert_eq!(by(&[(q, 10), (q, 21)]), Some(any));
    assert_eq!(by(&[(ad, 10), (q, 20)]), Some(service));
    assert_eq!(by(&[(ad, 10), (q, 21)]), None);
    assert_eq!(by(&[(ad, 10)]), None);
    assert_eq!(by(&[(q, 11)]), None);
    assert_eq!(by(&[(q, 30)]), Some(more));
    assert_eq!(by(&[(q, 30), (q, 1)]), Some(more));
    assert_eq!(by(&[]), Some(port.index()));
    assert_eq!(by(&[(q, 0)]), Some(port.index()), "a tag that carries a priority only is none");
    let rest = sub(&router, &port, 98, Match::Default);
    let plain = sub(&router, &port, 99, Match::Untagged);
    let all = [only, both, any, more, service, rest, plain];
    let mut by = |tags: &[(u16, u16)]| taken_by(&mut router, &port, &all, tags);
    assert_eq!((by(&[(q, 11)]), by(&[(ad, 10)]), by(&[])), (Some(rest), Some(rest), Some(plain)));
    assert_eq!(by(&[(q, 0)]), Some(plain));
    // What lay under a tag is looked at as if there had been none.
    let ethernet = ethernet(&router);
    assert!(ethernet.is_routable(only) && ethernet.is_routable(both) && !ethernet.is_routable(any));
}

#[test]
fn a_frame_of_a_sub_interface_looks_as_one_without_tags_to_nodes_behind() {
    let (mut router, port) = router();
    let index = sub(&router, &port, 5, tags(5, Inner::None, Exact::Yes));
    let frame = tagged(port.mac().0, &[(0x8100, 5)]);
    let passed = node::run(&mut router, "ethernet-input", &frame, |pkt| pkt.meta_mut().rx = port.index());
    assert_eq!(passed.said("ip4-input"), Some(format!("{:02x?}", &frame[18..]).as_str()));
    let other = tagged([2, 9, 9, 9, 9, 9], &[(0x8100, 5)]);
    counted(&mut router, &port, &other, "ethernet-input: l3 mac mismatch");
    router.interfaces().set_admin(index, false).unwrap();
    counted(&mut router, &port, &frame, "ethernet-input: subinterface down");
    ethernet(&router).delete_sub(index).unwrap();
    counted(&mut router, &port, &frame, "ethernet-input: unknown vlan");
}

#[test]
fn sub_interfaces_that_cannot_be_are_refused_with_a_reason() {
    let (mut router, port) = router();
    let ethernet = ethernet(&router);
    let index = sub(&router, &port, 1, tags(7, Inner::None, Exact::Yes));
    let refused = |port, number, takes| ethernet.create_sub(port, number, takes).unwrap_err().to_string();
    assert_eq!(router.interfaces().name(index).unwrap(), "pg0.1");
    assert_eq!(refused(port.index(), 1, tags(8, Inner::None, Exact::Yes)), "pg0.1 exists already");
    let taken = "vlan is already in use: pg0.1 takes these frames";
    assert_eq!(refused(port.index(), 2, tags(7, Inner::None, Exact::No)), taken);
    assert!(router.interfaces().by_name("pg0.2").is_none(), "nothing is left behind");
    assert!(refused(index, 3, Match::Default).contains("use pg0"));
    assert!(refused(port.index(), 3, tags(0, Inner::None, Exact::Yes)).contains("1 to 4095"));
    assert!(refused(SwIfIndex(0), 3, Match::Default).contains("not an Ethernet interface"));
    assert!(ethernet.create_sub(SwIfIndex(99), 3, Match::Default).is_err());
    assert!(ethernet.delete_sub(port.index()).is_err());
    assert_eq!((Vid::new(4095).is_some(), Vid::new(4096)), (true, None));
    let second = router.pg(1);
    sub(&router, &second, 1, tags(7, Inner::None, Exact::Yes));
    router.interfaces().delete(second.index()).unwrap();
    assert!(router.interfaces().by_name("pg1.1").is_none(), "sub-interfaces go with their port");
    assert_eq!(ethernet.subs_of(port.index()), [index]);
}

#[test]
fn a_type_has_one_owner_and_is_a_protocols() {
    let (router, _) = router();
    let ethernet = ethernet(&router);
    let refused = |kind, node| ethernet.register(kind, node, "test").unwrap_err().to_string();
    assert_eq!(refused(EtherType::ARP, "ip4-input"), "frames of type ARP go to module sinks already");
    assert_eq!(refused(EtherType::IP6, "ip4-input"), "frames of type IP6 go to module ip6 already");
    assert_eq!(refused(EtherType::VLAN, "ip4-input"), "0x8100 is not the type of a protocol");
    assert_eq!(refused(EtherType(46), "ip4-input"), "0x002e is not the type of a protocol");
    assert!(refused(EtherType::LLDP, "lldp-input").contains("no node `lldp-input'"));
    assert_eq!(ethernet.types().len(), 3);
}

#[test]
fn what_an_interface_in_layer_2_receives_is_not_routed() {
    let (mut router, port) = router();
    let frame = tagged(port.mac().0, &[]);
    router.interfaces().set_layer(port.index(), Layer::Two).unwrap();
    assert!(router.interfaces().data(port.index()).unwrap().flags().has(IfFlags::L2));
    // There is no layer 2 in this router.
    let before = router.error("ip4-input", "taken");
    router.send(&port, &frame);
    assert_eq!(router.error("ip4-input", "taken"), before);
    router.interfaces().set_layer(port.index(), Layer::Three).unwrap();
    counted(&mut router, &port, &frame, "ip4-input: taken");
}

#[test]
fn no_frame_whatever_its_bytes_and_length_does_harm() {
    let (mut router, port) = router();
    sub(&router, &port, 1, tags(5, Inner::Any, Exact::No));
    sub(&router, &port, 2, Match::Default);
    let mut rng = Rng::new(Rng::seed(15));
    let kinds = [0x8100, 0x88a8, 0x9100, 0x9200, 0x0800, 0x86dd, 0x0806];
    for _ in 0..3_000 {
        let some: Vec<(u16, u16)> =
            (0..rng.below(5)).map(|_| (*rng.pick(&kinds), *rng.pick(&[0, 5, 6, 0xffff]))).collect();
        let dst = *rng.pick(&[port.mac().0, [0xff; 6], [2; 6]]);
        let frame = tagged(dst, &some);
        let end = if rng.one_in(2) { rng.below(19) } else { rng.below(frame.len() + 1) };
        router.send(&port, &frame[..end.min(frame.len())]);
    }
    for length in 0..19 {
        router.send(&port, rng.bytes(length));
    }
}

#[test]
fn stacks_of_tags_of_any_depth_go_where_their_first_two_say() {
    let (mut router, port) = router();
    let (exact, loose) = (tags(5, Inner::None, Exact::Yes), tags(6, Inner::None, Exact::No));
    let last = tags(4095, Inner::None, Exact::Yes);
    let [one, more, highest] =
        [(1, exact), (2, loose), (3, last)].map(|(n, takes)| sub(&router, &port, n, takes));
    let all = [one, more, highest];
    let mut by = |tags: &[(u16, u16)]| taken_by(&mut router, &port, &all, tags);
    assert_eq!((by(&[(0x8100, 4095)]), by(&[(0x8100, 0)])), (Some(highest), Some(port.index())));
    assert_eq!((by(&[(0x8100, 6)]), by(&[(0x8100, 6), (0x8100, 0)])), (Some(more), Some(more)));
    // What stands behind the second tag is another tag: no protocol that goes on in layer 3.
    for depth in 3..300 {
        let mut stack = vec![(0x8100, 5); depth];
        let before = router.error("ethernet-input", "unknown vlan");
        router.send(&port, tagged(port.mac().0, &stack));
        assert_eq!(router.error("ethernet-input", "unknown vlan"), before + 1, "{depth}");
        stack[0] = (0x88a8, 6);
        router.send(&port, tagged(port.mac().0, &stack));
        assert_eq!(router.error("ethernet-input", "unknown vlan"), before + 2, "{depth}");
        stack[0] = (0x8100, 6);
        let before = router.error("ethernet-input", "unknown ethernet type");
        router.send(&port, tagged(port.mac().0, &stack));
        assert_eq!(router.error("ethernet-input", "unknown ethernet type"), before + 1, "{depth}");
    }
    assert_eq!(router.buffers_in_use(), 0);
}
