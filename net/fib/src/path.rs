//! One way a packet may take.

use std::net::IpAddr;

use shoal_adj::{Family, Spread};
use shoal_buffer::SwIfIndex;
use shoal_wire::IpPrefix;

use crate::address::is_one_host;
use crate::{FibIndex, Source};

/// Where a path leads.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Via {
    /// Out of an interface to the host that has the packet's destination address: a connected network. `source` is the
    /// address to ask with; unspecified: any of the interface. In an entry for one host it is a [next
    /// hop](Via::NextHop), the host itself.
    Attached {
        /// The interface.
        interface: SwIfIndex,
        /// The router's address in the network.
        source: IpAddr,
    },
    /// To a neighbour on an interface.
    NextHop {
        /// The interface.
        interface: SwIfIndex,
        /// The neighbour.
        next_hop: IpAddr,
    },
    /// To an address that is itself looked up, among the entries of a table of its own family.
    Recursive {
        /// The address.
        next_hop: IpAddr,
        /// The table it is looked up in.
        fib: FibIndex,
    },
    /// To everybody on an interface.
    Broadcast {
        /// The interface.
        interface: SwIfIndex,
    },
    /// As if it had been received by an interface: that one's features run, and its table decides.
    InterfaceRx {
        /// The interface.
        interface: SwIfIndex,
    },
    /// Bridged out of an interface in layer 2, behind the link's header the packet came with: a distributed virtual router.
    Dvr {
        /// The interface.
        interface: SwIfIndex,
    },
    /// To a node of the graph: a feature that has taken the addresses for itself. No client can name it.
    Node(&'static str),
    /// To this router; the interface and the address are shown and decide nothing.
    Local {
        /// The interface that has the address.
        interface: Option<SwIfIndex>,
        /// The address.
        address: IpAddr,
    },
    /// The packet's destination is looked up again in another table of its family.
    Lookup(FibIndex),
    /// The packet's source is looked up in a table of its family, and the packet goes where that leads.
    SourceLookup(FibIndex),
    /// Where packets to a host go without this path, but none longer than `mtu`: of entries of that host alone, from
    /// [`Source::PathMtu`](crate::Source::PathMtu).
    PathMtu {
        /// The host.
        peer: IpAddr,
        /// The entry's table.
        fib: FibIndex,
        /// The longest packet.
        mtu: u16,
    },
    /// Handed to the host.
    Punt,
    /// There is no route; the sender gets an error. A table's default route is this until it is configured.
    NoRoute,
    /// Thrown away silently.
    Drop,
    /// Thrown away; the sender gets an error that there is no way.
    Unreachable,
    /// Thrown away; the sender gets an error that it is forbidden.
    Prohibit,
}

/// A way and how much it is wanted.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Path {
    /// Paths of a higher value stand back for those of a lower one.
    pub preference: u8,
    /// Where it leads.
    pub via: Via,
    /// Its share among paths of the same preference, 1 to 255.
    pub weight: u8,
    /// What becomes of the others' shares when it comes or goes. One resilient path makes its list so.
    pub spread: Spread,
}

impl From<Via> for Path {
    fn from(via: Via) -> Self {
        Path { preference: 0, via, weight: 1, spread: Spread::Even }
    }
}

impl Path {
    /// To a neighbour on an interface.
    pub fn next_hop(next_hop: impl Into<IpAddr>, interface: SwIfIndex) -> Path {
        Via::NextHop { interface, next_hop: next_hop.into() }.into()
    }

    /// To an address that is looked up in a table.
    pub fn recursive(next_hop: impl Into<IpAddr>, fib: FibIndex) -> Path {
        Via::Recursive { next_hop: next_hop.into(), fib }.into()
    }

    /// The same with another share.
    #[must_use]
    pub fn weight(mut self, weight: u8) -> Path {
        self.weight = weight;
        self
    }

    /// The same, whose coming and going moves no flows of the others.
    #[must_use]
    pub fn resilient(mut self) -> Path {
        self.spread = Spread::Resilient;
        self
    }

    /// The same, with at least so many buckets for all paths together.
    #[must_use]
    pub fn buckets(mut self, least: u16) -> Path {
        self.spread = Spread::Buckets(least);
        self
    }

    /// The same with another preference.
    #[must_use]
    pub fn preference(mut self, preference: u8) -> Path {
        self.preference = preference;
        self
    }
}

/// The paths of a host's own entry, when they are others than those given: what is on a link there is the host itself, a
/// neighbour like others. Without that each of its packets would ask the link for it again. What interfaces contribute
/// is left as it is.
pub(crate) fn of_host(prefix: &IpPrefix, source: Source, paths: &[Path]) -> Option<Vec<Path>> {
    let attached = |path: &Path| matches!(path.via, Via::Attached { .. });
    let next_hop = prefix.addr();
    let host = prefix.len() == prefix.max_len() && is_one_host(next_hop);
    if source == Source::Interface || !host || !paths.iter().any(attached) {
        return None;
    }
    let behind = |path: &Path| match path.via {
        Via::Attached { interface, .. } => Path { via: Via::NextHop { interface, next_hop }, ..*path },
        _ => *path,
    };
    Some(paths.iter().map(behind).collect())
}

impl Via {
    /// The interface it names.
    pub fn interface(self) -> Option<SwIfIndex> {
        match self {
            Via::Attached { interface, .. }
            | Via::NextHop { interface, .. }
            | Via::Broadcast { interface }
            | Via::InterfaceRx { interface }
            | Via::Dvr { interface } => Some(interface),
            Via::Local { interface, .. } => interface,
            _ => None,
        }
    }

    /// The table it needs, when packets of `family` go that way.
    pub fn table(self, family: Family) -> Option<(Family, FibIndex)> {
        match self {
            Via::Recursive { next_hop, fib } => Some((Family::of(next_hop), fib)),
            Via::Lookup(fib) | Via::SourceLookup(fib) | Via::PathMtu { fib, .. } => Some((family, fib)),
            _ => None,
        }
    }

    /// The address it leads to.
    pub fn address(self) -> Option<IpAddr> {
        match self {
            Via::NextHop { next_hop, .. } | Via::Recursive { next_hop, .. } => Some(next_hop),
            _ => None,
        }
    }
}
