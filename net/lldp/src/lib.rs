//! LLDP: who is at the other end of a link. IEEE 802.1AB.
//!
//! [`Lldp`] says who this router is on each interface where it is switched on, and remembers what `lldp-input` reads of the
//! other end until its time is over.
#![forbid(unsafe_code)]

mod api;
mod cli;
mod control;
mod lines;
mod node;
pub mod pdu;
mod running;
mod show;

use std::rc::Rc;

use shoal_graph::process::{Receiver, channel};
use shoal_module::{Control, InitError, Module};

pub use api::LLDP;
pub use control::{Lldp, LldpError, Look, OnInterface, Settings};

use node::{LldpInput, ReceivedNeighbour};

/// PDUs that wait for the main thread at most.
const CHANNEL: usize = 64;

/// The module.
pub static MODULE: Module = Module {
    name: "lldp",
    description: "Who is at the other end of a link",
    init,
    start,
    commands: cli::COMMANDS,
    api: &[&LLDP],
    running: running::running,
    lines: lines::LINES,
    ..Module::NONE
};

struct ChannelEnds {
    heard: Receiver<ReceivedNeighbour>,
    bell: Receiver<()>,
}

fn init(control: &Rc<Control>) -> Result<(), InitError> {
    let (tell, heard) = channel(CHANNEL);
    let (ring, bell) = channel(1);
    let lldp = Lldp::new(control, ring)?;
    control.graph()?.add_packet(LldpInput { tell, enabled: lldp.enabled() })?;
    control.put_rc(lldp);
    control.put(ChannelEnds { heard, bell });
    Ok(())
}

fn start(control: &Rc<Control>) -> Result<(), InitError> {
    let (processes, lldp, ends) =
        (control.processes()?, control.get::<Lldp>()?, control.get::<ChannelEnds>()?);
    lldp.take_edge(control)?;
    let listener = Rc::clone(&lldp);
    processes.spawn_hearing("lldp-input-process", ends.heard.clone(), move |heard| listener.hear(&heard));
    processes.spawn_ticking("lldp-process", ends.bell.clone(), move || {
        lldp.tick();
        lldp.deadline()
    });
    Ok(())
}
