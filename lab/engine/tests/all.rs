//! The tests of this crate as one program: it is linked once, and its tests run beside each other.
//!
//! Programs of their own, for they look at the whole process:
//! - `dpdk.rs` starts DPDK, once in a process
//! - `plugin_ports.rs` starts a driver, once in a process
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // helpers of tests

mod interfaces;
mod memif;
mod simulated;
mod stateful;
mod support;
mod tester;
mod traffic;
