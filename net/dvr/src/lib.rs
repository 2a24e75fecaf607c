//! Distributed virtual router: a route may bridge its packets out of an interface in layer 2 instead of routing them
//! (`ip route add PREFIX via dvr INTERFACE`).
//!
//! Such a packet goes out behind the Ethernet header it came with: addresses, TTL and hop limit stay as they are, so the
//! stations at both ends take each other for neighbours. Features of the output arc of its family run before it is bridged;
//! tags are rewritten and the features of `l2-output` run behind. The paths are those of the FIB ([`shoal_fib::Via::Dvr`]);
//! this crate has the nodes.
#![forbid(unsafe_code)]

pub mod node;

use std::rc::Rc;

use shoal_adj::{Adjacencies, Link};
use shoal_graph::{FeatureSpec, Graph};
use shoal_interface::{Interfaces, SwIfIndex};
use shoal_ip::IpFamily;
use shoal_ip4::Ip4Family;
use shoal_ip6::Ip6Family;
use shoal_module::{Control, InitError, Module};

use crate::node::dpo::Dpo;
use crate::node::reinject::Reinject;

/// The module.
pub static MODULE: Module = Module {
    name: "dvr",
    description: "Routes that bridge packets out of an interface",
    init,
    start,
    features: &["ip4-dvr-reinject", "ip6-dvr-reinject"],
    ..Module::NONE
};

fn init(control: &Rc<Control>) -> Result<(), InitError> {
    add::<Ip4Family, false>(control, Link::Ip4)?;
    add::<Ip6Family, true>(control, Link::Ip6)
}

/// Bridged packets run through the same features on their way out as others.
fn start(control: &Rc<Control>) -> Result<(), InitError> {
    let graph = control.graph()?;
    graph.start_arc_at(graph.node(node::dpo::name(false))?, Ip4Family::ARCS.output)?;
    graph.start_arc_at(graph.node(node::dpo::name(true))?, Ip6Family::ARCS.output)?;
    Ok(())
}

/// The nodes of a family.
fn add<F: IpFamily, const IP6: bool>(control: &Rc<Control>, link: Link) -> Result<(), InitError> {
    let graph = control.graph()?;
    let adjacencies = control.get::<Adjacencies>()?;
    let interfaces = control.get::<Interfaces>()?.table();
    let output = graph.arc(F::ARCS.output)?;
    let node = graph.add_packet(Dpo::<IP6> { adjacencies: adjacencies.table(), interfaces, output })?;
    graph.add_packet(Reinject::<IP6>)?;
    let reinject = node::reinject::name(IP6);
    graph.add_feature(FeatureSpec { arc: F::ARCS.output, node: reinject, before: &[], after: &[] });
    let of = Rc::downgrade(&graph);
    let watch = move |interface: SwIfIndex, on: bool| {
        let enabled = of
            .upgrade()
            .map(|graph: Rc<Graph>| graph.enable_feature(F::ARCS.output, reinject, interface, on));
        if let Some(Err(e)) = enabled {
            tracing::warn!(%interface, node = reinject, "{e}");
        }
    };
    adjacencies.set_dvr_node(link, node, Rc::new(watch));
    Ok(())
}
