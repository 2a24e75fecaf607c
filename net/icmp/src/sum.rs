//! Checksums of messages that lie in several buffers.

use shoal_buffer::Packet;
use shoal_wire::checksum::Sum;

/// The sum of everything behind the first `skip` bytes.
pub(crate) fn of(pkt: &Packet<'_>, skip: usize) -> Sum {
    let (mut sum, mut skip) = (Sum::new(), skip);
    for segment in pkt.segments() {
        sum.add(segment.get(skip..).unwrap_or_default());
        skip = skip.saturating_sub(segment.len());
    }
    sum
}

/// A sum that was begun, continued over a whole packet.
pub(crate) fn onto(mut sum: Sum, pkt: &Packet<'_>) -> Sum {
    pkt.segments().for_each(|segment| sum.add(segment));
    sum
}
