//! stub until the fib branch is merged
#![forbid(unsafe_code)]
mod data;
pub use data::{FibIndex, FibTables};
