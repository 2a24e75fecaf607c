//! What differs between the families where nodes are written once: names, and how a header is described.

use std::fmt;

use shoal_adj::{Family, Link};
use shoal_buffer::Packet;
use shoal_graph::ErrorCounter;
use shoal_interface::{Event, SwIfIndex};

/// Names of a family's feature arcs.
#[derive(Clone, Copy, Debug)]
pub struct ArcNames {
    /// Features of packets to one host.
    pub unicast: &'static str,
    /// Features of packets to a group.
    pub multicast: &'static str,
    /// Features of packets that go out.
    pub output: &'static str,
    /// Features of packets for this router.
    pub local: &'static str,
    /// Features of packets for the host this router runs on.
    pub punt: &'static str,
    /// Features of packets that are dropped without an answer to their senders.
    pub drop: &'static str,
}

/// Names of a family's nodes that others lead to.
#[derive(Clone, Copy, Debug)]
pub struct NodeNames {
    /// Checks headers of all that is received.
    pub input: &'static str,
    /// Checks options, or the hop-by-hop header.
    pub options: &'static str,
    /// Finds the route.
    pub lookup: &'static str,
    /// Follows a route that another node has chosen.
    pub load_balance: &'static str,
    /// Puts the link's header in front.
    pub rewrite: &'static str,
    /// Delivers to this router.
    pub local: &'static str,
    /// Goes on behind the features of packets for this router.
    pub local_end: &'static str,
    /// Gives packets to the host.
    pub punt: &'static str,
    /// Ends packets without a way.
    pub drop: &'static str,
    /// Ends packets of interfaces without the family.
    pub not_enabled: &'static str,
    /// Has a packet received again by another interface.
    pub interface_rx: &'static str,
    /// Answers with an ICMP error.
    pub icmp_error: &'static str,
}

/// Why a packet has no way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unreachable {
    /// There is no route.
    NoRoute,
    /// The route says that its destinations cannot be reached.
    Route,
    /// The neighbour cannot be found.
    Address,
    /// The route says that its destinations are prohibited.
    Prohibited,
}

/// A family of addresses.
pub trait IpFamily: Copy + Send + Sync + 'static {
    /// The family.
    const FAMILY: Family;
    /// Its kind of adjacency.
    const LINK: Link;
    /// Its arcs.
    const ARCS: ArcNames;
    /// Its nodes.
    const NODES: NodeNames;
    /// Where packets that are received are counted, by interface.
    const RECEIVED: &'static str;
    /// The counter of packets from interfaces without the family.
    const NOT_ENABLED: &'static [ErrorCounter];
    /// The next nodes of the node that drops: the one that answers with an error.
    const ICMP_ERROR_NEXT: &'static [&'static str];
    /// The next nodes of the node that has packets received again: the one of all that is received.
    const INPUT_NEXT: &'static [&'static str];

    /// Prints a packet's headers as `show trace` does.
    ///
    /// # Errors
    /// Those of the formatter.
    fn describe(bytes: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result;

    /// Leaves in a packet which ICMP error its sender is to get.
    fn ask_unreachable(why: Unreachable, pkt: &mut Packet<'_>);

    /// Whether an event says that the family runs, or does not run any more, on an interface.
    fn enabled(event: Event) -> Option<(SwIfIndex, bool)>;
}
