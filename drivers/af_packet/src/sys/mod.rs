//! The unsafe island: rings shared with the kernel, and the system calls that have no safe wrapper.
//!
//! Invariants, each proved where it is used:
//! - [`rx`]: a slice of a ring, whose memory is `shoal-shm`'s, exists only while user space owns its block;
//! - [`tx`]: the pointer arrays given to `sendmmsg` point at memory borrowed for that call.

mod rx;
mod rx_block;
mod rx_config;
mod socket;
mod tx;

pub use rx::{RingFault, RxHandle, RxRing, RxStats};
pub use rx_block::{RingVersion, RxFrame, VlanTag};
pub use rx_config::{Fanout, Promiscuous, RxConfig};
pub use tx::{Qdisc, TxBatch, TxConfig, TxQueue, TxRefused, TxReport};
