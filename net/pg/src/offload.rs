//! Completes checksums that were left to the device: this device is software.

use shoal_buffer::{Flags, Packet};
use shoal_wire::checksum::Sum;

/// Completes the layer-4 checksum over the packet's bytes, whose checksum field holds the pseudo-header sum.
/// A packet whose offsets lie outside of its first segment is left as it is.
pub(crate) fn complete_checksum(pkt: &mut Packet<'_>) {
    let meta = pkt.meta();
    let l4 = isize::from(meta.l4) - isize::from(pkt.current());
    let field = l4 + isize::from(meta.checksum_offset.min(i16::MAX as u16).cast_signed());
    let (Ok(l4), Ok(field)) = (usize::try_from(l4), usize::try_from(field)) else { return };
    if field + 2 > pkt.segment_len() {
        return;
    }
    let mut sum = Sum::new();
    let mut skip = l4;
    for segment in pkt.segments() {
        sum.add(segment.get(skip.min(segment.len())..).unwrap_or_default());
        skip = skip.saturating_sub(segment.len());
    }
    // RFC 768: a computed zero is sent as all ones. For TCP both mean the same.
    let checksum = match sum.finish() {
        0 => u16::MAX,
        other => other,
    };
    if let Some(bytes) = pkt.data_mut().get_mut(field..field + 2) {
        bytes.copy_from_slice(&checksum.to_be_bytes());
    }
    let meta = pkt.meta_mut();
    meta.flags = meta.flags.without(Flags::L4_CHECKSUM_OFFLOAD);
}
