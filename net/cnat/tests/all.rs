//! Cloud NAT through a whole router: translations, shared source addresses, workers, bad input, messages, commands, saved configuration.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // helpers of tests

mod bad_input;
mod bed;
mod control;
mod messages;
mod snat;
mod translations;
mod workers;
