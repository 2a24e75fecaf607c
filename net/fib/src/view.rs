//! What commands print, in VPP's layout, and the same as JSON.

mod adj;
mod fib;
mod tables;

pub(crate) use adj::AdjView;
pub(crate) use fib::{FibView, Filter};
pub(crate) use tables::{MemoryView, SummaryView, TablesView};
