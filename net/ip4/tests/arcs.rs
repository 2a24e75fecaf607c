//! The feature arcs: where packets get on and off, and that only interfaces with features pay for them.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)] // helpers of tests

use crate::common;

use std::rc::Rc;

use common::{Toy, neighbour, route, station, to, two_hosts, udp};
use shoal_fib::Via;
use shoal_graph::{ALL_INTERFACES, PacketNode};
use shoal_ip4::{DROP_ARC, LOCAL_ARC, MULTICAST_ARC, OUTPUT_ARC, PUNT_ARC};
use shoal_module::{Control, InitError, Module};
use shoal_testkit::{PacketBuilder, Port, Router};

const ROUTER: &str = "10.0.0.1";
const NEW_HOST: &str = "10.0.1.77";
const FAR: &str = "20.0.0.0/8";
const FAR_HOST: &str = "20.0.0.1";
const GROUP: &str = "239.1.1.1";

fn towards(port: &Port, dst: &str) -> PacketBuilder {
    to(port).ip4([10, 0, 0, 2], common::ip(dst).octets())
}

fn group_frame(_: &Port) -> PacketBuilder {
    let mac = shoal_wire::MacAddress([1, 0, 0x5e, 1, 1, 1]);
    PacketBuilder::ethernet(station(1), mac).ip4([10, 0, 0, 2], [239, 1, 1, 1]).udp(1, 2)
}

const ADDRESS: &str = "10.0.0.1/24";
const SEEN: &str = "a toy saw the packet";

fn enable(router: &Router, arc: &str, toy: &str, port: &Port, on: bool) {
    router.interfaces().enable_feature(arc, toy, port.index(), on).unwrap();
}

/// The ways two packets went, from the input checks on: they are given to the port twice, once traced.
fn way(router: &mut Router, port: &Port, packet: Vec<u8>) -> Vec<String> {
    router.trace_add("pg-input", 1);
    router.send(port, packet);
    let mut paths = router.trace_paths();
    let path = paths.pop().unwrap();
    router.graph().trace_clear();
    path.into_iter().skip_while(|node| *node != "ip4-input").collect()
}

#[test]
fn output_features_run_behind_the_rewrite_of_their_interface_only() {
    let (mut router, a, b) = two_hosts();
    let toy = Toy::<3>::NAME;
    enable(&router, OUTPUT_ARC, toy, &b, true);
    let seen = way(&mut router, &a, udp(&a).build());
    assert_eq!(
        seen,
        ["ip4-input", "ip4-lookup", "ip4-rewrite", toy, "interface-output", "pg1-output", "pg1-tx"]
    );
    assert_eq!(b.received().len(), 1);
    enable(&router, OUTPUT_ARC, toy, &b, false);
    enable(&router, OUTPUT_ARC, toy, &a, true);
    let seen = way(&mut router, &a, udp(&a).build());
    assert_eq!(seen, ["ip4-input", "ip4-lookup", "ip4-rewrite", "pg1-output", "pg1-tx"]);
    assert_eq!((b.received().len(), router.error(toy, SEEN)), (1, 1));
}

#[test]
fn a_packet_for_a_way_out_with_features_leaves_the_superpath_and_the_others_do_not() {
    let (mut router, a, b) = two_hosts();
    let vectors = |router: &Router, node: &str| {
        router.graph().graph_counters().vectors.sum(common::node(router, node).number() as usize)
    };
    router.send(&a, udp(&a).build());
    assert_eq!(vectors(&router, "ip4-rewrite"), 0, "all on the superpath");
    enable(&router, OUTPUT_ARC, Toy::<3>::NAME, &b, true);
    router.send(&a, udp(&a).build());
    assert_eq!((vectors(&router, "ip4-lookup"), vectors(&router, "ip4-rewrite")), (0, 1));
    let out = b.received();
    assert_eq!((out.len(), &out[0]), (2, &out[1]), "and both packets leave alike");
    enable(&router, OUTPUT_ARC, Toy::<3>::NAME, &b, false);
    router.send(&a, udp(&a).build());
    assert_eq!(vectors(&router, "ip4-rewrite"), 1, "the superpath is back");
}

#[test]
fn neighbours_learned_after_a_feature_was_enabled_have_it_too() {
    let (mut router, a, b) = two_hosts();
    enable(&router, OUTPUT_ARC, Toy::<3>::NAME, &b, true);
    neighbour(&router, &b, NEW_HOST, station(9));
    router.send(&a, towards(&a, NEW_HOST).udp(1, 2).build());
    assert_eq!((b.received().len(), router.error(Toy::<3>::NAME, SEEN)), (1, 1));
}

#[test]
fn packets_for_this_router_run_through_local_features_and_then_where_they_would_have_gone() {
    let (mut router, a, _) = two_hosts();
    let toy = Toy::<5>::NAME;
    enable(&router, LOCAL_ARC, toy, &a, true);
    let echo = towards(&a, ROUTER).icmp_echo_request(1, 1).payload_len(8).build();
    let seen = way(&mut router, &a, echo);
    assert_eq!(
        seen[..6],
        ["ip4-input", "ip4-lookup", "ip4-local", toy, "ip4-local-end-of-arc", "ip4-icmp-input"]
    );
    assert_eq!(a.received().len(), 1);
    router.send(&a, towards(&a, ROUTER).udp(1, 7777).build());
    assert_eq!(router.error("ip4-local", "no listener for dst port"), 1);
    assert_eq!(a.received().len(), 1, "the sender is told");
    // What is wrong is found before.
    router.send(&a, towards(&a, ROUTER).udp(1, 7777).l4_checksum(1).build());
    assert_eq!(router.error(toy, SEEN), 2);
}

