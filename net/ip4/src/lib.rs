//! IPv4 forwarding: input checks, lookup, rewrite, local delivery, fragmentation.
//!
//! ```text
//! ethernet-input -> ip4-input -> ip4-lookup -> ip4-rewrite -> <interface>-output
//!                     |  options    |  local      |  too long: ip4-frag
//!                ip4-options     ip4-local     |  expired: ip4-icmp-error
//! ```
//! The common way, from `ethernet-input` to the output node, is also part of superpaths, made of the same code: see
//! `net/superpaths`.
#![forbid(unsafe_code)]

pub mod api;
pub mod checksum;
pub mod cli;
mod control;
mod family;
mod icmp_error;
mod lines;
pub mod node;
mod running;
mod settings;

use std::rc::Rc;
use std::sync::Arc;

use shoal_adj::{Adjacencies, Link};
use shoal_fib::FibTables;
use shoal_graph::Graph;
use shoal_interface::Interfaces;
use shoal_ip::node::{InterfaceRx, IpDrop, LoadBalance, LocalEnd, NotEnabled, Punt};
use shoal_ip::{ListenerTable, Listeners, Sources};
use shoal_module::{Control, InitError, Module};

pub use control::{AddressEvent, Ip4, Ip4IfTable};
pub use shoal_ip::Unreachables;

pub use family::Ip4Family;
pub use icmp_error::IcmpError;
pub use node::frag::Ip4FragMulticast;
pub use node::{frag::Ip4Frag, input::Ip4Input, local::Ip4Local, lookup::Ip4Lookup};
use node::{options::Ip4OptionsNode, redirect::Ip4Redirect, rewrite::Ip4Rewrite};
pub use shoal_ip::AddressError;

/// What `show trace` says of an IPv4 packet.
pub type Headers = shoal_ip::Headers<Ip4Family>;

/// Features of packets to one host run here.
pub const UNICAST_ARC: &str = "ip4-unicast";

/// Features of packets to a group run here. A module that forwards such packets has the arc end at a node of its own
/// ([`Graph::set_arc_end`]).
pub const MULTICAST_ARC: &str = "ip4-multicast";

/// Features of packets that go out run here, by the interface they go out by. The link's header is in front of them
/// already; the network header is at [`l3`](shoal_buffer::Meta::l3).
pub const OUTPUT_ARC: &str = "ip4-output";

/// Features of packets for this router run here.
pub const LOCAL_ARC: &str = "ip4-local";

/// Features of packets for the host this router runs on, for all interfaces.
pub const PUNT_ARC: &str = "ip4-punt";

/// Features of packets that are dropped without a word to their senders, for all interfaces.
pub const DROP_ARC: &str = "ip4-drop";

/// The module.
pub static MODULE: Module = Module {
    name: "ip4",
    description: "IPv4 forwarding",
    init,
    commands: cli::COMMANDS,
    api: &[&api::INTERFACE, &api::IP],
    sections: &[settings::SECTION],
    running: running::running,
    lines: lines::LINES,
    ..Module::NONE
};

/// The nodes that superpaths share with the graph.
pub struct Ip4Nodes {
    /// `ip4-input`.
    pub input: Arc<Ip4Input>,
    /// `ip4-lookup`.
    pub lookup: Arc<Ip4Lookup>,
    /// `ip4-rewrite`.
    pub rewrite: Arc<Ip4Rewrite>,
}

fn init(control: &Rc<Control>) -> Result<(), InitError> {
    let graph = control.graph()?;
    let tables = FibTables::clone(&*control.get::<FibTables>()?);
    shoal_ip::add_arcs::<Ip4Family>(&graph);
    let ip4 = control.put_rc(Ip4::new(control)?);
    settings::configure(control);
    add_nodes(control, &graph, tables, ip4.table())
}

fn add_nodes(
    control: &Rc<Control>,
    graph: &Rc<Graph>,
    fib: FibTables,
    addresses: Ip4IfTable,
) -> Result<(), InitError> {
    let interfaces = control.get::<Interfaces>()?;
    shoal_ip::follow_enabled::<Ip4Family>(control, graph)?;
    let adjacencies = control.get::<Adjacencies>()?;
    let (unicast, multicast) = (graph.arc(UNICAST_ARC)?, graph.arc(MULTICAST_ARC)?);
    let received = shoal_ip::received::<Ip4Family>(graph)?;
    let input = Arc::new(Ip4Input { unicast: unicast.clone(), multicast: multicast.clone(), received });
    let sources =
        Sources { fib: fib.clone(), adjacencies: adjacencies.table(), interfaces: interfaces.table() };
    let lookup =
        Arc::new(Ip4Lookup { fib, adjacencies: adjacencies.table(), interfaces: interfaces.table() });
    let rewrite = Arc::new(Ip4Rewrite { adjacencies: adjacencies.table(), output: graph.arc(OUTPUT_ARC)? });
    graph.add_plain(Arc::clone(&input))?;
    graph.add_packet(Ip4OptionsNode { unicast, multicast })?;
    graph.add_packet(NotEnabled::<Ip4Family>::new(graph.arc(DROP_ARC)?))?;
    let looked_up = graph.add_finding(Arc::clone(&lookup))?;
    adjacencies.set_lookup_node(Link::Ip4, looked_up);
    let balance = graph.add_packet(LoadBalance::new(Arc::clone(&lookup)))?;
    graph.share_edges(balance, looked_up)?;
    adjacencies.set_rewrite_node(Link::Ip4, graph.add_packet_shared(Arc::clone(&rewrite))?);
    adjacencies.set_output_arc(Link::Ip4, OUTPUT_ARC).map_err(|e| InitError::Other(e.to_string()))?;
    let unreachables = Unreachables::of(control);
    graph.add_packet(IpDrop::<Ip4Family>::new(adjacencies.table(), graph.arc(DROP_ARC)?, unreachables))?;
    graph.add_packet(InterfaceRx::<Ip4Family>::new(adjacencies.table(), interfaces.table()))?;
    graph.add_packet(Punt::<Ip4Family>::new(graph.arc(PUNT_ARC)?))?;
    let redirect =
        Ip4Redirect { adjacencies: adjacencies.table(), addresses, interfaces: interfaces.table() };
    graph.add_frame(redirect)?;
    let frag = control.put(Ip4FragMulticast::default());
    graph.add_frame(Ip4Frag { adjacencies: adjacencies.table(), multicast: (*frag).clone() })?;
    let listeners = Arc::new(Listeners::default());
    let local = Ip4Local { listeners: Arc::clone(&listeners), sources, arc: graph.arc(LOCAL_ARC)? };
    let local = graph.add_packet(local)?;
    graph.add_packet_behind(LocalEnd::<Ip4Local>::new(Arc::clone(&listeners)), local)?;
    control.put(ListenerTable::<Ip4Family>::new(listeners));
    control.put(Ip4Nodes { input, lookup, rewrite });
    Ok(())
}
