//! Why an operation failed.

use std::net::IpAddr;

use shoal_adj::AdjError;
use shoal_interface::InterfaceError;

/// Why an operation failed; nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BfdError {
    /// There is such a session or key.
    #[error("Duplicate BFD object")]
    Exists,
    /// There is none.
    #[error("No such BFD object")]
    None,
    /// Sessions use it.
    #[error("BFD object in use")]
    InUse,
    /// Something that there is not here.
    #[error("BFD feature not supported")]
    NotSupported,
    /// Addresses of two families, or one that is none of a host.
    #[error("Invalid argument: {0} and {1} are not addresses of two hosts")]
    Addresses(IpAddr, IpAddr),
    /// A time or a number is 0.
    #[error("Invalid argument: {0} must not be 0")]
    Zero(&'static str),
    /// A key without a secret, or with one that is too long.
    #[error("Invalid argument: a secret has 1 to 20 bytes")]
    Secret,
    /// There are as many sessions or keys as there may be.
    #[error("there are {0} already, and there may not be more")]
    TooMany(usize),
    /// There is no adjacency for it.
    #[error(transparent)]
    Adjacency(#[from] AdjError),
    /// The interface refused.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
}
