//! Multicast forwarding: one packet in, as many out as there are interfaces with listeners.
//!
//! ```text
//! ip4-input -- features of ip4-multicast -> ip4-mfib-forward-lookup -> ip4-mfib-forward-rpf -> ip4-replicate
//!                                                |  IPv6, unknown group:  ip6-lookup              |       |
//!                                                                                  ip4-rewrite-mcast   ip4-local
//! ```
//! [`Mfib`] is the control plane and the only writer of [`MfibTable`], which packets read. An entry says for which
//! packets it is (a source and a group, or a group alone, or all groups of a prefix), from which interfaces such
//! packets are accepted, and to which they are forwarded. The nodes are written once for both families.
#![forbid(unsafe_code)]

pub mod api;
pub mod cli;
mod control;
mod error;
mod family;
mod flags;
mod lines;
mod node;
mod running;
mod show;
mod show_interfaces;
mod table;

use std::marker::PhantomData;
use std::rc::Rc;

use shoal_adj::{Adjacencies, Family};
use shoal_graph::Graph;
use shoal_interface::{Event, Interfaces};
use shoal_ip4::Ip4FragMulticast;
use shoal_module::{Capacity, Control, InitError, Module};

pub use control::{Change, Entry, Itf, MOST_INTERFACES, Member, Mfib, Prefix, Signal, Source};
pub use error::MfibError;
pub use flags::{EntryFlags, ItfFlags};
pub use table::{MOST_ENTRIES, MfibTable};

use family::{Ip, Ip4, Ip6};
use node::{MfibLookup, MfibRpf, Replicate, RewriteMcast};

/// The module.
pub static MODULE: Module = Module {
    name: "mfib",
    description: "Multicast forwarding",
    init,
    start,
    commands: cli::COMMANDS,
    api: &[&api::IP],
    capacity,
    running: running::running,
    lines: lines::LINES,
    ..Module::NONE
};

/// Bytes of an entry with a few interfaces, in the table packets read and in the control plane's.
const BYTES_EACH: usize = 768;

fn capacity(control: &Control) -> Vec<Capacity> {
    let Ok(mfib) = control.get::<Mfib>() else { return Vec::new() };
    let row = |family: Family| {
        Capacity::up_to(format!("{family} mroutes"), mfib.count(family), MOST_ENTRIES, BYTES_EACH)
    };
    Family::ALL.into_iter().map(row).collect()
}

fn init(control: &Rc<Control>) -> Result<(), InitError> {
    let graph = control.graph()?;
    let mfib = control.put_rc(Rc::new(Mfib::new(control)?));
    add_nodes::<Ip4>(control, &graph, &mfib)?;
    add_nodes::<Ip6>(control, &graph, &mfib)?;
    let (frag, rewrite) = (graph.node("ip4-frag")?, graph.node(Ip4::REWRITE)?);
    control.get::<Ip4FragMulticast>()?.set(graph.add_edge(frag, rewrite)?);
    control.get::<Interfaces>()?.subscribe(follow);
    Ok(())
}

fn add_nodes<F: Ip>(control: &Rc<Control>, graph: &Rc<Graph>, mfib: &Mfib) -> Result<(), InitError> {
    let adjacencies = control.get::<Adjacencies>()?;
    let interfaces = control.get::<Interfaces>()?.table();
    let (table, family) = (mfib.table(F::FAMILY), PhantomData::<F>);
    graph.add_packet(MfibLookup { table: table.clone(), interfaces, family })?;
    graph.add_packet(MfibRpf { table: table.clone(), counter: mfib.counter(), family })?;
    graph.add_frame(Replicate { table, adjacencies: adjacencies.table(), family })?;
    let output = graph.arc(F::OUTPUT_ARC)?;
    let rewrite = graph.add_packet(RewriteMcast { adjacencies: adjacencies.table(), output, family })?;
    graph.set_arc_end(F::MULTICAST_ARC, F::LOOKUP)?;
    adjacencies.set_multicast_node(F::LINK, rewrite);
    Ok(())
}

/// Packets to groups run through the same features on their way out as others.
fn start(control: &Rc<Control>) -> Result<(), InitError> {
    let graph = control.graph()?;
    graph.start_arc_at(graph.node(Ip4::REWRITE)?, Ip4::OUTPUT_ARC)?;
    graph.start_arc_at(graph.node(Ip6::REWRITE)?, Ip6::OUTPUT_ARC)?;
    Ok(())
}

/// Forgets interfaces that go.
fn follow(control: &Rc<Control>, event: Event) {
    if let (Ok(mfib), Event::Deleting(interface)) = (control.get::<Mfib>(), event) {
        mfib.forget(interface);
    }
}
