//! The tests of this crate as one program: it is linked once, and its tests run beside each other.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // helpers of tests

mod chains;
mod cloud;
mod dslite;
mod features;
mod ip_only;
mod map;
mod nat64;
mod switched;
mod tagged;
mod translated;
mod translated_ei;
