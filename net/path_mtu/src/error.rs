//! What can be wrong with a path MTU.

use std::net::IpAddr;

use shoal_fib::FibError;

/// Why an operation failed; nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PathMtuError {
    /// Too little or too much; the nearest that is not. RFC 791, 3.2 and RFC 8200, 5 say what every link carries.
    #[error("path MTU {mtu} to {peer} is not possible: {least} to 65535, nearest {least}")]
    Range {
        /// The host.
        peer: IpAddr,
        /// The value.
        mtu: u16,
        /// What every link carries.
        least: u16,
    },
    /// It is no host's address.
    #[error("{0} is not the address of one host")]
    NotAHost(IpAddr),
    /// There is none.
    #[error("no path MTU to {peer} in table {table}{near}", near = .nearest.map(|n| format!(", nearest {n}")).unwrap_or_default())]
    None {
        /// The host.
        peer: IpAddr,
        /// The table's id.
        table: u32,
        /// A host to which there is one.
        nearest: Option<IpAddr>,
    },
    /// There are as many as there may be.
    #[error("{0} path MTUs are as many as there may be")]
    TooMany(usize),
    /// The tables refused.
    #[error(transparent)]
    Fib(#[from] FibError),
}

impl PathMtuError {
    /// The nearest MTU that is possible.
    pub fn nearest(&self) -> Option<u16> {
        match self {
            PathMtuError::Range { least, .. } => Some(*least),
            _ => None,
        }
    }
}
