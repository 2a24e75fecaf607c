//! A router with the whole IPv4 stack, toy features, and a receive queue that can set what drivers set.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)] // helpers of tests
#![allow(dead_code)] // each test file uses its part

use std::collections::VecDeque;
use std::net::Ipv4Addr;
use std::rc::Rc;
use std::sync::{Arc, Mutex};

use shoal_arp::Neighbours;
use shoal_arp::table::{FibEntry, Origin};
use shoal_buffer::{Buffer, Flags, Packet, SwIfIndex};
use shoal_derive::{ErrorCounters, NextNodes};
use shoal_fib::{Fib, FibIndex, Path, Source, Via};
use shoal_graph::{
    Cx, Edge, FeatureSpec, FrameCx, Graph, NoError, NoNext, NodeIndex, PacketNode, QueueId, RxQueue,
};
use shoal_icmp::Icmp;
use shoal_icmp::limiter::Rate;
use shoal_interface::{IfTable, Interfaces, OUTPUT_ARC};
use shoal_ip4::{Ip4, UNICAST_ARC};
use shoal_module::{Control, InitError, Module};
use shoal_testkit::{Config, PacketBuilder, Port, Router};
use shoal_wire::{Ip4Prefix, MacAddress};

/// The stack, and the toys.
pub const MODULES: &[&Module] = &[
    &shoal_interface::MODULE,
    &shoal_adj::MODULE,
    &shoal_fib::MODULE,
    &shoal_ethernet::MODULE,
    &shoal_ip4::MODULE,
    &shoal_ip6::MODULE,
    &shoal_arp::MODULE,
    &shoal_icmp::MODULE,
    &TOYS,
    &shoal_pg::MODULE,
];

/// Features: `toy-first` and `toy-second` on the input arc, `toy-out` on the output arc, and one on each other arc.
pub static TOYS: Module = Module { name: "toys", init: init_toys, ..Module::NONE };

fn init_toys(control: &Rc<Control>) -> Result<(), InitError> {
    let graph = control.graph()?;
    graph.add_packet(Toy::<0>)?;
    graph.add_packet(Toy::<1>)?;
    graph.add_packet(Toy::<2>)?;
    graph.add_packet(Toy::<3>)?;
    graph.add_packet(Toy::<4>)?;
    graph.add_packet(Toy::<5>)?;
    graph.add_packet(Toy::<6>)?;
    graph.add_packet(Toy::<7>)?;
    // Declared in the wrong order on purpose: the constraint decides.
    graph.add_feature(FeatureSpec {
        arc: UNICAST_ARC,
        node: "toy-second",
        before: &[],
        after: &["toy-first"],
    });
    graph.add_feature(FeatureSpec { arc: UNICAST_ARC, node: "toy-first", before: &[], after: &[] });
    graph.add_feature(FeatureSpec { arc: OUTPUT_ARC, node: "toy-out", before: &[], after: &[] });
    for (arc, node) in [
        (shoal_ip4::OUTPUT_ARC, "toy-ip-out"),
        (shoal_ip4::MULTICAST_ARC, "toy-multicast"),
        (shoal_ip4::LOCAL_ARC, "toy-local"),
        (shoal_ip4::PUNT_ARC, "toy-punt"),
        (shoal_ip4::DROP_ARC, "toy-drop"),
    ] {
        graph.add_feature(FeatureSpec { arc, node, before: &[], after: &[] });
    }
    Ok(())
}

#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToyNext {
    /// The next feature.
    Feature(Edge),
}

#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToyError {
    /// a toy saw the packet
    #[severity(info)]
    Seen,
    /// a toy did not like the packet
    Disliked,
}

/// The last byte of a packet that toys drop.
pub const DISLIKED: u8 = 0xd1;

/// By number.
pub const TOY_NAMES: [&str; 8] = [
    "toy-first",
    "toy-second",
    "toy-out",
    "toy-ip-out",
    "toy-multicast",
    "toy-local",
    "toy-punt",
    "toy-drop",
];

/// Counts packets and drops those whose last byte it does not like.
pub struct Toy<const N: usize>;

