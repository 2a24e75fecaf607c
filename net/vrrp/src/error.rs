//! Why an operation failed.

use std::net::IpAddr;

use shoal_graph::GraphError;
use shoal_interface::InterfaceError;
use shoal_message::Retval;

use crate::packet::LONGEST_INTERVAL;

/// Why an operation failed; nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VrrpError {
    /// There is one of this interface, number and family.
    #[error("Failed to add VR that already exists")]
    Exists,
    /// There is none.
    #[error("there is no VR {0} of this family on {1}")]
    None(u8, String),
    /// There is none of this number.
    #[error("there is no VR of index {0}")]
    NoIndex(u32),
    /// It has no address.
    #[error("Failed to add VR with no IP addresses")]
    NoAddresses,
    /// An address is not one of a host, or of the other family.
    #[error("{0} is no {1} address of a host")]
    Address(IpAddr, &'static str),
    /// Another virtual router has the address on the interface.
    #[error("VR {1} has {0} already")]
    InUse(IpAddr, u8),
    /// Priority 255 is for the router that has the addresses as its own.
    #[error("priority 255 is for addresses that {1} has: {0} is none")]
    NotOwned(IpAddr, String),
    /// A number is out of range.
    #[error("{what} {value} is not possible: 1 to {most}, nearest {nearest}", nearest = (*.value).clamp(1, *.most))]
    Range {
        /// What was to be set.
        what: &'static str,
        /// The number.
        value: u32,
        /// The largest one.
        most: u32,
    },
    /// Version 2 is for IPv4, and its intervals are seconds.
    #[error("version 2 is for IPv4, with intervals of whole seconds from 100 to 25500 hundredths: {0}")]
    Version(String),
    /// An update names another virtual router than the one of its index.
    #[error("index {0} is another VR: interface, number and family stay")]
    OtherVr(u32),
    /// A virtual router that sends to all routers of its link has no peers.
    #[error("Peers can only be set on a unicast VR")]
    NotUnicast,
    /// One that sends to peers has none.
    #[error("a unicast VR needs peers: vrrp peers")]
    NoPeers,
    /// What was to be tracked no more is not tracked.
    #[error("{0} is not tracked")]
    NotTracked(String),
    /// There are as many as there may be.
    #[error("there are {0} VRs already, and there may not be more")]
    TooMany(usize),
    /// The interface refused.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
    /// A group could not be joined.
    #[error("the group of VRRP routers: {0}")]
    Group(String),
    /// The graph refused.
    #[error(transparent)]
    Graph(#[from] GraphError),
}

impl VrrpError {
    /// A number that is out of range.
    pub(crate) fn interval(value: u16) -> VrrpError {
        VrrpError::Range { what: "an interval of", value: value.into(), most: LONGEST_INTERVAL.into() }
    }
}

impl From<VrrpError> for Retval {
    fn from(error: VrrpError) -> Self {
        match error {
            VrrpError::Exists => Retval::ENTRY_ALREADY_EXISTS,
            VrrpError::None(..) | VrrpError::NoIndex(_) | VrrpError::NotTracked(_) => Retval::NO_SUCH_ENTRY,
            VrrpError::NoAddresses => Retval::INVALID_SRC_ADDRESS,
            VrrpError::Range { .. } | VrrpError::Version(_) => Retval::INVALID_VALUE,
            VrrpError::Address(..) | VrrpError::OtherVr(_) | VrrpError::NotUnicast => {
                Retval::INVALID_ARGUMENT
            }
            VrrpError::InUse(..) => Retval::ADDRESS_IN_USE,
            VrrpError::NotOwned(..) => Retval::ADDRESS_NOT_FOUND_FOR_INTERFACE,
            VrrpError::NoPeers => Retval::INIT_FAILED,
            VrrpError::Interface(error) => error.into(),
            VrrpError::TooMany(_) | VrrpError::Group(_) | VrrpError::Graph(_) => Retval::UNSPECIFIED,
        }
    }
}
