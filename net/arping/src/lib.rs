//! arping: whether a station with an address is on a link, or another one has an address of ours. RFC 826, RFC 5227.
//!
//! Control plane only: ARP requests, neighbour solicitations and announcements go out by `interface-output`; answers are
//! what ARP and neighbour discovery pass on to [`shoal_neighbor::Answers`].
#![forbid(unsafe_code)]

pub mod api;
mod arping;
pub mod cli;

pub use arping::{Arping, ArpingError, Counted, Question};

use shoal_module::Module;

/// The module.
pub static MODULE: Module = Module {
    name: "arping",
    description: "arping from the router",
    commands: cli::COMMANDS,
    api: &[&api::API],
    ..Module::NONE
};
