//! Drivers of plugins for programs that are no router: no graph, no buffers, no interfaces, only devices and frames.
//!
//! [`BareDriver::load`] reads and checks a library as the router does and takes one of its drivers; nodes, features and
//! commands are left alone. A library is loaded, initialised and started once in a process, and stays until it ends: who
//! loads it again gets what is there. So a process has either these or [`MODULE`](crate::MODULE), not both.
//!
//! The ABI wants some functions called by the main thread. Here that is the holder of a lock of the process, so devices
//! may be opened, changed and closed anywhere, and be moved between threads.

mod device;
mod driver;
mod error;

pub use device::{BareDevice, Sent};
pub use driver::BareDriver;
pub use error::BareError;
