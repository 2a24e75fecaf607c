//! Why something is not configured.

use std::net::IpAddr;

use shoal_interface::SwIfIndex;
use shoal_message::Retval;

/// Why something is not configured.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SyncError {
    /// The two addresses cannot speak to each other.
    #[error("{0} and {1} are not of one family")]
    Families(IpAddr, IpAddr),
    /// An address that no router has.
    #[error("{0} is no address of a router")]
    Address(IpAddr),
    /// Both addresses are one.
    #[error("{0} is this router's own address and the other's")]
    Same(IpAddr),
    /// Another part of the router has the port.
    #[error("port {0} is used by another part of the router")]
    PortTaken(u16),
    /// There is no port 0.
    #[error("there is no port 0")]
    NoPort,
    /// A key is too short, too long, or none.
    #[error("a key is 32 to 128 hexadecimal digits")]
    Key,
    /// There is no other router.
    #[error("no other router is configured")]
    NoPeer,
    /// A number is out of range.
    #[error("{what} of {value}: {least} to {most} are possible, nearest {}", value.clamp(least, most))]
    Range {
        /// Of what.
        what: &'static str,
        /// What was wanted.
        value: u32,
        /// The least.
        least: u32,
        /// The most.
        most: u32,
    },
    /// A router that is silent for less than three hellos is not taken for dead.
    #[error(
        "a router is dead after {dead} ms of silence and says hello every {hello} ms: three hellos at least"
    )]
    DeadTooSoon {
        /// Milliseconds of silence.
        dead: u32,
        /// Milliseconds between hellos.
        hello: u32,
    },
    /// There is no such interface.
    #[error("there is no interface {0}")]
    NoInterface(SwIfIndex),
    /// There is no such virtual router.
    #[error("there is no virtual router {number} of VRRP on interface {interface}")]
    NoGroup {
        /// Its number.
        number: u8,
        /// Its interface.
        interface: SwIfIndex,
    },
    /// The graph refuses.
    #[error(transparent)]
    Graph(#[from] shoal_graph::GraphError),
    /// A part of the router is not there.
    #[error(transparent)]
    Missing(#[from] shoal_module::Missing),
}

impl From<SyncError> for Retval {
    fn from(error: SyncError) -> Self {
        match error {
            SyncError::Families(..) | SyncError::Address(_) | SyncError::Same(_) => Retval::INVALID_ARGUMENT,
            SyncError::PortTaken(_) => Retval::VALUE_EXIST,
            SyncError::NoPort | SyncError::Key | SyncError::Range { .. } | SyncError::DeadTooSoon { .. } => {
                Retval::INVALID_VALUE
            }
            SyncError::NoPeer | SyncError::NoGroup { .. } => Retval::NO_SUCH_ENTRY,
            SyncError::NoInterface(_) => Retval::INVALID_SW_IF_INDEX,
            SyncError::Graph(_) | SyncError::Missing(_) => Retval::UNSPECIFIED,
        }
    }
}
