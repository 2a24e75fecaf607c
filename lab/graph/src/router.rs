//! A router of two packet-generator interfaces: what one receives, the other sends.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::rc::Rc;
use std::sync::Arc;

use shoal_adj::{Adj, AdjKind, Adjacencies, Family, Link};
use shoal_arp::Neighbours;
use shoal_arp::table::{FibEntry, Origin};
use shoal_fib::{Fib, FibIndex, Path, Source, consecutive};
use shoal_graph::clock::Time;
use shoal_graph::process::Processes;
use shoal_graph::{Clock, FrameCx, Graph, GraphConfig, NodeIndex, RxQueue};
use shoal_interface::{Interfaces, SwIfIndex};
use shoal_ip4::Ip4;
use shoal_ip6::Ip6;
use shoal_module::{Control, Module, init_all, start_all};
use shoal_pg::{self as pg, CreateInterface, Pg, StreamSpec};
use shoal_wire::{EthernetHeader, IntoBytes, Ip4Prefix, Ip6Prefix, IpPrefix, MacAddress};

use crate::Result;
use crate::fragmented;
use crate::full_table;
use crate::meter::Meter;
use crate::natted;
use crate::scenario::{Ip, Nat, PathKind, Routes, Scenario};
use crate::switched;
use crate::work::{Count, SLICE, Work};

/// What the router is made of, in the order of the daemon's table.
pub static MODULES: &[&Module] = &[
    &shoal_interface::MODULE,
    &shoal_adj::MODULE,
    &shoal_fib::MODULE,
    &shoal_ethernet::MODULE,
    &shoal_l2::MODULE,
    &shoal_ip4::MODULE,
    &shoal_ip6::MODULE,
    &shoal_icmp::MODULE,
    &shoal_reassembly::MODULE,
    &shoal_arp::MODULE,
    &shoal_bridge::MODULE,
    &shoal_syslog::MODULE,
    &shoal_ipfix::MODULE,
    &shoal_nat44_ed::MODULE,
    &shoal_nat44_ei::MODULE,
    &shoal_det44::MODULE,
    &shoal_nat64::MODULE,
    &shoal_map::MODULE,
    &shoal_dslite::MODULE,
    &shoal_lb::MODULE,
    &shoal_cnat::MODULE,
    &shoal_pg::MODULE,
    &shoal_superpaths::MODULE,
];

const GENERATION: &str = "pg-input";
/// Nodes in the order packets pass them, so that they are printed so.
const ORDER: &[&str] = &[
    GENERATION,
    "ip4-superpath",
    "ip-superpath",
    "ip4-nat44-superpath",
    "ip-nat44-superpath",
    "ip4-nat44-ei-superpath",
    "ip-nat44-ei-superpath",
    "ip4-cnat-superpath",
    "ip-cnat-superpath",
    "ip-nat64-superpath",
    "ip-map-t-superpath",
    "ip-map-e-superpath",
    "ip-dslite-superpath",
    "ip-feature-superpath",
    "l2-xconnect-superpath",
    "l2-bridge-superpath",
    "ethernet-input",
    "l2-input",
    "l2-learn",
    "l2-fwd",
    "l2-output",
    "ip4-input",
    "ip4-full-reassembly-feature",
    "ip4-sv-reassembly-feature",
    "nat44-ed-in2out",
    "nat44-ei-in2out",
    "cnat-input-ip4",
    "det44-in2out",
    "ip6-input",
    "ip6-sv-reassembly-feature",
    "cnat-input-ip6",
    "nat64-in2out",
    "ip6-map-t",
    "ip6-full-reassembly-feature",
    "ip6-map",
    "dslite-in2out",
    "lb4-gre4",
    "ip4-lookup",
    "ip4-rewrite",
    "ip6-lookup",
    "ip6-rewrite",
    "ip4-sv-reassembly-output-feature",
    "cnat-output-ip4",
    "ip6-sv-reassembly-output-feature",
    "cnat-output-ip6",
    "pg1-output",
    "pg1-tx",
];

/// The receiving interface's address.
pub const MAC_IN: MacAddress = MacAddress([2, 0xfe, 0, 0, 0, 0]);
/// The sending interface's address.
pub const MAC_OUT: MacAddress = MacAddress([2, 0xfe, 0, 0, 0, 1]);
/// The next hop's.
pub const MAC_NEXT_HOP: MacAddress = MacAddress([2, 0, 0, 0, 0, 2]);
pub const NEXT_HOP: Ipv4Addr = Ipv4Addr::new(10, 0, 1, 2);
/// The first address with a route.
pub const FIRST: Ipv4Addr = Ipv4Addr::new(16, 0, 0, 0);
/// Bytes of each IPv4 packet: 64 on the wire, with the frame check sequence.
pub const BYTES: usize = 60;

