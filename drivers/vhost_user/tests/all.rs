//! The tests of this crate as one program: it is linked once, and its tests run beside each other.
//!
//! A program of its own, for it looks at the whole process:
//! - `guest.rs` counts open files
// Helpers of tests.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::needless_for_each
)]

mod hostile;
mod race;
mod support;
