//! Syslog: what happens in the router, told to a collector by RFC 5424 messages in UDP datagrams (RFC 5426).
//!
//! [`Syslog`] is the control plane, and the whole of it: features make a [`Message`] on the main thread and hand it to
//! [`Syslog::send`], which puts a datagram into the graph. Threads that forward ask a [`Gate`] whether a message would be sent
//! before they tell the main thread what it would be about.
#![forbid(unsafe_code)]

pub mod api;
pub mod cli;
mod control;
mod lines;
mod message;
mod running;

pub use control::{Gate, Sender, Syslog, SyslogError};
pub use message::{Facility, Message, Severity, is_name};

use std::rc::Rc;

use shoal_module::{Control, InitError, Module};

/// The module.
pub static MODULE: Module = Module {
    name: "syslog",
    description: "Syslog messages to a collector",
    init,
    commands: cli::COMMANDS,
    api: &[&api::API],
    running: running::running,
    lines: lines::LINES,
    ..Module::NONE
};

fn init(control: &Rc<Control>) -> Result<(), InitError> {
    control.put_rc(Syslog::new(control)?);
    Ok(())
}
