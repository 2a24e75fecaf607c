//! Packet buffers: pools, headroom, chains and the linear token.
//!
//! A [`Buffer`] is the right to one packet's memory. Safe code can neither copy nor forge one, and one that is
//! dropped instead of being sent on or freed is caught, counted and given back ([`lost`]). A [`Frame`] holds up
//! to 256 of them. What a node sees of a buffer is a borrowed [`Packet`].
//!
//! Memory: one process-wide reserved range, grown chunk by chunk, in hugepages where there are any. Each
//! buffer is, in order: a header line ([`Meta`]), a line of per-feature [scratch](slot), 128 bytes of headroom,
//! 2,048 bytes of data and one line of padding, so that neighbouring buffers start in different cache sets.
//!
//! Buffers that a kernel or a device reads and writes by itself are lent to it ([`Loans`]): their tokens are gone until
//! they come back.
//!
//! A packet's later segments can be shared with other packets ([`Cache::share`]): read by all, written by none, and freed
//! with the last. Its first segment is always its own.
//!
//! All `unsafe` of this crate rests on one invariant: **an index is in exactly one place** (a token, a frame, a
//! chain's link, a cache, a pool's free list or a book of loans), and mutable access to that place is the only access;
//! or **it is in links that are marked as shared**, as many as it counts, and a holder of one may read it and what
//! hangs on it. Indices become tokens only here.
#![deny(clippy::undocumented_unsafe_blocks)]

mod cache;
mod frame;
mod loan;
mod memory;
mod meta;
mod packet;
mod pool;
mod share;
pub mod slot;
mod token;

pub use cache::{Cache, Full};
pub use frame::{FRAME_SIZE, Frame, Split};
pub use loan::{Fresh, Loans};
pub use memory::{Backing, Memory, Part};
pub use meta::{FibIndex, Flags, MAX_INTERFACES, Meta, SwIfIndex};
pub use packet::{Packet, SegmentsMut, Shared};
pub use share::SHARED_HEAD;
pub use shoal_infra::Pages;

pub use pool::{Pool, PoolConfig, PoolStats};
pub use token::{Buffer, lost};

/// Bytes of data a buffer holds behind its headroom.
pub const DATA_SIZE: usize = 2048;
/// Bytes in front of the data into which headers may be pushed.
pub const HEADROOM: usize = 128;
/// Bytes from a buffer's start to its data: header line, scratch line, headroom.
pub const DATA_OFFSET: usize = 64 + 64 + HEADROOM;
/// Bytes of a buffer that are used: up to the end of its data. What follows, up to [`STRIDE`], is padding.
pub const BUFFER_SIZE: usize = DATA_OFFSET + DATA_SIZE;
/// Bytes from one buffer to the next: 37 cache lines, an odd number, so that all sets are used.
pub const STRIDE: usize = BUFFER_SIZE + 64;
const _: () = assert!(STRIDE.is_multiple_of(64) && (STRIDE / 64) % 2 == 1);
