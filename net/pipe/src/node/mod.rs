//! The nodes.

pub mod rx;
pub mod tx;
