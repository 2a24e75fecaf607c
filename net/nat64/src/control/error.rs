//! Why an operation failed.

use std::net::Ipv4Addr;

use shoal_fib::FibError;
use shoal_graph::GraphError;
use shoal_interface::InterfaceError;
use shoal_message::Retval;
use shoal_reassembly::ReassemblyError;

use crate::sessions::LONGEST;

/// Why an operation failed; nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Nat64Error {
    /// NAT64 is off.
    #[error("nat64 is disabled: nat64 plugin enable")]
    Off,
    /// It is on already.
    #[error("already enabled")]
    AlreadyOn,
    /// It is off already.
    #[error("already disabled")]
    AlreadyOff,
    /// There is no memory for so many sessions.
    #[error("no memory for sessions: {0}")]
    Memory(String),
    /// A timeout is out of range.
    #[error("a timeout of {0} seconds is not possible: 1 to {LONGEST}, nearest {nearest}", nearest = (*.0).clamp(1, LONGEST))]
    Timeout(u32),
    /// The range ends before it begins, or is too long.
    #[error("{0} - {1} is no range of at most {most} addresses", most = super::pool::MOST_AT_ONCE)]
    Range(Ipv4Addr, Ipv4Addr),
    /// Hosts share it already.
    #[error("NAT64 pool address {0} exist.")]
    AddressExists(Ipv4Addr),
    /// Hosts do not share it.
    #[error("NAT64 pool address {0} not exist.")]
    NoAddress(Ipv4Addr),
    /// A binding's address must be one that hosts share.
    #[error("{0} is no NAT64 pool address: nat64 add pool address {0}")]
    NotShared(Ipv4Addr),
    /// The address of an interface is used already, or not.
    #[error("{0}")]
    Interface(String),
    /// The interface is not on that side.
    #[error("interface {0} has no such NAT64")]
    NoInterface(String),
    /// The host's address and port have a static binding.
    #[error("NAT64 BIB entry exist.")]
    BindingExists,
    /// The address and port are another host's already.
    #[error("Port {0} is used already.")]
    PortTaken(u16),
    /// There is no such binding.
    #[error("NAT64 BIB entry not exist.")]
    NoBinding,
    /// Port 0 of a protocol with ports.
    #[error("port 0 is not possible for protocol {0}")]
    NoPort(u8),
    /// RFC 6052 has no such length.
    #[error("Invalid prefix length.")]
    PrefixLength(u8),
    /// The VRF has no such prefix.
    #[error("NAT64 prefix not exist.")]
    NoPrefix,
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

impl From<Nat64Error> for Retval {
    fn from(error: Nat64Error) -> Self {
        match error {
            Nat64Error::Off => Retval::UNSUPPORTED,
            // As VPP, which has no name for it.
            Nat64Error::AlreadyOn | Nat64Error::AlreadyOff => Retval(1),
            Nat64Error::Timeout(_)
            | Nat64Error::Range(..)
            | Nat64Error::NoPort(_)
            | Nat64Error::PortTaken(_)
            | Nat64Error::PrefixLength(_) => Retval::INVALID_VALUE,
            Nat64Error::AddressExists(_) | Nat64Error::Interface(_) | Nat64Error::BindingExists => {
                Retval::VALUE_EXIST
            }
            Nat64Error::NoAddress(_)
            | Nat64Error::NotShared(_)
            | Nat64Error::NoInterface(_)
            | Nat64Error::NoBinding
            | Nat64Error::NoPrefix => Retval::NO_SUCH_ENTRY,
            Nat64Error::Memory(_) | Nat64Error::Graph(_) => Retval::UNSPECIFIED,
            Nat64Error::Fib(error) => shoal_fib::api::retval(&error),
            Nat64Error::If(error) => error.into(),
            Nat64Error::Reassembly(_) => Retval::INVALID_SW_IF_INDEX,
        }
    }
}
