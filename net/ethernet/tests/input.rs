//! `ethernet-input`: frames for this station go on by their type, all others are dropped under a name.

#![allow(clippy::indexing_slicing)] // helpers of tests

use std::rc::Rc;

use shoal_buffer::{Flags, Packet};
use shoal_derive::ErrorCounters;
use shoal_graph::{Cx, NoNext, PacketNode};
use shoal_module::{Control, InitError, Module};
use shoal_testkit::{PacketBuilder, Port, Router, node};
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
    Ok(())
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
fn what_nobody_takes_is_dropped_under_its_own_name() {
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
