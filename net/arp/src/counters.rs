//! What is counted of ARP by interface, under VPP's names.

use shoal_neighbor::counters::{MessageCounters, MessageKind};

/// Kinds of ARP packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Who has the address?
    Request,
    /// I have it.
    Reply,
    /// I have it, by the way.
    Gratuitous,
}

impl MessageKind for Kind {
    const PROTOCOL: &'static str = "arp";
    const NAMES: &'static [&'static str] = &["requests", "replies", "gratuitous"];

    fn index(self) -> usize {
        self as usize
    }
}

/// `/net/arp/{rx,tx}/{requests,replies,gratuitous}`, by interface.
pub type ArpCounters = MessageCounters<Kind>;
