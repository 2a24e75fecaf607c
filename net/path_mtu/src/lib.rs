//! Path MTUs: the longest packets that the ways to hosts carry.
//!
//! A path MTU is an entry of its own in a forwarding table, for one host, from the source `path-mtu`. It leads where
//! packets to that host go without it, through adjacencies that are the neighbours' own but for the length. So the way
//! follows all changes of routes, and packets to others meet nothing new.
#![forbid(unsafe_code)]

pub mod cli;
mod control;
mod error;

pub use control::{PathMtu, PathMtus};
pub use error::PathMtuError;

use std::rc::Rc;

use shoal_module::{Control, InitError, Module};

/// The module.
pub static MODULE: Module = Module {
    name: "path-mtu",
    description: "Path MTUs: the longest packets that the ways to hosts carry",
    init,
    commands: cli::COMMANDS,
    ..Module::NONE
};

fn init(control: &Rc<Control>) -> Result<(), InitError> {
    control.put(PathMtus::new(control)?);
    Ok(())
}
