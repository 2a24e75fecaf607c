//! The Internet checksum (RFC 1071), kept as a sum that has not been folded yet.
//!
//! A sum of 16-bit words modulo 65,535 does not care how many words are added at once: `2^16` is 1 there, so a field of eight
//! bytes may be added as one number. A field that ends in the upper half of a word counts 256 times as much. Whatever is
//! taken away is added as its distance from a multiple of 65,535, so a sum never goes below zero.

/// A multiple of 65,535 above every [`weigh`]ed field.
const ABOVE: u64 = 65_535 << 26;

/// What a field adds to a sum. `shift` is 8 if the field's last byte is the upper half of a word, else 0.
#[inline]
pub(crate) const fn weigh(value: u64, shift: u32) -> u64 {
    ((value >> 32) + (value & 0xffff_ffff)) << shift
}

/// What is added to a sum when a field changes from `old` to `new`.
#[inline]
pub(crate) const fn difference(old: u64, new: u64, shift: u32) -> u64 {
    ABOVE - weigh(old, shift) + weigh(new, shift)
}

/// The 16 bits that a sum comes to.
#[inline]
pub(crate) const fn fold(sum: u64) -> u16 {
    let sum = (sum >> 32) + (sum & 0xffff_ffff);
    let sum = (sum >> 16) + (sum & 0xffff);
    let sum = (sum >> 16) + (sum & 0xffff);
    ((sum >> 16) + (sum & 0xffff)) as u16
}

/// Sum of bytes that begin at a word's upper half; an odd last byte is followed by a zero.
pub(crate) fn of(bytes: &[u8]) -> u64 {
    let mut sum = 0;
    let mut words = bytes.chunks_exact(2);
    for word in &mut words {
        if let [high, low] = word {
            sum += u64::from(u16::from_be_bytes([*high, *low]));
        }
    }
    if let [last] = words.remainder() {
        sum += u64::from(*last) << 8;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_rfc_1071_comes_out() {
        // RFC 1071 section 3: the bytes 00 01 f2 03 f4 f5 f6 f7 sum to ddf2.
        assert_eq!(fold(of(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7])), 0xddf2);
    }

    #[test]
    fn eight_bytes_weigh_as_much_as_their_four_words() {
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(fold(weigh(u64::from_be_bytes(bytes), 0)), 0xddf2);
    }

    #[test]
    fn a_byte_in_the_upper_half_weighs_256_times_as_much() {
        assert_eq!(fold(weigh(0x12, 8)), fold(of(&[0x12, 0])));
        assert_eq!(fold(weigh(0x1234, 8)), fold(of(&[0, 0x12, 0x34, 0])));
    }

    #[test]
    fn a_change_gives_the_sum_of_the_changed_bytes() {
        let (old, new) = ([1, 2, 3, 4, 5, 6, 7, 8], [255, 254, 0, 0, 0, 0, 9, 9]);
        let sum = of(&old) + difference(u64::from_be_bytes(old), u64::from_be_bytes(new), 0);
        assert_eq!(fold(sum), fold(of(&new)));
    }

    #[test]
    fn the_largest_fields_neither_wrap_nor_go_below_zero() {
        for (old, new) in [(u64::MAX, 0), (0, u64::MAX), (u64::MAX, u64::MAX)] {
            let sum = 1 + difference(old, new, 8);
            let expected = (1 + weigh(new, 8) % 65_535 + 65_535 - weigh(old, 8) % 65_535) % 65_535;
            assert_eq!(u64::from(fold(sum)) % 65_535, expected);
        }
    }
}
