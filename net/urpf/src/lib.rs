//! Unicast reverse path forwarding: a packet whose source would not be reached the way it came is dropped. RFC 2827;
//! RFC 3704, 2.2 and 2.4; RFC 8704.
//!
//! [`Urpf`] is the control plane: it enables one of eight features (`ip4-rx-urpf-strict` and its like) on the input
//! and output arcs of an interface and says which table sources are looked up in. The nodes ask the forwarding table
//! by which interfaces a source is reached ([`FibTables::reaches`](shoal_fib::FibTables::reaches)).
#![forbid(unsafe_code)]

pub mod api;
pub mod cli;
mod control;
mod error;
mod lines;
pub mod node;
mod running;
mod tables;

pub use control::{Direction, FamilyNodes, Mode, Setting, Urpf, UrpfNodes};
pub use error::UrpfError;

use std::rc::Rc;

use shoal_module::{Control, InitError, Module};

/// The module.
pub static MODULE: Module = Module {
    name: "urpf",
    description: "Unicast reverse path forwarding",
    init,
    commands: cli::COMMANDS,
    api: &[&api::API],
    features: &[
        "ip4-rx-urpf-loose",
        "ip4-rx-urpf-strict",
        "ip4-tx-urpf-loose",
        "ip4-tx-urpf-strict",
        "ip6-rx-urpf-loose",
        "ip6-rx-urpf-strict",
        "ip6-tx-urpf-loose",
        "ip6-tx-urpf-strict",
    ],
    running: running::running,
    lines: lines::LINES,
    ..Module::NONE
};

fn init(control: &Rc<Control>) -> Result<(), InitError> {
    control.put_rc(Urpf::new(control)?);
    Ok(())
}
