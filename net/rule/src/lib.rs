//! What a packet must be like: the rule that policies and access lists share.
//!
//! [`Rule`] is what an operator says; [`Matcher`] is what packets are compared with, [`Fields`] what of a packet is
//! compared. Nothing here allocates per packet.
#![forbid(unsafe_code)]

pub mod cli;
mod matcher;
mod rule;

pub use matcher::{Address, Fields, Matcher};
pub use rule::{Ports, Rule, RuleError, TcpMask};

use shoal_module::Module;

/// The module: argument types and nothing else.
pub static MODULE: Module = Module {
    name: "rule",
    description: "Rules that packets match",
    arg_types: cli::ARG_TYPES,
    ..Module::NONE
};
