//! TAP: interfaces shared with the host kernel.
//!
//! [`Taps`] is the control plane; `virtio-input` (VPP's name) and the `-tx` nodes move packets. Below them, usable
//! alone:
//!
//! - [`Tap`]: creates the interface, in the host's namespace of choice, with its host-side settings, and
//!   removes it when dropped.
//! - [`TapQueue`]: one queue, frames read into and gathered from segments.
//!
//! Where `/dev/vhost-net` can be opened, a queue is two rings in memory that a thread of the kernel serves (`rx_ring.rs`,
//! `tx_ring.rs`), and no frame needs a system call; elsewhere each frame is one.
//!
//! Superframes and open checksums cross with their `virtio_net_hdr` ([`shoal_vnet`]), so that the host's
//! TCP hands over 64 KB at a time.
#![deny(unsafe_code)]

pub mod api;
pub mod cli;
mod config;
mod control;
mod error;
mod host;
mod kept;
#[cfg(test)]
mod kernel_tests;
mod lines;
mod listen;
mod netns;
mod pair;
mod port;
mod ports;
mod ring;
mod running;
mod rx;
mod rx_ring;
#[allow(unsafe_code)]
mod sys;
mod tap;
mod tx;
mod tx_ring;
mod vring;
mod watch;

use std::rc::Rc;

use shoal_interface::{HostPorts, HostSide};
use shoal_module::{Control, InitError, Module};

pub use config::{
    Address, AdminState, Carrier, Coalesce, HostConfig, Lifetime, Mode, NetnsRef, Offload, TapConfig,
    VhostNet,
};
pub use control::{CreateTap, TapInfo, Taps, VhostInfo};
pub use error::Error;
pub use sys::{Received, RecvError, SendError, TapQueue};
pub use tap::Tap;

/// The module.
pub static MODULE: Module = Module {
    name: "tap",
    description: "TAP: interfaces shared with the host kernel",
    init,
    ready,
    commands: cli::COMMANDS,
    arg_types: cli::ARG_TYPES,
    api: &[&api::API],
    running: running::running,
    lines: lines::LINES,
    ..Module::NONE
};

fn init(control: &Rc<Control>) -> Result<(), InitError> {
    let (taps, heard) = control::Taps::new(control)?;
    control.processes()?.spawn("tap-watch", control::listen(heard, Rc::downgrade(&taps)));
    control.put(HostSide(Rc::clone(&taps) as Rc<dyn HostPorts>));
    control.put_rc(taps);
    Ok(())
}

/// What an earlier process of the router left is taken over by now, or goes.
fn ready(control: &Rc<Control>) {
    if let Ok(taps) = control.get::<Taps>() {
        taps.settle();
    }
}
