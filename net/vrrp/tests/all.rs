//! VRRP through a whole router: advertisements, which router has the addresses, what is answered, tracking, strangers,
//! messages, saved configuration.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // helpers of tests

mod bed;
mod control;
mod states;
mod virtual_addresses;
