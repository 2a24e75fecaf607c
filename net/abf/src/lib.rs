//! Policy routing, VPP's ACL-based forwarding: packets that match a rule take the policy's paths, whatever the
//! forwarding table says of their destination. RFC 1104.
//!
//! [`Abf`] is the control plane: policies (a rule and paths) and where they are attached, in order of priority. The
//! node `abf-input-ip4` (`-ip6`) goes through the rules of the receiving interface; the first that matches gives the
//! packet the adjacency of its paths, which `ip4-load-balance` follows. The paths are resolved by the forwarding table
//! ([`Fib::hold`](shoal_fib::Fib::hold)), so they may be recursive, many, or lead to another table, and follow what
//! happens to their next hops without anything being written here.
#![forbid(unsafe_code)]

pub mod api;
mod chain;
pub mod cli;
mod control;
mod error;
mod lines;
pub mod node;
mod running;

pub use control::{Abf, AbfNodes, AttachInfo, PolicyInfo};
pub use error::AbfError;

use std::rc::Rc;

use shoal_module::{Control, InitError, Module};

/// The module.
pub static MODULE: Module = Module {
    name: "abf",
    description: "Policy routing",
    init,
    commands: cli::COMMANDS,
    api: &[&api::API],
    arg_types: cli::ARG_TYPES,
    features: &["abf-input-ip4", "abf-input-ip6"],
    running: running::running,
    lines: lines::LINES,
    ..Module::NONE
};

fn init(control: &Rc<Control>) -> Result<(), InitError> {
    control.put_rc(Abf::new(control)?);
    Ok(())
}
