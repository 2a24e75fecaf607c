//! The nodes.

pub mod expired;
pub mod feature;
pub mod full;
pub mod local;
mod way;

pub use way::{ToIcmp, Way};
