//! ICMP for IPv4 and IPv6: echo, errors and their rate limit.
//!
//! `ip4-icmp-input` checks what this router is sent and passes it on by type: requests are echoed in place,
//! replies and errors go to whoever asked for them ([`Icmp::listen`], used by `ping`). `ip4-icmp-error` turns any
//! packet into the error about it; the node that gives it up leaves what to say in the packet's scratch
//! ([`shoal_ip4::IcmpError`]). `ip6-icmp-input`, `ip6-icmp-echo-request` and `ip6-icmp-error` do the same for IPv6;
//! messages of other types go to whoever takes them ([`Icmp6::set_taker`]), and IPv4's "fragmentation needed" passes
//! whoever learns from it ([`Icmp::set_too_big_taker`]).
#![forbid(unsafe_code)]

mod address;
pub mod cli;
mod control;
mod heard;
mod icmp6;
pub mod limiter;
mod node;
mod sum;

pub use control::{Icmp, IcmpError, TypeCount};
pub use heard::{Heard, Listener};
pub use icmp6::{Icmp6, Type6Count};

use std::rc::Rc;
use std::sync::Arc;

use shoal_graph::counter::Simple;
use shoal_graph::process::{Receiver, channel};
use shoal_interface::Interfaces;
use shoal_ip4::Ip4;
use shoal_ip6::Ip6;
use shoal_module::{Control, InitError, Module};

use limiter::{Limiter, Rate};

/// The module.
pub static MODULE: Module = Module {
    name: "icmp",
    description: "ICMP: echo, errors and their rate limit",
    init,
    start,
    commands: cli::COMMANDS,
    ..Module::NONE
};

/// ICMP types.
const TYPES: usize = 256;

/// The channel's end, from `init` to `start`.
struct FromNodes(Receiver<Heard>);

fn init(control: &Rc<Control>) -> Result<(), InitError> {
    let graph = control.graph()?;
    let counter = |name: &str| {
        let counter = graph.counters().simple(name, TYPES)?;
        counter.ensure(TYPES);
        Ok::<_, std::io::Error>(counter)
    };
    let (rx, tx) = (counter("/net/icmp4/rx")?, counter("/net/icmp4/tx")?);
    let limiter = Arc::new(Limiter::new(Rate::default()));
    let icmp = control.put(Icmp::new(Rc::clone(&graph), Arc::clone(&limiter), rx.clone(), tx.clone()));
    let (heard, from_nodes) = channel(heard::CHANNEL);
    graph.add_packet(node::IcmpInput { rx, too_big: icmp.too_big() })?;
    graph.add_packet(node::EchoRequest { tx: tx.clone() })?;
    graph.add_packet(node::ListenerNode { wanted: icmp.listeners.wanted(), heard })?;
    graph.add_packet(node::IcmpErrorNode {
        interfaces: control.get::<Interfaces>()?.table(),
        addresses: control.get::<Ip4>()?.table(),
        limiter,
        tx,
    })?;
    control.put(FromNodes(from_nodes));
    init_ip6(control, counter("/net/icmp6/rx")?, counter("/net/icmp6/tx")?)
}

fn init_ip6(control: &Rc<Control>, rx: Simple, tx: Simple) -> Result<(), InitError> {
    let graph = control.graph()?;
    let addresses = control.get::<Ip6>()?.table();
    let limiter = Arc::new(Limiter::new(Rate::default()));
    let icmp6 = Icmp6::new(Rc::clone(&graph), Arc::clone(&limiter), rx.clone(), tx.clone());
    graph.add_packet(node::Icmp6Input { rx, takers: icmp6.takers() })?;
    graph.add_packet(node::Echo6Request { addresses: addresses.clone(), tx: tx.clone() })?;
    graph.add_packet(node::Icmp6ErrorNode {
        interfaces: control.get::<Interfaces>()?.table(),
        addresses,
        limiter,
        tx,
    })?;
    control.put(icmp6);
    Ok(())
}

fn start(control: &Rc<Control>) -> Result<(), InitError> {
    let (icmp, from_nodes) = (control.get::<Icmp>()?, control.get::<FromNodes>()?.0.clone());
    control.processes()?.spawn("ip4-icmp-listener", async move {
        while let Ok(heard) = from_nodes.recv().await {
            icmp.deliver(heard);
        }
    });
    Ok(())
}
