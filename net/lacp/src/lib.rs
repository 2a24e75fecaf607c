//! LACP: both ends of a bond in mode `lacp` agree on which links they use. IEEE 802.1AX.
//!
//! [`Lacp`] runs a [`machine::Port`] for each member, tells the other end what it says, hears what `lacp-input` has read, and
//! tells [`shoal_bond::Bonds`] which members both ends use. Markers are answered.
#![forbid(unsafe_code)]

mod api;
mod cli;
mod control;
pub mod machine;
mod node;
pub mod pdu;
mod show;

use std::rc::Rc;

use shoal_graph::process::{Receiver, channel};
use shoal_module::{Control, InitError, Module};

pub use api::LACP;
pub use control::{Lacp, Look};

use node::{LacpInput, ReceivedPdu};

/// PDUs that wait for the main thread at most.
const CHANNEL: usize = 256;

/// The module.
pub static MODULE: Module = Module {
    name: "lacp",
    description: "Both ends of a bond agree on its links",
    init,
    start,
    commands: cli::COMMANDS,
    api: &[&LACP],
    ..Module::NONE
};

struct ChannelEnds {
    heard: Receiver<ReceivedPdu>,
    bell: Receiver<()>,
}

fn init(control: &Rc<Control>) -> Result<(), InitError> {
    let (tell, heard) = channel(CHANNEL);
    let (ring, bell) = channel(1);
    let lacp = Lacp::new(control, ring)?;
    control.graph()?.add_packet(LacpInput { tell, ports: lacp.ports() })?;
    control.put_rc(lacp);
    control.put(ChannelEnds { heard, bell });
    Ok(())
}

fn start(control: &Rc<Control>) -> Result<(), InitError> {
    let (processes, lacp, ends) =
        (control.processes()?, control.get::<Lacp>()?, control.get::<ChannelEnds>()?);
    lacp.take_edge(control)?;
    let listener = Rc::clone(&lacp);
    processes.spawn_hearing("lacp-input-process", ends.heard.clone(), move |heard| listener.hear(&heard));
    processes.spawn_ticking("lacp-process", ends.bell.clone(), move || {
        lacp.tick();
        lacp.deadline()
    });
    Ok(())
}
