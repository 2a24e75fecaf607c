//! Interfaces whose devices are plugins'.
//!
//! A driver of a plugin copies packets between its device and buffers that it is shown; queues, counters, traces and the
//! software's part of offloads are here.

mod cli;
mod control;
mod error;
mod opened;
mod port;
mod running;
mod rx;
mod tx;
mod wake;

pub(crate) use cli::commands;
pub(crate) use control::watch;
pub use control::{DeviceInfo, Devices};
pub use error::Error;
pub(crate) use opened::{check, wrong};
pub(crate) use running::running;
