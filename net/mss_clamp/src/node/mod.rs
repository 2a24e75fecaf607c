//! The nodes: one code for both families and directions.

pub mod clamping;
