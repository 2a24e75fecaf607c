//! The nodes: one code for both families.

pub mod cut;
