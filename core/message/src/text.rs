//! Text in a field of fixed size.

use crate::definition::{Shape, Type};
use crate::input::{Input, Malformed};
use crate::value::Value;

/// Text of at most `N` - 1 bytes; what is longer is cut at a character.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Text<const N: usize>(String);

impl<const N: usize> Text<N> {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<const N: usize> From<&str> for Text<N> {
    fn from(text: &str) -> Self {
        let mut end = text.len().min(N.saturating_sub(1));
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        Text(text.get(..end).unwrap_or_default().to_owned())
    }
}

impl<const N: usize> Value for Text<N> {
    const TYPE: Type = Type::Base("string");
    const SHAPE: Shape = Shape::Text(N);
    const LEAST: usize = N;

    /// Up to the first byte that is 0.
    fn decode(input: &mut Input<'_>) -> Result<Self, Malformed> {
        let bytes = input.take(N)?;
        let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
        Ok(Text::from(str::from_utf8(text).map_err(|_| Malformed::NoText)?))
    }

    fn encode(&self, to: &mut Vec<u8>) {
        let end = to.len() + N;
        to.extend(self.0.as_bytes());
        to.resize(end, 0);
    }
}

impl Value for String {
    const TYPE: Type = Type::Base("string");
    const SHAPE: Shape = Shape::OpenText;
    const LEAST: usize = 4;

    fn decode(input: &mut Input<'_>) -> Result<Self, Malformed> {
        let n = usize::try_from(u32::decode(input)?).unwrap_or(usize::MAX);
        let text = str::from_utf8(input.take(n)?).map_err(|_| Malformed::NoText)?;
        Ok(text.to_owned())
    }

    fn encode(&self, to: &mut Vec<u8>) {
        // No text of ours is 4 GB long.
        (self.len() as u32).encode(to);
        to.extend(self.as_bytes());
    }
}
