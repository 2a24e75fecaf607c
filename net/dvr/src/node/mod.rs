//! The nodes, one code for both families.

pub mod dpo;
pub mod reinject;
