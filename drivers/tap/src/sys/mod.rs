//! The unsafe island: ioctls of `/dev/net/tun`, and reading and writing frames in segments.
//!
//! Invariants: an ioctl gets a pointer to the very type its number names; the iovecs given to `readv` and
//! `writev` point at memory borrowed for that call.

pub(crate) mod control;
mod queue;

pub(crate) use control::Exclusive;
pub use queue::{Received, RecvError, SendError, TapQueue};
