//! Received packets spread over workers by their flow.
//!
//! [`Handoff`] is the control plane. It enables the feature `worker-handoff` on the arc `device-input` of an
//! interface and says which workers take its packets; the node picks one by the hash of a packet's flow and hands it
//! over through the rings that lie between all threads. Packets of a flow stay in order.
#![forbid(unsafe_code)]

pub mod cli;
mod control;
mod error;
mod flow;
pub mod node;
mod spread;

pub use control::{Handoff, OnInterface};
pub use error::HandoffError;
pub use flow::hash;

use std::rc::Rc;

use shoal_module::{Control, InitError, Module};

/// The module.
pub static MODULE: Module = Module {
    name: "handoff",
    description: "Received packets spread over workers by their flow",
    init,
    commands: cli::COMMANDS,
    arg_types: cli::ARG_TYPES,
    ..Module::NONE
};

fn init(control: &Rc<Control>) -> Result<(), InitError> {
    let handoff = Handoff::new(control)?;
    control.put_rc(handoff);
    Ok(())
}
