//! Where packets enter and leave.

pub mod inject;
pub mod input;
pub mod stream;
pub mod tx;
