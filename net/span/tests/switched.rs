//! Mirrors of layer 2.

use std::rc::Rc;

use shoal_bridge::{Bridges, Role, Settings};
use shoal_buffer::Packet;
use shoal_derive::NextNodes;
use shoal_ethernet::{Ethernet, Exact, Inner, Match, TagKind, Vid};
use shoal_graph::{Cx, Edge, FeatureSpec, NoError, PacketNode};
use shoal_interface::SwIfIndex;
use shoal_l2::{INPUT_ARC, L2, Mode, TagOp, TagRewrite};
use shoal_module::{Control, InitError, Module};
use shoal_span::{Level, MODULE, MirrorDirections, Span};
use shoal_testkit::{PacketBuilder, Port, Router, STACK};

/// A feature of the arc `l2-input`, which comes behind `span-l2-input`.
struct Seen;

#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    To(Edge),
}

impl PacketNode for Seen {
    const NAME: &'static str = "seen";
    type Next = Next;
    type Error = NoError;
    type Trace = &'static str;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, NoError> {
        cx.trace(pkt, || "seen");
        Ok(Next::To(cx.next_feature(pkt)))
    }
}

static SEEN: Module = Module { name: "seen", init: seen, ..Module::NONE };

fn seen(control: &Rc<Control>) -> Result<(), InitError> {
    let graph = control.graph()?;
    graph.add_packet(Seen)?;
    graph.add_feature(FeatureSpec { arc: INPUT_ARC, node: "seen", before: &[], after: &[] });
    Ok(())
}

struct World {
    router: Router,
    ports: Vec<Port>,
    /// Of port 1, for VLAN 7; it takes the tag off.
    sub: SwIfIndex,
}

impl World {
    /// Port 0 and a sub-interface of port 1 are bridged, ports 2 and 3 are routed.
    fn new() -> World {
        let mut modules = STACK.to_vec();
        modules.extend([&shoal_l2::MODULE, &shoal_bridge::MODULE, &SEEN, &MODULE]);
        let mut router = Router::new(&modules);
        let ports: Vec<Port> = (0..5).map(|n| router.pg(n)).collect();
        let [outer, none] = [7, 0].map(|vid| Vid::new(vid).unwrap());
        let takes = Match::Tags { kind: TagKind::Dot1q, outer, inner: Inner::None, exact: Exact::Yes };
        let sub = router.get::<Ethernet>().create_sub(ports[1].index(), 7, takes).unwrap();
        router.interfaces().set_admin(sub, true).unwrap();
        let bridges = router.get::<Bridges>();
        bridges.create(10, Settings::default()).unwrap();
        for member in [ports[0].index(), sub] {
            bridges.join(member, 10, 0, Role::Normal).unwrap();
        }
        let pop = TagRewrite { op: TagOp::Pop1, kind: TagKind::Dot1q, ids: [none, none] };
        router.get::<L2>().set_tags(sub, pop).unwrap();
        World { router, ports, sub }
    }

    fn set(&self, source: SwIfIndex, destination: usize, ways: MirrorDirections) {
        let destination = self.ports[destination].index();
        self.router.get::<Span>().set(Level::L2, source, destination, ways).unwrap();
    }

    fn send(&mut self, port: usize, frame: &[u8]) {
        let port = self.ports[port].clone();
        self.router.send(&port, frame);
    }

    fn received(&self, port: usize) -> Vec<Vec<u8>> {
        self.ports[port].received()
    }
}

fn frame(from: u8, to: u8, payload: usize) -> Vec<u8> {
    let start = PacketBuilder::ethernet([2, 0xaa, 0, 0, 0, from], [2, 0xaa, 0, 0, 0, to]);
    start.ip4([1; 4], [2; 4]).udp(1, 2).payload_len(payload).build()
}

fn tagged(frame: &[u8], vid: u8) -> Vec<u8> {
    [&frame[..12], &[0x81, 0, 0, vid], &frame[12..]].concat()
}

#[test]
fn a_bridge_s_member_is_mirrored_with_the_tags_of_its_own_link() {
    let mut world = World::new();
    let (sub, one, other) = (world.sub, frame(1, 2, 1200), frame(2, 1, 30));
    world.set(sub, 2, MirrorDirections::BOTH);
    world.send(0, &one);
    assert_eq!(world.received(1), [tagged(&one, 7)], "flooded");
    assert_eq!(world.received(2), [tagged(&one, 7)]);
    world.send(1, &tagged(&other, 7));
    assert_eq!((world.received(0), world.received(2)), (vec![other.clone()], vec![tagged(&other, 7)]));
    // What is not of layer 2 is none of it.
    world.send(1, &other);
    assert!(world.received(2).is_empty());
    world.set(sub, 2, MirrorDirections::RX);
    world.send(0, &one);
    assert_eq!((world.received(1).len(), world.received(2).len()), (1, 0));
    assert_eq!(world.router.error("span-l2-output", "SPAN incoming packets processed"), 1);
}

