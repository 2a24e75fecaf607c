//! The nodes.

pub mod check;
