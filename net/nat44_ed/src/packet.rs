//! A packet in a node's hands: how it follows its session.

use shoal_buffer::Packet;
use shoal_flow::Ip4Flow;
use shoal_nat::{Kind, ParsedPacket, Sum};
pub use shoal_nat44::packet::{SYN, Ticket, clamp, front, is_expiring, look_up_in, seen, table};

use crate::session_direction::SessionDirection;
use crate::sessions::key;

/// The key of a packet's session, if it can have one.
#[inline(always)]
pub fn key_of(seen: &ParsedPacket, table: u32) -> Option<Ip4Flow> {
    let has_key = !matches!(seen.kind, Kind::Error | Kind::OtherIcmp);
    has_key.then(|| key(seen.tuple, seen.protocol, table))
}

/// Translates a packet as one direction of its session says. `None` if it is cut short, which cannot be: its tuple was read.
#[inline(always)]
pub fn rewrite(
    way: &mut SessionDirection,
    seen: &ParsedPacket,
    pkt: &mut Packet<'_>,
    front: usize,
) -> Option<()> {
    way.count(pkt.len().saturating_sub(front));
    let sum = Sum::of(pkt);
    let bytes = pkt.data_mut().get_mut(front..)?;
    way.rewrite().write(bytes, seen.header.into(), seen.kind, seen.first, sum)
}
