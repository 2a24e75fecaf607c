//! The nodes.

pub mod bitmap_drop;
pub mod input;
pub mod output;