pub const NEXT_HOP6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 2);
/// The first IPv6 address with a route.
const FIRST6: Ipv6Addr = Ipv6Addr::new(0x2001, 0x1000, 0, 0, 0, 0, 0, 0);
/// Bytes of each IPv6 packet, which has no room for fewer with a UDP header.
pub const BYTES6: usize = 64;

/// The router of a scenario, with the stream that is its load.
pub struct Router {
    pub control: Rc<Control>,
    pub graph: Rc<Graph>,
    input: SwIfIndex,
    output: SwIfIndex,
    /// Packets that are received for each that is sent.
    received_for_one: u64,
    rounds: usize,
    /// Where packets are made, and where each counted node lies among the graph's.
    nodes: Vec<(String, NodeIndex)>,
    before: Vec<Count>,
}

impl Router {
    /// Sets it up and lets its first packets through.
    pub fn new(scenario: &Scenario) -> Result<Self> {
        let (control, graph) = start()?;
        let [input, output] = interfaces(&control, scenario)?;
        if scenario.ip == Ip::V6 {
            all_are_neighbours(&control)?;
        }
        // Where packets go, unless the stream's words say it.
        let to = match (scenario.routes, scenario.ip) {
            (Routes::Same(n), Ip::V4) => routes(&control, output, n).map(|()| Vec::new())?,
            (Routes::Same(n), Ip::V6) => routes6(&control, output, n).map(|()| Vec::new())?,
            (Routes::Full, ip) => full_table::routes(&control, output, ip)?,
            (Routes::Ecmp(ways), ip) => full_table::shared_route(&control, output, ip, ways)?,
            (Routes::Crossed, _) => switched::cross(&control, [input, output]).map(|()| Vec::new())?,
            (Routes::Bridged(n), _) => switched::bridge(&control, [input, output], n).map(|()| Vec::new())?,
            (Routes::Fragments, _) => {
                fragmented::reassemble(&control, input)?;
                routes(&control, output, 1).map(|()| Vec::new())?
            }
            (Routes::Translated(nat, n), _) => {
                natted::translate(&control, [input, output], (nat, scenario.ip), n).map(|()| Vec::new())?
            }
            (Routes::Flows(_), _) => Vec::new(),
        };
        let received_for_one = if scenario.routes == Routes::Fragments { 2 } else { 1 };
        let rounds = (SLICE / scenario.frame).max(1);
        settle(&control)?;
        let mut router = Router {
            control,
            graph,
            input,
            output,
            received_for_one,
            rounds,
            nodes: Vec::new(),
            before: Vec::new(),
        };
        router.start_stream(scenario, &to)?;
        router.open_sessions(scenario)?;
        router.find_nodes();
        Ok(router)
    }

    fn start_stream(&self, scenario: &Scenario, to: &[IpPrefix]) -> Result<()> {
        let pg = self.control.get::<Pg>()?;
        let frame = scenario.frame;
        let Routes::Same(n) = scenario.routes else {
            let source = pg::Source::Packets(match scenario.routes {
                Routes::Bridged(n) => switched::frames(n),
                Routes::Fragments => fragmented::packets(),
                Routes::Crossed => switched::frames(1),
                Routes::Translated(nat, n) => natted::packets((nat, scenario.ip), n),
                _ => full_table::packets(to),
            });
            let spec = StreamSpec {
                limit: Some(0),
                maxframe: frame,
                interface: Some(self.input),
                ..StreamSpec::new("bench", source)
            };
            pg.add_stream(spec)?;
            return Ok(pg.enable("bench")?);
        };
        let stream = pg.parse_stream(&match scenario.ip {
            Ip::V4 => stream4("bench", frame, n),
            Ip::V6 => format!(
                "name bench interface pg0 size {BYTES6}-{BYTES6} maxframe {frame} data {{ \
                 IP6: 02:00:00:00:00:01 -> {MAC_IN} UDP: 2001:db8::2 -> {} UDP: 1 -> 2 incrementing 2 }}",
                Ipv6Addr::from_bits(FIRST6.to_bits() + 2)
            ),
        })?;
        pg.add_stream(stream)?;
        if scenario.way != PathKind::Ruler {
            pg.enable("bench")?;
        }
        Ok(())
    }

    /// Lets the first packet of each flow through, where that makes its session.
    fn open_sessions(&self, scenario: &Scenario) -> Result<()> {
        let Routes::Translated(nat, flows) = scenario.routes else { return Ok(()) };
        for _ in 0..flows as usize / scenario.frame + 64 {
            self.graph.round();
        }
        let Some(made) = natted::sessions(&self.control, nat)? else { return Ok(()) };
        match made {
            made if made == flows as usize => Ok(()),
            // A few flows have the same hash, and share their server.
            made if nat == Nat::Balanced && made.abs_diff(flows as usize) < flows as usize / 1000 => Ok(()),
            made => Err(format!("{made} sessions of {flows} flows; {}", self.errors()).into()),
        }
    }

