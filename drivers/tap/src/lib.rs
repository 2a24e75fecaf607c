//! TAP: interfaces shared with the host kernel.
//!
//! [`Taps`] is the control plane; `virtio-input` (VPP's name) and the `-tx` nodes move packets. Below them, usable
//! alone:
//!
//! - [`Tap`]: creates the interface, in the host's namespace of choice, with its host-side settings, and
//!   removes it when dropped.
//! - [`TapQueue`]: one queue, frames read into and gathered from segments.
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
mod netns;
mod port;
mod ports;
mod running;
mod rx;
#[allow(unsafe_code)]
mod sys;
mod tap;
mod tx;

use std::rc::Rc;

use shoal_interface::{HostPorts, HostSide};
use shoal_module::{Control, InitError, Module};

pub use config::{
    Address, AdminState, Carrier, Coalesce, HostConfig, Lifetime, Mode, NetnsRef, Offload, TapConfig,
};
pub use control::{CreateTap, TapInfo, Taps};
pub use error::Error;
pub use sys::{Received, RecvError, SendError, TapQueue};
pub use tap::Tap;

/// The module.
pub static MODULE: Module = Module {
    name: "tap",
    description: "TAP: interfaces shared with the host kernel",
    init,
    commands: cli::COMMANDS,
    arg_types: cli::ARG_TYPES,
    api: &[&api::API],
    running: running::running,
    ..Module::NONE
};

fn init(control: &Rc<Control>) -> Result<(), InitError> {
    let (taps, heard) = control::Taps::new(control)?;
    control.processes()?.spawn("tap-watch", control::listen(heard, Rc::downgrade(&taps)));
    control.put(HostSide(Rc::clone(&taps) as Rc<dyn HostPorts>));
    control.put_rc(taps);
    Ok(())
}
