//! Large packets cut in software, on their way to a device that takes none.
//!
//! Hosts hand over TCP data and UDP datagrams by the 64 KiB, to be cut by whatever device they leave by. Drivers whose
//! device does not (AF_XDP, memif, AF_PACKET told so) cut as they send; this feature does it on the output arcs, for
//! interfaces whose driver would refuse, and where features behind it want to see what goes out.
//!
//! [`Gso`] is the control plane: it enables `gso-ip4` and `gso-ip6` on an interface. The cutting itself is
//! [`shoal_vnet::Segments`].
#![forbid(unsafe_code)]

pub mod api;
pub mod cli;
mod control;
mod lines;
pub mod node;
mod running;

pub use control::{Cutting, Gso, GsoError};

use std::rc::Rc;

use shoal_module::{Control, InitError, Module};

/// The module.
pub static MODULE: Module = Module {
    name: "gso",
    description: "Large packets cut in software",
    init,
    commands: cli::COMMANDS,
    api: &[&api::API],
    running: running::running,
    lines: lines::LINES,
    ..Module::NONE
};

fn init(control: &Rc<Control>) -> Result<(), InitError> {
    control.put_rc(Gso::new(control)?);
    Ok(())
}
