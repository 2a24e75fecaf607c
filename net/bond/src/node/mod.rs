//! The nodes.

pub mod input;
pub mod tx;
