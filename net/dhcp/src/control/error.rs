//! Why an operation failed.

use std::net::IpAddr;

use shoal_fib::FibError;
use shoal_graph::GraphError;
use shoal_interface::InterfaceError;
use shoal_ip4::AddressError;
use shoal_message::Retval;
use shoal_mfib::MfibError;
use shoal_wire::Ip6Prefix;

/// Why an operation failed; nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DhcpError {
    /// There is one.
    #[error("dhcp client already enabled on {0}")]
    ClientExists(String),
    /// There is none.
    #[error("dhcp client not enabled on {0}")]
    NoClient(String),
    /// A name or an identifier is too long.
    #[error("{0} has {1} bytes: at most {2}")]
    TooLong(&'static str, usize, usize),
    /// Server and source are of two families.
    #[error("{0} and {1} are not of one family")]
    Families(IpAddr, IpAddr),
    /// A relay speaks from an address.
    #[error("a relay needs an address to send from: src-address")]
    NoSource,
    /// A server has an address.
    #[error("{0} is no address of a server")]
    NoServer(IpAddr),
    /// It is there already.
    #[error("{0} is a server of that table already")]
    ServerExists(IpAddr),
    /// It is not there.
    #[error("{0} is no server of that table")]
    UnknownServer(IpAddr),
    /// What servers know the router by is too short or too long.
    #[error("a DUID has 3 to 130 bytes, not {0}")]
    Duid(usize),
    /// Prefixes are in a group.
    #[error("prefixes belong to a group: prefix group NAME")]
    NoGroup,
    /// The interface has it.
    #[error("the interface has {0} of group {1} already")]
    FromPrefixExists(Ip6Prefix, String),
    /// The interface does not have it.
    #[error("the interface has no {0} of group {1}")]
    NoFromPrefix(Ip6Prefix, String),
    /// Clients send no such message.
    #[error("message {0} is none that clients send")]
    Message(u8),
    /// No server of this number has answered.
    #[error("there is no server {0}")]
    NoServer6(u32),
    /// There is no VPN of the table.
    #[error("table {0} has no virtual subnet")]
    NoSubnet(u32),
    /// A VPN identifier is out of range.
    #[error("{0}")]
    Subnet(String),
    /// The forwarding table refused.
    #[error(transparent)]
    Fib(#[from] FibError),
    /// The multicast table refused.
    #[error(transparent)]
    Mfib(#[from] MfibError),
    /// There is no such interface.
    #[error(transparent)]
    If(#[from] InterfaceError),
    /// An interface cannot have IPv4.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// A feature is not there.
    #[error(transparent)]
    Graph(#[from] GraphError),
}

impl From<DhcpError> for Retval {
    fn from(error: DhcpError) -> Self {
        match error {
            DhcpError::ClientExists(_)
            | DhcpError::TooLong(..)
            | DhcpError::Families(..)
            | DhcpError::NoServer(_)
            | DhcpError::Duid(_)
            | DhcpError::NoGroup
            | DhcpError::Message(_)
            | DhcpError::Subnet(_) => Retval::INVALID_VALUE,
            DhcpError::ServerExists(_) | DhcpError::FromPrefixExists(..) => Retval::VALUE_EXIST,
            DhcpError::NoSource => Retval::INVALID_SRC_ADDRESS,
            DhcpError::NoClient(_)
            | DhcpError::UnknownServer(_)
            | DhcpError::NoFromPrefix(..)
            | DhcpError::NoServer6(_)
            | DhcpError::NoSubnet(_) => Retval::NO_SUCH_ENTRY,
            DhcpError::Fib(error) => shoal_fib::api::retval(&error),
            DhcpError::If(error) => error.into(),
            DhcpError::Address(_) => Retval::INVALID_SW_IF_INDEX,
            DhcpError::Mfib(_) | DhcpError::Graph(_) => Retval::UNSPECIFIED,
        }
    }
}
