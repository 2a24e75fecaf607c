//! IPv6 forwarding: input checks, lookup, rewrite, local delivery.
//!
//! ```text
//! ethernet-input -> ip6-input -> ip6-lookup -> ip6-rewrite -> <interface>-output
//!                     |  options    |  local      |  too long, expired: ip6-icmp-error
//!               ip6-hop-by-hop   ip6-local
//! ```
//! The common way, from `ethernet-input` to the output node, is also one fused node, `ip6-superpath`
//! ([`superpath`]), made of the same code.
#![forbid(unsafe_code)]

pub mod cli;
mod control;
pub mod edges;
mod icmp_error;
pub mod node;
pub mod superpath;
mod trace;

use std::rc::Rc;
use std::sync::Arc;

use shoal_adj::{Adjacencies, Link};
use shoal_fib::FibTables;
use shoal_graph::{ArcSide, ArcSpec, FeatureSpec, Graph};
use shoal_interface::{Event, Interfaces};
use shoal_ip4::Listeners;
use shoal_module::{Control, InitError, Module};

pub use control::{AddressEvent, Ip6, Ip6Error, Ip6IfTable, Ip6Info, Ip6LinkTable, Use};
pub use icmp_error::IcmpError;
pub use trace::Headers;

use node::not_enabled::{Ip6NotEnabled, NOT_ENABLED};
use node::{drop::Ip6Drop, hop_by_hop::Ip6HopByHop, input::Ip6Input, local::Ip6Local};
use node::{lookup::Ip6Lookup, rewrite::Ip6Rewrite};

/// Features of packets to one host run here.
pub const UNICAST_ARC: &str = "ip6-unicast";

/// The module.
pub static MODULE: Module = Module {
    name: "ip6",
    description: "IPv6 forwarding",
    init,
    commands: cli::COMMANDS,
    start: superpath::start,
    ..Module::NONE
};

/// The nodes that the superpath shares with the graph.
pub(crate) struct Ip6Nodes {
    pub(crate) input: Arc<Ip6Input>,
    pub(crate) lookup: Arc<Ip6Lookup>,
    pub(crate) rewrite: Arc<Ip6Rewrite>,
}

/// Who takes IPv6 packets for this router; edges are those of `ip6-local`.
pub struct Ip6Listeners(pub Arc<Listeners>);

fn init(control: &Rc<Control>) -> Result<(), InitError> {
    let graph = control.graph()?;
    let tables = FibTables::clone(&*control.get::<FibTables>()?);
    graph.add_arc(ArcSpec {
        name: UNICAST_ARC,
        side: ArcSide::Receive,
        starts: &["ip6-input", "ip6-hop-by-hop"],
        end: "ip6-lookup",
    });
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
    let done = control.graph().map(|g| g.enable_feature(UNICAST_ARC, NOT_ENABLED, interface, off));
    if let Ok(Err(e)) = done {
        tracing::error!(%interface, "ip6-not-enabled: {e}");
    }
}

fn add_nodes(control: &Rc<Control>, graph: &Rc<Graph>, fib: FibTables, ip6: &Ip6) -> Result<(), InitError> {
    let interfaces = control.get::<Interfaces>()?;
    interfaces.subscribe(follow_enabled);
    let adjacencies = control.get::<Adjacencies>()?;
    let input = Arc::new(Ip6Input { unicast: graph.arc(UNICAST_ARC)? });
    let lookup = Arc::new(Ip6Lookup {
        fib,
        adjacencies: adjacencies.table(),
        interfaces: interfaces.table(),
        links: ip6.link_table(),
        edges: ip6.edges(),
    });
    let rewrite = Arc::new(Ip6Rewrite { adjacencies: adjacencies.table(), edges: ip6.edges() });
    graph.add_packet_shared(Arc::clone(&input))?;
    graph.add_packet(Ip6HopByHop { unicast: graph.arc(UNICAST_ARC)? })?;
    graph.add_packet(Ip6NotEnabled)?;
    graph.add_feature(FeatureSpec { arc: UNICAST_ARC, node: NOT_ENABLED, before: &[], after: &[] });
    adjacencies.set_lookup_node(Link::Ip6, graph.add_staged(Arc::clone(&lookup))?);
    adjacencies.set_rewrite_node(Link::Ip6, graph.add_packet_shared(Arc::clone(&rewrite))?);
    graph.add_packet(Ip6Drop { adjacencies: adjacencies.table() })?;
    let listeners = Arc::new(Listeners::default());
    graph.add_packet(Ip6Local { listeners: Arc::clone(&listeners) })?;
    control.put(Ip6Listeners(listeners));
    control.put(Ip6Nodes { input, lookup, rewrite });
    Ok(())
}
