//! What a feature may declare: nodes, arcs, CLI commands, API messages, counters, capacity and start-up sections.
//!
//! A feature exports one [`Module`]. The daemon lists all modules in one table; the CLI, the API and the
//! start-up file reach a feature's control plane through [`Control`], and nothing else.
#![forbid(unsafe_code)]

pub mod api;
mod capacity;
pub mod cli;
pub mod config;
mod control;
pub mod door;
mod line_kind;
mod module;
mod plugins;
mod running;
mod runtime_dir;

pub use capacity::Capacity;
pub use control::{Control, Missing};
pub use line_kind::{Change, Check, Class, Inverse, Key, LineKind, Order, Place};
pub use module::{InitError, Module, ModuleList, init_all, start_all};
pub use plugins::{LoadedPlugin, LoadedPlugins};
pub use running::{Phase, Pieces, Running, word};
pub use runtime_dir::RuntimeDir;
