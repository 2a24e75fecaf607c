//! PNAT: packets that match a rule get other addresses and ports, without state.
//!
//! [`Pnat`] is the control plane: bindings, each a [`Match`] and a [`Rewrite`], attached to what comes in or goes out by interfaces. All
//! bindings at one place look at the same fields, so a packet takes one look-up. The nodes `pnat-input` and `pnat-output` do it.
#![forbid(unsafe_code)]

pub mod api;
mod apply;
mod cli;
mod config;
mod control;
mod lines;
pub mod node;
mod rule;
mod running;

pub use control::{AttachedTo, Pnat, PnatError};
pub use rule::{Fields, Match, Place, Rewrite};

use std::rc::Rc;

use shoal_module::{Control, InitError, Module};

/// The module.
pub static MODULE: Module = Module {
    name: "pnat",
    description: "Policy 1:1 NAT",
    init,
    commands: cli::COMMANDS,
    api: &[&api::API],
    features: &["pnat-input", "pnat-output"],
    running: running::running,
    lines: lines::LINES,
    ..Module::NONE
};

fn init(control: &Rc<Control>) -> Result<(), InitError> {
    control.put_rc(Pnat::new(control)?);
    Ok(())
}
