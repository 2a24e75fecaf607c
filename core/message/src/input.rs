//! What comes from a client, read within its bounds.

use crate::value::Value;

/// Why bytes are no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// There are fewer than the message says it has.
    #[error("{wanted} more bytes are needed, {left} are left")]
    Short {
        /// Bytes that are missing and those that are there.
        wanted: usize,
        /// Bytes there are.
        left: usize,
    },
    /// A number that its type does not have.
    #[error("{of} has no value {value}")]
    NoSuchValue {
        /// The type.
        of: &'static str,
        /// The number.
        value: u64,
    },
    /// A text that is none.
    #[error("the text is not UTF-8")]
    NoText,
}

/// The bytes of a message that were not read yet.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    /// All of these.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Input(bytes)
    }

    /// How many bytes are left.
    pub const fn left(&self) -> usize {
        self.0.len()
    }

    /// Whether all that are left are 0.
    pub fn is_zero(&self) -> bool {
        self.0.iter().fold(0, |all, byte| all | byte) == 0
    }

    /// The next `n` bytes.
    ///
    /// # Errors
    /// There are fewer.
    pub fn take(&mut self, n: usize) -> Result<&'a [u8], Malformed> {
        let short = Malformed::Short { wanted: n, left: self.left() };
        let (taken, rest) = self.0.split_at_checked(n).ok_or(short)?;
        self.0 = rest;
        Ok(taken)
    }

    /// The next `N` bytes.
    ///
    /// # Errors
    /// There are fewer.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let short = Malformed::Short { wanted: N, left: self.left() };
        let (taken, rest) = self.0.split_first_chunk::<N>().ok_or(short)?;
        self.0 = rest;
        Ok(*taken)
    }

    /// So many values one behind the other. No more memory is taken than the bytes that are there are worth.
    ///
    /// # Errors
    /// There are not so many.
    pub fn many<T: Value>(&mut self, count: u64) -> Result<Vec<T>, Malformed> {
        let wanted = usize::try_from(count).unwrap_or(usize::MAX).saturating_mul(T::LEAST);
        if wanted > self.left() {
            return Err(Malformed::Short { wanted, left: self.left() });
        }
        (0..count).map(|_| T::decode(self)).collect()
    }
}
