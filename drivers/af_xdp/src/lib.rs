//! AF_XDP: the kernel's interfaces through rings shared with it, and what the host keeps of them.
//!
//! [`XdpInterfaces`] is the control plane. It puts a program on a kernel's interface that sends frames to the router's
//! sockets, except what the [`pinhole`] leaves to the host, and follows what the kernel says of the interface. Where the
//! parts are:
//!
//! - `asm`, `program`: the program, assembled here; `filter`: with its maps, which change while frames pass.
//! - `sys`: the sockets' rings and `bpf(2)`; `halves`: a queue with memory of its own, or with the router's buffers.
//! - [`XdpSockets`]: an interface's frames without a router.
//! - `rx`, `tx`, `send`: the nodes; `open_checksum`: what local senders leave undone.
#![deny(unsafe_code)]

pub mod api;
mod asm;
pub mod cli;
mod config;
mod control;
mod counters;
mod default_route;
mod device;
mod error;
mod filter;
mod lines;
mod netns;
mod open_checksum;
pub mod pinhole;
mod port;
mod program;
#[cfg(test)]
mod program_tests;
mod queue_memory;
mod queues;
mod resize;
mod running;
mod rx;
mod send;
mod sockets;
#[allow(unsafe_code)]
mod sys;
mod tx;
mod watch;

use std::rc::Rc;

use shoal_module::{Control, InitError, Module};

pub use config::{CreateXdp, Mac, Queues};
pub use control::{XdpInfo, XdpInterfaces};
pub use error::Error;
pub use filter::FilterCounts;
pub use sockets::{Sent, XdpSockets};
pub use sys::{BusyPoll, Copying, PacketMemory, XdpMode, XskConfig, XskStats};

/// The module.
pub static MODULE: Module = Module {
    name: "af_xdp",
    description: "The kernel's interfaces through AF_XDP, shared with the host by a pinhole",
    init,
    commands: cli::COMMANDS,
    arg_types: cli::ARG_TYPES,
    api: &[&api::API],
    running: running::running,
    lines: lines::LINES,
    ..Module::NONE
};

fn init(control: &Rc<Control>) -> Result<(), InitError> {
    control.put_rc(XdpInterfaces::new(control)?);
    Ok(())
}
