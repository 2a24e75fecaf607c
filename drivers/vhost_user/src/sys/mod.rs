//! The unsafe island: the memory of a virtual machine, which it may write at any time.
//!
//! Invariants: no reference to a guest's memory is ever made, it is read and written by copies, volatile words and
//! atomics only; every address is inside a mapping, because it was checked against the mapping's length where it was
//! made; a mapping's file cannot shrink, unless the operator trusts guests; a region is unmapped after the last handle
//! on it is gone.

mod memory;
mod vring;

pub use memory::{GuestMemory, MOST_REGIONS, MemoryError, Piece, RegionSaid, Trust};
pub use vring::{Desc, Vring, VringError, VringPlace};
