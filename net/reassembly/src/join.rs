//! Fragments become one packet: a chain of their buffers, in order, without the headers of all but the first.
//!
//! A fragment that shares its payload with others, as one copy of many, is made its own when it comes in.

use shoal_buffer::{Buffer, Cache, Full};

/// Pieces up to this length are copied into the buffer before them, and the first buffer holds this much if there is as
/// much: nodes that look at headers of upper layers look there.
const SMALL: usize = 256;

/// Puts a chain behind a packet of one segment or more, copying what is small. `front`: it is the datagram's first.
///
/// # Errors
/// [`Full`] when either shares bytes with other packets and there are no buffers for copies; the packet is not whole then.
pub fn join(cache: &mut Cache, packet: &mut Buffer, mut rest: Buffer, front: bool) -> Result<(), Full> {
    let len = cache.packet(&mut rest).segment_len();
    let mut pkt = cache.packet(packet);
    let missing = if front { SMALL.saturating_sub(pkt.segment_len()) } else { 0 };
    let copied = if len <= SMALL { len } else { missing.min(len) };
    if copied == 0 || pkt.is_chained() || pkt.tailroom() < copied {
        return cache.append(&mut pkt, rest);
    }
    let mut from = cache.packet(&mut rest);
    let done = pkt.put(copied).map(|to| from.copy_to(to));
    debug_assert_eq!(done, Some(copied), "there was room, and as many bytes");
    if copied < len {
        let left = from.pull(copied);
        debug_assert!(left.is_some(), "shorter than the segment");
        return cache.append(&mut pkt, rest);
    }
    let own = cache.make_own(&mut from);
    let later = from.take_rest();
    cache.free(rest);
    match (own, later) {
        // There may be still too little in front.
        (Ok(()), Ok(Some(later))) => join(cache, packet, later, front),
        (Ok(()), Ok(None)) => Ok(()),
        _ => Err(Full),
    }
}
