//! Why an operation failed.

use std::net::Ipv4Addr;

use shoal_interface::InterfaceError;
use shoal_mfib::MfibError;

/// Why an operation failed; nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IgmpError {
    /// IGMP runs on the interface already.
    #[error("IGMP is enabled on {0} already")]
    Enabled(String),
    /// IGMP does not run on the interface.
    #[error("IGMP is not enabled on {0}")]
    NotEnabled(String),
    /// It runs there otherwise.
    #[error("IGMP is enabled on {0} as a {1}")]
    OtherMode(String, &'static str),
    /// A proxy listens as a host.
    #[error("IGMP is not enabled on {0} as a host")]
    NotHost(String),
    /// A proxy listens for links where the router is one.
    #[error("IGMP is not enabled on {0} as a router")]
    NotRouter(String),
    /// The interface has another table.
    #[error("{0} is not in table {1}")]
    NotInTable(String, u32),
    /// The table has a proxy.
    #[error("table {0} has an IGMP proxy already")]
    ProxyThere(u32),
    /// It has none.
    #[error("table {0} has no such IGMP proxy")]
    NoProxy(u32),
    /// The proxy listens for the link already.
    #[error("{0} is downstream of the IGMP proxy of table {1} already")]
    Downstream(String, u32),
    /// It does not.
    #[error("{0} is not downstream of the IGMP proxy of table {1}")]
    NotDownstream(String, u32),
    /// The address is no group's that is reported.
    #[error("{0} is not a group that can be listened to; those are 224.0.1.0 to 239.255.255.255")]
    NotAGroup(Ipv4Addr),
    /// The source is not one host's.
    #[error("{0} is not the address of one host; 0.0.0.0 means any")]
    NotASource(Ipv4Addr),
    /// That is listened to already.
    #[error("{0} listens to ({1}, {2}) already")]
    Listening(String, Ipv4Addr, Ipv4Addr),
    /// That is not listened to.
    #[error("{0} does not listen to ({1}, {2})")]
    NotListening(String, Ipv4Addr, Ipv4Addr),
    /// Too many groups or sources.
    #[error("{0} listens to {1}, more is not possible")]
    Full(String, usize),
    /// There is no such interface.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
    /// The multicast table refused.
    #[error(transparent)]
    Mfib(#[from] MfibError),
}
