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
    /// The kernel does not take the program.
    #[error("the kernel refuses the XDP program: {source}{log}")]
    Program {
        /// The kernel's answer.
        source: io::Error,
        /// The end of what its verifier says.
        log: String,
    },
    /// No interface of that name in that network namespace.
    #[error("no interface '{name}' in this network namespace{near}", near = near(nearest.as_deref()))]
    NoInterface {
        /// The name asked for.
        name: String,
        /// The nearest there is.
        nearest: Option<String>,
    },
    /// None of the router's AF_XDP interfaces.
    #[error("'{name}' is no AF_XDP interface{near}", near = near(nearest.as_deref()))]
    NotOurs {
        /// The name asked for.
        name: String,
        /// The nearest there is.
        nearest: Option<String>,
    },
    /// It is an interface of the router already.
    #[error("the kernel's interface '{kernel}' is in the router already, as {name}")]
    Taken {
        /// The kernel's name.
        kernel: String,
        /// The router's name.
        name: String,
    },
    /// Frames without an Ethernet header.
    #[error("frames of '{0}' have no Ethernet header: use create host-interface name {0} mode ip")]
    NoEthernet(String),
    /// A group's MAC address.
    #[error("{0} is not the MAC address of one station")]
    NotAStation(shoal_wire::MacAddress),
    /// Taking the interface would cut the machine off.
    #[error(
        "'{0}' carries the host's default route: add `pinhole host,dhcp' to share it with the host, or `force' to \
         take it"
    )]
    DefaultRoute(String),
    /// Frames do not fit.
    #[error(
        "MTU of '{name}' is {mtu}, AF_XDP takes up to {most}: `ip link set dev {name} mtu {most}', or add \
         `multi-buffer'"
    )]
    MtuTooLarge {
        /// The kernel's interface.
        name: String,
        /// Its MTU.
        mtu: u32,
        /// What fits.
        most: u32,
    },
    /// Another program's XDP program is there.
    #[error("'{0}' has an XDP program already: `ip link set dev {0} xdp off' takes it away")]
    Busy(String),
    /// A queue is another program's.
    #[error("queue {queue} of '{name}' is in use by another AF_XDP socket")]
    QueueBusy {
        /// The kernel's interface.
        name: String,
        /// The queue.
        queue: u32,
    },
    /// The driver has no zero-copy.
    #[error("the driver of '{0}' cannot do zero-copy: leave the word away, or say no-zero-copy")]
    NoZeroCopy(String),
    /// Packets cannot lie in the router's buffers.
    #[error("the router's buffers cannot be shared with the kernel: {0}; say own-memory, which copies")]
    NoSharing(String),
    /// A program of one's own.
    #[error(
        "'prog {0}': the router brings its own XDP program, whose rules are `pinhole ...'; leave `prog' away"
    )]
    Prog(String),
    /// Words of the pinhole that do not mean anything.
    #[error(transparent)]
    Rule(#[from] crate::pinhole::RuleError),
    /// A network namespace cannot be entered.
    #[error("network namespace '{netns}': {source}")]
    Netns {
        /// What was asked for.
        netns: String,
        /// The system's answer.
        source: io::Error,
    },
    /// The router's interface could not be made or changed.
    #[error(transparent)]
    Interface(#[from] shoal_interface::InterfaceError),
    /// A number that cannot be.
    #[error("{what} is {value}, must be {rule}")]
    Config {
        /// The setting.
        what: &'static str,
        /// Its value.
        value: u64,
        /// What would be right.
        rule: &'static str,
    },
    /// More queues than the interface has.
    #[error("'{name}' has {has} queues, not {asked}: ask for up to {has}, or let it have more (ethtool -L)")]
    TooManyQueues {
        /// The kernel's interface.
        name: String,
        /// Queues it has.
        has: u32,
        /// Queues asked for.
        asked: u32,
    },
    /// It has no queues now.
    #[error("the kernel's interface '{0}' is gone: its queues can be chosen when it is back")]
    Gone(String),
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
            Self::Os { source, .. } | Self::Program { source, .. } => source.raw_os_error(),
            Self::Link(error) => error.errno(),
            _ => None,
        }
    }
}
