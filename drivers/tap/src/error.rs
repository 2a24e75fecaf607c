//! The one error type of the crate's control side.

use std::io;

/// Why a TAP could not be made or changed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A system call failed.
    #[error("{what}: {source}")]
    Os {
        /// What was being done.
        what: &'static str,
        /// The kernel's answer.
        source: io::Error,
    },
    /// A new interface was asked for, and there is one of that name.
    #[error(
        "the host already has an interface '{name}'; choose another name, or attach to it if it is persistent"
    )]
    Exists {
        /// The name.
        name: String,
    },
    /// No such interface (bridge) in the namespace.
    #[error("no interface '{name}' in the host's network namespace")]
    NoInterface {
        /// The name.
        name: String,
    },
    /// The namespace cannot be opened.
    #[error("network namespace {netns}: {source}")]
    Netns {
        /// As it was given.
        netns: String,
        /// Why.
        source: io::Error,
    },
    /// An interface name that the kernel does not allow.
    #[error("'{name}' is not an interface name: 1 to 15 bytes without '/', ':' or white space")]
    Name {
        /// The name.
        name: String,
    },
    /// vhost-net was asked for, and cannot be.
    #[error("vhost-net: {why}; 'no-vhost-net', or neither word, makes a TAP without it")]
    Vhost {
        /// Why not.
        why: String,
    },
    /// A number out of its range.
    #[error("{what} is {value}, must be {rule}")]
    Config {
        /// The setting.
        what: &'static str,
        /// Its value.
        value: u64,
        /// What would be right.
        rule: &'static str,
    },
    /// The interface is no TAP.
    #[error("{name} is no TAP; there are: {taps}", taps = if taps.is_empty() { "none".into() } else { taps.join(", ") })]
    NoTap {
        /// The interface.
        name: String,
        /// All TAPs.
        taps: Vec<String>,
    },
    /// The router's interface could not be made or changed.
    #[error(transparent)]
    Interface(#[from] shoal_interface::InterfaceError),
    /// The kernel could not be asked, or refused.
    #[error(transparent)]
    Link(#[from] shoal_link::Error),
}

impl Error {
    pub(crate) fn last(what: &'static str) -> Self {
        Self::Os { what, source: io::Error::last_os_error() }
    }

    pub(crate) fn os(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Os { what, source }
    }

    /// The errno behind it, if the kernel gave one.
    pub fn errno(&self) -> Option<i32> {
        match self {
            Self::Os { source, .. } | Self::Netns { source, .. } => source.raw_os_error(),
            Self::Link(error) => error.errno(),
            _ => None,
        }
    }
}
