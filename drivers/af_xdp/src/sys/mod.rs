//! The unsafe island: system calls that have no safe wrapper, and rings shared with the kernel.
//!
//! Invariants, each proved where it is used:
//! - [`mapping`]: no byte is touched outside of a mapping, and a slice of packet memory exists only while its frame is ours;
//! - [`queue`]: a frame is in one place, with the kernel or with the half it belongs to, whatever the rings contain;
//! - [`bpf`]: what a call points at outlives it, and is as long as the kernel takes it to be.

pub(crate) mod bpf;
mod mapping;
pub(crate) mod promiscuous;
pub(crate) mod queue;
mod ring;
pub(crate) mod socket;

use ring::words as ring_words;

pub use bpf::XdpMode;
pub use queue::{BusyPoll, Copying, XskConfig};
pub use socket::XskStats;
