//! IPv6 forwarding: input checks, lookup, rewrite, local delivery.
//!
//! ```text
//! ethernet-input -> ip6-input -> ip6-lookup -> ip6-rewrite -> <interface>-output
//!                     |  options    |  local      |  too long, expired: ip6-icmp-error
//!               ip6-hop-by-hop   ip6-local
//! ```
//! The common way, from `ethernet-input` to the output node, is also part of superpaths, made of the same code: see
//! `net/superpaths`.
#![forbid(unsafe_code)]

pub mod api;
pub mod cli;
mod control;
pub mod edges;
mod family;
mod icmp_error;
mod lines;
pub mod node;
mod running;

use std::rc::Rc;
use std::sync::Arc;

use shoal_adj::{Adjacencies, Link};
use shoal_fib::FibTables;
use shoal_graph::Graph;
use shoal_interface::Interfaces;
use shoal_ip::node::{InterfaceRx, IpDrop, LoadBalance, LocalEnd, NotEnabled, Punt};
use shoal_ip::{ListenerTable, Listeners, Sources};
use shoal_module::{Control, InitError, Module};

pub use control::{AddressEvent, Ip6, Ip6IfTable, Ip6Info, Ip6LinkTable, Use};
pub use shoal_ip::Unreachables;

pub use family::Ip6Family;
pub use icmp_error::IcmpError;
pub use shoal_ip::AddressError;

use node::{frag::Ip6Frag, hop_by_hop::Ip6HopByHop, input::Ip6Input, local::Ip6Local};
use node::{lookup::Ip6Lookup, rewrite::Ip6Rewrite};

/// What `show trace` says of an IPv6 packet.
pub type Headers = shoal_ip::Headers<Ip6Family>;

/// Features of packets to one host run here.
pub const UNICAST_ARC: &str = "ip6-unicast";

/// Features of packets to a group run here. A module that forwards such packets has the arc end at a node of its own
/// ([`Graph::set_arc_end`]).
pub const MULTICAST_ARC: &str = "ip6-multicast";

/// Features of packets that go out run here, by the interface they go out by. The link's header is in front of them
/// already; the network header is at [`l3`](shoal_buffer::Meta::l3).
pub const OUTPUT_ARC: &str = "ip6-output";

/// Features of packets for this router run here.
pub const LOCAL_ARC: &str = "ip6-local";

/// Features of packets for the host this router runs on, for all interfaces.
pub const PUNT_ARC: &str = "ip6-punt";

/// Features of packets that are dropped without a word to their senders, for all interfaces.
pub const DROP_ARC: &str = "ip6-drop";

/// The module.
pub static MODULE: Module = Module {
    name: "ip6",
    description: "IPv6 forwarding",
    init,
    commands: cli::COMMANDS,
    api: &[&api::IP],
    running: running::running,
    lines: lines::LINES,
    ..Module::NONE
};

/// The nodes that superpaths share with the graph.
pub struct Ip6Nodes {
    /// `ip6-input`.
    pub input: Arc<Ip6Input>,
    /// `ip6-lookup`.
    pub lookup: Arc<Ip6Lookup>,
    /// `ip6-rewrite`.
    pub rewrite: Arc<Ip6Rewrite>,
}

fn init(control: &Rc<Control>) -> Result<(), InitError> {
    let graph = control.graph()?;
    let tables = FibTables::clone(&*control.get::<FibTables>()?);
    shoal_ip::add_arcs::<Ip6Family>(&graph);
    let ip6 = control.put_rc(Ip6::new(control)?);
    add_nodes(control, &graph, tables, &ip6)
}

fn add_nodes(control: &Rc<Control>, graph: &Rc<Graph>, fib: FibTables, ip6: &Ip6) -> Result<(), InitError> {
    let interfaces = control.get::<Interfaces>()?;
    shoal_ip::follow_enabled::<Ip6Family>(control, graph)?;
    let adjacencies = control.get::<Adjacencies>()?;
    let (unicast, multicast) = (graph.arc(UNICAST_ARC)?, graph.arc(MULTICAST_ARC)?);
    let received = shoal_ip::received::<Ip6Family>(graph)?;
    let input = Arc::new(Ip6Input { unicast: unicast.clone(), multicast: multicast.clone(), received });
    let sources =
        Sources { fib: fib.clone(), adjacencies: adjacencies.table(), interfaces: interfaces.table() };
    let lookup = Arc::new(Ip6Lookup {
        fib,
        adjacencies: adjacencies.table(),
        interfaces: interfaces.table(),
        links: ip6.link_table(),
        edges: ip6.edges(),
    });
    let rewrite = Arc::new(Ip6Rewrite {
        adjacencies: adjacencies.table(),
        edges: ip6.edges(),
        output: graph.arc(OUTPUT_ARC)?,
    });
    graph.add_plain(Arc::clone(&input))?;
    graph.add_packet(Ip6HopByHop { unicast, multicast })?;
    graph.add_packet(NotEnabled::<Ip6Family>::new(graph.arc(DROP_ARC)?))?;
    let looked_up = graph.add_finding(Arc::clone(&lookup))?;
    adjacencies.set_lookup_node(Link::Ip6, looked_up);
    let balance = graph.add_packet(LoadBalance::new(Arc::clone(&lookup)))?;
    graph.share_edges(balance, looked_up)?;
    adjacencies.set_rewrite_node(Link::Ip6, graph.add_packet_shared(Arc::clone(&rewrite))?);
    adjacencies.set_output_arc(Link::Ip6, OUTPUT_ARC).map_err(|e| InitError::Other(e.to_string()))?;
    let unreachables = Unreachables::of(control);
    graph.add_packet(IpDrop::<Ip6Family>::new(adjacencies.table(), graph.arc(DROP_ARC)?, unreachables))?;
    graph.add_packet(InterfaceRx::<Ip6Family>::new(adjacencies.table(), interfaces.table()))?;
    graph.add_packet(Punt::<Ip6Family>::new(graph.arc(PUNT_ARC)?))?;
    graph.add_frame(Ip6Frag::new(adjacencies.table()))?;
    let listeners = Arc::new(Listeners::default());
    let local = Ip6Local { listeners: Arc::clone(&listeners), sources, arc: graph.arc(LOCAL_ARC)? };
    let local = graph.add_packet(local)?;
    graph.add_packet_behind(LocalEnd::<Ip6Local>::new(Arc::clone(&listeners)), local)?;
    control.put(ListenerTable::<Ip6Family>::new(listeners));
    control.put(Ip6Nodes { input, lookup, rewrite });
    Ok(())
}
