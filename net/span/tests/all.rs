//! The tests of this crate as one program.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // helpers of tests

mod bad_input;
mod mirror;
mod switched;
mod twins;
