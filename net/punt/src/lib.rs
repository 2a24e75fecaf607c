//! Punt: which packets for this router are the host's, by which way they go there, and how many.
//!
//! ```text
//! ip4-local, ip6-local -- ports and protocols of `set punt` --> ip4-punt, ip6-punt
//! arc ip4-punt, ip6-punt: policer -> redirect -> linux-cp -> error-punt
//! ```
//! [`Punt`] is the control plane. Without it packets that nobody here listens to are refused, and routes may punt.
#![forbid(unsafe_code)]

pub mod api;
pub mod cli;
mod control;
mod error;
mod node;
mod running;
mod ways;

pub use control::{L4, Punt, Redirect, Registered, Rx, Standing};
pub use error::PuntError;

use std::rc::Rc;
use std::sync::Arc;

use shoal_adj::Family;
use shoal_graph::FeatureSpec;
use shoal_icmp::limiter::{Limiter, Rate};
use shoal_interface::{Event, Interfaces};
use shoal_module::{Control, InitError, Module};

use node::{Kind, Policer, Redirector};
use ways::Ways;

/// The module.
pub static MODULE: Module = Module {
    name: "punt",
    description: "Punt: what the host gets of packets for this router",
    init,
    start,
    commands: cli::COMMANDS,
    api: &[&api::PUNT, &api::IP],
    running: running::running,
    ..Module::NONE
};

/// What one family's nodes and the control plane share.
pub(crate) struct Shared {
    ways: Ways,
    limiter: Arc<Limiter>,
}

fn family<K: Kind>(control: &Rc<Control>) -> Result<Shared, InitError> {
    let graph = control.graph()?;
    let (ways, limiter) = (Ways::new()?, Arc::new(Limiter::new(Rate { per_second: 0, burst: 1 })));
    graph.add_packet(Policer::<K>::new(Arc::clone(&limiter)))?;
    graph.add_packet(Redirector::<K>::new(ways.clone()))?;
    let feature = |node, before| graph.add_feature(FeatureSpec { arc: K::ARC, node, before, after: &[] });
    feature(K::REDIRECT, K::HOST);
    feature(K::POLICER, K::BEFORE_HOST);
    Ok(Shared { ways, limiter })
}

fn init(control: &Rc<Control>) -> Result<(), InitError> {
    let shared = [family::<node::V4>(control)?, family::<node::V6>(control)?];
    control.put(Punt::new(control, shared)?);
    control.get::<Interfaces>()?.subscribe(|control, event| {
        if let (Ok(punt), Event::Deleting(interface)) = (control.get::<Punt>(), event) {
            punt.forget(interface);
        }
    });
    Ok(())
}

/// Edges of `ip4-local` and `ip6-local` are numbered when the graph is built; others come after that.
fn start(control: &Rc<Control>) -> Result<(), InitError> {
    let graph = control.graph()?;
    let edge = |family: Family| {
        graph.add_edge(graph.node(&format!("{family}-local"))?, graph.node(&format!("{family}-punt"))?)
    };
    control.get::<Punt>()?.set_edges([edge(Family::Ip4)?, edge(Family::Ip6)?]);
    Ok(())
}
