//! What can be wrong with an operation on neighbours.

use std::net::IpAddr;

use shoal_adj::{AdjError, Family};
use shoal_fib::FibError;
use shoal_graph::GraphError;
use shoal_infra::qsbr::Backlog;
use shoal_interface::InterfaceError;
use shoal_wire::MacAddress;

/// Why an operation on neighbours failed; nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NeighbourError {
    /// The interface is not there.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
    /// Adjacencies are exhausted.
    #[error(transparent)]
    Adj(#[from] AdjError),
    /// The forwarding table refused the host route.
    #[error(transparent)]
    Fib(#[from] FibError),
    /// The graph lacks a node.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// The table is full.
    #[error(
        "{0} neighbours are known, the limit: raise it with `set ip neighbor-config {1} limit' or let old ones be recycled"
    )]
    Full(usize, Family),
    /// There is a static entry, which only another static one replaces.
    #[error("{0} is a static neighbour on {1}: give `static' to replace it, or delete it first")]
    Static(IpAddr, String),
    /// No such neighbour.
    #[error("no neighbour {0} on {1}")]
    NoNeighbour(IpAddr, String),
    /// No protocol looks for neighbours of this family.
    #[error("no protocol finds {0} neighbours here")]
    NoProtocol(Family),
    /// No host can have the address.
    #[error("{0} is not the address of a host")]
    NoHost(IpAddr),
    /// No station can have the address.
    #[error("{0} is not the address of a station")]
    NoStation(MacAddress),
    /// A thread does not move, and too many changes wait for it.
    #[error(transparent)]
    Backlog(#[from] Backlog),
    /// The interface needs no neighbours' addresses.
    #[error("{0} is not an Ethernet interface: it has no neighbours to resolve")]
    NotEthernet(String),
    /// The addresses go past the last one.
    #[error("{count} addresses from {first} go past the last one: at most {most}")]
    TooMany {
        /// The first address.
        first: IpAddr,
        /// How many were asked for.
        count: u32,
        /// How many there are.
        most: u32,
    },
}
