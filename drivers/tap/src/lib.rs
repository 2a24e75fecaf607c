//! TAP: interfaces shared with the host kernel.
//!
//! The lowest layer, which everything else of the driver rests on:
//!
//! - [`Tap`]: creates the interface, in the host's namespace of choice, with its host-side settings, and
//!   removes it when dropped.
//! - [`TapQueue`]: one queue, frames read into and gathered from segments.
//!
//! Superframes and open checksums cross with their `virtio_net_hdr` ([`shoal_vnet`]), so that the host's
//! TCP hands over 64 KB at a time.
#![deny(unsafe_code)]

mod config;
mod error;
mod host;
mod netlink;
mod netns;
#[allow(unsafe_code)]
mod sys;
mod tap;

pub use config::{Address, AdminState, Carrier, HostConfig, Lifetime, Mode, NetnsRef, TapConfig};
pub use error::Error;
pub use sys::{Received, RecvError, SendError, TapQueue};
pub use tap::Tap;
