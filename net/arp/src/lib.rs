//! ARP: who has an IPv4 address.
//!
//! Two halves meet here. Packets without a neighbour come to `ip4-arp` and `ip4-glean`, which ask the link and
//! hand the packet to [`Neighbours`] to wait for the answer; ARP packets come to `arp-input`, which answers
//! requests and tells [`Neighbours`] who spoke. The table, its limits and its ageing are shared with neighbour
//! discovery for IPv6: see [`shoal_neighbor`].
#![forbid(unsafe_code)]

pub mod api;
pub mod cli;
mod control;
pub mod counters;
mod learn;
mod lines;
pub mod message;
mod node;
mod protocol;
mod request;
mod running;
mod subnet;
mod virtual_addresses;

pub use control::{ProxyArp, ProxyError, Range};
pub use protocol::Arp;
pub use shoal_neighbor::{Flush, NeighbourError, NewLimits, table};
pub use virtual_addresses::VirtualAddresses;

use std::net::Ipv4Addr;
use std::rc::Rc;

use shoal_adj::Adjacencies;
use shoal_ethernet::Ethernet;
use shoal_fib::Fib;
use shoal_graph::process::{Receiver, channel};
use shoal_graph::{ArcSide, ArcSpec};
use shoal_interface::Interfaces;
use shoal_ip4::Ip4;
use shoal_module::{Control, InitError, Module};
use shoal_neighbor::Answers;
use shoal_neighbor::counters::HeldCounters;
use shoal_neighbor::message::Waiting;
use shoal_neighbor::process;
use shoal_wire::EtherType;

/// What names an IPv4 neighbour: its interface and its address.
pub type Key = table::Key<Ipv4Addr>;

/// All IPv4 neighbours.
pub type Neighbours = shoal_neighbor::Neighbours<Arp>;

/// Features of answers to this router's requests run here, after they have been understood.
pub const ARC: &str = "arp";

/// Facts and packets on their way to the control plane.
const CHANNEL: usize = 1024;

/// The module.
pub static MODULE: Module = Module {
    name: "arp",
    description: "ARP: who has an IPv4 address",
    init,
    start,
    commands: cli::COMMANDS,
    running: running::running,
    lines: lines::LINES,
    api: &[&api::API],
    ..Module::NONE
};

/// The channels' ends, from `init` to `start`.
struct ChannelEnds {
    learn: Receiver<message::Fact>,
    wait: Receiver<Waiting<Ipv4Addr>>,
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
    let proxy = control::ProxyTable::new();
    let virtual_table = virtual_addresses::VirtualTable::new();
    let virtual_addresses = VirtualAddresses::new(control, counters.clone(), virtual_table.clone())?;
    control.put_rc(virtual_addresses);
    let asker =
        || node::ArpRequester::new(subnets.clone(), counters.clone(), wait_tx.clone(), learn_tx.clone());
    graph.add_arc(ArcSpec { name: ARC, side: ArcSide::Receive, starts: &["arp-reply"], end: "drop" });
    let answer = node::Answer { interfaces: interfaces.clone(), counters: counters.clone() };
    graph.add_packet(node::ArpInput { interfaces: interfaces.clone(), counters: counters.clone() })?;
    graph.add_packet(node::ArpDisabled)?;
    let (tell, arc) = (learn_tx.clone(), graph.arc(ARC)?);
    let tables = (proxy.clone(), virtual_table);
    graph.add_packet(node::ArpReply::new(subnets.clone(), answer.clone(), tell, tables, arc))?;
    graph.add_packet(node::ArpProxy { interfaces, table: proxy.clone(), answer })?;
    control.get::<Ethernet>()?.register(EtherType::ARP, "arp-input", MODULE.name)?;
    graph.add_packet(node::ArpFailed::new(shoal_ip4::Unreachables::of(control)))?;
    let ip4_arp = graph.add_frame(node::Ip4Arp(asker()))?;
    graph.add_frame(node::Ip4Glean(asker()))?;
    let held = HeldCounters::new(graph.counters(), "arp")?;
    let neighbours =
        control.put_rc(Neighbours::new(control, Arp::new(control, ip4_arp, counters)?, held, bell_tx)?);
    protocol::follow(control, &neighbours)?;
    control.put_rc(control::ProxyArp::new(control, proxy)?);
    control.put(ChannelEnds { learn, wait, bell });
    Ok(())
}

fn start(control: &Rc<Control>) -> Result<(), InitError> {
    let (processes, neighbours) = (control.processes()?, control.get::<Neighbours>()?);
    let ends = control.get::<ChannelEnds>()?;
    processes.spawn(
        "ip4-neighbor-learn",
        learn::learn(Rc::clone(&neighbours), Answers::of(control), ends.learn.clone()),
    );
    processes.spawn("ip4-neighbor-hold", process::hold(Rc::clone(&neighbours), ends.wait.clone()));
    let age = process::age(neighbours, Rc::clone(&processes), ends.bell.clone());
    processes.spawn("ip4-neighbor-age-process", age);
    Ok(())
}
