//! Fragments become one packet: a chain of their buffers, in order, without the headers of all but the first.

use shoal_buffer::{Buffer, Cache};

/// Pieces up to this length are copied into the buffer before them, and the first buffer holds this much if there is as
/// much: whoever looks at headers of upper layers looks there.
const SMALL: usize = 256;

/// Puts a chain behind a packet of one segment or more, copying what is small. `front`: it is the datagram's first.
pub fn join(cache: &mut Cache, packet: &mut Buffer, mut rest: Buffer, front: bool) {
    let len = cache.packet(&mut rest).segment_len();
    let mut pkt = cache.packet(packet);
    let missing = if front { SMALL.saturating_sub(pkt.segment_len()) } else { 0 };
    let copied = if len <= SMALL { len } else { missing.min(len) };
    if copied == 0 || pkt.is_chained() || pkt.tailroom() < copied {
        pkt.append_segment(rest);
        return;
    }
    let mut from = cache.packet(&mut rest);
    let done = pkt.put(copied).map(|to| from.copy_to(to));
    debug_assert_eq!(done, Some(copied), "there was room, and as many bytes");
    if copied < len {
        let left = from.pull(copied);
        debug_assert!(left.is_some(), "shorter than the segment");
        pkt.append_segment(rest);
        return;
    }
    let later = from.take_rest();
    cache.free(rest);
    if let Some(later) = later {
        // There may be still too little in front.
        join(cache, packet, later, front);
    }
}
