//! The unsafe island: ioctls of `/dev/net/tun` and `/dev/vhost-net`, reading and writing frames in segments.
//!
//! Invariants: an ioctl gets a pointer to the very type its number names; the iovecs given to `readv` and
//! `writev` point at memory borrowed for that call. Memory with rings, a mapping of `shoal-shm`, stays mapped until vhost-net is
//! known to have let go of it. A descriptor that the service manager has kept is taken once.

pub(crate) mod control;
pub(crate) mod inherited;
mod queue;
pub(crate) mod vhost;

pub(crate) use control::Exclusive;
pub use queue::{Received, RecvError, SendError, TapQueue};
