//! The packet generator: interfaces whose other end is this process, streams that fill them, captures.
//!
//! [`Pg`] is the control plane. A packet-generator interface sends into a capture file, or a [`Sink`] of the same
//! process, or nowhere; a stream makes it receive packets, from a capture file or from a description. Streams
//! run as receive queues under the node `pg-input`, so that a benchmark measures the graph and nothing else.
#![forbid(unsafe_code)]

pub mod api;
mod capture;
pub mod cli;
mod control;
pub mod data;
mod error;
mod interface;
mod lines;
mod node;
mod receive;
mod running;
mod show;
mod sink;
mod spec;
mod stream;
mod tokens;

pub use control::{Change, CreateInterface, Pg, StreamInfo};
pub use error::PgError;
pub use interface::Mode;
pub use show::{Detail, Streams};
pub use sink::Sink;
pub use stream::{Size, Source, StreamSpec};

use std::rc::Rc;

use shoal_module::{Control, InitError, Module};

/// The module.
pub static MODULE: Module = Module {
    name: "pg",
    description: "The packet generator: streams, interfaces and captures",
    init,
    commands: cli::COMMANDS,
    arg_types: cli::ARG_TYPES,
    api: &[&api::API],
    features: &["pg-input-mac-filter"],
    running: running::running,
    lines: lines::LINES,
    ..Module::NONE
};

fn init(control: &Rc<Control>) -> Result<(), InitError> {
    let pg = Pg::new(control)?;
    control.put_rc(pg);
    Ok(())
}
