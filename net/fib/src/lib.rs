//! The forwarding table: prefixes, sources, paths and the trie packets read.
//!
//! [`FibTables`] is what packets read: one trie per table, whose leaves are adjacencies. [`Fib`] is the control
//! plane and the only writer. A table holds *entries* (prefixes); several *sources* (an interface's address, the
//! operator, the API) may contribute to one, and the best of them decides. What a source contributes is a *path
//! list*, shared by all entries with the same paths. A path list resolves to one adjacency; a recursive path does
//! so through the entry that covers its next hop, again and again, until it reaches an interface.
#![forbid(unsafe_code)]

// The tests' router names this crate from outside.
#[cfg(test)]
extern crate self as shoal_fib;

mod address;
pub mod api;
mod arg;
mod capacity;
mod change;
pub mod cli;
mod connected;
mod control;
mod counts;
mod data;
mod error;
mod export;
mod flow;
mod lines;
mod list;
mod map;
mod order;
mod path;
mod proxy_routes;
mod resolve;
#[cfg(test)]
#[path = "../tests/router/mod.rs"]
mod router;
mod running;
mod slot;
mod source;
mod table;
mod track;
mod via;
mod view;
mod way_mtu;

pub use arg::{PrefixArg, TableArg};
pub use connected::{Connected, HostAddress, OnInterface};
pub use control::{
    Bulk, Capacity, ClientSource, Covering, Entry, Fib, HeldPathList, HeldPaths, InOrder, List, PathState,
    Reach, Route, Sweep, TableInfo, Walk, consecutive,
};
pub use data::{FibTables, LookupAddress, follow_route};
pub use error::FibError;
pub use flow::FlowFields;
pub use path::{Path, Via};
pub use proxy_routes::ProxyRoutes;
pub use running::via;
pub use shoal_buffer::FibIndex;
pub use source::Source;
pub use via::ViaArgs;

pub use shoal_adj::Family;

use std::rc::Rc;

use shoal_module::{Control, InitError, Module};

/// The module.
pub static MODULE: Module = Module {
    name: "fib",
    description: "Forwarding tables: prefixes, sources, paths",
    init,
    commands: cli::COMMANDS,
    arg_types: arg::ARG_TYPES,
    capacity: capacity::rows,
    api: &[&api::IP, &api::FIB],
    running: running::running,
    lines: lines::LINES,
    ..Module::NONE
};

fn init(control: &Rc<Control>) -> Result<(), InitError> {
    let fib = control.put_rc(Fib::new(control)?);
    control.put(fib.tables());
    Ok(())
}
