//! Chains that are not in the table of superpaths, put together from the parts there are: a layer-2 cross-connect without
//! a lookup, and a table of flows in front of the forwarding table.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use shoal_buffer::{Packet, SwIfIndex};
use shoal_derive::NextNodes;
use shoal_ethernet::EthernetInput;
use shoal_fib::{Fib, FibIndex, Path, Source};
use shoal_graph::superpath::{
    Chained, Direct, DirectingNode, FlowLookup, FlowLookupNode, Forward, Known, Line, Open, Pass,
    StagedLookup,
};
use shoal_graph::{Cx, Edge, NoError, PacketNode, StagedNode};
use shoal_infra::Guard;
use shoal_interface::{IfFlags, Interfaces, Layer, Medium, OUTPUT_ARC, Output, Superpath};
use shoal_ip4::Ip4Nodes;
use shoal_module::{Control, InitError, Module};
use shoal_testkit::{PacketBuilder, Port, Router, STACK};
use shoal_wire::Ip4Header;

/// Where frames of an interface go: the other end and the edge to its output.
#[derive(Default)]
struct Wire {
    tx: AtomicU32,
    edge: AtomicU32,
}

/// Sends what comes in by one interface out by another, whatever it is.
struct Connect {
    wires: [Wire; 16],
}

#[derive(NextNodes, Clone, Copy)]
enum ConnectNext {
    Output(Edge),
}

impl PacketNode for Connect {
    const NAME: &'static str = "test-connect";
    type Next = ConnectNext;
    type Error = NoError;
    type Trace = &'static str;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<ConnectNext, NoError> {
        cx.trace(pkt, || "connected");
        let facts = self.facts(pkt.rx(), cx.guard());
        Ok(ConnectNext::Output(facts.and_then(|f| self.direct(f, pkt)).unwrap_or(Edge::DROP)))
    }
}

impl DirectingNode for Connect {
    type Facts<'g> = (SwIfIndex, Edge);

    fn facts(&self, interface: SwIfIndex, _: Guard<'_>) -> Option<(SwIfIndex, Edge)> {
        let wire = self.wires.get(interface.0 as usize)?;
        match wire.tx.load(Ordering::Relaxed) {
            0 => None,
            tx => Some((SwIfIndex(tx), Edge(wire.edge.load(Ordering::Relaxed) as u16))),
        }
    }

    fn direct(&self, (tx, edge): (SwIfIndex, Edge), pkt: &mut Packet<'_>) -> Option<Edge> {
        pkt.meta_mut().tx = tx;
        Some(edge)
    }
}

/// One flow: packets to this address are turned round, all others pass.
struct Flow;

const TURNED: u32 = u32::from_be_bytes([20, 0, 2, 9]);

#[derive(NextNodes, Clone, Copy)]
enum FlowNext {
    #[node("ip4-lookup")]
    Lookup,
}

impl StagedNode for Flow {
    const NAME: &'static str = "test-flow";
    type Next = FlowNext;
    type Error = NoError;
    type Trace = &'static str;
    type Key = ();

    fn prepare(&self, _: &Packet<'_>, _: &mut Cx<'_, Self>) {}

    fn packet(&self, (): (), pkt: &mut Packet<'_>, _: &mut Cx<'_, Self>) -> Result<FlowNext, NoError> {
        let key = pkt.header::<Ip4Header>().map_or(0, Ip4Header::dst_u32);
        turn(pkt, key == TURNED);
        Ok(FlowNext::Lookup)
    }
}

/// Exchanges source and destination; the checksum stays right.
fn turn(pkt: &mut Packet<'_>, is_flow: bool) {
    if let Some(addresses) = pkt.data_mut().get_mut(12..20).filter(|_| is_flow) {
        addresses.rotate_left(4);
    }
}

impl StagedLookup for Flow {
    type Facts<'g> = ();
    /// The destination, and whether it is of the flow.
    type Query = (u32, bool);
    type InFlight = ();

    fn is_far((): ()) -> bool {
        true
    }

    fn query(pkt: &Packet<'_>, offset: usize) -> (u32, bool) {
        (pkt.header_at::<Ip4Header>(offset).map_or(0, Ip4Header::dst_u32), false)
    }

    fn begin((): (), _: &mut (u32, bool)) {}

    fn advance((): (), _: &mut [(u32, bool)]) {}

    fn finish((): (), (): (), all: &mut [(u32, bool)]) {
        for (key, found) in all {
            *found = *key == TURNED;
        }
    }
}

impl FlowLookupNode for Flow {
    fn facts(&self, _: SwIfIndex, _: Guard<'_>) -> Option<()> {
        Some(())
    }

    fn consult(&self, (): (), known: Known<'_, (u32, bool)>, pkt: &mut Packet<'_>, _: &Cx<'_, Self>) -> Pass {
        let key = pkt.header::<Ip4Header>().map_or(0, Ip4Header::dst_u32);
        let found = match known {
            Known::Answer((_, found)) => *found,
            Known::Other((other, found), ()) if *other == key => *found,
            _ => key == TURNED,
        };
        turn(pkt, found);
        Pass::On
    }
}

static MODULE: Module = Module { name: "chains", init, start, ..Module::NONE };

fn init(control: &Rc<Control>) -> Result<(), InitError> {
    let graph = control.graph()?;
    let connect = Arc::new(Connect { wires: Default::default() });
    graph.add_packet_shared(Arc::clone(&connect))?;
    control.put(connect);
    let flow = Arc::new(Flow);
    graph.add_staged(Arc::clone(&flow))?;
    control.put(flow);
    Ok(())
}

