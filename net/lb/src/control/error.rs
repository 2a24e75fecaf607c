//! Why an operation failed.

use std::net::IpAddr;

use shoal_fib::FibError;
use shoal_graph::GraphError;
use shoal_interface::InterfaceError;

use crate::vip::{Encap, VipKey};

/// Why an operation failed; nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LbError {
    /// The virtual address is there, or another of its prefix excludes it.
    #[error(
        "{0} is there already: a prefix has one virtual address for all packets, or some with a protocol and port each"
    )]
    VipExists(VipKey),
    /// There is no such virtual address.
    #[error("there is no virtual address {0}")]
    NoVip(VipKey),
    /// The server is there.
    #[error("{0} is a server of {1} already")]
    ServerExists(IpAddr, VipKey),
    /// The address is none of its servers.
    #[error("{0} is no server of {1}")]
    NoServer(IpAddr, VipKey),
    /// A server's address is of the wrong family.
    #[error("{0}: servers of {1} have an {2} address")]
    ServerFamily(IpAddr, Encap, &'static str),
    /// Packets of the virtual address cannot go to servers so.
    #[error("packets to {0} cannot be sent by {1}")]
    Family(VipKey, Encap),
    /// A size is no power of two, or too large; the nearest that is not.
    #[error("{what} {value} is no power of two of at most {most}, nearest {nearest}", nearest = nearest(*.value, *.most))]
    Size {
        /// What has the size.
        what: &'static str,
        /// The size.
        value: u32,
        /// The largest.
        most: u32,
    },
    /// A value that means nothing.
    #[error("{0}")]
    Value(String),
    /// There are as many as there may be.
    #[error("there are {0} already, and there may not be more")]
    TooMany(&'static str),
    /// The interface refused.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
    /// The interface is not on the list.
    #[error("answers of servers are not translated on {0}")]
    NoInterface(String),
    /// The forwarding table refused.
    #[error(transparent)]
    Fib(#[from] FibError),
    /// There is no memory for flows.
    #[error("no memory for flows: {0}")]
    Memory(String),
    /// A thread does not answer.
    #[error(transparent)]
    Graph(#[from] GraphError),
}

fn nearest(value: u32, most: u32) -> u32 {
    let below = 1 << value.clamp(1, most).ilog2();
    let above = (below << 1).min(most);
    if value.saturating_sub(below) <= above.saturating_sub(value) { below } else { above }
}