#[test]
fn a_destination_in_layer_2_sends_copies_as_it_sends_its_own_frames() {
    let mut world = World::new();
    let (l2, one) = (world.router.get::<L2>(), frame(1, 2, 600));
    let source = world.ports[0].index();
    // A trunk to a far analyser: mirrored frames have its tag.
    let remote =
        TagRewrite { op: TagOp::Pop1, kind: TagKind::Dot1q, ids: [0, 0].map(|vid| Vid::new(vid).unwrap()) };
    let (kind, outer) = (TagKind::Dot1q, Vid::new(99).unwrap());
    let takes = Match::Tags { kind, outer, inner: Inner::None, exact: Exact::Yes };
    let trunk = world.router.get::<Ethernet>().create_sub(world.ports[3].index(), 99, takes).unwrap();
    world.router.interfaces().set_admin(trunk, true).unwrap();
    l2.set_mode(trunk, Mode::Xconnect(world.ports[4].index())).unwrap();
    l2.set_tags(trunk, remote).unwrap();
    world.router.get::<Span>().set(Level::L2, source, trunk, MirrorDirections::RX).unwrap();
    world.send(0, &one);
    assert_eq!(world.received(3), [tagged(&one, 99)]);
    assert_eq!(world.received(1), [tagged(&one, 7)]);
    // Its mode ends while it gets copies.
    l2.set_mode(trunk, Mode::L3).unwrap();
    world.send(0, &one);
    assert_eq!(world.received(3), std::slice::from_ref(&one));
}

#[test]
fn a_mirror_of_layer_2_waits_for_it_and_outlives_it() {
    let mut world = World::new();
    let (l2, index) = (world.router.get::<L2>(), world.ports[2].index());
    world.set(index, 4, MirrorDirections::BOTH);
    let one = frame(5, 6, 10);
    world.send(2, &one);
    assert!(world.received(4).is_empty(), "it is routed");
    for _ in 0..2 {
        l2.set_mode(index, Mode::Xconnect(world.ports[3].index())).unwrap();
        l2.set_mode(world.ports[3].index(), Mode::Xconnect(index)).unwrap();
        world.send(2, &one);
        world.send(3, &one);
        assert_eq!((world.received(3).len(), world.received(2).len(), world.received(4).len()), (1, 1, 2));
        l2.set_mode(index, Mode::L3).unwrap();
        world.send(2, &one);
        assert!(world.received(4).is_empty());
    }
    world.router.get::<Span>().clear(Level::L2, index).unwrap();
    l2.set_mode(index, Mode::Xconnect(world.ports[3].index())).unwrap();
    world.send(2, &one);
    assert_eq!((world.received(3).len(), world.received(4).len()), (1, 0));
}

#[test]
fn features_behind_the_mirror_see_the_frame() {
    let mut world = World::new();
    let index = world.ports[0].index();
    world.set(index, 2, MirrorDirections::BOTH);
    world.router.interfaces().enable_feature(INPUT_ARC, "seen", index, true).unwrap();
    world.router.trace_add("pg-input", 1);
    let one = frame(1, 2, 10);
    world.send(0, &one);
    let trace = world.router.trace();
    assert!(
        trace.contains("span-l2-input") && trace.contains("l2-input-feat-arc") && trace.contains("seen"),
        "{trace}"
    );
    assert_eq!((world.received(1).len(), world.received(2).len()), (1, 1));
    world.router.interfaces().enable_feature(INPUT_ARC, "seen", index, false).unwrap();
    world.send(0, &one);
    assert_eq!((world.received(1).len(), world.received(2).len()), (1, 1));
}

#[test]
fn flooded_frames_are_mirrored_once_and_a_mirror_in_the_bridge_gets_both() {
    let mut world = World::new();
    let (sub, member) = (world.sub, world.ports[2].index());
    world.router.get::<Bridges>().join(member, 10, 0, Role::Normal).unwrap();
    world.set(sub, 2, MirrorDirections::TX);
    let one = frame(1, 0xff, 1300);
    world.send(0, &one);
    assert_eq!(world.received(1), [tagged(&one, 7)]);
    let mut seen = world.received(2);
    seen.sort_by_key(Vec::len);
    assert_eq!(seen, [one.clone(), tagged(&one, 7)], "as a member, and as a mirror");
}
