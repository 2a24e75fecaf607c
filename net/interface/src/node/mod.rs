//! The nodes packets leave through.

pub mod arc_end;
pub mod interface_output;
pub mod output;
