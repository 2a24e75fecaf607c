//! The commands of the runtime itself: nodes, errors, traces, threads, buffers, time.
//!
//! One file per family. Each answer is one value that is text in VPP's layout and, with `--json`, the same facts
//! for programs. What VPP has no word for (`show drops`, `show capacity`, `create worker`) is new words.

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod abbreviations;
mod buffer_traces;
mod buffers;
mod capacity;
mod cli_sessions;
mod clock;
mod cpu;
mod drops;
mod errors;
mod events;
mod features;
mod frames;
mod graph;
mod graph_node;
mod lines;
mod made_workers;
mod memory;
mod memory_left;
mod node;
mod pci;
mod physmem;
mod plugins;
mod rates;
mod runtime;
mod statistics;
#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
pub(crate) mod testing;
pub(crate) mod threads;
pub(crate) mod trace;
pub(crate) mod trace_filter;
mod trace_paths;
pub(crate) mod trace_time;
pub(crate) mod version;
mod workers;

use std::rc::Rc;

use crate::api;
use shoal_module::cli::{ArgType, Command};
use shoal_module::{Control, InitError, Module};

pub use rates::Rates;
pub use version::version_line;

/// The module.
pub static MODULE: Module = Module {
    name: "cli",
    description: "Commands of the runtime: nodes, errors, traces, threads, buffers",
    init,
    start,
    commands: COMMANDS,
    arg_types: ARG_TYPES,
    api: &[&api::VLIB, &api::VPE, &api::TRACEDUMP, &api::BPF, &api::GRAPH],
    capacity: capacity::rows,
    running: made_workers::running,
    lines: lines::LINES,
    ..Module::NONE
};

/// The commands.
pub static COMMANDS: &[Command] = &[
    runtime::SHOW,
    runtime::SHOW_RUN,
    runtime::CLEAR,
    errors::SHOW,
    errors::SHOW_NODE_COUNTERS,
    errors::CLEAR,
    errors::CLEAR_NODE_COUNTERS,
    drops::SHOW,
    node::SHOW,
    graph::SHOW,
    graph::SHOW_VLIB,
    graph_node::SHOW,
    graph::SHOW_GRAPHVIZ,
    frames::SHOW,
    trace::ADD,
    trace::SHOW,
    trace::CLEAR,
    trace::FILTER,
    trace_paths::PATHS,
    trace_paths::PATH,
    trace_filter::SET,
    trace_filter::SHOW,
    trace_filter::SET_BPF,
    trace_filter::SHOW_BPF,
    trace_time::SET,
    threads::SHOW,
    workers::SHOW,
    threads::CREATE,
    threads::DELETE,
    buffers::SHOW,
    buffer_traces::SET,
    buffer_traces::SHOW,
    buffer_traces::CLEAR,
    memory::SHOW,
    physmem::SHOW,
    pci::SHOW,
    cli_sessions::SHOW,
    cpu::SHOW,
    version::SHOW,
    clock::SHOW,
    clock::ADJUST,
    clock::WAIT,
    plugins::SHOW,
    events::SHOW,
    events::CLEAR,
    features::SHOW,
    capacity::SHOW,
    capacity::SHOW_BIHASH,
    statistics::SHOW,
];

/// The argument types.
pub static ARG_TYPES: &[ArgType] = &[ArgType::live("node", "a node of the graph", node::check, node::names)];

fn init(control: &Rc<Control>) -> Result<(), InitError> {
    let graph = control.graph()?;
    control.put(Rates::new(graph.clock().now()));
    trace_filter::Bpf::install(control, &graph);
    control.put(workers::Loads::default());
    control.put(crate::sessions::Sessions::default());
    control.put(made_workers::MadeWorkers::default());
    Ok(())
}

fn start(control: &Rc<Control>) -> Result<(), InitError> {
    rates::start(control)?;
    workers::start(control)
}
