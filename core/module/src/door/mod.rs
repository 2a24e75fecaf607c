//! What every server of the router needs at its door: the socket's file, and waiting among tasks of one thread.

mod file;
mod signal;

pub use file::{FileError, SocketFile};
pub use signal::Signal;
