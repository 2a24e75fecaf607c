//! Path MTUs: the longest packets that the ways to hosts carry.
//!
//! A path MTU is an entry of its own in a forwarding table, for one host, from the source `path-mtu`. It leads where
//! packets to that host go without it, through adjacencies that are the neighbours' own but for the length. So the way
//! follows all changes of routes, and packets to others meet nothing new.
//!
//! Operators and clients say path MTUs; others are learnt from errors about packets of the router itself.
#![forbid(unsafe_code)]

pub mod api;
pub mod cli;
mod control;
mod error;
mod lines;
mod node;
mod process;
mod running;

pub use control::{Learning, Learnt, MOST_LEARNT, PathMtu, PathMtus};
pub use error::PathMtuError;

use std::rc::Rc;
use std::sync::Arc;

use shoal_adj::Adjacencies;
use shoal_graph::process::{Receiver, channel};
use shoal_icmp::limiter::{Limiter, Rate};
use shoal_icmp::{Icmp, Icmp6};
use shoal_interface::Interfaces;
use shoal_module::{Capacity, Control, InitError, Module};
use shoal_wire::Icmp6Type;

use node::{ErrorReader, Fact, Ip4TooBig, Ip6TooBig, Wanted};

/// News of nodes that wait for the control plane; more are lost and counted.
const CHANNEL: usize = 256;

/// Errors of each family that are looked at: a flood of forged ones makes no more changes of tables than that.
const RATE: Rate = Rate { per_second: 100, burst: 100 };

/// Bytes of a path MTU: an entry of a table with a path list and an adjacency of its own.
const BYTES_EACH: usize = 1536;

/// The module.
pub static MODULE: Module = Module {
    name: "path-mtu",
    description: "Path MTUs: the longest packets that the ways to hosts carry",
    init,
    start,
    commands: cli::COMMANDS,
    api: &[&api::IP],
    capacity,
    running: running::running,
    lines: lines::LINES,
    ..Module::NONE
};

/// The channel's end, from `init` to `start`.
struct FromNodes(Receiver<Fact>);

fn init(control: &Rc<Control>) -> Result<(), InitError> {
    let graph = control.graph()?;
    let (tell, heard) = channel(CHANNEL);
    let interfaces = control.get::<Interfaces>()?;
    let wanted = Wanted::default();
    let eye = || ErrorReader {
        interfaces: interfaces.table(),
        wanted: wanted.clone(),
        limiter: Arc::new(Limiter::new(RATE)),
        tell: tell.clone(),
    };
    graph.add_packet(Ip4TooBig(eye()))?;
    graph.add_packet(Ip6TooBig(eye()))?;
    let state = control::State::new(wanted.clone(), control.get::<Adjacencies>()?);
    let all = control.put(PathMtus::new(control, state)?);
    all.set_learning(Learning::default()).map_err(|e| InitError::Other(e.to_string()))?;
    control.put(FromNodes(heard));
    Ok(())
}

/// Edges of the nodes that take ICMP are numbered when the graph is built; others come after that.
fn start(control: &Rc<Control>) -> Result<(), InitError> {
    let graph = control.graph()?;
    control.get::<Icmp>()?.set_too_big_taker(graph.node("ip4-icmp-path-mtu")?)?;
    control.get::<Icmp6>()?.set_taker(Icmp6Type::PACKET_TOO_BIG, graph.node("ip6-icmp-path-mtu")?)?;
    let (all, processes) = (control.get::<PathMtus>()?, control.processes()?);
    let heard = control.get::<FromNodes>()?.0.clone();
    processes.spawn("ip-path-mtu-process", process::learn(all, Rc::clone(&processes), heard));
    Ok(())
}

fn capacity(control: &Control) -> Vec<Capacity> {
    let Ok(all) = control.get::<PathMtus>() else { return Vec::new() };
    vec![
        Capacity::up_to("path MTUs, said", all.said(), control::MOST, BYTES_EACH),
        Capacity::up_to("path MTUs, learnt", all.learnt(), MOST_LEARNT, BYTES_EACH),
    ]
}
