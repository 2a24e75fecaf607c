//! The hash of what names a datagram: fast, and keyed, so that no sender can choose which datagrams meet in one bucket or on
//! one thread. It is that of the flow tables ([`Seed`]).

use std::hash::{BuildHasher, Hasher};

use shoal_flow::Seed;

/// Words of a name.
const WORDS: usize = 8;

/// Makes hashers of one secret.
#[derive(Clone, Copy, Debug)]
pub struct Keyed(Seed);

impl Default for Keyed {
    fn default() -> Self {
        Keyed(Seed::random())
    }
}

impl BuildHasher for Keyed {
    type Hasher = KeyedHasher;

    #[inline(always)]
    fn build_hasher(&self) -> KeyedHasher {
        KeyedHasher { seed: self.0, words: [0; WORDS], len: 0 }
    }
}

/// The words of a name, until they are hashed.
pub struct KeyedHasher {
    seed: Seed,
    words: [u64; WORDS],
    len: usize,
}

impl Hasher for KeyedHasher {
    #[inline(always)]
    fn write_u64(&mut self, word: u64) {
        debug_assert!(self.len < WORDS, "a name of a datagram is no longer than this");
        if let Some(to) = self.words.get_mut(self.len) {
            *to = word;
        }
        self.len += 1;
    }

    #[inline(always)]
    fn write_u128(&mut self, words: u128) {
        self.write_u64(words as u64);
        self.write_u64((words >> 64) as u64);
    }

    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let word = chunk.iter().fold(0, |word, byte| word << 8 | u64::from(*byte));
            self.write_u64(word);
        }
    }

    #[inline(always)]
    fn finish(&self) -> u64 {
        self.seed.hash(self.words.get(..self.len).unwrap_or(&self.words))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_depends_on_every_word_and_on_the_secret() {
        let keyed = Keyed::default();
        let of = |a: u64, b: u128| keyed.hash_one((a, b));
        let hash = of(1, 2);
        assert_eq!(hash, of(1, 2));
        assert!(hash != of(0, 2) && hash != of(1, 3) && hash != of(1, 2 | 1 << 100));
        assert_ne!(hash, Keyed::default().hash_one((1u64, 2u128)), "another secret");
        assert_ne!(keyed.hash_one([1u8, 2]), keyed.hash_one([2u8, 1]));
    }
}
