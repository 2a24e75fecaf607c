//! The one error type of the crate.

use std::io;

/// Why an operation on an interface or a queue failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A system call failed.
    #[error("{what}: {source}")]
    Os {
        /// What was being done, in the words of the manual page.
        what: &'static str,
        /// The kernel's answer.
        source: io::Error,
    },
    /// No interface of that name in this network namespace.
    #[error("no interface '{name}' in this network namespace{near}", near = near(nearest.as_deref()))]
    NoInterface {
        /// The name asked for.
        name: String,
        /// The nearest there is.
        nearest: Option<String>,
    },
    /// None of the router's host interfaces.
    #[error("'{name}' is no host interface{near}", near = near(nearest.as_deref()))]
    NoHostInterface {
        /// The name asked for.
        name: String,
        /// The nearest there is.
        nearest: Option<String>,
    },
    /// The interface's frames begin otherwise.
    #[error("frames of '{name}' have {has} Ethernet header: use mode {mode}")]
    Mode {
        /// The interface.
        name: String,
        /// Whether it has one.
        has: &'static str,
        /// The right mode.
        mode: &'static str,
    },
    /// The kernel's interface is not there at the moment.
    #[error("the kernel's interface '{name}' is gone: ask again when it is back")]
    Gone {
        /// The kernel's name.
        name: String,
    },
    /// The router's interface could not be made or changed.
    #[error(transparent)]
    Interface(#[from] shoal_interface::InterfaceError),
    /// A ring geometry that the kernel would refuse or that cannot hold a superframe.
    #[error("{what} is {value}, must be {rule}")]
    Config {
        /// The setting.
        what: &'static str,
        /// Its value.
        value: u64,
        /// What would be right.
        rule: &'static str,
    },
    /// The kernel could not be asked about its interfaces, or refused.
    #[error(transparent)]
    Link(#[from] shoal_link::Error),
    /// The router cannot follow the kernel.
    #[error("the router does not follow the kernel: {0}")]
    NoWatch(String),
}

fn near(nearest: Option<&str>) -> String {
    nearest.map(|n| format!(", did you mean '{n}'?")).unwrap_or_default()
}

impl Error {
    /// The last system call's error, with what it was.
    pub(crate) fn last(what: &'static str) -> Self {
        Self::Os { what, source: io::Error::last_os_error() }
    }

    pub(crate) fn os(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Os { what, source }
    }

    /// The errno behind it, if the kernel gave one.
    pub fn errno(&self) -> Option<i32> {
        match self {
            Self::Os { source, .. } => source.raw_os_error(),
            Self::Link(error) => error.errno(),
            _ => None,
        }
    }
}
