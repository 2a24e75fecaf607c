//! Punt: which packets for this router are the host's, by which way they go there, and how many.
//!
//! ```text
//! ip4-local, ip6-local -- ports and protocols of `set punt` --> ip4-punt, ip6-punt
//! arc ip4-punt, ip6-punt: policer -> redirect -> linux-cp -> error-punt
//! ip4-local, punt-dispatch -> ip4-udp-punt-socket and its like -> main thread -> clients' sockets
//! clients -> main thread -> punt-socket-rx -> interface-output, ip4-lookup, ip6-lookup
//! ```
//! [`Punt`] is the control plane. Without it packets without a listener here are refused, and routes may punt.
#![forbid(unsafe_code)]

pub mod api;
pub mod cli;
mod control;
mod error;
mod lines;
mod node;
mod process;
mod reasons;
mod redirects;
mod running;
mod sockets;

pub use control::{L4, Punt, Redirect, Registered, RegistrationState, Rx};
pub use error::PuntError;
pub use reasons::{PuntReason, ReasonInfo, Reasons};
pub use sockets::{PuntClass, Registration, Sockets};

use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use shoal_adj::Family;
use shoal_graph::FeatureSpec;
use shoal_graph::process::{Receiver, channel};
use shoal_icmp::limiter::{Limiter, Rate};
use shoal_interface::{Event, Interfaces};
use shoal_module::config::{Body, Effect, Key, Kind as Form, Section, Settings};
use shoal_module::{Control, InitError, Module};

use node::{DISPATCH, Dispatch, Item, Kind, Policer, PuntKey, Redirector, SocketRx, ToSocket};
use reasons::{MOST, ReasonEdges};
use redirects::RedirectTable;

/// Packets for sockets that wait for the main thread; more are lost and counted.
const CHANNEL: usize = 256;

const SECTION: Section = Section {
    name: "punt",
    doc: "sockets of programs that packets are punted to",
    effect: Effect::Honoured,
    body: Body::Keys(&[Key::new(
        "socket",
        Form::Path,
        "the router's own socket, which programs send packets to; without it no program can register",
    )]),
};

/// The module.
pub static MODULE: Module = Module {
    name: "punt",
    description: "Punt: what the host gets of packets for this router",
    init,
    start,
    commands: cli::COMMANDS,
    api: &[&api::PUNT, &api::IP],
    sections: &[SECTION],
    running: running::running,
    lines: lines::LINES,
    ..Module::NONE
};

/// What one family's nodes and the control plane share.
pub(crate) struct Shared {
    ways: RedirectTable,
    limiter: Arc<Limiter>,
}

fn family<K: Kind>(control: &Rc<Control>) -> Result<Shared, InitError> {
    let graph = control.graph()?;
    let (ways, limiter) = (RedirectTable::new()?, Arc::new(Limiter::new(Rate { per_second: 0, burst: 1 })));
    graph.add_packet(Policer::<K>::new(Arc::clone(&limiter)))?;
    graph.add_packet(Redirector::<K>::new(ways.clone()))?;
    let feature = |node, before| graph.add_feature(FeatureSpec { arc: K::ARC, node, before, after: &[] });
    feature(K::REDIRECT, K::HOST);
    feature(K::POLICER, K::BEFORE_HOST);
    Ok(Shared { ways, limiter })
}

fn init(control: &Rc<Control>) -> Result<(), InitError> {
    let shared = [family::<node::V4>(control)?, family::<node::V6>(control)?];
    let (graph, takers) = (control.graph()?, ReasonEdges::new()?);
    let counts = graph.counters().combined("/net/punt", MOST)?;
    graph.add_packet(Dispatch { takers: takers.clone(), counts: counts.clone() })?;
    let (tell, items) = channel(CHANNEL);
    for by in PuntKey::ALL {
        graph.add_frame_named(by.node(), ToSocket { by, tell: tell.clone() })?;
    }
    graph.add_packet(SocketRx)?;
    control.put(Items(items));
    control.put(Reasons::new(takers, counts));
    control.put(Punt::new(control, shared)?);
    control.get::<Interfaces>()?.subscribe(|control, event| {
        if let (Ok(punt), Event::Deleting(interface)) = (control.get::<Punt>(), event) {
            punt.forget(interface);
        }
    });
    Ok(())
}

/// Packets on their way to the main thread.
struct Items(Receiver<Item>);

/// The socket that the start-up file names.
fn socket(control: &Control) -> Option<std::path::PathBuf> {
    let sections = control.get::<BTreeMap<&'static str, Settings>>().ok()?;
    sections.get(SECTION.name)?.path("socket").map(Path::to_owned)
}

/// Edges of `ip4-local` and `ip6-local` are numbered when the graph is built; others come after that.
fn start(control: &Rc<Control>) -> Result<(), InitError> {
    let graph = control.graph()?;
    let edge = |family: Family| {
        let local = graph.node(&format!("{family}-local"))?;
        let punt = graph.add_edge(local, graph.node(&format!("{family}-punt"))?)?;
        let port = graph.add_edge(local, graph.node(PuntKey::Port(family).node())?)?;
        let protocol = graph.add_edge(local, graph.node(PuntKey::Protocol(family).node())?)?;
        Ok::<_, InitError>([punt, port, protocol])
    };
    let exceptions = graph.add_edge(graph.node(DISPATCH)?, graph.node(PuntKey::Reason.node())?)?;
    let punt = control.get::<Punt>()?;
    punt.set_edges([edge(Family::Ip4)?, edge(Family::Ip6)?], exceptions);
    let items = control.get::<Items>()?.0.clone();
    control.processes()?.spawn("punt-socket-tx-process", process::send(punt, items));
    if let Some(path) = socket(control) {
        open_socket(control, &path).map_err(|e| InitError::Other(e.to_string()))?;
    }
    Ok(())
}

/// Opens the router's own socket and takes what programs send to it, as `punt { socket PATH }` in the start-up file does.
///
/// # Errors
/// It is open, or the system refuses.
pub fn open_socket(control: &Rc<Control>, path: &Path) -> Result<(), PuntError> {
    let failed = |e: InitError| PuntError::Socket(e.to_string());
    let punt = control.get::<Punt>().map_err(|e| failed(e.into()))?;
    let processes = control.processes().map_err(|e| failed(e.into()))?;
    let socket = punt.open_socket(path)?;
    processes.spawn("punt-socket-rx-process", process::receive(punt, Rc::clone(&processes), socket));
    Ok(())
}
