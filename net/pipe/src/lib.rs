//! Pipes: interfaces of two ends. What goes out of one end comes in by the other.
//!
//! [`Pipes`] is the control plane. `pipeN-tx` gives a frame of one end to the other; `pipe-rx` takes it in as received there.
#![forbid(unsafe_code)]

pub mod api;
mod cli;
mod control;
mod lines;
pub mod node;
mod running;

use std::rc::Rc;

use shoal_module::{Control, InitError, Module};

pub use control::{Pipe, PipeError, Pipes};

/// The module.
pub static MODULE: Module = Module {
    name: "pipe",
    description: "Interfaces of two ends: what goes out of one comes in by the other",
    init,
    commands: cli::COMMANDS,
    api: &[&api::API],
    running: running::running,
    lines: lines::LINES,
    ..Module::NONE
};

fn init(control: &Rc<Control>) -> Result<(), InitError> {
    control.put_rc(Pipes::new(control)?);
    Ok(())
}
