//! Why an operation failed.

use shoal_interface::InterfaceError;

/// Why an operation failed; nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LcpError {
    /// No driver of this router makes interfaces to the kernel.
    #[error("no driver of this router makes interfaces to Linux: the tap plugin is disabled")]
    NoDriver,
    /// The interface is paired already.
    #[error("{0} has a pair already: {1}")]
    Paired(String, String),
    /// The interface is the image of another one.
    #[error("{0} is itself the image of {1}")]
    IsHost(String, String),
    /// The interface has no pair.
    #[error("{0} has no pair")]
    NotPaired(String),
    /// Its image is a VLAN that was made in Linux.
    #[error("the image of {0} is a VLAN that Linux has on the image of its port: it goes with `ip link del'")]
    OfLinux(String),
    /// The interface is no Ethernet.
    #[error("{0} carries no Ethernet frames, so Linux cannot have an image of it")]
    NotEthernet(String),
    /// The sub-interface says not exactly which tags its frames have.
    #[error("{0} takes frames with other tags, too: only a sub-interface with exact-match can have an image")]
    NotExact(String),
    /// The name is none.
    #[error("bad name `{0}', expected 1 to 15 characters without blanks, `/' and `:'")]
    Name(String),
    /// Frames of the type cannot pass as they are.
    #[error("frames of type {0} are this router's own, or the type is not one of a protocol")]
    Type(shoal_wire::EtherType),
    /// The start-up file disables OSI.
    #[error("OSI is disabled in the start-up file: plugin osi_plugin.so")]
    OsiDisabled,
    /// There is no such protocol.
    #[error("0x{0:02x} is not the number of an OSI protocol; IS-IS is 0x83")]
    OsiProtocol(u8),
    /// The kernel refused.
    #[error("Linux refuses {what}: {why}")]
    Host {
        /// What was asked.
        what: String,
        /// Why not.
        why: String,
    },
    /// The interface refused.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
}