impl<const N: usize> PacketNode for Toy<N> {
    const NAME: &'static str = TOY_NAMES[N];
    type Next = ToyNext;
    type Error = ToyError;
    type Trace = &'static str;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<ToyNext, ToyError> {
        cx.trace(pkt, || "seen");
        cx.count(ToyError::Seen, 1);
        if N == 0 && pkt.data().last() == Some(&DISLIKED) {
            return Err(ToyError::Disliked);
        }
        Ok(ToyNext::Feature(cx.next_feature(pkt)))
    }
}

/// A packet as a driver would hand it over.
#[derive(Clone, Debug, Default)]
pub struct Given {
    pub bytes: Vec<u8>,
    /// Lengths of the first segments; the rest follows in buffers as full as they get.
    pub cuts: Vec<usize>,
    pub flags: Flags,
    pub gso_size: u16,
    /// Where the transport header lies, and the checksum in it.
    pub l4: i16,
    pub checksum_offset: u16,
    pub gso_header: u16,
}

impl From<Vec<u8>> for Given {
    fn from(bytes: Vec<u8>) -> Self {
        Given { bytes, ..Given::default() }
    }
}

/// A receive queue of one interface that tests fill.
struct Hand {
    given: Arc<Mutex<VecDeque<Given>>>,
    interfaces: IfTable,
    rx: SwIfIndex,
}

impl Hand {
    fn make(&self, given: &Given, cx: &mut FrameCx<'_>) -> Option<Buffer> {
        let mut rest = given.bytes.as_slice();
        let mut parts = Vec::new();
        for cut in &given.cuts {
            let (now, later) = rest.split_at((*cut).min(rest.len()).min(shoal_buffer::DATA_SIZE));
            parts.push(now);
            rest = later;
        }
        parts.extend(rest.chunks(shoal_buffer::DATA_SIZE));
        let mut parts = parts.into_iter();
        let mut first = cx.cache().alloc_data(parts.next().unwrap_or_default()).ok()?;
        for part in parts {
            let Ok(segment) = cx.cache().alloc_data(part) else {
                cx.cache().free(first);
                return None;
            };
            cx.cache().packet(&mut first).append_segment(segment);
        }
        let mut pkt = cx.cache().packet(&mut first);
        let meta = pkt.meta_mut();
        meta.rx = self.rx;
        (meta.flags, meta.gso_size, meta.gso_header) = (given.flags, given.gso_size, given.gso_header);
        (meta.l4, meta.checksum_offset) = (given.l4, given.checksum_offset);
        Some(first)
    }
}

impl RxQueue for Hand {
    fn poll(&mut self, cx: &mut FrameCx<'_>) -> usize {
        let mut frame = cx.blank();
        let (mut taken, mut bytes) = (0, 0);
        while !frame.is_full()
            && let Some(given) = self.given.lock().unwrap().pop_front()
        {
            taken += 1;
            bytes += given.bytes.len() as u64;
            match self.make(&given, cx) {
                Some(buffer) => frame.push(buffer).unwrap(),
                None => cx.counters().rx_no_buf.add(cx.thread(), self.rx.0 as usize, 1),
            }
        }
        let tracing = cx.wants_trace();
        if tracing {
            let memory = cx.memory();
            for i in 0..frame.len() {
                cx.begin_trace(&mut frame.packet(memory, i).unwrap(), "given");
            }
        }
        cx.counters().rx.add(cx.thread(), self.rx.0 as usize, frame.len() as u64, bytes);
        let next = self.interfaces.get(self.rx, cx.guard()).rx_next(tracing);
        cx.forward(next, frame);
        taken
    }

    fn is_parked(&self) -> bool {
        self.given.lock().unwrap().is_empty()
    }
}

/// The node that traces of given packets begin with.
pub const HAND: &str = "test-hand";

/// What a test holds of a [`Hand`].
pub struct Giver {
    given: Arc<Mutex<VecDeque<Given>>>,
    pub queue: QueueId,
}