#[test]
fn packets_to_groups_run_through_the_multicast_arc_and_no_others_do() {
    let (mut router, a, _) = two_hosts();
    let (multicast, unicast) = (Toy::<4>::NAME, Toy::<0>::NAME);
    enable(&router, MULTICAST_ARC, multicast, &a, true);
    enable(&router, shoal_ip4::UNICAST_ARC, unicast, &a, true);
    router.send(&a, udp(&a).build());
    assert_eq!((router.error(multicast, SEEN), router.error(unicast, SEEN)), (0, 1));
    // Whatever the link says of it.
    for packet in [group_frame(&a), towards(&a, GROUP).udp(1, 2)] {
        let seen = way(&mut router, &a, packet.build());
        assert_eq!(seen[..3], ["ip4-input", multicast, "ip4-lookup"]);
    }
    assert_eq!((router.error(multicast, SEEN), router.error(unicast, SEEN)), (2, 1));
}

#[test]
fn interfaces_without_the_protocol_take_no_packets_to_groups() {
    let (mut router, ports) = common::router(1);
    router.send(&ports[0], group_frame(&ports[0]).build());
    assert_eq!(router.error("ip4-not-enabled", "ip4 is not enabled on the interface"), 1);
}

#[test]
fn punted_packets_run_through_features_of_all_interfaces_and_end() {
    let (mut router, a, _) = two_hosts();
    route(&router, FAR, Via::Punt);
    let packet = towards(&a, FAR_HOST).udp(1, 2).build();
    assert_eq!(way(&mut router, &a, packet.clone())[2..4], ["ip4-punt", "error-punt"]);
    router.graph().enable_feature(PUNT_ARC, Toy::<6>::NAME, ALL_INTERFACES, true).unwrap();
    assert_eq!(way(&mut router, &a, packet)[2..5], ["ip4-punt", Toy::<6>::NAME, "error-punt"]);
    assert_eq!(router.error("error-punt", "no host takes punted packets"), 2);
    assert_eq!(router.graph().graph_counters().punt.sum(a.index().0 as usize), 2);
}

#[test]
fn dropped_packets_run_through_features_of_all_interfaces_and_keep_their_reason() {
    let (mut router, a, _) = two_hosts();
    route(&router, FAR, Via::Drop);
    router.graph().enable_feature(DROP_ARC, Toy::<7>::NAME, ALL_INTERFACES, true).unwrap();
    let packet = towards(&a, FAR_HOST).udp(1, 2).build();
    assert_eq!(way(&mut router, &a, packet)[2..5], ["ip4-drop", Toy::<7>::NAME, "error-drop"]);
    assert_eq!(router.error("ip4-drop", "blackholed packets"), 1);
    assert!(a.received().is_empty());
}

#[test]
fn arcs_of_all_interfaces_are_told_of_by_local0_only() {
    let (router, a, _) = two_hosts();
    let refused = router.interfaces().enable_feature(PUNT_ARC, Toy::<6>::NAME, a.index(), true);
    assert_eq!(
        refused.unwrap_err().to_string(),
        "features of arc ip4-punt run for all interfaces and are enabled on local0 only"
    );
    router.interfaces().enable_feature(PUNT_ARC, Toy::<6>::NAME, ALL_INTERFACES, true).unwrap();
}

#[test]
fn a_feature_goes_with_its_interface() {
    let (mut router, a, b) = two_hosts();
    enable(&router, OUTPUT_ARC, Toy::<3>::NAME, &b, true);
    router.graph().clear_features(b.index());
    router.send(&a, udp(&a).build());
    assert_eq!((b.received().len(), router.error(Toy::<3>::NAME, SEEN)), (1, 0));
}

/// Stands for the module that forwards packets to groups.
static FORWARDS_GROUPS: Module = Module { name: "groups", init: take_over, ..Module::NONE };

fn take_over(control: &Rc<Control>) -> Result<(), InitError> {
    Ok(control.graph()?.set_arc_end(MULTICAST_ARC, "error-punt")?)
}

#[test]
fn a_forwarder_of_packets_to_groups_gives_their_arc_another_end() {
    let mut modules = common::MODULES.to_vec();
    modules.push(&FORWARDS_GROUPS);
    let mut router = Router::new(&modules);
    let a = router.pg(0);
    common::address(&router, &a, ADDRESS);
    let seen = way(&mut router, &a, group_frame(&a).build());
    assert_eq!(seen[..2], ["ip4-input", "error-punt"]);
    enable(&router, MULTICAST_ARC, Toy::<4>::NAME, &a, true);
    let seen = way(&mut router, &a, group_frame(&a).build());
    assert_eq!(seen[..3], ["ip4-input", Toy::<4>::NAME, "error-punt"]);
    let unknown = router.graph().set_arc_end("ip4-multicats", "drop").unwrap_err().to_string();
    assert!(unknown.starts_with("no feature arc `ip4-multicats', there are: "), "{unknown}");
}
