//! NAT66: one IPv6 address stands for another, without state.
//!
//! [`Nat66`] is the control plane. The node `nat66-in2out` replaces the source of what hosts send to the outside, `nat66-out2in` the
//! destination of what comes from there; both follow into ICMPv6 errors. Packets between two hosts inside that know each other by
//! their outside addresses get both in one step.
#![forbid(unsafe_code)]

pub mod api;
mod cli;
mod config;
mod control;
mod lines;
pub mod node;
mod running;
mod translate;

pub use control::{Mapping, Nat66, Nat66Error, Side};

use std::rc::Rc;

use shoal_module::{Control, InitError, Module};

/// The module.
pub static MODULE: Module = Module {
    name: "nat66",
    description: "NAT66",
    init,
    commands: cli::COMMANDS,
    api: &[&api::API],
    features: &["nat66-in2out", "nat66-out2in"],
    running: running::running,
    lines: lines::LINES,
    ..Module::NONE
};

fn init(control: &Rc<Control>) -> Result<(), InitError> {
    control.put_rc(Nat66::new(control)?);
    Ok(())
}
