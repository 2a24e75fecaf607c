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
mod icmp_error;
pub mod node;
mod running;
mod trace;

use std::rc::Rc;
use std::sync::Arc;

use shoal_adj::{Adjacencies, Link};
use shoal_fib::FibTables;
use shoal_graph::{ArcSide, ArcSpec, FeatureSpec, Graph};
use shoal_interface::{Event, Interfaces};
use shoal_ip4::Listeners;
use shoal_module::{Control, InitError, Module};

pub use control::{
    AddressEvent, BorrowError, Ip6, Ip6Error, Ip6IfTable, Ip6Info, Ip6LinkTable, Use, set_unnumbered,
};
pub use icmp_error::IcmpError;
pub use trace::Headers;

use node::interface_rx::Ip6InterfaceRx;
use node::load_balance::Ip6LoadBalance;
use node::not_enabled::{Ip6NotEnabled, NOT_ENABLED};
use node::{drop::Ip6Drop, frag::Ip6Frag, hop_by_hop::Ip6HopByHop, input::Ip6Input, local::Ip6Local};
use node::{local_end, local_end::Ip6LocalEnd, punt::Ip6Punt};
use node::{lookup::Ip6Lookup, rewrite::Ip6Rewrite};

/// Features of packets to one host run here.
pub const UNICAST_ARC: &str = "ip6-unicast";

/// Features of packets to a group run here. Whoever forwards such packets has the arc end at a node of its own
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
    api: &[&api::interface::API, &api::IP],
    running: running::running,
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

/// Who takes IPv6 packets for this router; edges are those of `ip6-local`.
pub struct Ip6Listeners(pub Arc<Listeners>);

const ARCS: &[ArcSpec] = &[
    ArcSpec {
        name: UNICAST_ARC,
        side: ArcSide::Receive,
        starts: &["ip6-input", "ip6-hop-by-hop"],
        end: "ip6-lookup",
    },
    ArcSpec {
        name: MULTICAST_ARC,
        side: ArcSide::Receive,
        starts: &["ip6-input", "ip6-hop-by-hop"],
        end: "ip6-lookup",
    },
    ArcSpec { name: OUTPUT_ARC, side: ArcSide::Send, starts: &["ip6-rewrite"], end: "interface-output" },
    ArcSpec { name: LOCAL_ARC, side: ArcSide::Receive, starts: &["ip6-local"], end: local_end::NAME },
    ArcSpec { name: PUNT_ARC, side: ArcSide::All, starts: &["ip6-punt"], end: "error-punt" },
    ArcSpec { name: DROP_ARC, side: ArcSide::All, starts: &["ip6-drop", NOT_ENABLED], end: "error-drop" },
];

fn init(control: &Rc<Control>) -> Result<(), InitError> {
    let graph = control.graph()?;
    let tables = FibTables::clone(&*control.get::<FibTables>()?);
    for arc in ARCS {
        graph.add_arc(*arc);
    }
    let ip6 = control.put_rc(Ip6::new(control)?);
    add_nodes(control, &graph, tables, &ip6)
}

/// Keeps `ip6-not-enabled` on all interfaces but those with IPv6.
fn follow_enabled(control: &Rc<Control>, event: Event) {
    let (interface, off) = match event {
        Event::Created(i) => (i, true),
        Event::Ip6(i, enabled) => (i, !enabled),
        _ => return,
    };
    let Ok(graph) = control.graph() else { return };
    for arc in [UNICAST_ARC, MULTICAST_ARC] {
        if let Err(e) = graph.enable_feature(arc, NOT_ENABLED, interface, off) {
            tracing::error!(%interface, arc, "ip6-not-enabled: {e}");
        }
    }
}

fn add_nodes(control: &Rc<Control>, graph: &Rc<Graph>, fib: FibTables, ip6: &Ip6) -> Result<(), InitError> {
    let interfaces = control.get::<Interfaces>()?;
    interfaces.subscribe(follow_enabled);
    let adjacencies = control.get::<Adjacencies>()?;
    let (unicast, multicast) = (graph.arc(UNICAST_ARC)?, graph.arc(MULTICAST_ARC)?);
    let input = Arc::new(Ip6Input { unicast: unicast.clone(), multicast: multicast.clone() });
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
    graph.add_packet_shared(Arc::clone(&input))?;
    graph.add_packet(Ip6HopByHop { unicast, multicast })?;
    graph.add_packet(Ip6NotEnabled { arc: graph.arc(DROP_ARC)? })?;
    for arc in [UNICAST_ARC, MULTICAST_ARC] {
        graph.add_feature(FeatureSpec { arc, node: NOT_ENABLED, before: &[], after: &[] });
    }
    let looked_up = graph.add_staged(Arc::clone(&lookup))?;
    adjacencies.set_lookup_node(Link::Ip6, looked_up);
    let balance = graph.add_packet(Ip6LoadBalance { lookup: Arc::clone(&lookup) })?;
    graph.share_edges(balance, looked_up)?;
    adjacencies.set_rewrite_node(Link::Ip6, graph.add_packet_shared(Arc::clone(&rewrite))?);
    adjacencies.set_output_arc(Link::Ip6, OUTPUT_ARC).map_err(|e| InitError::Other(e.to_string()))?;
    graph.add_packet(Ip6Drop { adjacencies: adjacencies.table(), arc: graph.arc(DROP_ARC)? })?;
    graph.add_packet(Ip6InterfaceRx::new(adjacencies.table(), interfaces.table()))?;
    graph.add_packet(Ip6Punt { arc: graph.arc(PUNT_ARC)? })?;
    graph.add_frame(Ip6Frag::new(adjacencies.table()))?;
    let listeners = Arc::new(Listeners::default());
    let local = Ip6Local { listeners: Arc::clone(&listeners), arc: graph.arc(LOCAL_ARC)? };
    let local = graph.add_packet(local)?;
    let end = graph.add_packet(Ip6LocalEnd { listeners: Arc::clone(&listeners) })?;
    graph.share_edges(end, local)?;
    control.put(Ip6Listeners(listeners));
    control.put(Ip6Nodes { input, lookup, rewrite });
    Ok(())
}
