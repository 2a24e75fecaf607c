//! Cross-connects of routed interfaces: packets of an interface take given paths, whatever their destination.
//!
//! [`L3xc`] is the control plane. The node `l3xc-input-ip4` (`-ip6`) gives a packet the adjacency of its interface's paths, which
//! `ip4-load-balance` follows.
#![forbid(unsafe_code)]

pub mod api;
mod cli;
mod control;
mod lines;
pub mod node;
mod running;

pub use control::{L3xc, L3xcError, L3xcInfo};

use std::rc::Rc;

use shoal_module::{Control, InitError, Module};

/// The module.
pub static MODULE: Module = Module {
    name: "l3xc",
    description: "Cross-connects of routed interfaces",
    init,
    commands: cli::COMMANDS,
    api: &[&api::API],
    features: &["l3xc-input-ip4", "l3xc-input-ip6"],
    running: running::running,
    lines: lines::LINES,
    ..Module::NONE
};

fn init(control: &Rc<Control>) -> Result<(), InitError> {
    control.put_rc(L3xc::new(control)?);
    Ok(())
}
