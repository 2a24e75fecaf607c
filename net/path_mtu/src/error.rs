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
    /// What is learnt would be believed for too long, or not long enough for RFC 8201, 4.
    #[error("a lifetime of {seconds} seconds is not possible: 300 to 86400, nearest {nearest}")]
    Lifetime {
        /// The value.
        seconds: u32,
        /// The nearest possible.
        nearest: u32,
    },
    /// What is learnt of an IPv4 path would be believed to be too little or too much.
    #[error("a least path MTU of {least} is not possible: 68 to 1280, nearest {nearest}")]
    Least {
        /// The value.
        least: u16,
        /// The nearest possible.
        nearest: u16,
    },
    /// The tables refused.
    #[error(transparent)]
    Fib(#[from] FibError),
}

impl PathMtuError {
    /// The nearest MTU that is possible.
    pub fn nearest(&self) -> Option<u16> {
        match self {
            PathMtuError::Range { least, .. } => Some(*least),
            PathMtuError::Least { nearest, .. } => Some(*nearest),
            _ => None,
        }
    }
}
