//! Fields that say how many elements another field has.

use std::marker::PhantomData;

use crate::definition::{Shape, Type};
use crate::input::{Input, Malformed};
use crate::value::Value;

/// How many elements another field has, as a number of type `N`. It holds nothing: what is sent is the length of the
/// other, which names this one in `#[counted_by(..)]`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count<N>(PhantomData<N>);

/// A number that counts.
pub trait Number: Value + TryFrom<usize> + Into<u64> {
    /// The largest.
    const MOST: Self;
}

macro_rules! number {
    ($($name:ty),*) => {$(
        impl Number for $name {
            const MOST: Self = <$name>::MAX;
        }
    )*};
}

number!(u8, u16, u32);

impl<N: Number> Count<N> {
    /// Its field's type.
    pub const OF: Type = N::TYPE;
    /// How many of them there are.
    pub const SHAPE: Shape = Shape::One;
    /// Bytes it takes.
    pub const LEAST: usize = N::LEAST;

    /// Reads the number.
    ///
    /// # Errors
    /// There are too few bytes.
    pub fn decode(input: &mut Input<'_>) -> Result<u64, Malformed> {
        Ok(N::decode(input)?.into())
    }

    /// Writes a number, the largest there is for a larger one; tells which.
    pub fn encode(count: usize, to: &mut Vec<u8>) -> usize {
        let number = N::try_from(count).unwrap_or(N::MOST);
        number.encode(to);
        usize::try_from(number.into()).unwrap_or(usize::MAX)
    }
}
