//! The nodes.

pub mod input;
