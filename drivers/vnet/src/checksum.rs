//! The Internet checksum (RFC 1071) over a frame in segments.

use crate::bytes::{put_u16, total};
use crate::hdr::VnetError;

/// A running ones' complement sum that remembers whether it stands on an odd byte, so that segments of
/// any length can follow each other.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sum {
    acc: u64,
    odd: bool,
}

impl Sum {
    /// Adds bytes in network order.
    pub fn add(&mut self, mut bytes: &[u8]) {
        if self.odd {
            let Some((first, rest)) = bytes.split_first() else { return };
            self.acc += u64::from(*first);
            self.odd = false;
            bytes = rest;
        }
        let (words, rest) = bytes.as_chunks::<4>();
        for word in words {
            self.acc += u64::from(u32::from_be_bytes(*word));
        }
        let (pairs, last) = rest.as_chunks::<2>();
        for pair in pairs {
            self.acc += u64::from(u16::from_be_bytes(*pair));
        }
        if let [byte] = last {
            self.acc += u64::from(*byte) << 8;
            self.odd = true;
        }
        // A frame adds at most 64 Ki words of 32 bits; folding here keeps `acc` far from overflow however
        // many slices follow.
        self.acc = (self.acc & 0xffff_ffff) + (self.acc >> 32);
    }

    /// Adds one 16-bit word (a pseudo-header field). Only between even-sized pieces.
    pub fn add_u16(&mut self, word: u16) {
        self.acc += u64::from(word);
    }

    /// The checksum as TCP and UDP send it: RFC 768 sends a computed zero as all ones, which for TCP is the same number.
    pub fn finish_transport(self) -> u16 {
        match self.finish() {
            0 => 0xffff,
            sum => sum,
        }
    }

    /// The complemented 16-bit checksum.
    pub fn finish(self) -> u16 {
        let mut acc = self.acc;
        while acc > 0xffff {
            acc = (acc & 0xffff) + (acc >> 16);
        }
        !(acc as u16)
    }
}

/// Pays a `VIRTIO_NET_HDR_F_NEEDS_CSUM` debt: sums everything from byte `start` to the end of the frame
/// (the field already holds the pseudo-header's sum) and stores the result at `start + offset`.
///
/// A result of zero is stored as `0xffff`, which RFC 768 requires of UDP and which is the same number
/// for TCP. Error: [`VnetError::CsumBeyondFrame`] when the field is not inside the frame.
pub fn finish_checksum(segs: &mut [&mut [u8]], start: u16, offset: u16) -> Result<(), VnetError> {
    let (start, offset) = (usize::from(start), usize::from(offset));
    let len = total(segs);
    let field = start + offset;
    if field + 2 > len {
        return Err(VnetError::CsumBeyondFrame { start, offset, len });
    }
    let mut sum = Sum::default();
    let mut skip = start;
    for seg in segs.iter() {
        match seg.get(skip..) {
            Some(rest) => {
                sum.add(rest);
                skip = 0;
            }
            None => skip -= seg.len(),
        }
    }
    put_u16(segs, field, sum.finish_transport()).ok_or(VnetError::CsumBeyondFrame { start, offset, len })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn plain(bytes: &[u8]) -> u16 {
        let mut acc = 0u32;
        for pair in bytes.chunks(2) {
            acc += u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |b| u32::from(*b));
            acc = (acc & 0xffff) + (acc >> 16);
        }
        !(acc as u16)
    }

    #[test]
    fn matches_the_example_of_rfc_1071() {
        let mut sum = Sum::default();
        sum.add(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]);
        assert_eq!(sum.finish(), !0xddf2);
    }

    #[test]
    fn a_zero_result_is_stored_as_all_ones() {
        let mut frame = [0xff, 0xff, 0, 0];
        finish_checksum(&mut [&mut frame], 0, 2).unwrap();
        assert_eq!(frame, [0xff, 0xff, 0xff, 0xff]);
    }

    #[test]
    fn refuses_a_field_that_straddles_the_end() {
        let mut frame = [0u8; 10];
        assert!(matches!(
            finish_checksum(&mut [&mut frame], 4, 5),
            Err(VnetError::CsumBeyondFrame { start: 4, offset: 5, len: 10 })
        ));
    }

    proptest! {
        #[test]
        fn any_cutting_gives_the_same_sum(data in proptest::collection::vec(any::<u8>(), 0..300), cuts in proptest::collection::vec(0usize..300, 0..6)) {
            let mut cuts: Vec<_> = cuts.into_iter().filter(|c| *c <= data.len()).collect();
            cuts.extend([0, data.len()]);
            cuts.sort_unstable();
            let mut sum = Sum::default();
            for pair in cuts.windows(2) {
                sum.add(&data[pair[0]..pair[1]]);
            }
            prop_assert_eq!(sum.finish(), plain(&data));
        }
    }
}
