//! All tests of this crate, as one program.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)] // helpers of tests

mod capture;
mod dispatch;
