//! The nodes.

pub mod translate;
