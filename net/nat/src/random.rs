//! Numbers that no sender outside can guess: ports (RFC 6056), back ends.

use std::hash::{BuildHasher, RandomState};

/// A generator of one thread: a counter, hashed with a secret key.
#[derive(Clone, Debug, Default)]
pub struct Random {
    key: RandomState,
    count: u64,
}

impl Random {
    /// The next number below `bound`; 0 if that is 0.
    pub fn below(&mut self, bound: u32) -> u32 {
        self.count = self.count.wrapping_add(1);
        let number = self.key.hash_one(self.count) as u32;
        ((u64::from(number) * u64::from(bound)) >> 32) as u32
    }
}
