//! The unsafe island: system calls that have no safe wrapper, and rings shared with the kernel.
//!
//! Invariants, each proved where it is used:
//! - a slice of packet memory, a mapping of `shoal-shm`, exists only while its frame is ours;
//! - [`queue`]: a frame is in one place, with the kernel or with the half it belongs to, whatever the rings contain;
//! - [`lent`], [`release`]: a buffer that the kernel may read or write is in a book of loans, where no token of it exists,
//!   until the kernel has given it back or has ended its use of the queue's memory;
//! - [`bpf`]: what a call points at outlives it, and is as long as the kernel takes it to be.

pub(crate) mod bpf;
pub(crate) mod lent;
pub(crate) mod queue;
pub(crate) mod release;
mod ring;
mod rx_rings;
pub(crate) mod socket;

use ring::words as ring_words;

pub use bpf::XdpMode;
pub use queue::{BusyPoll, Copying, PacketMemory, XskConfig};
pub use socket::XskStats;
