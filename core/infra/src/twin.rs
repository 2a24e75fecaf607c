//! Values that readers see whole while one writer replaces them in place.
//!
//! For next hops and other small values that packets read by reference: no pointer to follow, no
//! lock, no torn read, and a change is one flip of an index. A second change of the same value must
//! wait until the readers of the copy it overwrites are gone, so the writer's own thread must have
//! its [`Reader`](crate::qsbr::Reader) offline then.

pub use crate::raw::twin::{TwinCell, TwinWriter, twin_cell};
#[cfg(not(loom))]
pub use crate::raw::twin_table::{StoreError, TwinTable, TwinTableWriter};
