//! Configuration as a transaction: candidates that are compared, checked and committed as a whole, commits that go back by
//! themselves unless they are confirmed, and rollback to any revision.
//!
//! Each module declares the forms of line that it writes ([`shoal_module::LineKind`]). From these [`Kinds`] reads lines, the
//! planner finds the commands between two configurations, and [`Engine`] runs them, or takes back what it did.
#![forbid(unsafe_code)]

mod api;
mod candidate;
mod cli;
mod commits;
mod difference;
mod edit;
mod engine;
mod kinds;
mod load;
mod names;
mod others;
mod pending;
mod plan;
mod template;
mod transaction;
mod view;

pub use api::API;
pub use commits::Commits;
pub use engine::{CommitStats, Engine, Failure, Fault, RollbackOutcome};
pub use kinds::{Kinds, NoKind};

use shoal_module::Module;

/// The module.
pub static MODULE: Module = Module {
    name: "commit",
    description: "Configuration as a transaction: candidate, commit, confirm, rollback",
    init: commits::init,
    start: commits::start,
    commands: cli::COMMANDS,
    api: &[&api::API],
    ..Module::NONE
};
