//! Modes of interfaces: what is cross-connected goes out unchanged, what no node runs is counted.

use std::rc::Rc;

use shoal_buffer::Packet;
use shoal_derive::{ErrorCounters, NextNodes};
use shoal_ethernet::{Ethernet, Exact, Inner, Match, TagKind, Vid};
use shoal_graph::{Cx, Edge, FeatureSpec, NoError, NoNext, PacketNode};
use shoal_interface::SwIfIndex;
use shoal_l2::{Bitmap, INPUT_ARC, Input, L2, Mode, OUTPUT_ARC, Port as Place};
use shoal_message::Retval;
use shoal_module::{Control, InitError, Module};
use shoal_testkit::{ApiAsker, PacketBuilder, Port, Rng, Router};

const PEER: [u8; 6] = [2, 0xaa, 0, 0, 0, 1];
const OTHER: [u8; 6] = [2, 0xbb, 0, 0, 0, 1];

/// Stands where a protocol would.
struct Sink<const N: usize>;

#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
enum Taken {
    /// taken
    One,
}

impl<const N: usize> PacketNode for Sink<N> {
    const NAME: &'static str = ["ip4-input", "ip6-input", "l2-learn"][N];
    type Next = NoNext;
    type Error = Taken;
    type Trace = &'static str;

    fn packet(&self, _: &mut Packet<'_>, _: &mut Cx<'_, Self>) -> Result<NoNext, Taken> {
        Err(Taken::One)
    }
}

/// A feature of either arc.
struct Seen<const N: usize>;

#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    To(Edge),
}

impl<const N: usize> PacketNode for Seen<N> {
    const NAME: &'static str = ["seen-in", "seen-out"][N];
    type Next = Next;
    type Error = NoError;
    type Trace = &'static str;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, NoError> {
        Ok(Next::To(cx.next_feature(pkt)))
    }
}

static NODES: Module = Module { name: "nodes", init: nodes, ..Module::NONE };

fn nodes(control: &Rc<Control>) -> Result<(), InitError> {
    let graph = control.graph()?;
    graph.add_packet(Sink::<0>)?;
    graph.add_packet(Sink::<1>)?;
    graph.add_packet(Seen::<0>)?;
    graph.add_packet(Seen::<1>)?;
    graph.add_feature(FeatureSpec { arc: INPUT_ARC, node: "seen-in", before: &[], after: &[] });
    graph.add_feature(FeatureSpec { arc: OUTPUT_ARC, node: "seen-out", before: &[], after: &[] });
    Ok(())
}

fn router() -> (Router, Port, Port, Rc<L2>) {
    let mut router = Router::new(&[&shoal_ethernet::MODULE, &shoal_l2::MODULE, &NODES]);
    let (a, b) = (router.pg(0), router.pg(1));
    let l2 = router.control().get::<L2>().unwrap();
    (router, a, b, l2)
}

fn frame() -> Vec<u8> {
    PacketBuilder::ethernet(PEER, OTHER).ip4([1; 4], [2; 4]).build()
}

#[test]
fn what_is_cross_connected_goes_out_of_the_peer_unchanged() {
    let (mut router, a, b, l2) = router();
    l2.set_mode(a.index(), Mode::Xconnect(b.index())).unwrap();
    router.send(&a, frame());
    assert_eq!(router.error("l2-output", "L2 output to interface not in L2 mode or deleted"), 1);
    l2.set_mode(b.index(), Mode::Xconnect(a.index())).unwrap();
    for tags in [&[][..], &[0x81, 0, 0, 7], &[0x88, 0xa8, 0, 7, 0x81, 0, 0, 8]] {
        let plain = frame();
        let sent = [&plain[..12], tags, &plain[12..]].concat();
        router.send(&a, &sent);
        assert_eq!(b.received_one(), sent);
        router.send(&b, &sent);
        assert_eq!(a.received_one(), sent);
    }
    l2.set_mode(a.index(), Mode::L3).unwrap();
    router.send(&a, PacketBuilder::ethernet(PEER, a.mac()).ip4([1; 4], [2; 4]).build());
    assert_eq!((router.error("ip4-input", "taken"), l2.mode(a.index())), (1, Mode::L3));
}

#[test]
fn features_of_both_arcs_run_where_they_are_enabled() {
    let (mut router, a, b, l2) = router();
    let seen = |router: &Router, name: &str| {
        let node = router.graph().node(name).unwrap().number() as usize;
        router.graph().graph_counters().vectors.sum(node)
    };
    l2.set_mode(a.index(), Mode::Xconnect(b.index())).unwrap();
    l2.set_mode(b.index(), Mode::Xconnect(a.index())).unwrap();
    router.interfaces().enable_feature(INPUT_ARC, "seen-in", a.index(), true).unwrap();
    router.interfaces().enable_feature(OUTPUT_ARC, "seen-out", b.index(), true).unwrap();
    router.send(&a, frame());
    assert_eq!(b.received_one(), frame());
    assert_eq!((seen(&router, "seen-in"), seen(&router, "seen-out")), (1, 1));
    router.send(&b, frame());
    assert_eq!(a.received_one(), frame());
    assert_eq!((seen(&router, "seen-in"), seen(&router, "seen-out")), (1, 1));
    router.interfaces().enable_feature(INPUT_ARC, "seen-in", a.index(), false).unwrap();
    router.interfaces().enable_feature(OUTPUT_ARC, "seen-out", b.index(), false).unwrap();
    router.send(&a, frame());
    assert_eq!(b.received_one(), frame());
    assert_eq!((seen(&router, "seen-in"), seen(&router, "seen-out")), (1, 1));
}

