//! The nodes.

pub mod arc_start;
pub mod bitmap_drop;
pub mod bridged;
pub mod input;
pub mod output;
pub mod patch;
pub mod vtr;
