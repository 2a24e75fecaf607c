//! The crate's only unsafe code. Each file states its invariant first.

#[cfg(not(loom))]
pub(crate) mod arena;
pub(crate) mod cell;
#[cfg(not(loom))]
pub(crate) mod map;
pub(crate) mod prefetch;
pub(crate) mod published;
#[cfg(not(loom))]
pub(crate) mod region;
pub(crate) mod ring;
#[cfg(not(loom))]
pub(crate) mod scheduling;
#[cfg(not(loom))]
pub(crate) mod segment;
pub(crate) mod simd;
#[cfg(not(loom))]
pub(crate) mod stable_vec;
pub(crate) mod twin;
#[cfg(not(loom))]
pub(crate) mod twin_table;
pub(crate) mod zeroable;
