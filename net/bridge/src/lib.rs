//! Bridge domains: stations are learned where they send, frames go where stations are, and to all where they are not known.
//!
//! [`Bridges`] is the control plane: domains, members, stations that an operator enters. Packets read [`DomainTable`] and
//! the stations in it ([`MacTable`]), and teach them: [`fib`] says how that goes without a lock.
#![forbid(unsafe_code)]

pub mod api;
mod cli;
mod control;
mod entry;
mod error;
pub mod fib;
mod lines;
mod loops;
pub mod node;
mod running;
mod settings;
mod storm;
mod table;

use std::rc::Rc;

use shoal_graph::process::Processes;
use shoal_module::{Capacity, Control, InitError, Module};

pub use control::{
    BridgeNodes, Bridges, LEARN_LIMIT, LastLoop, LoopProtection, LoopState, MacInfo, MacNews, MemberInfo,
    NewsKind, Provision, Scanned, Settings, Switch,
};
pub use entry::{Entry, Key};
pub use error::BridgeError;
pub use fib::MacTable;
pub use shoal_l2::Role;
pub use storm::{StormClass, StormLimits};
pub use table::{Count, DomainTable};

/// The module.
pub static MODULE: Module = Module {
    name: "bridge",
    description: "Bridge domains with a routed interface",
    init,
    start,
    commands: cli::COMMANDS,
    arg_types: cli::ARG_TYPES,
    api: &[&api::API, &api::OWN],
    capacity,
    sections: &settings::SECTIONS,
    running: running::running,
    lines: lines::LINES,
    ..Module::NONE
};

fn init(control: &Rc<Control>) -> Result<(), InitError> {
    control.put_rc(Bridges::new(control)?);
    Ok(())
}

fn start(control: &Rc<Control>) -> Result<(), InitError> {
    let (bridges, processes) = (control.get::<Bridges>()?, control.get::<Processes>()?);
    if let Some(bell) = bridges.rung() {
        let task = control::run_scan(Rc::clone(&bridges), Rc::clone(&processes), bell);
        processes.spawn("l2fib-mac-age-scanner-process", task);
    }
    if let Some(ears) = bridges.loop_ears() {
        let task = control::watch_loops(Rc::clone(&bridges), Rc::clone(&processes), ears);
        processes.spawn("l2-loop-watch-process", task);
    }
    api::follow(control, &processes)
}

/// A third of a bucket, and the room that keeps look-ups short.
const BYTES_EACH: usize = 32;

fn capacity(control: &Control) -> Vec<Capacity> {
    let Ok(bridges) = control.get::<Bridges>() else { return Vec::new() };
    let Count { learned, limit } = bridges.learned();
    vec![Capacity::up_to("learned stations", learned as usize, limit as usize, BYTES_EACH)]
}
