//! Two routers that share sessions, in one process: packets, fail-overs, lost and false datagrams.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // helpers of tests

mod bench;
mod common;
mod configuration;
mod failover;
mod hostile;
mod model;
mod resync;
mod workers;
