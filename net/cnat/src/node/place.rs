//! Where the nodes are, and where their packets go.

use shoal_graph::{Edge, NextNodes};

/// How many nodes there are: all are the same but for their names, families and places.
pub const NODES: usize = 8;

/// The first node of those at the end of a virtual address's route: IPv4's, then IPv6's.
pub const VIP: usize = 4;
/// The first of those at the end of a shared source address's route.
pub const SHARED: usize = 6;

/// Where a node is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// A feature of packets that come in.
    Input,
    /// A feature of packets that go out.
    Output,
    /// At the end of a virtual address's route.
    Vip,
    /// At the end of a shared source address's route.
    Shared,
}

/// Whether a node is IPv6's.
pub const fn is_ip6(node: usize) -> bool {
    node & 1 == 1
}

/// Its place.
pub const fn place(node: usize) -> Place {
    match node >> 1 {
        0 => Place::Input,
        1 => Place::Output,
        2 => Place::Vip,
        _ => Place::Shared,
    }
}

/// Its name, and that of the node that hands packets to the same node of another thread.
pub const fn names(node: usize) -> (&'static str, &'static str) {
    match node {
        0 => ("cnat-input-ip4", "cnat-input-ip4-worker-handoff"),
        1 => ("cnat-input-ip6", "cnat-input-ip6-worker-handoff"),
        2 => ("cnat-output-ip4", "cnat-output-ip4-worker-handoff"),
        3 => ("cnat-output-ip6", "cnat-output-ip6-worker-handoff"),
        4 => ("ip4-cnat-tx", "ip4-cnat-tx-worker-handoff"),
        5 => ("ip6-cnat-tx", "ip6-cnat-tx-worker-handoff"),
        6 => ("ip4-cnat-return", "ip4-cnat-return-worker-handoff"),
        _ => ("ip6-cnat-return", "ip6-cnat-return-worker-handoff"),
    }
}

/// Where a packet goes next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Next<const NODE: usize>(Edge);

impl<const NODE: usize> NextNodes for Next<NODE> {
    const NAMES: &'static [&'static str] = if is_ip6(NODE) {
        &["ip6-lookup", "ip6-load-balance", "ip6-icmp-error", names(NODE).1]
    } else {
        &["ip4-lookup", "ip4-load-balance", "ip4-icmp-error", names(NODE).1]
    };

    fn edge(self) -> Edge {
        self.0
    }
}

impl<const NODE: usize> Next<NODE> {
    /// It is looked up.
    pub const LOOKUP: Self = Next(Edge(1));
    /// The way that was found for it.
    pub const BALANCE: Self = Next(Edge(2));
    /// It has come as far as it may.
    pub const ICMP_ERROR: Self = Next(Edge(3));
    /// Another thread has its session.
    pub const HANDOFF: Self = Next(Edge(4));

    /// The next feature.
    pub const fn feature(edge: Edge) -> Self {
        Next(edge)
    }
}
