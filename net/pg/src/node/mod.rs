//! Where packets enter and leave.

pub mod inject;
pub mod input;
pub mod mac_filter;
pub mod stream;
pub mod tx;
