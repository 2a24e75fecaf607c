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

mod icmp_error;
pub mod node;
pub mod superpath;
mod trace;

use std::rc::Rc;
use std::sync::Arc;

use shoal_adj::Adjacencies;
use shoal_fib::FibTables;
use shoal_graph::{ArcSide, ArcSpec, Graph};
use shoal_interface::Interfaces;
use shoal_module::{Control, InitError, Module};

pub use icmp_error::IcmpError;
pub use node::local::Listeners;
pub use trace::Headers;

use node::{drop::Ip4Drop, frag::Ip4Frag, input::Ip4Input, local::Ip4Local, lookup::Ip4Lookup};
use node::{options::Ip4OptionsNode, rewrite::Ip4Rewrite};

/// Features of packets to one host run here.
pub const UNICAST_ARC: &str = "ip4-unicast";

/// The module.
pub static MODULE: Module = Module {
    name: "ip4",
    description: "IPv4 forwarding",
    init,
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
        starts: &["ip4-input"],
        end: "ip4-lookup",
    });
    add_nodes(control, &graph, tables)
}

fn add_nodes(control: &Rc<Control>, graph: &Rc<Graph>, fib: FibTables) -> Result<(), InitError> {
    let interfaces = control.get::<Interfaces>()?.table();
    let adjacencies = control.get::<Adjacencies>()?;
    let input = Arc::new(Ip4Input { interfaces, unicast: graph.arc(UNICAST_ARC)? });
    let lookup = Arc::new(Ip4Lookup { fib, adjacencies: adjacencies.table() });
    let rewrite = Arc::new(Ip4Rewrite { adjacencies: adjacencies.table() });
    graph.add_packet_shared(Arc::clone(&input))?;
    graph.add_packet(Ip4OptionsNode)?;
    graph.add_staged(Arc::clone(&lookup))?;
    adjacencies.set_rewrite_node(graph.add_packet_shared(Arc::clone(&rewrite))?);
    graph.add_packet(Ip4Drop { adjacencies: adjacencies.table() })?;
    graph.add_frame(Ip4Frag { adjacencies: adjacencies.table() })?;
    let listeners = Arc::new(Listeners::default());
    graph.add_packet(Ip4Local { listeners: Arc::clone(&listeners) })?;
    control.put(listeners);
    control.put(Ip4Nodes { input, lookup, rewrite });
    Ok(())
}
