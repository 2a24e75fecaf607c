//! DHCP through a whole router in one process.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)] // helpers of tests

mod asks_again6;
mod bad_input;
mod client;
mod client6;
mod common;
mod relay;
