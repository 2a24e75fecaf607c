//! A set of small numbers, as bits; it grows as needed.

use std::fmt;

/// A set of `u32`s; memory is one bit per number up to the largest ever set.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Bitmap {
    /// Without trailing zero words, so that equal sets are equal.
    words: Vec<u64>,
}

fn position(bit: u32) -> (usize, u64) {
    ((bit / 64) as usize, 1 << (bit % 64))
}

impl Bitmap {
    /// The empty set.
    pub const fn new() -> Self {
        Bitmap { words: Vec::new() }
    }

    /// Adds a number; true if it was not in the set.
    pub fn set(&mut self, bit: u32) -> bool {
        let (index, mask) = position(bit);
        if self.words.len() <= index {
            self.words.resize(index + 1, 0);
        }
        match self.words.get_mut(index) {
            Some(word) => {
                let fresh = *word & mask == 0;
                *word |= mask;
                fresh
            }
            None => false,
        }
    }

    /// Takes a number out; true if it was in the set.
    pub fn clear(&mut self, bit: u32) -> bool {
        let (index, mask) = position(bit);
        let Some(word) = self.words.get_mut(index) else {
            return false;
        };
        let was_set = *word & mask != 0;
        *word &= !mask;
        while self.words.last() == Some(&0) {
            self.words.pop();
        }
        was_set
    }

    /// Whether a number is in the set.
    pub fn contains(&self, bit: u32) -> bool {
        let (index, mask) = position(bit);
        self.words.get(index).is_some_and(|word| word & mask != 0)
    }

    /// The smallest number that is not in the set; `None` when all are.
    pub fn first_clear(&self) -> Option<u32> {
        let full = self.words.iter().take_while(|&&word| word == u64::MAX).count();
        let next = self.words.get(full).copied().unwrap_or(0);
        u32::try_from(full * 64 + next.trailing_ones() as usize).ok()
    }

    /// The numbers in the set, rising.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        self.words.iter().zip(0_u32..).flat_map(|(&word, index)| {
            let mut rest = word;
            std::iter::from_fn(move || {
                let bit = (rest != 0).then(|| rest.trailing_zeros())?;
                rest &= rest - 1;
                Some(index * 64 + bit)
            })
        })
    }

    /// How many numbers are in the set.
    pub fn len(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }
}

impl FromIterator<u32> for Bitmap {
    fn from_iter<I: IntoIterator<Item = u32>>(bits: I) -> Self {
        let mut bitmap = Bitmap::new();
        for bit in bits {
            bitmap.set(bit);
        }
        bitmap
    }
}

impl fmt::Debug for Bitmap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}
