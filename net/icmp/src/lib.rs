//! ICMP for IPv4 and IPv6: echo, errors and their rate limit.
//!
//! `ip4-icmp-input` checks what this router is sent and passes it on by type: requests are echoed in place, replies and
//! errors go to the module that asked for them ([`Messages::listen`], used by `ping`). `ip4-icmp-error` turns any
//! packet into the error about it; the node that gives it up leaves what to say in the packet's scratch
//! ([`shoal_ip4::IcmpError`], [`shoal_ip6::IcmpError`]). `ip6-icmp-input` and the others do the same for IPv6: errors
//! and listening are one code. Messages of other ICMPv6 types go to their takers ([`Icmp6::set_taker`]), and IPv4's
//! "fragmentation needed" passes the module that learns from it ([`Icmp::set_too_big_taker`]).
#![forbid(unsafe_code)]

mod address;
pub mod cli;
mod control;
mod echo_answers;
mod family;
pub mod limiter;
mod lines;
mod node;
mod running;
mod sum;

pub use control::{Icmp, Icmp6, IcmpError, Messages, TypeCount};
pub use echo_answers::{Answer, EchoAnswer, Listener};
pub use limiter::Allowance;

use std::marker::PhantomData;
use std::net::IpAddr;
use std::rc::Rc;

use shoal_graph::process::{Receiver, Sender, channel};
use shoal_interface::Interfaces;
use shoal_ip::ListenerTable;
use shoal_ip4::Ip4;
use shoal_ip6::Ip6;
use shoal_module::{Control, InitError, Module};
use shoal_wire::{Icmp4Type, Icmp6Type};

use family::Family;

/// The module.
pub static MODULE: Module = Module {
    name: "icmp",
    description: "ICMP: echo, errors and their rate limit",
    init,
    start,
    commands: cli::COMMANDS,
    running: running::running,
    lines: lines::LINES,
    ..Module::NONE
};

/// ICMP types.
const TYPES: usize = 256;

/// The channel's end, from `init` to `start`.
struct FromNodes(Receiver<EchoAnswer>);

fn init(control: &Rc<Control>) -> Result<(), InitError> {
    let graph = control.graph()?;
    let counter = |name: &str| {
        let counter = graph.counters().simple(name, TYPES)?;
        counter.ensure(TYPES);
        Ok::<_, std::io::Error>(counter)
    };
    let (heard, from_nodes) = channel(echo_answers::CHANNEL);
    let (rx, tx) = (counter("/net/icmp4/rx")?, counter("/net/icmp4/tx")?);
    let icmp = Icmp::new(Rc::clone(&graph), Icmp4Type, rx.clone(), tx.clone());
    graph.add_packet(node::IcmpInput { rx, takers: icmp.takers.clone() })?;
    graph.add_packet(node::EchoRequest { tx })?;
    add_both::<family::Ip4, _>(control, &icmp, control.get::<Ip4>()?.table(), heard.clone())?;
    control.put(icmp);
    let (rx, tx) = (counter("/net/icmp6/rx")?, counter("/net/icmp6/tx")?);
    let (icmp6, addresses) =
        (Icmp6::new(Rc::clone(&graph), Icmp6Type, rx.clone(), tx.clone()), control.get::<Ip6>()?.table());
    graph.add_packet(node::Icmp6Input { rx, takers: icmp6.takers.clone() })?;
    graph.add_packet(node::Echo6Request { addresses: addresses.clone(), tx })?;
    add_both::<family::Ip6, _>(control, &icmp6, addresses, heard)?;
    control.put(icmp6);
    control.put(FromNodes(from_nodes));
    Ok(())
}

/// The nodes that are written once.
fn add_both<F: Family, T>(
    control: &Control,
    icmp: &Messages<T>,
    addresses: F::Addresses,
    heard: Sender<EchoAnswer>,
) -> Result<(), InitError> {
    let (graph, family) = (control.graph()?, PhantomData::<F>);
    let (wanted, listeners) =
        (icmp.listeners.wanted(), control.get::<ListenerTable<F::Forwarding>>()?.shared());
    graph.add_packet(node::ListenerNode { wanted, heard, listeners, family })?;
    let interfaces = control.get::<Interfaces>()?.table();
    graph.add_packet(node::IcmpErrorNode::<F> { interfaces, addresses, allowance: icmp.allowance() })?;
    Ok(())
}

fn start(control: &Rc<Control>) -> Result<(), InitError> {
    let (icmp, icmp6) = (control.get::<Icmp>()?, control.get::<Icmp6>()?);
    let from_nodes = control.get::<FromNodes>()?.0.clone();
    control.processes()?.spawn("ip-icmp-listener", async move {
        while let Ok(heard) = from_nodes.recv().await {
            match heard.from {
                IpAddr::V4(_) => icmp.deliver(heard),
                IpAddr::V6(_) => icmp6.deliver(heard),
            }
        }
    });
    Ok(())
}
