//! DS-Lite (RFC 6333): hosts with IPv4 behind a network that has IPv6 only share addresses of an AFTR.
//!
//! ```text
//! host - B4: dslite-ce-encap ===IPv4 in IPv6===> AFTR: dslite-in2out -> ip4-lookup
//!                                                      | the first packet of a session
//!                                                      dslite-in2out-slowpath
//! host - B4: dslite-ce-decap <==IPv4 in IPv6==== AFTR: dslite-out2in <- ip4-lookup
//! ```
//! [`Dslite`] is the control plane. The addresses are entries of the forwarding table that lead to the nodes, on every interface.
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

pub use control::{AFTR_NODE, Dslite, DsliteError};
pub use node::stage::DsliteStages;

use std::collections::BTreeMap;
use std::rc::Rc;

use shoal_module::config::{Body, Effect, Key, Kind, Section, Settings};
use shoal_module::{Control, InitError, Module};

/// The module.
pub static MODULE: Module = Module {
    name: "dslite",
    description: "Dual-Stack Lite",
    init,
    start,
    commands: cli::COMMANDS,
    api: &[&api::API],
    sections: &[SECTION],
    running: running::running,
    lines: lines::LINES,
    ..Module::NONE
};

const SECTION: Section = Section {
    name: "dslite",
    doc: "DS-Lite",
    effect: Effect::Honoured,
    body: Body::Keys(&[Key::new("ce", Kind::Flag, "the router is a B4, at a customer's edge; else an AFTR")]),
};

fn init(control: &Rc<Control>) -> Result<(), InitError> {
    control.put_rc(Dslite::new(control)?);
    Ok(())
}

fn start(control: &Rc<Control>) -> Result<(), InitError> {
    let dslite = control.get::<Dslite>()?;
    let sections = control.get::<BTreeMap<&'static str, Settings>>();
    if sections.is_ok_and(|sections| sections.get(SECTION.name).is_some_and(|s| s.flag("ce"))) {
        dslite.become_ce();
    }
    control.processes()?.spawn("dslite-log", dslite.log());
    Ok(())
}
