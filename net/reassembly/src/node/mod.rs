//! The nodes.

pub mod expired;
mod fragment_next;
pub mod full;
mod full_error;
pub mod full_feature;
pub mod sv;
pub mod sv_feature;

pub use fragment_next::{FragmentNext, ToIcmp};
