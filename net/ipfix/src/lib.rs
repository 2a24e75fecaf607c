//! IPFIX: records of what happens in the router, for collectors (RFC 7011 over UDP).
//!
//! A feature adds a [`Template`], which says what its records are made of, and gives [`Ipfix::record`] records; both go to every
//! exporter. Templates are sent before the first record, and again at each exporter's interval, because a datagram may be lost and a
//! collector may start late. All of it is the main thread's.
#![forbid(unsafe_code)]

pub mod api;
pub mod cli;
mod control;
mod exporter;
mod lines;
mod message;
mod running;
mod template;

pub use control::{Ipfix, IpfixError};
pub use exporter::Exporter;
pub use template::{Field, ReportKey, Template};

use std::rc::Rc;

use shoal_module::{Control, InitError, Module};

/// The module.
pub static MODULE: Module = Module {
    name: "ipfix_export",
    description: "IPFIX exporters",
    init,
    start,
    commands: cli::COMMANDS,
    api: &[&api::API],
    running: running::running,
    lines: lines::LINES,
    ..Module::NONE
};

fn init(control: &Rc<Control>) -> Result<(), InitError> {
    control.put_rc(Ipfix::new(control)?);
    Ok(())
}

fn start(control: &Rc<Control>) -> Result<(), InitError> {
    let ipfix = control.get::<Ipfix>()?;
    let bell = ipfix.heard();
    control.processes()?.spawn_ticking("flow-report-process", bell, move || Some(ipfix.tick()));
    Ok(())
}
