//! BFD: whether the path to a neighbour works, found out in milliseconds (RFC 5880, 5881, 5883).
//!
//! ```text
//! ip4-local, ip6-local -> bfd-udp4-input, bfd-udp6-input, bfd-udp-echo4-input, ... -- what was received --> bfd-process
//! bfd-process: sessions, times --> datagrams --> ip4-lookup, ip6-lookup; echo packets --> the neighbour
//!                              --> next hops that are down: the forwarding table
//! ```
//! [`Bfd`] is the control plane. [`Session`] is one session's states and times, without any packet or clock.
#![forbid(unsafe_code)]

pub mod api;
mod auth;
mod cli;
mod control;
mod echo;
mod error;
mod fib;
mod lines;
pub mod node;
mod packet;
mod process;
mod running;
mod session;

pub use auth::{AuthType, Key};
pub use control::{Bfd, EchoSource, Hop, SessionInfo, SessionKey};
pub use error::BfdError;
pub use packet::{Bits, Control as ControlPacket, Diag, Echo, Invalid, Section, State};
pub use session::{Auth, Parameters, Poll, Refused, Remote, Session, Todo};

use std::rc::Rc;

use shoal_adj::Family;
use shoal_graph::process::{Receiver, channel};
use shoal_interface::{Event, Interfaces};
use shoal_ip::ListenerTable;
use shoal_ip4::Ip4Family;
use shoal_ip6::Ip6Family;
use shoal_module::{Control, InitError, Module};

use node::{Input, ReceivedPacket};

/// The module.
pub static MODULE: Module = Module {
    name: "bfd",
    description: "Bidirectional forwarding detection",
    init,
    start,
    commands: cli::COMMANDS,
    api: &[&api::API],
    running: running::running,
    lines: lines::LINES,
    ..Module::NONE
};

/// Packets that may wait for the control plane.
const CHANNEL: usize = 4096;

/// The ends of channels that the process takes.
struct ChannelEnds {
    heard: Receiver<ReceivedPacket>,
    bell: Receiver<()>,
}

fn init(control: &Rc<Control>) -> Result<(), InitError> {
    let (tell, heard) = channel(CHANNEL);
    let (bell, rung) = channel(1);
    let graph = control.graph()?;
    graph.add_packet(Input::<false, false> { tell: tell.clone() })?;
    graph.add_packet(Input::<true, false> { tell: tell.clone() })?;
    graph.add_packet(Input::<false, true> { tell: tell.clone() })?;
    graph.add_packet(Input::<true, true> { tell })?;
    let bfd = control.put(Bfd::new(control, bell)?);
    control.put(ChannelEnds { heard, bell: rung });
    api::follow(control, &bfd);
    control.get::<Interfaces>()?.subscribe(|control, event| {
        if let (Event::Deleting(interface), Ok(bfd)) = (event, control.get::<Bfd>()) {
            bfd.forget(interface);
        }
    });
    Ok(())
}

/// Edges of the local nodes are numbered when the graph is built; others come after that.
fn start(control: &Rc<Control>) -> Result<(), InitError> {
    let graph = control.graph()?;
    let edge = |local: &str, node: &str| graph.add_edge(graph.node(local)?, graph.node(node)?);
    let ip4 = control.get::<ListenerTable<Ip4Family>>()?;
    let ip6 = control.get::<ListenerTable<Ip6Family>>()?;
    ip4.set_udp(node::SINGLE_HOP, Some(edge("ip4-local", "bfd-udp4-input")?));
    ip6.set_udp(node::SINGLE_HOP, Some(edge("ip6-local", "bfd-udp6-input")?));
    ip4.set_udp(node::ECHO, Some(edge("ip4-local", "bfd-udp-echo4-input")?));
    ip6.set_udp(node::ECHO, Some(edge("ip6-local", "bfd-udp-echo6-input")?));
    let (processes, bfd, ends) = (control.processes()?, control.get::<Bfd>()?, control.get::<ChannelEnds>()?);
    for port in [node::SINGLE_HOP, node::ECHO] {
        bfd.share(port, &ip4, Family::Ip4);
        bfd.share(port, &ip6, Family::Ip6);
    }
    processes.spawn("bfd-input", process::listen(Rc::clone(&bfd), ends.heard.clone()));
    let tick = move || bfd.tick();
    processes.spawn_ticking("bfd-process", ends.bell.clone(), tick);
    Ok(())
}
