//! NAT64 (RFC 6146): IPv6 hosts reach the IPv4 Internet by addresses that they share.
//!
//! ```text
//! host -> nat64-in2out -> ip4-lookup -> the IPv4 Internet
//!              | the first packet of a session
//!         nat64-in2out-slowpath
//!              | to another host of this router
//!         nat64-hairpinning -> ip6-lookup
//! host <- ip6-lookup <- nat64-out2in <- the IPv4 Internet
//! ```
//! [`Nat64`] is the control plane. Each worker has [bindings and sessions](sessions) of its own: a host's are on one thread, which
//! gives out ports that lead back to it. Headers are translated by `shoal-translate46` (RFC 7915).
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
pub mod tcp;

pub use control::{Address, Enable, Listed, Nat64, Nat64Error, Side, Sides};
pub use node::stage::Nat64Stages;

use std::rc::Rc;

use shoal_module::{Capacity, Control, InitError, Module};

/// The module.
pub static MODULE: Module = Module {
    name: "nat64",
    description: "NAT64",
    init,
    start,
    commands: cli::COMMANDS,
    arg_types: cli::ARG_TYPES,
    api: &[&api::API],
    features: &["nat64-in2out", "nat64-out2in"],
    capacity,
    running: running::running,
    lines: lines::LINES,
    ..Module::NONE
};

/// Bytes of a session, and of a binding if it has no other: two entries each, with their share of the index.
const BYTES_EACH: usize = 4 * (64 + 8);

fn capacity(control: &Control) -> Vec<Capacity> {
    let used = control.get::<Nat64>().ok().and_then(|nat| nat.used());
    used.map(|(used, most)| Capacity::up_to("nat64 sessions", used, most, BYTES_EACH)).into_iter().collect()
}

fn init(control: &Rc<Control>) -> Result<(), InitError> {
    control.put_rc(Nat64::new(control)?);
    Ok(())
}

fn start(control: &Rc<Control>) -> Result<(), InitError> {
    let nat = control.get::<Nat64>()?;
    control.processes()?.spawn("nat64-log", nat.log());
    Ok(())
}
