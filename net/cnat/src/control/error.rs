//! Why an operation failed.

use std::net::IpAddr;

use shoal_fib::FibError;
use shoal_graph::GraphError;
use shoal_interface::InterfaceError;
use shoal_reassembly::ReassemblyError;

use super::translations::Vip;

/// Why an operation failed; nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CnatError {
    /// There is no such translation.
    #[error("there is no translation {id}{}", or_nearest(*.nearest))]
    NoTranslation {
        /// The number that was asked for.
        id: u32,
        /// The nearest there is.
        nearest: Option<u32>,
    },
    /// The protocol has no ports.
    #[error("protocol {0} is not translated, nearest TCP (6), UDP (17)")]
    Protocol(u8),
    /// A translation has a port.
    #[error("{0}: a translation and its back ends have a port, 1 to 65535")]
    Port(&'static str),
    /// A back end's address is of the other family, or none.
    #[error("{address}: back ends of {vip} have an {family} address of one host")]
    Family {
        /// The back end's.
        address: IpAddr,
        /// Whose.
        vip: String,
        /// What it should be.
        family: &'static str,
    },
    /// The back end is the virtual address itself.
    #[error("{0} cannot be its own back end")]
    Itself(Vip),
    /// The virtual address is an interface's.
    #[error(
        "{address} is an address of {interface}: its translation is `real`, and packets are translated where `set cnat feature` is"
    )]
    Own {
        /// The address.
        address: IpAddr,
        /// The interface.
        interface: String,
    },
    /// Another number than is there.
    #[error("unknown {what} {value}, nearest {nearest}")]
    Value {
        /// Of what.
        what: &'static str,
        /// Which.
        value: u32,
        /// What is known.
        nearest: u32,
    },
    /// There is no such forwarding table.
    #[error("there is no table {0} of IPv4 or IPv6")]
    NoTable(u32),
    /// Shared addresses have no such use.
    #[error("{0} is no address of one host")]
    NotOneHost(IpAddr),
    /// The prefix is not excluded.
    #[error("prefix {0} is not excluded")]
    NoPrefix(shoal_wire::IpPrefix),
    /// There is no address to be shared by default.
    #[error("no default snat policy")]
    NoSnat,
    /// There are as many as there may be.
    #[error("there are {0} already, and there may not be more")]
    TooMany(&'static str),
    /// The interface refused.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
    /// The forwarding table refused.
    #[error(transparent)]
    Fib(#[from] FibError),
    /// Shallow reassembly refused.
    #[error(transparent)]
    Reassembly(#[from] ReassemblyError),
    /// There is no memory for sessions.
    #[error("no memory for sessions: {0}")]
    Memory(String),
    /// A thread does not answer.
    #[error(transparent)]
    Graph(#[from] GraphError),
}

fn or_nearest(nearest: Option<u32>) -> String {
    nearest.map(|id| format!(", nearest {id}")).unwrap_or_default()
}
