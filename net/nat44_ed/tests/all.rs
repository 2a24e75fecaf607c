//! NAT44 through a whole router in one process.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)] // helpers of tests

mod bad_input;
mod common;
mod control;
mod icmp;
mod independent;
mod mappings;
mod model;
mod output;
mod sessions;
mod workers;
