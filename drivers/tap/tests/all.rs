//! The tests of this crate as one program: it is linked once, and its tests run beside each other.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // helpers of tests

mod announcements;
mod api;
mod graph;
mod netns;
mod support;
