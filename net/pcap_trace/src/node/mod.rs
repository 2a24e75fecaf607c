//! The nodes.

pub mod capture;
