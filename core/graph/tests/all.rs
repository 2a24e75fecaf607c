//! The tests of this crate as one program: it is linked once, and its tests run beside each other.
//!
//! Programs of their own, for they look at the whole process:
//! - `sleep.rs` counts allocations
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // helpers of tests

mod edges;
mod growth;
mod layout;
mod state;
mod threads;
