//! The nodes packets leave through, and those of the arc they come in by.

pub mod arc_end;
pub mod device_input;
pub mod device_input_end;
pub mod down;
pub mod error_punt;
pub mod interface_output;
pub mod output;
pub mod stats_collect;
