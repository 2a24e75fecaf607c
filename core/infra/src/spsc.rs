//! A bounded ring from one thread to one other: frames handed between workers, orders to a worker.
//!
//! Each end caches the other's index and looks at the real one only when the cached one says full or
//! empty, so in steady state a push or a pop touches one shared cache line of indices.

pub use crate::raw::ring::{Consumer, Producer, ring};
