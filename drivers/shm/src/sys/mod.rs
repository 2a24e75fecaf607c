//! The unsafe island: memory that the kernel or another process may write at any time.
//!
//! Invariants: a mapping is an address and a length that one value owns and unmaps when it is dropped; every address inside
//! it was checked against its length where it was made, and is kept with a handle on the mapping; no reference into it exists,
//! but to atomics, and where a driver's own island has promised that the bytes are its own for a while; everything else is a
//! copy by `copy`. A file of a peer is mapped only if it cannot shrink, unless its owner is trusted.

mod copy;
mod mapping;
mod open;
mod words;

pub use mapping::{Mapping, Populate};
pub use open::{OpenError, Trust};
pub use words::{PlaceError, Word, Words};
