//! IGMP, the part of a host: which groups this router listens to on each link, reported to the routers there. The part
//! of a router: who listens on a link, asked and remembered; and proxies, which listen on one link for those of others.
//!
//! ```text
//! ip4-local -> igmp-input: checks ──facts──> Igmp: groups, timers ──reports──> interface-output
//! ```
//! RFC 3376; routers of RFC 2236 and RFC 1112 are answered in their version (RFC 3376, 7.2).
#![forbid(unsafe_code)]

pub mod api;
pub mod cli;
mod control;
mod error;
mod group;
mod lines;
mod node;
mod process;
mod proxy;
mod ranges;
mod router;
mod running;
mod send;

use std::rc::Rc;

use shoal_graph::process::{Receiver, channel};
use shoal_interface::{Event, Interfaces};
use shoal_ip::ListenerTable;
use shoal_ip4::Ip4Family;
use shoal_module::{Control, InitError, Module};
use shoal_wire::IpProtocol;

pub use control::{GroupInfo, Igmp, InterfaceInfo, Listen};
pub use error::IgmpError;
pub use proxy::ProxyInfo;
pub use ranges::GroupKind;
pub use router::{Event as GroupEvent, Filter, Listeners, Timers};

use node::{Fact, IgmpInput, Routers};

/// News of nodes that wait for the control plane; more are lost and counted.
const CHANNEL: usize = 256;

/// The module.
pub static MODULE: Module = Module {
    name: "igmp",
    description: "IGMP: groups this router listens to",
    init,
    start,
    commands: cli::COMMANDS,
    api: &[&api::API],
    running: running::running,
    lines: lines::LINES,
    ..Module::NONE
};

struct ChannelEnds {
    facts: Receiver<Fact>,
    bell: Receiver<()>,
}

fn init(control: &Rc<Control>) -> Result<(), InitError> {
    let (tell, facts) = channel(CHANNEL);
    let (bell, rung) = channel(1);
    let routers = Routers::new()?;
    control.graph()?.add_packet(IgmpInput::new(tell, routers.clone()))?;
    let igmp = control.put(Igmp::new(control, bell, routers)?);
    api::follow(control, &igmp);
    control.put(ChannelEnds { facts, bell: rung });
    control.get::<Interfaces>()?.subscribe(|control, event| {
        let Ok(igmp) = control.get::<Igmp>() else { return };
        match event {
            Event::Deleting(i) => igmp.forget(i),
            Event::Admin(i, _) | Event::Link(i, _) => igmp.restart(i),
            _ => {}
        }
    });
    Ok(())
}

/// Edges of `ip4-local` are numbered when the graph is built; others come after that.
fn start(control: &Rc<Control>) -> Result<(), InitError> {
    let graph = control.graph()?;
    let edge = graph.add_edge(graph.node("ip4-local")?, graph.node(node::NAME)?)?;
    control.get::<ListenerTable<Ip4Family>>()?.set_protocol(IpProtocol::IGMP, Some(edge));
    let (processes, igmp, ends) =
        (control.processes()?, control.get::<Igmp>()?, control.get::<ChannelEnds>()?);
    processes.spawn("igmp-input-process", process::listen(Rc::clone(&igmp), ends.facts.clone()));
    let times = process::times(igmp, Rc::clone(&processes), ends.bell.clone());
    processes.spawn("igmp-timer-process", times);
    Ok(())
}
