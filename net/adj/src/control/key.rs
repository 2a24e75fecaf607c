//! What an adjacency stands for, by which it is found.

use std::net::IpAddr;

use shoal_buffer::SwIfIndex;

use crate::{AdjIndex, AdjKind, Link};

#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(super) enum Key {
    Special(AdjKind),
    Lookup(Link, u32),
    /// The same by the packet's source.
    SourceLookup(Link, u32),
    Neighbour(SwIfIndex, Link, IpAddr),
    Capped(SwIfIndex, Link, IpAddr, u16),
    Glean(SwIfIndex, IpAddr),
    Broadcast(SwIfIndex),
    Multicast(SwIfIndex, Link),
    InterfaceRx(SwIfIndex, Link),
    Dvr(SwIfIndex, Link),
    /// To a node.
    Node(&'static str, Link),
    /// A path list's, which is found by no key.
    Own(AdjIndex),
}

impl Key {
    /// The interface it sends by, or asks on.
    pub(super) fn interface(self) -> Option<SwIfIndex> {
        match self {
            // The last ones put no header in front.
            Key::Special(_)
            | Key::Lookup(..)
            | Key::SourceLookup(..)
            | Key::Own(_)
            | Key::InterfaceRx(..)
            | Key::Dvr(..)
            | Key::Node(..) => None,
            Key::Neighbour(i, ..)
            | Key::Capped(i, ..)
            | Key::Glean(i, _)
            | Key::Broadcast(i)
            | Key::Multicast(i, _) => Some(i),
        }
    }
}
