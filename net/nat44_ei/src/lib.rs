//! NAT44, endpoint independent: each port of a host has one port of a shared address, whichever host it speaks with (RFC 4787, REQ-1
//! and REQ-8).
//!
//! ```text
//! ip4-unicast: ip4-sv-reassembly-feature -> nat44-ei-in2out ---session is known---------------> next feature
//!                                             | miss            | another thread's              ^
//!                                             v                 v                               |
//!                                  nat44-ei-in2out-slowpath   nat44-ei-in2out-worker-handoff ---+
//! ```
//! `nat44-ei-out2in` is its like for packets to hosts, `nat44-ei-classify` for interfaces on both sides, `nat44-ei-in2out-output` on
//! the arc `ip4-output` for packets that have been routed.
//!
//! | question | file |
//! |---|---|
//! | what is kept of a session | [`session_direction`], [`sessions`] |
//! | which sessions a host has, and which is its oldest | [`users`] |
//! | which worker has it | [`config`] |
//! | which block of ports a host has | [`blocks`] |
//! | what becomes of a packet without one | [`node::slow`], [`ports`] |
//! | which ports rest before another host has them | [`resting`] |
//! | how another router learns of it | [`ha_wire`], [`Nat44Ei::set_failover`] |
//! | who writes what packets read | [`Nat44Ei`] |
#![forbid(unsafe_code)]

pub mod api;
pub mod blocks;
mod cli;
pub mod config;
mod control;
mod error;
pub mod ha_wire;
mod lines;
pub mod node;
pub mod ports;
pub mod resting;
mod running;
pub mod session_direction;
mod session_stores;
pub mod sessions;
mod shared;
pub mod users;

pub use control::{Address, Enable, Failover, Listed, Listener, Nat44Ei, NatError, Side, Sides, Slice, Spec};
pub use error::Error;
pub use node::stage::Nat44EiStages;

use std::rc::Rc;

use shoal_module::{Capacity, Control, InitError, Module};

/// The module.
pub static MODULE: Module = Module {
    name: "nat44_ei",
    description: "NAT44, endpoint independent",
    init,
    start,
    commands: cli::COMMANDS,
    api: &[&api::API, &api::own::API],
    features: &["nat44-ei-in2out", "nat44-ei-out2in", "nat44-ei-classify", "nat44-ei-in2out-output"],
    capacity,
    running: running::running,
    lines: lines::LINES,
    ..Module::NONE
};

/// Bytes of a session: two entries, their share of the index, and its place among its host's.
const BYTES_EACH: usize = 2 * (64 + 8) + size_of::<users::Place>();

fn capacity(control: &Control) -> Vec<Capacity> {
    let Ok(nat) = control.get::<Nat44Ei>() else { return Vec::new() };
    let Some(most) = nat.most_sessions() else { return Vec::new() };
    let used = nat.counts().map_or(0, |counts| counts.values().sum());
    vec![Capacity::up_to("nat44-ei sessions", used, most, BYTES_EACH)]
}

fn init(control: &Rc<Control>) -> Result<(), InitError> {
    control.put_rc(Nat44Ei::new(control)?);
    Ok(())
}

fn start(control: &Rc<Control>) -> Result<(), InitError> {
    let (processes, nat) = (control.processes()?, control.get::<Nat44Ei>()?);
    processes.spawn("nat44-ei-log", Rc::clone(&nat).listen());
    processes.spawn("nat44-ei-ha-worker", Rc::clone(&nat).hear());
    processes.spawn_ticking("nat44-ei-ha-process", nat.rung(), move || nat.tick());
    Ok(())
}
