//! TCP maximum segment size clamped on the way through: connections over a link with a smaller MTU work although
//! somebody filters the messages of path MTU discovery. RFC 9293, 3.7.1; RFC 2923, 2.1.
//!
//! [`MssClamp`] is the control plane: it enables features (`tcp-mss-clamping-ip4-in` and its like) on the input and
//! output arcs of an interface and says how large a segment may be. The nodes lower the option of SYN packets that
//! ask for more.
#![forbid(unsafe_code)]

pub mod api;
mod clamp;
pub mod cli;
mod control;
mod lines;
pub mod node;
mod running;
mod sizes;

pub use clamp::{Clamped, clamp};
pub use control::{Directions, FamilyNodes, MssClamp, MssError, MssNodes, Setting};

use std::rc::Rc;

use shoal_module::{Control, InitError, Module};

/// The module.
pub static MODULE: Module = Module {
    name: "mss_clamp",
    description: "TCP maximum segment size clamping",
    init,
    commands: cli::COMMANDS,
    api: &[&api::API],
    features: &[
        "tcp-mss-clamping-ip4-in",
        "tcp-mss-clamping-ip4-out",
        "tcp-mss-clamping-ip6-in",
        "tcp-mss-clamping-ip6-out",
    ],
    running: running::running,
    lines: lines::LINES,
    ..Module::NONE
};

fn init(control: &Rc<Control>) -> Result<(), InitError> {
    control.put_rc(MssClamp::new(control)?);
    Ok(())
}
