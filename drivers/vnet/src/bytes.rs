//! Reading and writing a frame that lies in several segments.

/// Total bytes of a frame.
pub(crate) fn total(segs: &[impl AsRef<[u8]>]) -> usize {
    segs.iter().map(|s| s.as_ref().len()).sum()
}

/// Copies `out.len()` bytes that start at `at`; `None` when the frame is shorter.
pub(crate) fn copy_out(segs: &[impl AsRef<[u8]>], mut at: usize, out: &mut [u8]) -> Option<()> {
    let mut done = 0;
    for seg in segs {
        let seg = seg.as_ref();
        let want = out.len() - done;
        if want == 0 {
            break;
        }
        let Some(rest) = seg.get(at..) else {
            at -= seg.len();
            continue;
        };
        let n = rest.len().min(want);
        out.get_mut(done..done + n)?.copy_from_slice(rest.get(..n)?);
        done += n;
        at = 0;
    }
    (done == out.len()).then_some(())
}

/// Shows `len` bytes that start at `at`, part by part; fewer when the frame is shorter.
pub(crate) fn each_part<'a>(segs: &[&'a [u8]], mut at: usize, mut len: usize, mut f: impl FnMut(&'a [u8])) {
    for seg in segs {
        let Some(rest) = seg.get(at..) else {
            at -= seg.len();
            continue;
        };
        let part = rest.get(..len.min(rest.len())).unwrap_or_default();
        f(part);
        len -= part.len();
        if len == 0 {
            return;
        }
        at = 0;
    }
}

/// Writes a 16-bit big-endian word at byte `at`; the word may straddle two segments.
pub(crate) fn put_u16(segs: &mut [&mut [u8]], at: usize, value: u16) -> Option<()> {
    let [hi, lo] = value.to_be_bytes();
    put_byte(segs, at, hi)?;
    put_byte(segs, at + 1, lo)
}

fn put_byte(segs: &mut [&mut [u8]], mut at: usize, value: u8) -> Option<()> {
    for seg in segs {
        if let Some(slot) = seg.get_mut(at) {
            *slot = value;
            return Some(());
        }
        at -= seg.len();
    }
    None
}

/// A big-endian 16-bit word of a contiguous header.
pub(crate) fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 2)?.try_into().ok().map(u16::from_be_bytes)
}

/// A big-endian 32-bit word of a contiguous header.
pub(crate) fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.try_into().ok().map(u32::from_be_bytes)
}

/// Overwrites `value.len()` bytes at `at`.
pub(crate) fn put(bytes: &mut [u8], at: usize, value: &[u8]) -> Option<()> {
    bytes.get_mut(at..at + value.len())?.copy_from_slice(value);
    Some(())
}

/// Where the network header of an Ethernet frame starts: 14, or 4 more for each of up to two VLAN tags
/// (802.1Q and 802.1ad). `None` when `head`, the first bytes of the frame, ends before that.
///
/// ```
/// let mut frame = [0u8; 64];
/// frame[12..14].copy_from_slice(&[0x81, 0x00]);
/// frame[16..18].copy_from_slice(&[0x08, 0x00]);
/// assert_eq!(shoal_vnet::ethernet_payload(&frame), Some(18));
/// ```
pub fn ethernet_payload(head: &[u8]) -> Option<usize> {
    let mut at = 12;
    for _ in 0..3 {
        match be16(head, at)? {
            0x8100 | 0x88a8 => at += 4,
            _ => return Some(at + 2),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_across_segment_boundaries_and_refuses_a_short_frame() {
        let segs: [&[u8]; 4] = [&[1, 2, 3], &[], &[4], &[5, 6]];
        let mut out = [0; 4];
        assert_eq!(copy_out(&segs, 2, &mut out), Some(()));
        assert_eq!(out, [3, 4, 5, 6]);
        assert_eq!(copy_out(&segs, 3, &mut out), None);
        assert_eq!(copy_out(&segs, 99, &mut out), None);
    }

    #[test]
    fn writes_a_word_that_straddles_two_segments() {
        let (mut a, mut b) = ([0u8; 3], [0u8; 3]);
        assert_eq!(put_u16(&mut [&mut a, &mut b], 2, 0xabcd), Some(()));
        assert_eq!((a[2], b[0]), (0xab, 0xcd));
        assert_eq!(put_u16(&mut [&mut a, &mut b], 5, 1), None);
    }

    #[test]
    fn a_third_vlan_tag_is_not_followed() {
        let mut frame = [0u8; 64];
        for at in [12, 16, 20] {
            frame[at..at + 2].copy_from_slice(&[0x81, 0x00]);
        }
        assert_eq!(ethernet_payload(&frame), None);
    }
}
