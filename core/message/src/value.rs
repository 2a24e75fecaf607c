//! What can stand in a message, and what a message is.

use crate::definition::{Field, Header, Service, Shape, Type};
use crate::input::{Input, Malformed};

/// Something that can stand in a message.
pub trait Value: Sized {
    /// Its type in descriptions, or that of its elements.
    const TYPE: Type;
    /// How many of that there are.
    const SHAPE: Shape = Shape::One;
    /// The fewest bytes it takes.
    const LEAST: usize;

    /// Reads it.
    ///
    /// # Errors
    /// There are too few bytes, or a number or text is none of its type.
    fn decode(input: &mut Input<'_>) -> Result<Self, Malformed>;

    /// Writes it behind what is there.
    fn encode(&self, to: &mut Vec<u8>);

    /// Reads so many of them. Types that can do that at once say how.
    ///
    /// # Errors
    /// As [`decode`](Self::decode).
    fn decode_array<const N: usize>(input: &mut Input<'_>) -> Result<[Self; N], Malformed>
    where
        Self: Copy + Default,
    {
        let mut all = [Self::default(); N];
        for one in &mut all {
            *one = Self::decode(input)?;
        }
        Ok(all)
    }

    /// Writes all of them.
    fn encode_array(all: &[Self], to: &mut Vec<u8>) {
        for one in all {
            one.encode(to);
        }
    }
}

/// A message.
pub trait Message: Sized {
    /// Its name.
    const NAME: &'static str;
    /// What it is for, in a line.
    const DOC: &'static str;
    /// What stands in front of its fields.
    const HEADER: Header;
    /// Its fields.
    const FIELDS: &'static [Field];
    /// How it is answered, if it is a request.
    const SERVICE: Option<Service>;
    /// The fewest bytes its fields take.
    const LEAST: usize;

    /// Reads its fields. What is behind them does not matter: VPP sends a byte more at times.
    ///
    /// # Errors
    /// There are too few bytes, or a number or text is none of its type.
    fn decode(input: &mut Input<'_>) -> Result<Self, Malformed>;

    /// Writes its fields behind what is there.
    fn encode(&self, to: &mut Vec<u8>);
}

macro_rules! numbers {
    ($($name:ident),*) => {$(
        impl Value for $name {
            const TYPE: Type = Type::Base(stringify!($name));
            const LEAST: usize = size_of::<$name>();

            fn decode(input: &mut Input<'_>) -> Result<Self, Malformed> {
                Ok($name::from_be_bytes(input.array()?))
            }

            fn encode(&self, to: &mut Vec<u8>) {
                to.extend_from_slice(&self.to_be_bytes());
            }
        }
    )*};
}

numbers!(u8, i8, u16, i16, u32, i32, u64, i64);

impl Value for f64 {
    const TYPE: Type = Type::Base("f64");
    const LEAST: usize = 8;

    /// In the machine's own byte order, as VPP and its clients have it.
    fn decode(input: &mut Input<'_>) -> Result<Self, Malformed> {
        Ok(f64::from_ne_bytes(input.array()?))
    }

    fn encode(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(&self.to_ne_bytes());
    }
}

impl Value for bool {
    const TYPE: Type = Type::Base("bool");
    const LEAST: usize = 1;

    fn decode(input: &mut Input<'_>) -> Result<Self, Malformed> {
        Ok(u8::decode(input)? != 0)
    }

    fn encode(&self, to: &mut Vec<u8>) {
        to.push(u8::from(*self));
    }
}

impl<T: Value + Copy + Default, const N: usize> Value for [T; N] {
    const TYPE: Type = T::TYPE;
    const SHAPE: Shape = Shape::Array(N);
    const LEAST: usize = N * T::LEAST;

    fn decode(input: &mut Input<'_>) -> Result<Self, Malformed> {
        T::decode_array(input)
    }

    fn encode(&self, to: &mut Vec<u8>) {
        T::encode_array(self, to);
    }
}
