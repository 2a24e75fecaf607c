//! BFD: whether the path to a neighbour works, found out in milliseconds (RFC 5880, 5881, 5883).
//!
//! ```text
//! ip4-local, ip6-local -> bfd-udp4-input, bfd-udp6-input, bfd-udp-echo4-input, ... -- what is new --> main thread: sessions
//! main thread: sessions --> next hops that are down: the forwarding table
//!     |     ^                                                     bfd-timer: datagrams --> ip4-rewrite, ip4-lookup, ...
//!     |     +------ nothing was heard ---------------------------- |  (the thread that a session was given to)
//!     +------------ sessions that are up ------------------------> +
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
mod keeping;
mod lines;
pub mod node;
mod packet;
mod process;
mod reception;
mod running;
mod session;
mod shared;
mod template;

pub use auth::{AuthType, Key};
pub use control::{Bfd, EchoSource, Hop, SessionInfo, SessionKey};
pub use error::BfdError;
pub use packet::{Bits, Control as ControlPacket, Diag, Echo, Invalid, Section, State};
pub use session::{Auth, EchoWish, Parameters, Poll, Refused, Remote, Session, Todo};

use std::rc::Rc;

use shoal_adj::Family;
use shoal_interface::{Event, Interfaces};
use shoal_ip::ListenerTable;
use shoal_ip4::Ip4Family;
use shoal_ip6::Ip6Family;
use shoal_module::{Control, InitError, Module};

use control::Ends;
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

fn init(control: &Rc<Control>) -> Result<(), InitError> {
    let graph = control.graph()?;
    let (bfd, ends) = Bfd::new(control)?;
    let reception = || bfd.reception();
    graph.add_packet(Input::<false, false> { reception: reception() })?;
    graph.add_packet(Input::<true, false> { reception: reception() })?;
    graph.add_packet(Input::<false, true> { reception: reception() })?;
    graph.add_packet(Input::<true, true> { reception: reception() })?;
    let bfd = control.put(bfd);
    control.put(ends);
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
    let (processes, bfd, ends) = (control.processes()?, control.get::<Bfd>()?, control.get::<Ends>()?);
    bfd.set_askers();
    for port in [node::SINGLE_HOP, node::ECHO] {
        bfd.share(port, &ip4, Family::Ip4);
        bfd.share(port, &ip6, Family::Ip6);
    }
    // The first is the most urgent, and what strangers send has a task of its own: each has its turn.
    let own = || Rc::clone(&bfd);
    processes.spawn("bfd-expired", process::take(own(), ends.expired.clone(), Bfd::expired));
    let hear = |bfd: &Bfd, heard: ReceivedPacket| bfd.hear(&heard);
    processes.spawn("bfd-input", process::take(own(), ends.of_sessions.clone(), hear));
    processes.spawn("bfd-strangers", process::take(own(), ends.of_strangers.clone(), hear));
    let tick = move || bfd.tick();
    processes.spawn_ticking("bfd-process", ends.bell.clone(), tick);
    Ok(())
}
