//! DET44: deterministic NAT44 (RFC 7422). Which address and ports a host has follows from its own address, so that nothing needs to
//! be logged.
//!
//! ```text
//! host -> det44-in2out -> ip4-lookup -> the world
//!             | to another host of this router
//!         det44-hairpinning -> ip4-lookup
//! host <- ip4-lookup <- det44-out2in <- the world
//! ```
//! [`Det44`] is the control plane, [`config::Map`] the arithmetic.
#![forbid(unsafe_code)]

pub mod api;
mod cli;
pub mod config;
mod control;
mod lines;
pub mod node;
mod running;
mod session_stores;
pub mod sessions;
mod shared;

pub use control::{Det44, Det44Error, Enable, Side, Sides};

use std::rc::Rc;

use shoal_module::{Control, InitError, Module};

/// The module.
pub static MODULE: Module = Module {
    name: "det44",
    description: "Deterministic NAT44",
    init,
    start,
    commands: cli::COMMANDS,
    arg_types: cli::ARG_TYPES,
    api: &[&api::API],
    features: &["det44-in2out", "det44-out2in"],
    running: running::running,
    lines: lines::LINES,
    ..Module::NONE
};

fn init(control: &Rc<Control>) -> Result<(), InitError> {
    control.put_rc(Det44::new(control)?);
    Ok(())
}

fn start(control: &Rc<Control>) -> Result<(), InitError> {
    let det44 = control.get::<Det44>()?;
    control.processes()?.spawn("det44-log", det44.listen());
    Ok(())
}
