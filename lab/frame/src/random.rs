//! Random numbers that are a function of seed and position, so that any frame of a stream can be made without the ones
//! before it.

/// The increment of Weyl's sequence that SplitMix64 (Steele, Lea and Flood 2014) goes by.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// A well-mixed number for each number, one to one: the finaliser of SplitMix64.
#[inline]
pub(crate) const fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Number `position` of the sequence that `seed` begins.
#[inline]
pub(crate) const fn number(seed: u64, position: u64) -> u64 {
    mix(seed.wrapping_add(position.wrapping_add(1).wrapping_mul(GOLDEN)))
}

/// A uniform value from 0 to `most`, both included. Values that would favour some are rejected and drawn again
/// (Lemire 2019), which happens once in `2^64 / (most + 1)`.
#[inline]
pub(crate) fn uniform(seed: u64, position: u64, most: u64) -> u64 {
    let mut drawn = number(seed, position);
    let Some(count) = most.checked_add(1) else { return drawn };
    let mut product = u128::from(drawn) * u128::from(count);
    if (product as u64) < count {
        let unfair = count.wrapping_neg() % count;
        while (product as u64) < unfair {
            drawn = mix(drawn.wrapping_add(GOLDEN));
            product = u128::from(drawn) * u128::from(count);
        }
    }
    (product >> 64) as u64
}

/// Two seeds as one.
pub(crate) const fn join(a: u64, b: u64) -> u64 {
    mix(mix(a).wrapping_add(GOLDEN) ^ b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_a_small_range_are_equally_frequent() {
        // Chi-squared with 9 degrees of freedom: 27.9 is exceeded once in a thousand seeds; this seed is fixed.
        let mut counts = [0_u32; 10];
        for position in 0..100_000 {
            counts[uniform(42, position, 9) as usize] += 1;
        }
        let chi: f64 = counts.iter().map(|c| (f64::from(*c) - 10_000.0).powi(2) / 10_000.0).sum();
        assert!(chi < 27.9, "{chi} {counts:?}");
    }

    #[test]
    fn a_range_above_half_of_all_numbers_is_uniform_by_rejection() {
        // Without rejection, a third of the values of this range would come twice as often as the others: the lower half of
        // each three would be drawn in two thirds of the cases, not in one half.
        let most = (u64::MAX / 4) * 3;
        let below = (0..20_000).filter(|p| uniform(7, *p, most) <= most / 2).count();
        assert!((9_600..10_400).contains(&below), "{below}");
        let residues = (0..30_000).fold([0_u32; 3], |mut c, p| {
            c[(uniform(7, p, most) % 3) as usize] += 1;
            c
        });
        assert!(residues.iter().all(|c| (9_600..10_400).contains(c)), "{residues:?}");
    }

    #[test]
    fn the_whole_range_and_a_single_value_are_ranges() {
        assert_eq!(uniform(1, 5, 0), 0);
        assert_ne!(uniform(1, 5, u64::MAX), uniform(1, 6, u64::MAX));
    }
}
