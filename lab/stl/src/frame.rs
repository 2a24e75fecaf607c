//! The first frame: MACs, first values, padding, checksums, and the place of our tag.

use shoal_lab_plan::{Checksums, FCS, SMALLEST, Tag, Write};

use crate::header::Headers;
use crate::program::{Program, meet, span};

/// Bytes of the lab's tag.
pub(crate) const TAG: usize = 18;

/// Puts the variables' first values in.
pub(crate) fn put(frame: &mut [u8], write: &Write, value: u64) {
    let added = value.wrapping_add(write.add as u64);
    let by = u32::from(write.shift.unsigned_abs());
    let shifted = if write.shift < 0 { added.checked_shr(by) } else { added.checked_shl(by) }.unwrap_or(0);
    let Some(place) = frame.get_mut(span(write)) else { return };
    let old = place.iter().fold(0_u64, |old, byte| old << 8 | u64::from(*byte));
    let new = old & !write.mask | shifted & write.mask;
    for (byte, fresh) in place.iter_mut().rev().zip(new.to_le_bytes()) {
        *byte = fresh;
    }
}

/// Makes the frame as long as the shortest that Ethernet has, as a card would. Whether it had to.
pub(crate) fn pad(frame: &mut Vec<u8>) -> bool {
    let least = (SMALLEST - FCS) as usize;
    let short = frame.len() < least;
    if short {
        frame.resize(least, 0);
    }
    short
}

/// Bytes on the wire, with FCS, of a frame of `length` without.
pub(crate) fn size_on_wire(length: u64) -> u64 {
    (length + u64::from(FCS)).max(u64::from(SMALLEST))
}

/// The last place in the payload that nothing else is written to.
pub(crate) fn tag(headers: &Headers, headers_end: usize, program: &Program) -> Tag {
    let first = headers.payload.start.max(headers_end);
    // ICMP's own checksum covers the payload, and is not among those that can follow it.
    let covered = headers.l4.as_ref().is_some_and(|s| s.protocol == 1);
    let Some(last) = headers.payload.end.checked_sub(TAG).filter(|last| !covered && *last >= first) else {
        return Tag::None;
    };
    let free = |at: &usize| {
        let bytes = *at..*at + TAG;
        !program.fields.iter().flat_map(|f| &f.writes).any(|w| meet(&span(w), &bytes))
    };
    let found = (first..=last).rev().find(free).and_then(|at| u16::try_from(at).ok());
    found.map_or(Tag::None, |offset| Tag::Signed { offset })
}

/// Which checksums follow: those that the program fixes, and those that would stay right but for our tag.
pub(crate) fn checksums(
    frame: &[u8],
    headers: &Headers,
    program: &Program,
    always_l4: bool,
) -> (Checksums, Option<&'static str>) {
    let header_changes = headers.ip4.as_ref().is_some_and(|h| program.touches(h));
    let ip4 = program.fix_ip4 || (headers.ip4_is_right(frame) && !header_changes);
    let segment_changes = headers.l4.as_ref().is_some_and(|s| program.touches(&s.bytes))
        || headers.addresses().is_some_and(|a| program.touches(&a));
    let right = headers.l4_is_right(frame);
    let there = headers.l4.as_ref().is_some_and(|s| s.protocol != 1) && !headers.has_no_checksum(frame);
    let l4 = program.fix_l4 || (there && (always_l4 || (right && !segment_changes)));
    let note = if header_changes && !ip4 {
        Some("its IPv4 checksum does not follow what changes: routers drop all but the first of its frames")
    } else if segment_changes && there && !l4 {
        Some("its UDP or TCP checksum stays that of the first frame, as T-Rex sends it; it can be kept right")
    } else {
        None
    };
    (Checksums { ip4, l4 }, note)
}
