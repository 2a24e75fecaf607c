//! Performance counters of the processor and the kernel, by thread and by node: VPP's `perfmon`.
//!
//! [`BUNDLES`] are sets of counters that make sense together. [`Perfmon`] counts one of them at a time, through Linux's
//! perf events: for each thread as a whole, or around every node that a thread runs ([`shoal_graph::Observer`]).
#![forbid(unsafe_code)]

mod bundle;
mod cli;
mod control;
mod counters;
mod nodes;

pub use bundle::{BUNDLES, Bundle, Source};
pub use control::{Active, Perfmon, PerfmonError, Statistics, ThreadStatistics};
pub use counters::Kind;
pub use nodes::NodeRow;

use std::rc::Rc;

use shoal_module::{Control, InitError, Module};

/// The module.
pub static MODULE: Module = Module {
    name: "perfmon",
    description: "Performance counters of the processor and the kernel, by thread and by node",
    init,
    commands: cli::COMMANDS,
    arg_types: cli::ARG_TYPES,
    ..Module::NONE
};

fn init(control: &Rc<Control>) -> Result<(), InitError> {
    control.put(Perfmon::new(control.graph()?));
    Ok(())
}