const CONNECT: Superpath =
    Superpath { name: "test-connect-superpath", medium: Medium::Layer2, serves: &[IfFlags(0)], cost: 10 };
const FLOW: Superpath =
    Superpath { name: "test-flow-superpath", medium: Medium::Ethernet, serves: &[IfFlags::IP4], cost: 20 };

fn start(control: &Rc<Control>) -> Result<(), InitError> {
    let (graph, interfaces) = (control.graph()?, control.get::<Interfaces>()?);
    let output = || graph.arc(OUTPUT_ARC).map(|arc| Output { arc, interfaces: interfaces.table() });
    let connect = Arc::clone(&*control.get::<Arc<Connect>>()?);
    let other = |e: shoal_interface::InterfaceError| InitError::Other(e.to_string());
    interfaces.add_superpath(CONNECT, Line(Direct(connect, output()?))).map_err(other)?;
    let (ethernet, ip4) = (control.get::<Arc<EthernetInput>>()?, control.get::<Ip4Nodes>()?);
    let forward = Forward::new(Arc::clone(&ip4.lookup), Arc::clone(&ip4.rewrite), (), output()?);
    let flow = FlowLookup(Arc::clone(&*control.get::<Arc<Flow>>()?), forward);
    let chain = Line(Chained(Arc::clone(&*ethernet), Open::new(Arc::clone(&ip4.input), flow)));
    interfaces.add_superpath(FLOW, chain).map_err(other)
}

fn router() -> (Router, Vec<Port>) {
    let mut modules = STACK.to_vec();
    modules.push(&MODULE);
    let mut router = Router::new(&modules);
    let ports = (0..3).map(|n| router.pg(n)).collect();
    (router, ports)
}

fn vectors(router: &Router, node: &str) -> u64 {
    let node = router.graph().node(node).unwrap();
    router.graph().graph_counters().vectors.sum(node.number() as usize)
}

fn connect(router: &Router, from: &Port, to: &Port) {
    let connect = router.get::<Arc<Connect>>();
    let output = router.interfaces().output_node_of(to.index()).unwrap();
    let edge = router.graph().add_edge(router.graph().node("test-connect").unwrap(), output).unwrap();
    let wire = &connect.wires[from.index().0 as usize];
    wire.edge.store(u32::from(edge.0), Ordering::Relaxed);
    wire.tx.store(to.index().0, Ordering::Relaxed);
    router.interfaces().set_layer(from.index(), Layer::Two).unwrap();
}

#[test]
fn a_cross_connect_is_a_chain_without_a_lookup() {
    let (mut router, ports) = router();
    connect(&router, &ports[0], &ports[1]);
    assert_eq!(router.interfaces().superpath_of(ports[0].index()).unwrap().taken, Some(CONNECT.name));
    let frames: Vec<Vec<u8>> = (0..40).map(|n| vec![n; 60 + usize::from(n)]).collect();
    router.send_all(&ports[0], &frames);
    assert_eq!(ports[1].received(), frames);
    assert_eq!((vectors(&router, CONNECT.name), vectors(&router, "test-connect")), (40, 0));
    let bytes: u64 = frames.iter().map(|f| f.len() as u64).sum();
    assert_eq!(router.graph().graph_counters().tx.sum(ports[1].index().0 as usize), (40, bytes));
    // A feature of the way out: its node takes the packets over.
    router.interfaces().collect_detailed(ports[1].index(), true).unwrap();
    router.send_all(&ports[0], &frames);
    assert_eq!(ports[1].received(), frames);
    assert_eq!(vectors(&router, "stats-collect-tx"), 40);
    router.interfaces().set_layer(ports[0].index(), Layer::Three).unwrap();
    assert_eq!(router.interfaces().superpath_of(ports[0].index()).unwrap().taken, None);
}

#[test]
fn a_table_of_flows_stands_in_front_of_the_forwarding_table() {
    let (mut router, ports) = router();
    for (n, port) in ports.iter().enumerate() {
        router.set_address(port, &format!("10.0.{n}.1/24"));
        router.set_neighbour(port, [10, 0, n as u8, 2].into(), [2, 0xaa, 0, 0, 0, n as u8].into());
    }
    let path = Path::next_hop("10.0.2.2".parse::<std::net::IpAddr>().unwrap(), ports[2].index());
    let fib = router.get::<Fib>();
    let far: shoal_wire::Ip4Prefix = "20.0.2.0/24".parse().unwrap();
    fib.add(FibIndex::DEFAULT, far, Source::Cli, &[path]).unwrap();
    assert_eq!(router.interfaces().superpath_of(ports[0].index()).unwrap().taken, Some(FLOW.name));
    let packet = |host| {
        let start = PacketBuilder::ethernet([2, 0xaa, 0, 0, 0, 0], ports[0].mac());
        start.ip4([10, 0, 1, 2], [20, 0, 2, host]).udp(1, 2).build()
    };
    // All of one flow, then of several: those of the flow go back to where they say they are from.
    router.send_all(&ports[0], (0..40).map(|_| packet(9)));
    assert_eq!((ports[1].received().len(), ports[2].received().len()), (40, 0));
    router.send_all(&ports[0], (0..80).map(|n| packet(8 + n % 2)));
    let turned = ports[1].received();
    assert_eq!((turned.len(), ports[2].received().len()), (40, 40));
    assert_eq!(turned[0][26..34], [20, 0, 2, 9, 10, 0, 1, 2]);
    assert_eq!((vectors(&router, FLOW.name), vectors(&router, "ip4-lookup")), (120, 0));
}
