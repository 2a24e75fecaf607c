//! Addresses, tables and lenders of interfaces, of IPv4 and IPv6: the commands and messages that speak of both.
//!
//! What an address brings is decided by each family for itself: `net/ip4` and `net/ip6` know nothing of each other.
#![forbid(unsafe_code)]

pub mod api;
mod cli;
mod control;
mod lines;
mod running;

use shoal_module::Module;

pub use control::{lender, set_unnumbered};

/// The module.
pub static MODULE: Module = Module {
    name: "ip-interface",
    description: "IPv4 and IPv6 addresses of interfaces",
    commands: cli::COMMANDS,
    api: &[&api::interface::API, &api::IP],
    running: running::running,
    lines: lines::LINES,
    ..Module::NONE
};
