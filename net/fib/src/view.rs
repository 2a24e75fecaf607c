//! What commands print, in VPP's layout, and the same as JSON.

mod adj;
mod capacity;
mod fib;
mod objects;
mod tables;

pub(crate) use adj::{AdjListing, Wanted as WantedAdj};
pub(crate) use capacity::{CapacityView, CheckView};
pub(crate) use fib::{FibListing, FibView};
pub(crate) use objects::{EntryListing, FibMemory, PathListDetail, PathListing};
pub(crate) use tables::{MemoryView, SummaryView, TablesView};
