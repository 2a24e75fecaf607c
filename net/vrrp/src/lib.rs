//! VRRP: several routers share addresses, of which one has them at a time (RFC 9568 and RFC 3768).
//!
//! ```text
//! ip4-local, ip6-local -> vrrp4-input, vrrp6-input -- what another router said --> vrrp-input
//! vrrp-process: states, times --> advertisements, ARP, neighbour advertisements
//!                             --> MAC address of the port, answers to ARP and neighbour discovery, route of the address
//! ```
//! [`Vrrp`] is the control plane. [`Machine`] is one virtual router's states and times, without any packet or clock.
#![forbid(unsafe_code)]

pub mod api;
mod cli;
mod config;
mod control;
mod error;
mod lines;
mod machine;
pub mod node;
mod packet;
mod process;
mod running;

pub use config::{Config, VrKey};
pub use control::{Change, Info, Vrrp};
pub use error::VrrpError;
pub use machine::{Machine, Nanos, OWNER, PeerAdvertisement, State, Todo};
pub use packet::{Advertisement, Invalid, LONGEST_INTERVAL, Version};

use std::rc::Rc;

use shoal_graph::process::{Receiver, channel};
use shoal_interface::{Event, Interfaces};
use shoal_ip::ListenerTable;
use shoal_ip4::Ip4Family;
use shoal_ip6::Ip6Family;
use shoal_module::{Control, InitError, Module};
use shoal_wire::IpProtocol;

use node::{Input, NoAccept, ReceivedAdvertisement};

/// The module.
pub static MODULE: Module = Module {
    name: "vrrp",
    description: "VRRP v3 (RFC 5798)",
    init,
    start,
    commands: cli::COMMANDS,
    api: &[&api::API],
    running: running::running,
    lines: lines::LINES,
    ..Module::NONE
};

/// Advertisements that may wait for the control plane.
const CHANNEL: usize = 1024;

/// The ends of channels that the processes take.
struct ChannelEnds {
    heard: Receiver<ReceivedAdvertisement>,
    bell: Receiver<()>,
}

fn init(control: &Rc<Control>) -> Result<(), InitError> {
    let (tell, heard) = channel(CHANNEL);
    let (bell, rung) = channel(1);
    let graph = control.graph()?;
    graph.add_packet(Input::<false> { tell: tell.clone() })?;
    graph.add_packet(Input::<true> { tell })?;
    graph.add_packet(NoAccept::<false>)?;
    graph.add_packet(NoAccept::<true>)?;
    let vrrp = control.put(Vrrp::new(control, bell)?);
    control.put(ChannelEnds { heard, bell: rung });
    api::follow(control, &vrrp);
    control.get::<Interfaces>()?.subscribe(|control, event| {
        let Ok(vrrp) = control.get::<Vrrp>() else { return };
        match event {
            Event::Deleting(interface) => vrrp.forget(interface),
            Event::Admin(..) | Event::Link(..) | Event::Ip4(..) | Event::Ip6(..) => {
                vrrp.look_again(event.interface());
            }
            _ => {}
        }
    });
    Ok(())
}

/// Edges of the local nodes are numbered when the graph is built; others come after that.
fn start(control: &Rc<Control>) -> Result<(), InitError> {
    let graph = control.graph()?;
    let edge = |local: &str, node: &str| graph.add_edge(graph.node(local)?, graph.node(node)?);
    let (four, six) = (edge("ip4-local", "vrrp4-input")?, edge("ip6-local", "vrrp6-input")?);
    control.get::<ListenerTable<Ip4Family>>()?.set_protocol(IpProtocol::VRRP, Some(four));
    control.get::<ListenerTable<Ip6Family>>()?.set_protocol(IpProtocol::VRRP, Some(six));
    let (processes, vrrp, ends) =
        (control.processes()?, control.get::<Vrrp>()?, control.get::<ChannelEnds>()?);
    processes.spawn("vrrp-input", process::listen(Rc::clone(&vrrp), ends.heard.clone()));
    processes.spawn("vrrp-routes", process::routes(Rc::clone(&vrrp), Rc::clone(&processes)));
    processes.spawn_ticking("vrrp-process", ends.bell.clone(), move || vrrp.tick());
    Ok(())
}
