//! The tests of this crate as one program: it is linked once, and its tests run beside each other.
//!
//! Programs of their own, for they look at the whole process:
//! - `budget.rs` sets the budget of the process
//! - `loom.rs` is built with `--cfg loom` only, where nothing else is
//! - `qsbr.rs` counts what the one domain of the process has to free
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // helpers of tests

mod arena;
mod memory;
mod model;
mod mtrie;
mod spsc;
mod twin;
