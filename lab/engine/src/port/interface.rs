//! The kernel's interfaces: found by name, in a namespace.

use std::io;
use std::path::PathBuf;

use shoal_link::Link;
use thiserror::Error;

/// An interface that cannot be attached to.
#[derive(Debug, Error)]
pub enum InterfaceError {
    /// The namespace cannot be entered.
    #[error("namespace {path}: {source}", path = path.display())]
    Namespace {
        /// Its file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// There is none of that name, or the kernel does not say.
    #[error(transparent)]
    Link(#[from] shoal_link::Error),
    /// It is down: frames would be lost before they are sent.
    #[error("interface {name} is down: `ip link set {name} up` first")]
    Down {
        /// Its name.
        name: String,
    },
    /// AF_PACKET refuses.
    #[error(transparent)]
    Packet(#[from] shoal_af_packet::Error),
    /// AF_XDP refuses.
    #[error(transparent)]
    Xdp(#[from] shoal_af_xdp::Error),
    /// The TAP cannot be made.
    #[error(transparent)]
    Tap(#[from] shoal_tap::Error),
    /// A transport that there is not.
    #[error("transport {asked} on interface {name}; there are af-packet and af-xdp")]
    Transport {
        /// Its name.
        name: String,
        /// What was asked for.
        asked: String,
    },
}

/// The interface in the namespace of the calling thread, if it is up.
pub(super) fn find(name: &str) -> Result<Link, InterfaceError> {
    let link = Link::by_name(name)?;
    if link.admin == shoal_link::AdminState::Down {
        return Err(InterfaceError::Down { name: name.to_owned() });
    }
    Ok(link)
}
