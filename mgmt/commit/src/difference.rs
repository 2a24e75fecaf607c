//! Which lines two configurations do not share.

use std::collections::HashMap;
use std::rc::Rc;

use shoal_module::Control;
use shoal_module::cli::Pace;

use crate::kinds::{Kinds, Line, NoKind};
use crate::names::Names;

/// A configuration as it is compared: its commands, without headings.
#[derive(Debug)]
pub(crate) struct Side<'t> {
    /// Its lines, in their order.
    pub lines: Vec<&'t str>,
    /// What it calls its interfaces.
    pub names: Names,
}

impl<'t> Side<'t> {
    /// The commands of a text.
    pub fn of(text: &'t str) -> Self {
        let lines: Vec<&str> =
            text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
        let names = Names::of(lines.iter().copied());
        Side { lines, names }
    }
}

/// A line of one side, and its place there.
#[derive(Debug, Clone)]
pub(crate) struct At {
    /// Where it stands.
    pub place: usize,
    /// The line.
    pub line: Line,
}

/// What is different.
#[derive(Debug, Default)]
pub(crate) struct Difference {
    /// Lines that only the old side has.
    pub removed: Vec<At>,
    /// Lines that only the new side has.
    pub added: Vec<At>,
    /// Places on the old side of lines that the new one has, too, and their places there.
    pub kept: Vec<(usize, usize)>,
    /// Lines of either side that no form fits.
    pub unknown: Vec<NoKind>,
}

/// Compares two sides. Lines about interfaces are the same if the interfaces are, whatever those are called.
pub(crate) async fn difference(
    kinds: &Kinds,
    control: &Rc<Control>,
    old: &Side<'_>,
    new: &Side<'_>,
    pace: &Pace,
) -> Difference {
    let mut found = Difference::default();
    let same_names = old.names == new.names;
    // What the lines of a side say. Where names are the same, the text says it.
    let mut wanted: HashMap<String, Vec<usize>> = HashMap::new();
    for (place, text) in new.lines.iter().enumerate() {
        let says = if same_names { (*text).to_owned() } else { meaning(kinds, control, text, &new.names) };
        wanted.entry(says).or_default().push(place);
        pace.give_way().await;
    }
    for places in wanted.values_mut() {
        places.reverse();
    }
    let mut removed = Vec::new();
    for (place, text) in old.lines.iter().enumerate() {
        let says = if same_names { (*text).to_owned() } else { meaning(kinds, control, text, &old.names) };
        match wanted.get_mut(&says).and_then(Vec::pop) {
            Some(there) => found.kept.push((place, there)),
            None => removed.push(place),
        }
        pace.give_way().await;
    }
    let mut added: Vec<usize> = wanted.into_values().flatten().collect();
    added.sort_unstable();
    for place in removed {
        match kinds.read(control, old.lines.get(place).copied().unwrap_or_default()) {
            Ok(line) => found.removed.push(At { place, line }),
            Err(unknown) => found.unknown.push(unknown),
        }
        pace.give_way().await;
    }
    for place in added {
        match kinds.read(control, new.lines.get(place).copied().unwrap_or_default()) {
            Ok(line) => found.added.push(At { place, line }),
            Err(unknown) => found.unknown.push(unknown),
        }
        pace.give_way().await;
    }
    found
}

fn meaning(kinds: &Kinds, control: &Rc<Control>, text: &str, names: &Names) -> String {
    kinds.read(control, text).map_or_else(|_| text.to_owned(), |line| kinds.meaning(&line, names))
}
