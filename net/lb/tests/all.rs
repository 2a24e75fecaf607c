//! The load balancer through a whole router: tunnels, translation, flows that stay, servers that go, bad input, messages, saved
//! configuration.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // helpers of tests

mod bed;
mod control;
mod nat;
mod tunnels;
