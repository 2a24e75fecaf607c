//! The tests of this crate as one program: it is linked once, and its tests run beside each other.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // helpers of tests

mod frame_classifier;
mod golden;
mod learning;
mod program;
mod support;
mod traffic;
