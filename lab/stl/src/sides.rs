//! A profile for both sides.

use std::path::Path;

use shoal_lab_plan::Side;

use crate::{Converted, Load, ProfileError, Sending, convert, load};

/// Which sides send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Direction {
    /// The left one.
    Forward,
    /// The right one.
    Reverse,
    /// Both.
    #[default]
    Both,
}

/// Loads the profile at `path`, or the lab's own of that name, once for each side that sends, and converts its streams.
///
/// # Errors
///
/// As [`load`] and [`convert`].
pub fn both_sides(
    path: &Path,
    direction: Direction,
    how: &Load,
    sending: &Sending,
) -> Result<Converted, ProfileError> {
    let sides: &[Side] = match direction {
        Direction::Forward => &[Side::Left],
        Direction::Reverse => &[Side::Right],
        Direction::Both => &Side::BOTH,
    };
    let mut made = Converted::default();
    for side in sides {
        let loaded = load(path, *side, how)?;
        let converted = convert(&loaded.streams, *side, sending)?;
        made.streams.extend(converted.streams);
        for note in loaded.notes.into_iter().chain(converted.notes) {
            if !made.notes.contains(&note) {
                made.notes.push(note);
            }
        }
    }
    Ok(made)
}
