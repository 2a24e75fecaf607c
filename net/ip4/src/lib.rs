//! IPv4 forwarding: input checks, lookup, rewrite, local delivery, fragmentation.
//!
//! ```text
//! ethernet-input -> ip4-input -> ip4-lookup -> ip4-rewrite -> <interface>-output
//!                     |  options    |  local      |  too long: ip4-frag
//!                ip4-options     ip4-local     |  expired: ip4-icmp-error
//! ```
//! The common way, from `ethernet-input` to the output node, is also one fused node, `ip4-superpath`
//! ([`superpath`]), made of the same code.
#![forbid(unsafe_code)]

mod checksum;
pub mod cli;
mod control;
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
use shoal_module::{Control, InitError, Module};

pub use control::{AddressEvent, Ip4, Ip4Error, Ip4IfTable};
pub use icmp_error::IcmpError;
pub use node::frag::Ip4FragMulticast;
pub use node::local::Listeners;
pub use trace::Headers;

use node::not_enabled::{Ip4NotEnabled, NOT_ENABLED};
use node::{drop::Ip4Drop, frag::Ip4Frag, input::Ip4Input, local::Ip4Local, lookup::Ip4Lookup};
use node::{options::Ip4OptionsNode, redirect::Ip4Redirect, rewrite::Ip4Rewrite};

/// Features of packets to one host run here.
pub const UNICAST_ARC: &str = "ip4-unicast";

/// The module.
pub static MODULE: Module = Module {
    name: "ip4",
    description: "IPv4 forwarding",
    init,
    commands: cli::COMMANDS,
    start: superpath::start,
    ..Module::NONE
};

/// The nodes that the superpath shares with the graph.
pub struct Ip4Nodes {
    pub(crate) input: Arc<Ip4Input>,
    pub(crate) lookup: Arc<Ip4Lookup>,
    pub(crate) rewrite: Arc<Ip4Rewrite>,
}

fn init(control: &Rc<Control>) -> Result<(), InitError> {
    let graph = control.graph()?;
    let tables = FibTables::clone(&*control.get::<FibTables>()?);
    graph.add_arc(ArcSpec {
        name: UNICAST_ARC,
        side: ArcSide::Receive,
        starts: &["ip4-input", "ip4-options"],
        end: "ip4-lookup",
    });
    let ip4 = control.put_rc(Ip4::new(control)?);
    add_nodes(control, &graph, tables, ip4.table())
}

/// Keeps `ip4-not-enabled` on all interfaces but those with IPv4.
fn follow_enabled(control: &Rc<Control>, event: Event) {
    let (interface, off) = match event {
        Event::Created(i) => (i, true),
        Event::Ip4(i, enabled) => (i, !enabled),
        _ => return,
    };
    let done = control.graph().map(|g| g.enable_feature(UNICAST_ARC, NOT_ENABLED, interface, off));
    if let Ok(Err(e)) = done {
        tracing::error!(%interface, "ip4-not-enabled: {e}");
    }
}

fn add_nodes(
    control: &Rc<Control>,
    graph: &Rc<Graph>,
    fib: FibTables,
    addresses: Ip4IfTable,
) -> Result<(), InitError> {
    let interfaces = control.get::<Interfaces>()?;
    interfaces.subscribe(follow_enabled);
    let adjacencies = control.get::<Adjacencies>()?;
    let input = Arc::new(Ip4Input { unicast: graph.arc(UNICAST_ARC)? });
    let lookup =
        Arc::new(Ip4Lookup { fib, adjacencies: adjacencies.table(), interfaces: interfaces.table() });
    let rewrite = Arc::new(Ip4Rewrite { adjacencies: adjacencies.table() });
    graph.add_packet_shared(Arc::clone(&input))?;
    graph.add_packet(Ip4OptionsNode { unicast: graph.arc(UNICAST_ARC)? })?;
    graph.add_packet(Ip4NotEnabled)?;
    graph.add_feature(FeatureSpec { arc: UNICAST_ARC, node: NOT_ENABLED, before: &[], after: &[] });
    adjacencies.set_lookup_node(Link::Ip4, graph.add_staged(Arc::clone(&lookup))?);
    adjacencies.set_rewrite_node(Link::Ip4, graph.add_packet_shared(Arc::clone(&rewrite))?);
    graph.add_packet(Ip4Drop { adjacencies: adjacencies.table() })?;
    graph.add_frame(Ip4Redirect { adjacencies: adjacencies.table(), addresses })?;
    let frag = control.put(Ip4FragMulticast::default());
    graph.add_frame(Ip4Frag { adjacencies: adjacencies.table(), multicast: (*frag).clone() })?;
    let listeners = Arc::new(Listeners::default());
    graph.add_packet(Ip4Local { listeners: Arc::clone(&listeners) })?;
    control.put(listeners);
    control.put(Ip4Nodes { input, lookup, rewrite });
    Ok(())
}