impl Giver {
    /// A queue of an interface on a thread.
    pub fn new(router: &Router, port: &Port, thread: usize) -> Giver {
        let graph: &Graph = router.graph();
        let node = graph.node(HAND).or_else(|_| graph.add_input::<NoNext, NoError>(HAND)).unwrap();
        let given: Arc<Mutex<VecDeque<Given>>> = Arc::default();
        let interfaces = router.interfaces().table();
        let hand = Hand { given: Arc::clone(&given), interfaces, rx: port.index() };
        let queue = graph.add_queue(port.name(), 9, node, Some(thread), Box::new(hand)).unwrap();
        Giver { given, queue }
    }

    /// Leaves a packet to be received.
    pub fn give(&self, packet: impl Into<Given>) {
        self.given.lock().unwrap().push_back(packet.into());
    }

    /// Packets nobody has taken yet.
    pub fn waiting(&self) -> usize {
        self.given.lock().unwrap().len()
    }
}

/// The whole stack with ports `pg0` up to `count`, all up; ICMP errors are not limited.
pub fn router(count: u32) -> (Router, Vec<Port>) {
    with_buffers(count, 4096)
}

/// The same with another number of buffers.
pub fn with_buffers(count: u32, buffers: usize) -> (Router, Vec<Port>) {
    let mut router = Router::with(Config { buffers, ..Config::default() }, MODULES);
    router.get::<Icmp>().set_rate(Rate { per_second: 0, burst: 1 }).unwrap();
    let ports = (0..count).map(|n| router.pg(n)).collect();
    (router, ports)
}

pub fn ip(text: &str) -> Ipv4Addr {
    text.parse().unwrap()
}

pub fn prefix(text: &str) -> Ip4Prefix {
    text.parse().unwrap()
}

pub fn address(router: &Router, port: &Port, address: &str) {
    router.get::<Ip4>().add_address(port.index(), prefix(address)).unwrap();
}

/// A station's MAC by its number.
pub fn station(n: u8) -> MacAddress {
    MacAddress([2, 0xaa, 0, 0, 0, n])
}

pub fn neighbour(router: &Router, port: &Port, address: &str, mac: MacAddress) {
    let neighbours = router.get::<Neighbours>();
    neighbours.set((port.index(), ip(address)), mac, Origin::Static, FibEntry::Wanted).unwrap();
}

pub fn route(router: &Router, to: &str, path: impl Into<Path>) {
    route_in(router, FibIndex::DEFAULT, to, path);
}

pub fn route_in(router: &Router, fib: FibIndex, to: &str, path: impl Into<Path>) {
    router.get::<Fib>().add(fib, prefix(to), Source::Cli, &[path.into()]).unwrap();
}

pub fn via(next_hop: &str, port: &Port) -> Path {
    Path::next_hop(ip(next_hop), port.index())
}

/// Another table's index.
pub fn table(router: &Router, id: u32) -> FibIndex {
    router.get::<Fib>().add_table(shoal_fib::Family::Ip4, id, None).unwrap()
}

pub fn look_up_in(fib: FibIndex) -> Path {
    Via::Lookup(fib).into()
}

/// Two hosts, each on a port of the router: 10.0.0.2 behind `pg0` (10.0.0.1/24), 10.0.1.2 behind `pg1`
/// (10.0.1.1/24).
pub fn two_hosts() -> (Router, Port, Port) {
    let (router, mut ports) = router(2);
    let (b, a) = (ports.pop().unwrap(), ports.pop().unwrap());
    address(&router, &a, "10.0.0.1/24");
    address(&router, &b, "10.0.1.1/24");
    neighbour(&router, &a, "10.0.0.2", station(1));
    neighbour(&router, &b, "10.0.1.2", station(2));
    (router, a, b)
}

/// A frame from station 1 to a port.
pub fn to(port: &Port) -> PacketBuilder {
    PacketBuilder::ethernet(station(1), port.mac())
}

/// UDP from host 1 to host 2 of [`two_hosts`], by way of `port`.
pub fn udp(port: &Port) -> PacketBuilder {
    to(port).ip4([10, 0, 0, 2], [10, 0, 1, 2]).udp(1000, 2000).payload_len(20)
}

/// The interfaces' object of a router.
pub fn interfaces(router: &Router) -> Rc<Interfaces> {
    Rc::clone(router.interfaces())
}

/// A node by its name.
pub fn node(router: &Router, name: &str) -> NodeIndex {
    router.graph().node(name).unwrap()
}
