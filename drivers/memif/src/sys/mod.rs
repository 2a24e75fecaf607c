//! The unsafe island: memory that another process may write at any time.
//!
//! Invariants: no reference into shared memory is ever made, it is read and written by copies, volatile words and
//! atomics only; every address is inside a mapping, because it was checked against the mapping's length where it was
//! made; a mapping's file cannot shrink, or it is not mapped; a ring or a mapping is unmapped after the last handle on
//! it is gone.

mod copy;
mod region;
mod ring;

pub use region::{Region, RegionError, Regions};
pub use ring::{Desc, RingMemory, RingPlace, RingPlaceError, ring_bytes};
