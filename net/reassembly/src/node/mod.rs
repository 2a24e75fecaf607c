//! The nodes.

pub mod expired;
pub mod feature;
pub mod full;
mod full_error;
pub mod local;
pub mod sv;
pub mod sv_feature;
mod way;

pub use way::{ToIcmp, Way};
