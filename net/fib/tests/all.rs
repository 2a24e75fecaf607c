//! The tests of this crate as one program: it is linked once, and its tests run beside each other.
//!
//! Programs of their own, for they look at the whole process:
//! - `memory.rs` sets the budget of the process
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // helpers of tests

mod api;
mod api_sources;
mod cli;
mod count;
mod counting;
mod export;
mod model;
mod rate;
mod router;
mod routes;
mod share;
