//! Completes a layer-4 checksum that was left to the device: no device can do it over the fragments of a packet.

use shoal_buffer::{Flags, Packet};
use shoal_wire::checksum::Sum;

/// Completes the checksum of a packet of `total` bytes whose checksum field holds the pseudo-header's sum; the device has
/// nothing to do then. `None`,
/// and the packet is as before, when the offsets it came with lie outside of it, or in bytes that other packets share.
pub fn complete(pkt: &mut Packet<'_>, total: usize) -> Option<()> {
    let meta = pkt.meta();
    let start = usize::try_from(i32::from(meta.l4) - i32::from(pkt.current())).ok()?;
    let field = start + usize::from(meta.checksum_offset);
    if field + 2 > total {
        return None;
    }
    let (mut sum, mut at) = (Sum::new(), 0);
    for segment in pkt.segments() {
        let (from, to) = (start.saturating_sub(at), total.saturating_sub(at));
        sum.add(segment.get(from.min(segment.len())..to.min(segment.len())).unwrap_or_default());
        at += segment.len();
    }
    // RFC 768: a computed zero is sent as all ones. For TCP both mean the same.
    let checksum = match sum.finish() {
        0 => u16::MAX,
        other => other,
    };
    if pkt.is_shared() && field + 2 > pkt.segment_len() {
        return None;
    }
    write(pkt, field, checksum.to_be_bytes());
    let meta = pkt.meta_mut();
    meta.flags = meta.flags.without(Flags::L4_CHECKSUM_OFFLOAD);
    Some(())
}

/// Writes two bytes that may lie in two segments.
fn write(pkt: &mut Packet<'_>, field: usize, bytes: [u8; 2]) {
    let mut segments = pkt.segments_mut();
    let mut at = 0;
    while let Some(segment) = segments.next_segment() {
        for (n, byte) in (field..).zip(bytes) {
            if let Some(to) = n.checked_sub(at).and_then(|n| segment.get_mut(n)) {
                *to = byte;
            }
        }
        at += segment.len();
    }
}
