//! Sessions that are looked for ahead, on a superpath.

use shoal_flow::{Ip4Flow, TableId};
use shoal_nat::{Kind, ParsedPacket, PortPacket};

/// The flow of a packet with ports.
#[inline(always)]
pub fn flow_of(seen: &PortPacket, table: u32) -> Ip4Flow {
    let table = TableId::new(table).unwrap_or_default();
    Ip4Flow::of_words(seen.addresses, seen.ports, seen.protocol(), table)
}

/// A whole packet of a protocol without ports.
#[inline(always)]
pub fn portless(bytes: &[u8]) -> Option<ParsedPacket> {
    let seen = ParsedPacket::read(bytes)?;
    (!seen.fragment && !matches!(seen.kind, Kind::Tcp | Kind::Udp)).then_some(seen)
}