#[test]
fn a_bridges_packets_go_to_the_node_of_their_first_feature() {
    let (mut router, a, _, l2) = router();
    l2.set_domain(7, Bitmap::ALL).unwrap();
    l2.set_mode(a.index(), Mode::Bridge(Place::of(7))).unwrap();
    let dropped = |router: &Router| {
        router.error("feature-bitmap-drop", "bridge or cross-connect has no node for the packet")
    };
    router.send(&a, frame());
    assert_eq!(dropped(&router), 1);
    let learn = router.graph().add_packet(Sink::<2>).unwrap();
    l2.register_input(Input::Learn, learn).unwrap();
    router.send(&a, frame());
    assert_eq!((router.error("l2-learn", "taken"), dropped(&router)), (1, 1));
    // The domain learns nothing.
    l2.set_domain(7, Bitmap::ALL.without(Input::Learn)).unwrap();
    router.send(&a, frame());
    assert_eq!((router.error("l2-learn", "taken"), dropped(&router)), (1, 2));
}

#[test]
fn modes_that_cannot_be_are_refused_and_a_deleted_interface_leaves_its_own() {
    let (mut router, a, b, l2) = router();
    let refused = |interface, mode| l2.set_mode(interface, mode).unwrap_err().to_string();
    assert_eq!(refused(a.index(), Mode::Xconnect(a.index())), "pg0 cannot be connected to itself");
    assert_eq!(refused(SwIfIndex(0), Mode::Bridge(Place::of(1))), "local0 is not an Ethernet interface");
    assert_eq!(refused(a.index(), Mode::Xconnect(SwIfIndex(0))), "local0 is not an Ethernet interface");
    assert!(l2.set_mode(SwIfIndex(99), Mode::Bridge(Place::of(1))).is_err());
    assert_eq!(l2.mode(a.index()), Mode::L3);
    l2.set_mode(a.index(), Mode::Xconnect(b.index())).unwrap();
    l2.set_mode(b.index(), Mode::Xconnect(a.index())).unwrap();
    router.interfaces().delete(b.index()).unwrap();
    router.send(&a, frame());
    assert_eq!(router.error("l2-output", "L2 output to interface not in L2 mode or deleted"), 1);
    assert_eq!(l2.mode(b.index()), Mode::L3);
}

#[test]
fn a_sub_interface_is_cross_connected_with_its_tags() {
    let (mut router, a, b, l2) = router();
    let ethernet = router.control().get::<Ethernet>().unwrap();
    let takes = Match::Tags {
        kind: TagKind::Dot1q,
        outer: Vid::new(7).unwrap(),
        inner: Inner::None,
        exact: Exact::Yes,
    };
    let sub = ethernet.create_sub(a.index(), 7, takes).unwrap();
    router.interfaces().set_admin(sub, true).unwrap();
    l2.set_mode(sub, Mode::Xconnect(b.index())).unwrap();
    l2.set_mode(b.index(), Mode::Xconnect(a.index())).unwrap();
    let plain = frame();
    let tagged = [&plain[..12], &[0x81, 0, 0, 7], &plain[12..]].concat();
    router.send(&a, &tagged);
    assert_eq!(b.received_one(), tagged);
    router.send(&a, PacketBuilder::ethernet(PEER, a.mac()).ip4([1; 4], [2; 4]).build());
    assert_eq!(router.error("ip4-input", "taken"), 1, "the port itself is still routed");
    ethernet.delete_sub(sub).unwrap();
}

#[test]
fn a_path_that_no_node_measures_takes_no_frames_until_it_is_switched_off() {
    let (mut router, a, b, l2) = router();
    let asker = ApiAsker::new(router.control(), shoal_l2::MODULE.api);
    let set = |index: u32, on: u8| {
        asker.retval("sw_interface_set_vpath", &[&index.to_be_bytes()[..], &[on]].concat())
    };
    assert_eq!(set(99, 1), Retval::INVALID_SW_IF_INDEX);
    assert_eq!(set(a.index().0, 1), Retval(0));
    // Behind it, as in VPP: what is routed is not held up.
    router.send(&a, PacketBuilder::ethernet(PEER, a.mac()).ip4([1; 4], [2; 4]).build());
    assert_eq!(router.error("ip4-input", "taken"), 1);
    l2.set_mode(a.index(), Mode::Xconnect(b.index())).unwrap();
    l2.set_mode(b.index(), Mode::Xconnect(a.index())).unwrap();
    let [input, _] = l2.flags(a.index());
    assert_eq!(input, Bitmap::default().with(Input::Vpath).with(Input::Xconnect));
    router.send(&a, frame());
    assert!(b.received().is_empty());
    let why = "bridge or cross-connect has no node for the packet";
    assert_eq!(router.error("feature-bitmap-drop", why), 1);
    assert_eq!(set(a.index().0, 0), Retval(0));
    router.send(&a, frame());
    assert_eq!(b.received_one(), frame());
}

#[test]
fn no_frame_whatever_its_bytes_and_length_does_harm() {
    let (mut router, a, b, l2) = router();
    l2.set_mode(a.index(), Mode::Xconnect(b.index())).unwrap();
    l2.set_mode(b.index(), Mode::Bridge(Place::of(1))).unwrap();
    let mut rng = Rng::new(Rng::seed(15));
    for _ in 0..1_000 {
        let length = rng.below(80);
        let bytes = rng.bytes(length);
        router.send(&a, &bytes);
        router.send(&b, &bytes);
        b.received();
    }
}
