//! The nodes.

pub mod input;
pub mod switched;
mod tagged;
pub mod tagged_superpath;
