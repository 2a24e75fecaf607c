//! NAT44, endpoint dependent: many hosts share few addresses, and each session is its own.
//!
//! ```text
//! ip4-unicast: ip4-sv-reassembly-feature -> nat44-ed-in2out ---session is known---------------> next feature
//!                                             | miss            | another thread's              ^
//!                                             v                 v                               |
//!                                  nat44-ed-in2out-slowpath   nat44-in2out-worker-handoff ------+
//! ```
//! `nat44-ed-out2in` is its like for answers, `nat44-ed-classify` for interfaces on both sides, `nat44-ed-in2out-output` on the arc
//! `ip4-output` for packets that have been routed.
//!
//! | question | file |
//! |---|---|
//! | what is kept of a session | [`way`], [`sessions`] |
//! | which worker has it | [`owner`] |
//! | which outside ports are one host's alone | [`bindings`] |
//! | what becomes of a packet without one | [`decide`], [`ports`] |
//! | when a session ends | [`tcp`], [`sessions`] |
//! | what another router knows of them | `sync`, `control/sync` |
//! | what packets read of the configuration | [`config`], [`mapping`] |
//! | who writes that | [`Nat44`] |
#![forbid(unsafe_code)]

pub mod affinity;
pub mod api;
pub mod bindings;
mod cli;
pub mod config;
mod control;
pub mod decide;
pub mod error;
mod lines;
pub mod node;
pub mod owner;
mod packet;
pub mod ports;
mod running;
pub mod session_direction;
pub mod sessions;
mod shared;
pub mod show;
mod sync;
pub mod tcp;

pub use shoal_nat44::mapping;

pub use control::{
    Address, Balanced, Enable, Nat44, NatError, OfInterface, Purpose, SessionStores, SharedAddress, Side,
    Sides, Slice, Spec, User,
};
pub use node::stage::Nat44Stages;

use std::rc::Rc;

use shoal_module::{Capacity, Control, InitError, Module};

/// The module.
pub static MODULE: Module = Module {
    name: "nat44_ed",
    description: "NAT44, endpoint dependent",
    init,
    start,
    commands: cli::COMMANDS,
    api: &[&api::API, &api::OWN_API],
    features: &["nat44-ed-in2out", "nat44-ed-out2in", "nat44-ed-classify", "nat44-ed-in2out-output"],
    capacity,
    running: running::running,
    lines: lines::LINES,
    ..Module::NONE
};

/// Bytes of a session: two entries, and their share of the index.
const BYTES_EACH: usize = 2 * (64 + 8);

fn capacity(control: &Control) -> Vec<Capacity> {
    let Ok(nat) = control.get::<Nat44>() else { return Vec::new() };
    let Some(most) = nat.most_sessions() else { return Vec::new() };
    let used = nat.counts().map_or(0, |counts| counts.values().sum());
    vec![Capacity::up_to("nat44-ed sessions", used, most, BYTES_EACH)]
}

fn start(control: &Rc<Control>) -> Result<(), InitError> {
    control.processes()?.spawn("nat44-ed-log", control.get::<Nat44>()?.listen());
    Ok(())
}

fn init(control: &Rc<Control>) -> Result<(), InitError> {
    control.put_rc(Nat44::new(control)?);
    Ok(())
}
