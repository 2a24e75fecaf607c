//! The one error type of the crate.

use std::io;

/// Why the kernel could not be asked, or refused.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A system call failed, or rtnetlink refused.
    #[error("{what}: {source}")]
    Os {
        /// What was being done, in the words of the manual page.
        what: &'static str,
        /// The kernel's answer.
        source: io::Error,
    },
    /// No interface of that name in this network namespace.
    #[error("no interface '{name}' in this network namespace")]
    NoInterface {
        /// The name asked for.
        name: String,
    },
    /// The kernel sent something that is not netlink.
    #[error("malformed netlink message: {0}")]
    Netlink(String),
}

impl Error {
    pub(crate) fn os(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Os { what, source }
    }

    /// The errno behind it, if the kernel gave one.
    pub fn errno(&self) -> Option<i32> {
        match self {
            Self::Os { source, .. } => source.raw_os_error(),
            _ => None,
        }
    }
}
