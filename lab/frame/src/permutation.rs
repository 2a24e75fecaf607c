//! All numbers of a range once, in an order that looks random, without a table.
//!
//! RFC 9693 sends each of up to hundreds of millions of tuples once, in random order. A shuffled table would need gigabytes;
//! a keyed one-to-one map of the positions needs none. The map works on the smallest power of two that holds the range and is
//! applied again to what falls outside of it (cycle walking, Black and Rogaway 2002): fewer than two times on average.

use crate::random::number;

/// A permutation of `0..=most`.
#[derive(Clone, Debug)]
pub(crate) struct Permutation {
    most: u64,
    mask: u64,
    down: u32,
    rounds: [(u64, u64); 4],
}

impl Permutation {
    /// The permutation of `0..=most` that `seed` names.
    pub(crate) fn new(most: u64, seed: u64) -> Self {
        let bits = 64 - most.leading_zeros();
        let mask = u64::MAX.checked_shr(64 - bits).unwrap_or(0);
        // A multiplication by an odd number, an addition and a shift to the right by at least one are each one to one on
        // `bits` bits.
        let rounds = [0, 1, 2, 3].map(|r| (number(seed, 2 * r) | 1, number(seed, 2 * r + 1)));
        Permutation { most, mask, down: (bits / 2).max(1), rounds }
    }

    /// Where `position` (up to `most`) goes.
    #[inline]
    pub(crate) fn at(&self, position: u64) -> u64 {
        let mut x = position;
        loop {
            for (factor, addend) in self.rounds {
                x = x.wrapping_mul(factor).wrapping_add(addend) & self.mask;
                x ^= x >> self.down;
            }
            if x <= self.most {
                return x;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn each_number_comes_once(most in 0_u64..5000, seed: u64) {
            let permutation = Permutation::new(most, seed);
            let mut seen = vec![false; most as usize + 1];
            for position in 0..=most {
                let to = permutation.at(position) as usize;
                prop_assert!(!seen[to]);
                seen[to] = true;
            }
        }
    }

    #[test]
    fn the_order_does_not_follow_the_positions() {
        let permutation = Permutation::new(9_999, 3);
        let rises = (0..9_999).filter(|p| permutation.at(p + 1) > permutation.at(*p)).count();
        assert!((4_700..5_300).contains(&rises), "{rises}");
        let kept = (0..=9_999).filter(|p| permutation.at(*p) == *p).count();
        assert!(kept < 10, "{kept}");
    }

    #[test]
    fn seeds_give_different_orders() {
        let (a, b) = (Permutation::new(9_999, 3), Permutation::new(9_999, 4));
        assert!((0..=9_999).filter(|p| a.at(*p) == b.at(*p)).count() < 10);
    }

    #[test]
    fn the_largest_range_is_walked_too() {
        let permutation = Permutation::new(u64::MAX, 3);
        assert_ne!(permutation.at(0), permutation.at(1));
    }
}
