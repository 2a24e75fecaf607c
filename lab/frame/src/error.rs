//! Why a stream's frames cannot be made.

use shoal_lab_plan::distance;
use thiserror::Error;

/// Why a stream's frames cannot be made. Each message has the wrong value and the nearest that would do.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FrameError {
    /// The frame is too small for its headers and tag, or too large for Ethernet.
    #[error("{what} of {size} bytes (with FCS) cannot be sent; the nearest size is {nearest}")]
    Size {
        /// Of which frame.
        what: String,
        /// What was asked for.
        size: u32,
        /// The nearest that can be.
        nearest: u32,
    },
    /// A tag or write does not lie inside the frame.
    #[error(
        "{what} at offset {offset} does not fit into a frame of {len} bytes; the last offset is {nearest}"
    )]
    Offset {
        /// What was to be placed.
        what: String,
        /// Where.
        offset: u16,
        /// Bytes of the frame, without FCS.
        len: usize,
        /// The last offset at which it fits.
        nearest: usize,
    },
    /// A write of some odd number of bytes.
    #[error("a field of {0} bytes cannot be written; use 1, 2, 4 or 8, the nearest is {1}")]
    Width(u8, u8),
    /// A write would change a checksum that is kept right.
    #[error(
        "a change at offset {offset} lies on the checksum at {checksum}; the nearest free offset is {nearest}"
    )]
    OnChecksum {
        /// Of the write.
        offset: u16,
        /// Of the checksum.
        checksum: usize,
        /// Behind the checksum.
        nearest: usize,
    },
    /// Smallest and largest are swapped, or the first is outside of them.
    #[error(
        "the range {min} to {max} beginning at {first} is empty or does not hold its beginning; {nearest} would do"
    )]
    Range {
        /// The smallest.
        min: u64,
        /// The largest.
        max: u64,
        /// The first.
        first: u64,
        /// A beginning (or largest value) that would do.
        nearest: u64,
    },
    /// A variable that never moves.
    #[error("a variable from {min} to {max} cannot go in steps of {step}; the nearest step is {nearest}")]
    Step {
        /// The smallest.
        min: u64,
        /// The largest.
        max: u64,
        /// The step.
        step: u64,
        /// The nearest that moves.
        nearest: u64,
    },
    /// A digit with a divisor or length of 0.
    #[error("a digit of length {of} after a division by {divide} does not exist; both are at least 1")]
    Digit {
        /// The divisor.
        divide: u64,
        /// The length.
        of: u64,
    },
    /// A number outside of what its option allows.
    #[error("{what} is {value}; it must be {min} to {max}, the nearest is {nearest}")]
    Option {
        /// The option.
        what: String,
        /// What was given.
        value: u64,
        /// The smallest.
        min: u64,
        /// The largest.
        max: u64,
        /// The nearest that is allowed.
        nearest: u64,
    },
    /// Options that exclude each other.
    #[error("{what} cannot be had with {with}; {nearest}")]
    Together {
        /// One.
        what: String,
        /// The other.
        with: String,
        /// What to do instead.
        nearest: String,
    },
    /// A name that nothing has.
    #[error("{what} `{name}` is not known; the nearest is `{nearest}`")]
    Name {
        /// Of what kind.
        what: String,
        /// The name.
        name: String,
        /// One that exists.
        nearest: String,
    },
    /// More streams than a tag can number.
    #[error("stream number {0} does not fit into a tag; the largest is {1}")]
    Index(u8, u8),
}

impl FrameError {
    /// Checks that an option is within its limits.
    ///
    /// # Errors
    ///
    /// [`FrameError::Option`] if it is not.
    pub(crate) fn within(what: &str, value: u64, min: u64, max: u64) -> Result<(), FrameError> {
        if (min..=max).contains(&value) {
            return Ok(());
        }
        Err(FrameError::Option { what: what.to_owned(), value, min, max, nearest: value.clamp(min, max) })
    }

    /// A name that is not among `known`; the nearest is the one with the fewest edits.
    pub(crate) fn unknown(what: &str, name: &str, known: &[&str]) -> FrameError {
        FrameError::Name {
            what: what.to_owned(),
            name: name.to_owned(),
            nearest: nearest(name, known).to_owned(),
        }
    }
}

/// The one of `known` that takes the fewest edits to get from `name`, whether letters are small or capital.
pub fn nearest<'a>(name: &str, known: &[&'a str]) -> &'a str {
    let name = name.to_ascii_lowercase();
    known.iter().copied().min_by_key(|other| distance(&name, &other.to_ascii_lowercase())).unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_the_one_with_the_fewest_edits() {
        assert_eq!(nearest("imix:bensh", &["imix:bench", "imix:classic", "imix:csit"]), "imix:bench");
        assert_eq!(nearest("ROUTING", &["fragment", "routing"]), "routing");
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}
