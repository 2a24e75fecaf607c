//! The nodes.

pub mod in2out;
pub mod out2in;

use shoal_derive::{ErrorCounters, NextNodes};
use shoal_graph::Edge;

/// Where a packet goes next.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The next feature.
    Feature(Edge),
    /// It has come as far as it may.
    #[node("ip6-icmp-error")]
    IcmpError,
}

/// Why a packet is dropped.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// unknown
    Unknown,
}
