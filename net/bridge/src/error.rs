//! What can be wrong with an operation on bridges.

use shoal_interface::InterfaceError;
use shoal_l2::L2Error;
use shoal_message::Retval;
use shoal_wire::MacAddress;

/// Why an operation failed; nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BridgeError {
    /// There is no such domain.
    #[error("No such bridge domain {0}")]
    NoDomain(u32),
    /// There is one of this number.
    #[error("bridge domain {0} exists already")]
    Exists(u32),
    /// It is the one that drops.
    #[error("bridge domain 0 can not be modified")]
    Default,
    /// Numbers end before.
    #[error("bridge domain ID exceed 16M limit: {0}, nearest 16777215")]
    TooLarge(u32),
    /// It has members.
    #[error("bridge domain in use - remove members")]
    InUse,
    /// There are as many as there can be.
    #[error("there are 65535 bridge domains, no more are possible")]
    Full,
    /// It is routed elsewhere already.
    #[error("bridge-domain already has a bvi interface")]
    HasBvi,
    /// A tag is too long.
    #[error("a tag has at most 63 characters, this one {0}")]
    LongTag(usize),
    /// The station is not known.
    #[error("mac entry not found")]
    NoStation,
    /// The address is a group's, or none.
    #[error("{0} is not the address of one station")]
    NotStation(MacAddress),
    /// There is no room near a station's place.
    #[error("the table has no room for {0}")]
    NoRoom(MacAddress),
    /// A station of a domain does not have that address.
    #[error("MAC del for IP {0} and MAC {1} failed")]
    NoBinding(std::net::IpAddr, MacAddress),
    /// The interface is not one of a bridge.
    #[error("{0} is not a bvi interface")]
    NotBvi(String),
    /// The interface is in no domain.
    #[error("{0} is not a member of a bridge domain")]
    NotMember(String),
    /// A number is too small or too large.
    #[error("{what} of {value} is not possible, nearest {nearest}")]
    Range {
        /// What it is of.
        what: &'static str,
        /// The value.
        value: u32,
        /// What is possible.
        nearest: u32,
    },
    /// Layer 2 refused.
    #[error(transparent)]
    L2(#[from] L2Error),
    /// The interface refused.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
}

impl From<BridgeError> for Retval {
    fn from(error: BridgeError) -> Self {
        match error {
            BridgeError::NoDomain(_) | BridgeError::NoStation | BridgeError::NoBinding(..) => {
                Retval::NO_SUCH_ENTRY
            }
            BridgeError::Exists(_) => Retval::BD_ALREADY_EXISTS,
            BridgeError::Default => Retval::BD_NOT_MODIFIABLE,
            BridgeError::TooLarge(_) => Retval::BD_ID_EXCEED_MAX,
            BridgeError::InUse => Retval::BD_IN_USE,
            BridgeError::Full | BridgeError::NoRoom(_) => Retval::LIMIT_EXCEEDED,
            BridgeError::HasBvi => Retval::BD_ALREADY_HAS_BVI,
            BridgeError::LongTag(_) | BridgeError::NotStation(_) => Retval::INVALID_VALUE,
            BridgeError::NotMember(_) => Retval::INVALID_INTERFACE,
            BridgeError::Range { .. } => Retval::INVALID_VALUE_2,
            BridgeError::NotBvi(_) => Retval::INVALID_SW_IF_INDEX,
            BridgeError::L2(error) => error.into(),
            BridgeError::Interface(error) => error.into(),
        }
    }
}
