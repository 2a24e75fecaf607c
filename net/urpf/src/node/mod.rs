//! The nodes: one code for both families, directions and modes.

pub mod check;
