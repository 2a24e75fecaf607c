//! The island: libraries are opened, their descriptors read, their functions called.
//!
//! A plugin is native code of somebody else. What it says is checked value by value; that its pointers point to what
//! the header promises is the plugin's part of the contract, which the router cannot check.
#![deny(clippy::undocumented_unsafe_blocks)]

mod burst;
mod call;
mod driver;
mod host;
mod library;
mod thread;

pub(crate) use burst::{Batch, Filled, Slots};
pub(crate) use call::{Call, Decision, process};
pub use driver::Link;
pub(crate) use driver::{Arm, Driver, NewDevice, Operator, Setting, copy};
pub(crate) use library::{FeatureText, Library, MAX_COUNTERS, PluginText};
pub(crate) use thread::{MainGuard, MainLock, MainThread, OpenDevice, RxHandle, TxHandle};

use shoal_plugin_abi as abi;
use std::ffi::c_void;

/// A node's functions and what they are given.
#[derive(Debug, Clone)]
pub(crate) struct Code {
    context: *mut c_void,
    process: unsafe extern "C" fn(*mut c_void, *mut abi::Frame),
    trace:
        Option<unsafe extern "C" fn(*mut c_void, *const abi::Packet, *mut std::ffi::c_char, usize) -> usize>,
}

// SAFETY: the ABI says that a node's functions are called from all threads with the same context.
unsafe impl Send for Code {}
// SAFETY: as above.
unsafe impl Sync for Code {}
