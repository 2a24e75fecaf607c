//! What is counted of neighbour discovery by interface, under VPP's names.

use shoal_neighbor::counters::{MessageCounters, MessageKind};

/// Kinds of messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Who has the address?
    NeighbourSolicitation,
    /// I have it.
    NeighbourAdvertisement,
    /// Which routers are here?
    RouterSolicitation,
    /// I am one.
    RouterAdvertisement,
    /// Which groups I listen to.
    ListenerReport,
    /// I have it, by the way.
    UnsolicitedAdvertisement,
}

impl MessageKind for Kind {
    const PROTOCOL: &'static str = "ip6-nd";
    /// VPP has the first two and the last; advertisements without the solicited flag are gratuitous.
    const NAMES: &'static [&'static str] = &["requests", "replies", "rs", "ra", "mld-report", "gratuitous"];

    fn index(self) -> usize {
        self as usize
    }
}

/// `/net/ip6-nd/{rx,tx}/{requests,replies,gratuitous,rs,ra,mld-report}` by interface.
pub type NdCounters = MessageCounters<Kind>;
