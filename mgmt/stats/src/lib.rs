//! The stats segment: the router's counters in memory that other processes may map, in VPP's layout, version 2.
//!
//! The counters live in shared memory from the start (`shoal_graph::counter`); this crate lays VPP's directory
//! over them and hands the memory out. [`image`] turns the directory of names into words, [`Publisher`] puts such an
//! image into the segment and swaps it for the one before by VPP's protocol, the socket gives clients a descriptor they
//! can only read from, and the collector keeps the figures that no node counts: heartbeat, rates, memory.
//!
//! Readers cost the router nothing: they see the very words the workers count in.
#![forbid(unsafe_code)]

mod collector;
mod control;
pub mod image;
mod publisher;
mod socket;

pub use control::{Settings, Stats};
pub use publisher::Publisher;

use shoal_module::Module;

/// The module. It publishes the segment when [`Settings`] are on the shelf, and does nothing otherwise.
pub static MODULE: Module =
    Module { name: "stats", description: "Statistics segment", start: control::start, ..Module::NONE };
