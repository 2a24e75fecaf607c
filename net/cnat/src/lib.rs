//! Cloud NAT: connections to a virtual address and port go to back ends, and connections that leave share a source address.
//!
//! ```text
//! ip4-unicast: ip4-sv-reassembly-feature -> cnat-input-ip4 ---its session, or a new one to a back end---> next feature
//! ip4-lookup -> ip4-cnat-tx: packets to a virtual address that came by an interface without the feature -> ip4-lookup
//! ip4-output: cnat-output-ip4: does the policy want a shared source? -> next feature
//! ip4-lookup -> ip4-cnat-return: answers to a shared address that came by an interface without the feature -> ip4-lookup
//! ```
//! All is there for IPv6, too.
//!
//! | question | file |
//! |---|---|
//! | which back end a connection gets | [`translation`] |
//! | what is kept of a session | [`way`], [`sessions`] |
//! | when it ends | [`tcp`] |
//! | which worker has it | [`owner`] |
//! | which source port it gets | [`ports`] |
//! | which packets get a shared source | [`policy`] |
//! | what packets read of the configuration | [`config`] |
//! | who writes that | [`Cnat`] |
#![forbid(unsafe_code)]

pub mod api;
pub mod cli;
pub mod config;
mod control;
mod lines;
pub mod node;
pub mod owner;
mod packet;
pub mod policy;
pub mod ports;
pub mod prefixes;
mod running;
pub mod session_direction;
pub mod sessions;
mod settings;
mod shared;
pub mod show;
pub mod tcp;
pub mod translation;

pub use control::endpoint::{AddressSource, Endpoint};
pub use control::snat::{SnatSpec, flags};
pub use control::translations::{NO_NAT, PathSpec, Spec};
pub use node::stage::CnatStages;

pub use control::{Cnat, CnatError, SessionStores, Slice};

use std::rc::Rc;

use shoal_module::{Capacity, Control, InitError, Module};

/// The module.
pub static MODULE: Module = Module {
    name: "cnat",
    description: "CNat Translate",
    init,
    start,
    commands: cli::COMMANDS,
    api: &[&api::API],
    sections: &[settings::SECTION],
    features: &["cnat-input-ip4", "cnat-input-ip6", "cnat-output-ip4", "cnat-output-ip6"],
    capacity,
    running: running::running,
    lines: lines::LINES,
    ..Module::NONE
};

/// Bytes of a session: two entries, and their share of the index.
const BYTES_EACH: usize = 2 * (112 + 8);

fn capacity(control: &Control) -> Vec<Capacity> {
    let Ok(cnat) = control.get::<Cnat>() else { return Vec::new() };
    let Some(most) = cnat.most_sessions() else { return Vec::new() };
    let used = cnat.counts().map_or(0, |counts| counts.values().sum());
    vec![Capacity::up_to("cnat sessions", used, most, BYTES_EACH)]
}

fn init(control: &Rc<Control>) -> Result<(), InitError> {
    control.put_rc(Cnat::new(control)?);
    Ok(())
}

fn start(control: &Rc<Control>) -> Result<(), InitError> {
    let cnat = control.get::<Cnat>()?;
    let every = settings::read(control, &cnat);
    let processes = control.processes()?;
    processes.spawn("cnat-scanner-process", cnat.scan(Rc::clone(&processes), every));
    Ok(())
}
