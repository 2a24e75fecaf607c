//! Why an operation failed.

use std::net::Ipv4Addr;

use shoal_fib::FibError;
use shoal_graph::GraphError;
use shoal_interface::InterfaceError;
use shoal_message::Retval;
use shoal_reassembly::ReassemblyError;
use shoal_wire::Ip4Prefix;

/// Why an operation failed; nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NatError {
    /// NAT of this kind is off.
    #[error("{0} is disabled: {0} plugin enable")]
    Off(&'static str),
    /// Likewise, as a kind says it that answers like one that is switched off twice.
    #[error("{0} is disabled: {0} plugin enable")]
    Disabled(&'static str),
    /// It has mappings only.
    #[error("static mapping only mode: there are no addresses that hosts share")]
    StaticOnly,
    /// A mapping's port is of an address that hosts do not share.
    #[error("External address must be allocated.")]
    NotShared(Ipv4Addr),
    /// A port of it is a mapping's.
    #[error("Address {0} is used by static mapping.")]
    Mapped(Ipv4Addr),
    /// The host has no session.
    #[error("there is no such user")]
    NoUser,
    /// It is on already.
    #[error("already enabled")]
    AlreadyOn,
    /// It is off already.
    #[error("already disabled")]
    AlreadyOff,
    /// No table has so many sessions.
    #[error("{asked} sessions are not possible: {reason}")]
    Sessions {
        /// How many were asked for.
        asked: u32,
        /// Why not.
        reason: String,
    },
    /// A timeout is out of range.
    #[error("a timeout of {value} seconds is not possible: 1 to {most}, nearest {nearest}", nearest = (*.value).clamp(1, *.most))]
    Timeout {
        /// What was asked for.
        value: u32,
        /// The longest.
        most: u32,
    },
    /// A limit is not possible.
    #[error("a limit of {value} sessions is not possible: at least 1")]
    Limit {
        /// What was asked for.
        value: u32,
    },
    /// Hosts share it already.
    #[error("NAT address already in use.")]
    AddressExists(Ipv4Addr),
    /// Hosts do not share it.
    #[error("NAT address not exist.")]
    NoAddress(Ipv4Addr),
    /// The last address is below the first.
    #[error("{1} is below {0}: the first address of a range comes first")]
    Range(Ipv4Addr, Ipv4Addr),
    /// Hosts share the interface's address already, or do not.
    #[error("{0}")]
    Interface(String),
    /// The interface is one of the other kind.
    #[error("interface {0} has NAT of the other kind: in and out, or output-feature")]
    OtherKind(String),
    /// The interface has no such NAT.
    #[error("interface {0} has no such NAT")]
    NoInterface(String),
    /// There is a mapping of the address and port.
    #[error("Mapping already exist.")]
    MappingExists,
    /// There is none.
    #[error("Mapping not exist.")]
    NoMapping,
    /// A value is not possible.
    #[error("{0}")]
    Value(String),
    /// Hosts do not reach it with their own addresses.
    #[error("{0} is not exempt")]
    NoExempt(Ip4Prefix),
    /// It is being done.
    #[error("{0}")]
    Busy(&'static str),
    /// A combination that makes no sense.
    #[error("{0}")]
    Unsupported(&'static str),
    /// There are too few hosts to choose from.
    #[error("at least two local must be set")]
    TooFew,
    /// Two hosts must remain.
    #[error("at least two local must remain")]
    MustRemain,
    /// The host is there already.
    #[error("back-end already exist.")]
    BackEndExists,
    /// There is no such service, or no such host of it.
    #[error("Mapping or back-end not exist.")]
    NoBackEnd,
    /// The address of a balanced service is one that hosts share.
    #[error("{0} is no NAT address: nat44 add address {0}, or make the mapping out2in-only")]
    NoPoolAddress(Ipv4Addr),
    /// There is one already, or none.
    #[error("VRF table {0} exists already")]
    VrfExists(u32),
    /// There is none.
    #[error("there is no VRF table or route {0}")]
    NoVrf(u32),
    /// There is no such session.
    #[error("there is no such session")]
    NoSession,
    /// The forwarding table refused.
    #[error(transparent)]
    Fib(#[from] FibError),
    /// There is no such interface.
    #[error(transparent)]
    If(#[from] InterfaceError),
    /// A thread does not answer.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// Shallow reassembly refused.
    #[error(transparent)]
    Reassembly(#[from] ReassemblyError),
}

impl From<NatError> for Retval {
    fn from(error: NatError) -> Self {
        match error {
            NatError::Off(_) | NatError::Unsupported(_) => Retval::UNSUPPORTED,
            NatError::AlreadyOn => Retval::FEATURE_ALREADY_ENABLED,
            NatError::AlreadyOff | NatError::Disabled(_) => Retval::FEATURE_ALREADY_DISABLED,
            NatError::StaticOnly => Retval::FEATURE_DISABLED,
            // As VPP, which has no name for it.
            NatError::NoUser => Retval(1),
            NatError::Sessions { .. }
            | NatError::Timeout { .. }
            | NatError::Limit { .. }
            | NatError::Range(..)
            | NatError::Value(_)
            | NatError::TooFew => Retval::INVALID_VALUE,
            NatError::AddressExists(_)
            | NatError::Interface(_)
            | NatError::OtherKind(_)
            | NatError::MappingExists
            | NatError::BackEndExists
            | NatError::VrfExists(_) => Retval::VALUE_EXIST,
            NatError::NoAddress(_)
            | NatError::NoInterface(_)
            | NatError::NoMapping
            | NatError::NoBackEnd
            | NatError::NoPoolAddress(_)
            | NatError::NotShared(_)
            | NatError::NoVrf(_)
            | NatError::NoExempt(_)
            | NatError::NoSession => Retval::NO_SUCH_ENTRY,
            NatError::MustRemain | NatError::Mapped(_) | NatError::Busy(_) | NatError::Graph(_) => {
                Retval::UNSPECIFIED
            }
            NatError::Fib(error) => shoal_fib::api::retval(&error),
            NatError::If(error) => error.into(),
            NatError::Reassembly(_) => Retval::INVALID_SW_IF_INDEX,
        }
    }
}
