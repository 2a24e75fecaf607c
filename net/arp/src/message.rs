//! What nodes tell the control plane, through bounded channels.

use std::net::Ipv4Addr;

use shoal_buffer::SwIfIndex;
use shoal_wire::MacAddress;

use crate::Key;
use crate::counters::Kind;

/// Something that matters to the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fact {
    /// A station's claim of its address.
    Said(Learn),
    /// A station claimed an address of this router. Nothing is learned of that.
    Claimed(Learn),
    /// Packets are sent to a neighbour that was not heard of lately.
    Used(Key),
}

/// A station's claim of its address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Learn {
    /// The link.
    pub interface: SwIfIndex,
    /// Its IPv4 address.
    pub address: Ipv4Addr,
    /// Its link-layer address.
    pub mac: MacAddress,
    /// The kind of message it was in. An announcement to all stations enters no unknown neighbour.
    pub kind: Kind,
}
