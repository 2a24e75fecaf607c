//! ARP and the IPv4 neighbour table.
//!
//! Two halves meet here. Packets without a neighbour come to `ip4-arp` and `ip4-glean`, which ask the link and
//! hand the packet to [`Neighbours`] to wait for the answer; ARP packets come to `arp-input`, which answers
//! requests and tells [`Neighbours`] who spoke. [`Neighbours`] is the control plane: the table, its limits and
//! its ageing, the adjacency and the host route of each neighbour. The [`table`] itself knows no protocol;
//! neighbour discovery for IPv6 will keep one of its own.
#![forbid(unsafe_code)]

pub mod cli;
mod control;
pub mod counters;
mod error;
pub mod message;
mod node;
mod process;
mod request;
mod subnet;
pub mod table;
pub mod throttle;

pub use control::{Flush, Info, Neighbours, NewLimits};
pub use error::NeighbourError;

use std::net::Ipv4Addr;
use std::rc::Rc;

use shoal_adj::Adjacencies;
use shoal_fib::Fib;
use shoal_graph::process::{Receiver, channel};
use shoal_interface::Interfaces;
use shoal_ip4::Ip4;
use shoal_module::{Control, InitError, Module};

/// What names an IPv4 neighbour: its interface and its address.
pub type Key = table::Key<Ipv4Addr>;

/// Facts and packets on their way to the control plane.
const CHANNEL: usize = 1024;

/// The module.
pub static MODULE: Module = Module {
    name: "arp",
    description: "ARP and the IPv4 neighbour table",
    init,
    start,
    commands: cli::COMMANDS,
    ..Module::NONE
};

/// The channels' ends, from `init` to `start`.
struct Ends {
    learn: Receiver<message::Learn>,
    wait: Receiver<message::Waiting>,
    bell: Receiver<()>,
}

fn init(control: &Rc<Control>) -> Result<(), InitError> {
    let graph = control.graph()?;
    let interfaces = control.get::<Interfaces>()?.table();
    let subnets = subnet::Subnets {
        interfaces: interfaces.clone(),
        adjacencies: control.get::<Adjacencies>()?.table(),
        fib: control.get::<Fib>()?.tables(),
        addresses: control.get::<Ip4>()?.table(),
    };
    let counters = counters::ArpCounters::new(graph.counters())?;
    let (learn_tx, learn) = channel(CHANNEL);
    let (wait_tx, wait) = channel(CHANNEL);
    let (bell_tx, bell) = channel(1);
    let asker = || node::Asker::new(subnets.clone(), counters.clone(), wait_tx.clone());
    graph.add_packet(node::ArpInput::new(subnets.clone(), counters.clone(), learn_tx))?;
    graph.add_packet(node::ArpReply { interfaces, counters: counters.clone() })?;
    graph.add_packet(node::ArpFailed)?;
    graph.add_frame(node::Ip4Arp(asker()))?;
    graph.add_frame(node::Ip4Glean(asker()))?;
    control.put_rc(Neighbours::new(control, counters, bell_tx)?);
    control.put(Ends { learn, wait, bell });
    Ok(())
}

fn start(control: &Rc<Control>) -> Result<(), InitError> {
    let (processes, neighbours) = (control.processes()?, control.get::<Neighbours>()?);
    let ends = control.get::<Ends>()?;
    processes.spawn("ip4-neighbor-learn", process::learn(Rc::clone(&neighbours), ends.learn.clone()));
    processes.spawn("ip4-neighbor-hold", process::hold(Rc::clone(&neighbours), ends.wait.clone()));
    let age = process::age(neighbours, Rc::clone(&processes), ends.bell.clone());
    processes.spawn("ip4-neighbor-age-process", age);
    Ok(())
}
