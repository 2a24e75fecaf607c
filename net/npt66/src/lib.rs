//! NPTv6 (RFC 6296): an IPv6 prefix stands for another, without state and without a change to any checksum.
//!
//! [`Npt66`] is the control plane: an interface to the outside has a binding. The node `npt66-output` replaces the prefix of sources
//! that go out by it, `npt66-input` that of destinations that come in; both follow into ICMPv6 errors.
#![forbid(unsafe_code)]

pub mod api;
mod cli;
mod control;
mod lines;
pub mod node;
pub mod prefixes;
mod running;

pub use control::{Binding, Npt66, Npt66Error};

use std::rc::Rc;

use shoal_module::{Control, InitError, Module};

/// The module.
pub static MODULE: Module = Module {
    name: "npt66",
    description: "NPTv6",
    init,
    commands: cli::COMMANDS,
    api: &[&api::API],
    features: &["npt66-input", "npt66-output"],
    running: running::running,
    lines: lines::LINES,
    ..Module::NONE
};

fn init(control: &Rc<Control>) -> Result<(), InitError> {
    control.put_rc(Npt66::new(control)?);
    Ok(())
}
