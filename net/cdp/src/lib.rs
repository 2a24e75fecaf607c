//! CDP: which device is at the other end of a link, as Cisco's protocol has it.
//!
//! [`Cdp`] says on all ports who this router is, once it is enabled, and remembers what `cdp-input` reads of other ends until
//! their time is over.
#![forbid(unsafe_code)]

mod api;
mod cli;
mod control;
mod lines;
mod node;
pub mod pdu;

use std::rc::Rc;

use shoal_graph::process::{Receiver, channel};
use shoal_module::{Control, InitError, Module, Phase, Running};

pub use api::CDP;
pub use control::{Cdp, Look};

use node::{CdpInput, ReceivedNeighbour};

/// PDUs that wait for the main thread at most.
const CHANNEL: usize = 64;

/// The module.
pub static MODULE: Module = Module {
    name: "cdp",
    description: "Which device is at the other end of a link, in Cisco's protocol",
    init,
    start,
    commands: cli::COMMANDS,
    api: &[&CDP],
    running,
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
    let cdp = Cdp::new(control, ring)?;
    control.graph()?.add_packet(CdpInput { tell, enabled: cdp.enabled() })?;
    control.put_rc(cdp);
    control.put(ChannelEnds { heard, bell });
    Ok(())
}

fn start(control: &Rc<Control>) -> Result<(), InitError> {
    let (processes, cdp, ends) = (control.processes()?, control.get::<Cdp>()?, control.get::<ChannelEnds>()?);
    cdp.take_edge(control)?;
    let listener = Rc::clone(&cdp);
    processes.spawn_hearing("cdp-input-process", ends.heard.clone(), move |heard| listener.hear(&heard));
    processes.spawn_ticking("cdp-process", ends.bell.clone(), move || {
        cdp.tick();
        cdp.deadline()
    });
    Ok(())
}

/// What rebuilds it.
fn running(control: &Control, running: &mut Running) {
    if running.part::<Cdp>(control).is_some_and(|cdp| cdp.is_enabled()) {
        running.line(Phase::Policies, "cdp enable");
    }
}
