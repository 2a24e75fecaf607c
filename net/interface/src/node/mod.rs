//! The nodes packets leave through.

pub mod arc_end;
pub mod down;
pub mod interface_output;
pub mod output;