    /// Finds out where packets pass now.
    fn find_nodes(&mut self) {
        let graph = &self.graph;
        let passed = |node: NodeIndex| graph.graph_counters().vectors.sum(node.number() as usize);
        let before: Vec<u64> = graph.nodes().iter().map(|n| passed(n.index)).collect();
        for _ in 0..64 {
            graph.round();
        }
        let ran = graph.nodes().into_iter().zip(before).filter(|(n, before)| passed(n.index) > *before);
        let ran = ran.map(|(node, _)| node);
        let mut nodes: Vec<(String, NodeIndex)> = ran.map(|n| (n.name, n.index)).collect();
        let place = |name: &str| ORDER.iter().position(|n| *n == name).unwrap_or(ORDER.len());
        nodes.sort_by_key(|(name, _)| place(name));
        self.before = vec![Count::default(); nodes.len()];
        self.nodes = nodes;
    }

    fn count(&self, node: NodeIndex) -> Count {
        let (c, at) = (self.graph.graph_counters(), node.number() as usize);
        Count { calls: c.calls.get(0, at), vectors: c.vectors.get(0, at), clocks: c.clocks.get(0, at) }
    }

    /// The interface that receives.
    pub fn input(&self) -> SwIfIndex {
        self.input
    }

    /// Whether all packets that were made were sent.
    ///
    /// # Errors
    /// They were not; with what the counters of the nodes tell.
    pub fn verify_sent(&self) -> Result<()> {
        let (made, sent) = (self.made(), self.sent());
        if made == 0 || made != sent * self.received_for_one {
            return Err(format!("{made} packets were made, {sent} sent; {}", self.errors()).into());
        }
        Ok(())
    }

    fn made(&self) -> u64 {
        self.graph.graph_counters().rx.sum(self.input.0 as usize).0
    }

    fn sent(&self) -> u64 {
        self.graph.graph_counters().tx.sum(self.output.0 as usize).0
    }

    /// Node counters that are not zero: why packets were dropped.
    fn errors(&self) -> String {
        let errors = &self.graph.graph_counters().errors;
        let all = self.graph.error_counters();
        let lines = all.iter().enumerate().filter(|(at, _)| errors.sum(*at) > 0);
        let text: Vec<String> =
            lines.map(|(at, (n, c))| format!("{n}: {} ({})", c.description, errors.sum(at))).collect();
        text.join(", ")
    }
}

impl Work for Router {
    fn nodes(&self) -> Vec<String> {
        self.nodes.iter().map(|(name, _)| name.clone()).collect()
    }

    fn slice(&mut self, counts: &mut [Count]) -> u64 {
        let mut before = std::mem::take(&mut self.before);
        for (place, (_, node)) in before.iter_mut().zip(&self.nodes) {
            *place = self.count(*node);
        }
        let mut packets = 0;
        let mut main = self.graph.main();
        for _ in 0..self.rounds {
            packets += main.round().packets as u64;
        }
        main.offline();
        drop(main);
        for ((count, before), (_, node)) in counts.iter_mut().zip(&before).zip(&self.nodes) {
            let now = self.count(*node);
            *count = Count {
                calls: now.calls - before.calls,
                vectors: now.vectors - before.vectors,
                clocks: now.clocks.wrapping_sub(before.clocks),
            };
        }
        self.before = before;
        packets
    }

    fn exclude_generation(&mut self, meter: Arc<Meter>) -> Result<()> {
        for info in self.graph.queues() {
            let queue = self.graph.remove_queue(info.id)?.ok_or("the main thread does not move")?;
            let wrapped = Excluded { queue, meter: Arc::clone(&meter) };
            self.graph.add_queue(&info.interface, info.queue, info.node, Some(0), Box::new(wrapped))?;
        }
        Ok(())
    }

    fn verify(&self) -> Result<()> {
        self.verify_sent()?;
        match self.graph.pool().stats().used {
            0 => Ok(()),
            used => Err(format!("{used} buffers are still in use").into()),
        }
    }
}

/// A receive queue whose work is not counted.
struct Excluded {
    queue: Box<dyn RxQueue>,
    meter: Arc<Meter>,
}

impl RxQueue for Excluded {
    fn poll(&mut self, cx: &mut FrameCx<'_>) -> usize {
        self.meter.pause();
        let packets = self.queue.poll(cx);
        self.meter.resume();
        packets
    }

    fn deadline(&self, now: Time) -> Option<Time> {
        self.queue.deadline(now)
    }

    fn is_parked(&self) -> bool {
        self.queue.is_parked()
    }
}

