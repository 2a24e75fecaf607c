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
/// ```no_run
/// use shoal_lab_stl::{Direction, Load, Sending, both_sides};
///
/// let how = Load { tunables: "size=64,vm=var2".into(), ..Load::default() };
/// let mut sending = Sending::new(std::time::Duration::from_secs(60));
/// sending.port_rate = Some("10gbpsl1".parse()?);
/// let made = both_sides("bench".as_ref(), Direction::Both, &how, &sending)?;
/// println!("{} streams; {:?}", made.streams.len(), made.notes);
/// # Ok::<(), shoal_lab_stl::ProfileError>(())
/// ```
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
