//! The hash of a key, which cannot be foretold without the seed.
//!
//! Words are taken in pairs: each is added to a secret word, both are multiplied to 128 bits, and the products of all pairs are
//! added. That is NH with words of 64 bits (Black, Halevi, Krawczyk, Krovetz, Rogaway: UMAC, CRYPTO 1999): an attacker
//! who does not know the seed finds two keys of equal sum with a probability of at most 2^-64. Another product, of both
//! halves, spreads what differs over all bits, since buckets and tags are made of parts of them.

use std::hash::{BuildHasher, RandomState};

/// Most words of a key.
pub(crate) const WORDS: usize = 8;

/// The secret of a table's hash: ten random words.
#[derive(Clone, Copy)]
pub struct Seed {
    words: [u64; WORDS],
    last: [u64; 2],
}

impl Seed {
    /// A seed of the system's random numbers.
    pub fn random() -> Self {
        let system = RandomState::new();
        let word = |at: usize| system.hash_one(at);
        Seed { words: std::array::from_fn(word), last: [word(WORDS), word(WORDS + 1)] }
    }

    /// The same seed for the same number: for tests, whose runs are to be repeated.
    pub fn fixed(number: u64) -> Self {
        let word = |at: usize| split_mix(number ^ split_mix(at as u64 + 1));
        Seed { words: std::array::from_fn(word), last: [word(WORDS), word(WORDS + 1)] }
    }

    /// The hash of a key of these words; those beyond the eighth are not looked at.
    #[inline(always)]
    pub fn hash(&self, words: &[u64]) -> u64 {
        let mut sum = 0_u128;
        for (pair, secret) in words.chunks(2).zip(self.words.chunks(2)) {
            let word = |of: &[u64], at: usize| of.get(at).copied().unwrap_or(0);
            let left = word(pair, 0).wrapping_add(word(secret, 0));
            let right = word(pair, 1).wrapping_add(word(secret, 1));
            sum = sum.wrapping_add(u128::from(left) * u128::from(right));
        }
        let [left, right] = self.last;
        let left = (sum as u64).wrapping_add(left);
        let right = ((sum >> 64) as u64).wrapping_add(right);
        let product = u128::from(left) * u128::from(right);
        product as u64 ^ (product >> 64) as u64
    }
}

/// Not shown: it is a secret.
impl std::fmt::Debug for Seed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Seed")
    }
}

/// Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014.
fn split_mix(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_differ_and_fixed_ones_do_not() {
        let words = [1, 2, 3, 4, 5];
        assert_ne!(Seed::random().hash(&words), Seed::random().hash(&words));
        assert_ne!(Seed::fixed(1).hash(&words), Seed::fixed(2).hash(&words));
        assert_eq!(Seed::fixed(1).hash(&words), Seed::fixed(1).hash(&words));
    }

    /// Of keys that differ in few bits, as a scan's do, every part of the hash that is used is as even as chance.
    #[test]
    fn keys_that_count_upwards_are_spread_evenly() {
        let seed = Seed::fixed(7);
        for (shift, word) in [(0, 0), (32, 0), (48, 1), (0, 1)] {
            for part in [0, 28, 56] {
                let mut counts = [0_i64; 256];
                for n in 0..65_536_u64 {
                    let mut words = [0x0a00_0001_c000_0201, 0x11];
                    words[word] ^= n << shift;
                    counts[(seed.hash(&words) >> part) as usize % 256] += 1;
                }
                // 255 degrees of freedom: a chi-square beyond 400 has a chance of 10^-8.
                let chi: i64 = counts.iter().map(|count| (count - 256) * (count - 256)).sum::<i64>() / 256;
                assert!(chi < 400, "word {word} << {shift}, bits from {part}: {chi}");
            }
        }
    }

    #[test]
    fn every_bit_of_a_key_counts() {
        let seed = Seed::fixed(3);
        let mut hashes = vec![seed.hash(&[0; 5])];
        for bit in 0..5 * 64 {
            let mut words = [0; 5];
            words[bit / 64] = 1 << (bit % 64);
            hashes.push(seed.hash(&words));
        }
        hashes.sort_unstable();
        hashes.dedup();
        assert_eq!(hashes.len(), 5 * 64 + 1);
    }
}
