//! Plugins: shared libraries that are loaded at the start and whose nodes run in the graph.
//!
//! [`MODULE`] looks for libraries in the directories of [`Setup`], which the daemon puts on the shelf, reads what each
//! says of itself, checks all of it, and only then adds its nodes, features, drivers and commands. A library that is no
//! plugin of this router is refused in one line. Nothing is ever unloaded.
//!
//! [`Devices`] makes interfaces of the devices of plugins' drivers.
//!
//! [`BareDriver`] is for programs that are no router and want only a driver's devices.
//!
//! The router's side of the C ABI is unsafe and lies in `sys`; a plugin runs with the router's rights, and what is
//! checked are its mistakes.
#![deny(unsafe_code)]

mod bare;
mod check;
mod control;
mod device;
mod image;
mod node;
mod refusal;
#[allow(unsafe_code)]
mod sys;

pub use bare::{BareDevice, BareDriver, BareError, Sent};
pub use control::{DIRECTORY, Setup, Wanted};
pub use device::{DeviceInfo, Devices, Error};
pub use refusal::Refusal;
pub use sys::Link;

use shoal_module::Module;

/// The module. Everything whose nodes a plugin may name stands above it.
pub static MODULE: Module = Module {
    name: "plugins",
    description: "Plugins: nodes from shared libraries",
    init: control::init,
    start: control::start,
    running: device::running,
    ..Module::NONE
};
