//! NAT44, endpoint independent, through a whole router in one process.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)] // helpers of tests

mod bad_input;
mod bench;
mod blocks;
mod common;
mod control;
mod ha;
mod icmp;
mod mappings;
mod messages;
mod model;
mod output;
mod sessions;
mod tenants;
mod workers;
