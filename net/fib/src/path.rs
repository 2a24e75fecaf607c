//! One way a packet may take.

use std::net::Ipv4Addr;

use shoal_buffer::SwIfIndex;

use crate::FibIndex;

/// Where a path leads.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Via {
    /// Out of an interface to whoever has the packet's destination address: a connected network. `source` is the
    /// address to ask with; unspecified: any of the interface.
    Attached {
        /// The interface.
        interface: SwIfIndex,
        /// The router's address in the network.
        source: Ipv4Addr,
    },
    /// To a neighbour on an interface.
    NextHop {
        /// The interface.
        interface: SwIfIndex,
        /// The neighbour.
        next_hop: Ipv4Addr,
    },
    /// To an address that is itself looked up, among the entries of a table.
    Recursive {
        /// The address.
        next_hop: Ipv4Addr,
        /// The table it is looked up in.
        fib: FibIndex,
    },
    /// To everybody on an interface.
    Broadcast {
        /// The interface.
        interface: SwIfIndex,
    },
    /// To this router; the interface and the address are shown and decide nothing.
    Local {
        /// The interface that has the address.
        interface: Option<SwIfIndex>,
        /// The address.
        address: Ipv4Addr,
    },
    /// The packet's destination is looked up again in another table.
    Lookup(FibIndex),
    /// Handed to the host.
    Punt,
    /// There is no route; the sender is told. What a table's default route is until somebody gives it another.
    NoRoute,
    /// Thrown away silently.
    Drop,
    /// Thrown away; the sender is told that there is no way.
    Unreachable,
    /// Thrown away; the sender is told that it is forbidden.
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
}

impl From<Via> for Path {
    fn from(via: Via) -> Self {
        Path { preference: 0, via, weight: 1 }
    }
}

impl Path {
    /// To a neighbour on an interface.
    pub fn next_hop(next_hop: Ipv4Addr, interface: SwIfIndex) -> Path {
        Via::NextHop { interface, next_hop }.into()
    }

    /// To an address that is looked up in a table.
    pub fn recursive(next_hop: Ipv4Addr, fib: FibIndex) -> Path {
        Via::Recursive { next_hop, fib }.into()
    }

    /// The same with another share.
    #[must_use]
    pub fn weight(mut self, weight: u8) -> Path {
        self.weight = weight;
        self
    }

    /// The same with another preference.
    #[must_use]
    pub fn preference(mut self, preference: u8) -> Path {
        self.preference = preference;
        self
    }
}

impl Via {
    /// The interface it names.
    pub fn interface(self) -> Option<SwIfIndex> {
        match self {
            Via::Attached { interface, .. }
            | Via::NextHop { interface, .. }
            | Via::Broadcast { interface } => Some(interface),
            Via::Local { interface, .. } => interface,
            _ => None,
        }
    }

    /// The table it needs.
    pub fn table(self) -> Option<FibIndex> {
        match self {
            Via::Recursive { fib, .. } | Via::Lookup(fib) => Some(fib),
            _ => None,
        }
    }

    /// The address it leads to.
    pub fn address(self) -> Option<Ipv4Addr> {
        match self {
            Via::NextHop { next_hop, .. } | Via::Recursive { next_hop, .. } => Some(next_hop),
            _ => None,
        }
    }
}
