//! What can be wrong with an operation on neighbour discovery.

use std::net::Ipv6Addr;

use shoal_interface::InterfaceError;
use shoal_wire::Ip6Prefix;

/// Why an operation failed; nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NdError {
    /// The interface is not there.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
    /// A value is out of range.
    #[error("{what} {value} is out of range, {least} to {most}")]
    Range {
        /// What it is.
        what: &'static str,
        /// What was given.
        value: u32,
        /// The least there may be.
        least: u32,
        /// The most.
        most: u32,
    },
    /// A prefix is used for less time than it is preferred.
    #[error("{prefix}: preferred for {preferred} seconds but valid for {valid}: at most as long")]
    Lifetimes {
        /// The prefix.
        prefix: Ip6Prefix,
        /// How long it is preferred.
        preferred: u32,
        /// How long it is valid.
        valid: u32,
    },
    /// Hosts cannot make addresses of it.
    #[error("{0} is a group or a link's own prefix: hosts know those without being told")]
    NoPrefix(Ip6Prefix),
    /// It is not advertised.
    #[error("{0} is not advertised on {1}")]
    Unknown(Ip6Prefix, String),
    /// There are as many prefixes as fit an advertisement.
    #[error("an advertisement has room for {0} prefixes")]
    Full(usize),
    /// No host can have the address.
    #[error("{0} is not the address of a host")]
    NoHost(Ipv6Addr),
    /// It is not answered for.
    #[error("{0} is not answered for on {1}")]
    NoProxy(Ipv6Addr, String),
    /// Forwarding refused.
    #[error(transparent)]
    Forwarding(#[from] shoal_ip6::AddressError),
    /// Routers do not configure it.
    #[error("{0} is not configured by router advertisements")]
    NotAutoconfigured(String),
    /// The interface has no stations.
    #[error("{0} is not an Ethernet interface: it has no hosts to advertise to")]
    NotEthernet(String),
}