/// The modules on a graph of their own, started.
pub fn start() -> Result<(Rc<Control>, Rc<Graph>)> {
    let config = GraphConfig { stats_bytes: 1 << 30, clock: Clock::real(), ..GraphConfig::default() };
    let control = Rc::new(Control::new());
    let graph = control.put_rc(Graph::new(config)?);
    control.put(Processes::new(graph.clock().clone()));
    init_all(&control, MODULES)?;
    start_all(&control, MODULES)?;
    Ok((control, graph))
}

/// Does what interfaces and routes have left to processes.
pub fn settle(control: &Control) -> Result<()> {
    let (graph, processes) = (control.graph()?, control.get::<Processes>()?);
    for _ in 0..8 {
        processes.run_until_idle();
        graph.round();
    }
    Ok(())
}

/// The description of a stream of IPv4 packets to so many routes. `head` is its name, and what more it says.
pub fn stream4(head: &str, frame: usize, routes: u32) -> String {
    let first = FIRST.to_bits();
    let to = match routes {
        1 => Ipv4Addr::from_bits(first + 2).to_string(),
        n => format!("{FIRST} + {}", Ipv4Addr::from_bits(first + (n << 8) - 1)),
    };
    format!(
        "name {head} interface pg0 size {BYTES}-{BYTES} maxframe {frame} data {{ \
         IP4: 02:00:00:00:00:01 -> {MAC_IN} UDP: 10.0.0.2 -> {to} UDP: 1 -> 2 incrementing 18 }}"
    )
}

/// The two interfaces, up and with addresses.
pub fn interfaces(control: &Control, scenario: &Scenario) -> Result<[SwIfIndex; 2]> {
    let (pg, interfaces, ip4) = (control.get::<Pg>()?, control.get::<Interfaces>()?, control.get::<Ip4>()?);
    interfaces.enable_superpath(scenario.way == PathKind::Superpath)?;
    let create = |id: u32, mac: MacAddress| -> Result<SwIfIndex> {
        let create = CreateInterface { id, mac: Some(mac), ..CreateInterface::default() };
        let index = pg.create_interface(&create)?;
        interfaces.set_admin(index, true)?;
        match scenario.ip {
            Ip::V4 => ip4.add_address(index, Ip4Prefix::new(Ipv4Addr::new(10, 0, id as u8, 1), 24)?)?,
            Ip::V6 => {
                let address = Ipv6Addr::new(0x2001, 0xdb8, id as u16, 0, 0, 0, 0, 1);
                control.get::<Ip6>()?.add_address(index, Ip6Prefix::new(address, 64)?)?;
            }
        }
        Ok(index)
    };
    Ok([create(0, MAC_IN)?, create(1, MAC_OUT)?])
}

/// The next hop, and so many routes by it.
pub fn routes(control: &Control, output: SwIfIndex, count: u32) -> Result<()> {
    let neighbours = control.get::<Neighbours>()?;
    neighbours.set((output, NEXT_HOP), MAC_NEXT_HOP, Origin::Static, FibEntry::Wanted)?;
    let prefixes = consecutive(Ip4Prefix::new(FIRST, 24)?, count)?;
    let path = Path::next_hop(NEXT_HOP, output);
    control.get::<Fib>()?.add_many(FibIndex::DEFAULT, prefixes, Source::Cli, &[path])?;
    Ok(())
}

/// Every IPv6 neighbour is the next hop: no neighbour discovery is needed.
fn all_are_neighbours(control: &Control) -> Result<()> {
    let (adjacencies, interfaces) = (control.get::<Adjacencies>()?, control.get::<Interfaces>()?);
    let weak = Rc::downgrade(&adjacencies);
    let describe = move |interface, link: Link, _| {
        let edge = weak.upgrade().and_then(|all| all.edge_to(link, interface).ok());
        let (Some(edge), Ok(data)) = (edge, interfaces.data(interface)) else {
            return Adj::special(AdjKind::Drop);
        };
        let header = EthernetHeader::new(data.mac(), MAC_NEXT_HOP, link.ether_type());
        Adj::on(AdjKind::Rewrite, interface, link.mtu(&data)).with_rewrite(header.as_bytes(), edge)
    };
    adjacencies.set_describe(Family::Ip6, Rc::new(describe));
    Ok(())
}

/// So many IPv6 routes by the next hop.
pub fn routes6(control: &Control, output: SwIfIndex, count: u32) -> Result<()> {
    let prefixes = consecutive(Ip6Prefix::new(FIRST6, 48)?, count)?;
    let path = Path::next_hop(NEXT_HOP6, output);
    control.get::<Fib>()?.add_many(FibIndex::DEFAULT, prefixes, Source::Cli, &[path])?;
    Ok(())
}

#[cfg(test)]
mod tests;
