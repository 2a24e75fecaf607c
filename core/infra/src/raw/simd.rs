//! Invariant: only instructions are used that every processor of the architecture has. They touch no memory.

/// Which of 16 bytes are equal to one: a bit for each, the lowest for the first byte (the lowest of the first word).
///
/// ```
/// assert_eq!(shoal_infra::equal_bytes([0x0700_0007, 7], 7), 1 << 0 | 1 << 3 | 1 << 8);
/// ```
#[inline(always)]
pub fn equal_bytes(bytes: [u64; 2], byte: u8) -> u32 {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{_mm_cmpeq_epi8, _mm_movemask_epi8, _mm_set_epi64x, _mm_set1_epi8};
        let [low, high] = bytes;
        // WHY: four instructions; without SIMD they are 25, of the 60 that a look-up in a flow table takes.
        // SAFETY: SSE2 is part of x86-64.
        unsafe {
            let bytes = _mm_set_epi64x(high as i64, low as i64);
            _mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(byte as i8))) as u32
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    without_simd(bytes, byte)
}

/// The same by words: a byte is zero if none of its lower bits carries into the upper when they are all added, and the
/// upper is not set.
#[cfg(any(test, not(target_arch = "x86_64")))]
fn without_simd(bytes: [u64; 2], byte: u8) -> u32 {
    const LOW: u64 = 0x7f7f_7f7f_7f7f_7f7f;
    let half = |word: u64| {
        let differs = word ^ (u64::from(byte) * 0x0101_0101_0101_0101);
        let zero = !(((differs & LOW) + LOW) | differs | LOW);
        // Gathers the upper bits of all eight.
        ((zero >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56) as u32
    };
    let [low, high] = bytes;
    half(low) | half(high) << 8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_compared_and_no_other_counts() {
        let bytes = [0x0100_0001_ff7f_8000, 0x8081_0101_0102_0001_u64];
        let all: Vec<u8> = bytes.iter().flat_map(|word| word.to_le_bytes()).collect();
        for byte in 0..=255 {
            let expected = (0..16).filter(|&i| all[i] == byte).map(|i| 1 << i).sum::<u32>();
            assert_eq!(equal_bytes(bytes, byte), expected, "{byte}");
            assert_eq!(without_simd(bytes, byte), expected, "{byte}");
        }
    }
}
