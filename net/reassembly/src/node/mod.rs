//! The nodes.

pub mod expired;
pub mod full;
mod full_error;
pub mod sv;
pub mod sv_feature;
mod way;

pub use way::{ToIcmp, Way};
