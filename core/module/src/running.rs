//! What a router is configured to be, as the commands that make it so again.
//!
//! Each feature reads its own objects and writes lines of its own commands; [`Running`] puts those of all features in an
//! order in which they run on a fresh router. Only what was configured and differs from what is there anyway is
//! written; what was learnt is not.
//!
//! ```
//! use shoal_module::{Phase, Running, word};
//!
//! let mut running = Running::default();
//! running.line(Phase::State, format!("set interface state {} up", word("loop0")));
//! running.line_at(Phase::Interfaces, 1, "create loopback interface instance 0");
//! let text: String = running.pieces().collect();
//! assert_eq!(
//!     text,
//!     "# interfaces\ncreate loopback interface instance 0\n# state\nset interface state loop0 up\n"
//! );
//! ```

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::ops::ControlFlow;
use std::rc::Rc;

use crate::Control;

/// When a command runs, among all that rebuild a router. What stands later may name what stands earlier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// What concerns the whole router.
    System,
    /// Forwarding tables.
    Tables,
    /// Interfaces come into being, in the order of their numbers.
    Interfaces,
    /// Sub-interfaces of those, in the same order.
    SubInterfaces,
    /// They get other names than they came with.
    Names,
    /// What they are like.
    Settings,
    /// Their addresses.
    Addresses,
    /// Who speaks from whose addresses, who is where.
    Neighbors,
    /// Routes.
    Routes,
    /// What else is to become of packets.
    Policies,
    /// Interfaces go up.
    State,
}

impl Phase {
    /// All of them, in order.
    pub const ALL: [Phase; 11] = [
        Phase::System,
        Phase::Tables,
        Phase::Interfaces,
        Phase::SubInterfaces,
        Phase::Names,
        Phase::Settings,
        Phase::Addresses,
        Phase::Neighbors,
        Phase::Routes,
        Phase::Policies,
        Phase::State,
    ];

    /// The word that heads its commands.
    pub const fn name(self) -> &'static str {
        match self {
            Phase::System => "system",
            Phase::Tables => "tables",
            Phase::Interfaces => "interfaces",
            Phase::SubInterfaces => "sub-interfaces",
            Phase::Names => "names",
            Phase::Settings => "settings",
            Phase::Addresses => "addresses",
            Phase::Neighbors => "neighbors",
            Phase::Routes => "routes",
            Phase::Policies => "policies",
            Phase::State => "state",
        }
    }
}

/// Writes some more lines, some hundred microseconds' worth, and says whether there is more.
type More = Box<dyn FnMut(&mut String) -> ControlFlow<()>>;

enum Part {
    Line(String),
    Many(More),
}

/// Where a command stands: its phase, its place there, and how many came before it.
type Place = (Phase, u32, usize);

/// Adds the commands of some more objects, and says whether there are more.
type ReadSome = Box<dyn FnMut(&mut Running) -> ControlFlow<()>>;

/// Objects that are read without others having a turn.
const AT_ONCE: usize = 256;

/// The commands that rebuild a router, as they are gathered.
#[derive(Default)]
pub struct Running {
    parts: BTreeMap<Place, Part>,
    count: usize,
    unread: VecDeque<ReadSome>,
    missing: Vec<&'static str>,
}

impl Running {
    /// What a module reads its configuration from. One that is not on the shelf is noted, so that the configuration is
    /// known to lack lines.
    pub fn part<T: 'static>(&mut self, control: &Control) -> Option<Rc<T>> {
        let part = control.get::<T>();
        if part.is_err() {
            self.missing.push(std::any::type_name::<T>());
        }
        part.ok()
    }

    /// The types of what was not there to be read.
    pub fn missing(&self) -> &[&'static str] {
        &self.missing
    }

    /// One command.
    pub fn line(&mut self, phase: Phase, line: impl Into<String>) {
        self.line_at(phase, u32::MAX, line);
    }

    /// One command that has its place among those of its phase; those without one come behind.
    pub fn line_at(&mut self, phase: Phase, place: u32, line: impl Into<String>) {
        self.put(phase, place, Part::Line(line.into()));
    }

    /// The commands of each of many objects: others have a turn in between.
    pub fn each<T: 'static>(
        &mut self,
        objects: impl IntoIterator<Item = T>,
        mut write: impl FnMut(&mut Running, T) + 'static,
    ) {
        let mut objects = objects.into_iter().collect::<Vec<_>>().into_iter();
        self.unread.push_back(Box::new(move |running| {
            objects.by_ref().take(AT_ONCE).for_each(|object| write(running, object));
            if objects.as_slice().is_empty() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        }));
    }

    /// Reads some more of the many objects, some hundred microseconds' worth; breaks if all are read.
    pub fn read_some(&mut self) -> ControlFlow<()> {
        let Some(mut some) = self.unread.pop_front() else { return ControlFlow::Break(()) };
        if some(self).is_continue() {
            self.unread.push_front(some);
        }
        ControlFlow::Continue(())
    }

    fn put(&mut self, phase: Phase, place: u32, part: Part) {
        self.count += 1;
        self.parts.insert((phase, place, self.count), part);
    }

    /// So many commands that others want to have a turn in between: `more` adds whole lines until it breaks.
    pub fn many(&mut self, phase: Phase, more: impl FnMut(&mut String) -> ControlFlow<()> + 'static) {
        self.put(phase, u32::MAX, Part::Many(Box::new(more)));
    }

    /// The text, piece by piece. A comment heads each phase.
    pub fn pieces(mut self) -> Pieces {
        while self.read_some().is_continue() {}
        Pieces { parts: self.parts, phase: None }
    }
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running").field("parts", &self.parts.len()).finish_non_exhaustive()
    }
}

/// Lines that make one piece.
const PIECE: usize = 256;

/// The text of a configuration, piece by piece; each is whole lines.
pub struct Pieces {
    parts: BTreeMap<Place, Part>,
    /// The one whose heading was written.
    phase: Option<Phase>,
}

impl Pieces {
    fn head(&mut self, phase: Phase, text: &mut String) {
        if self.phase != Some(phase) {
            self.phase = Some(phase);
            text.push_str("# ");
            text.push_str(phase.name());
            text.push('\n');
        }
    }
}

impl Iterator for Pieces {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        let mut text = String::new();
        for _ in 0..PIECE {
            let Some((place, part)) = self.parts.pop_first() else { break };
            let phase = place.0;
            match part {
                Part::Line(line) => {
                    self.head(phase, &mut text);
                    text.push_str(&line);
                    text.push('\n');
                }
                Part::Many(mut more) => {
                    let mut lines = String::new();
                    let goes_on = more(&mut lines).is_continue();
                    if !lines.is_empty() {
                        self.head(phase, &mut text);
                        text.push_str(&lines);
                    }
                    if goes_on {
                        self.parts.insert(place, Part::Many(more));
                        return Some(text);
                    }
                }
            }
        }
        if text.is_empty() && self.parts.is_empty() { None } else { Some(text) }
    }
}

/// A name as a word of a command line: in quotes where it would be taken for something else.
pub fn word(name: &str) -> Cow<'_, str> {
    let plain =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '/' | ':' | '@' | '%' | '+' | '-');
    if !name.is_empty() && name.chars().all(plain) && !name.starts_with("--") {
        return Cow::Borrowed(name);
    }
    Cow::Owned(format!("\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\"")))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn many_objects_are_read_in_several_turns_and_stand_where_they_belong() {
        let mut running = Running::default();
        running.each(0..1_000_u32, |running, n| {
            running.line_at(Phase::State, 1_000 - n, format!("up {n}"));
        });
        running.line(Phase::System, "first");
        let mut turns = 0;
        while running.read_some().is_continue() {
            turns += 1;
        }
        assert_eq!(turns, 4);
        let text: String = running.pieces().collect();
        assert!(text.starts_with("# system\nfirst\n# state\nup 999\nup 998\n"), "{text}");
        assert_eq!(text.lines().count(), 1_003);
    }

    #[test]
    fn phases_order_the_lines_and_places_those_of_a_phase() {
        let mut running = Running::default();
        running.line(Phase::State, "up");
        running.line(Phase::Interfaces, "last");
        running.line_at(Phase::Interfaces, 7, "seven");
        running.line_at(Phase::Interfaces, 2, "two");
        running.line(Phase::System, "first");
        running.line(Phase::System, "second");
        let text: String = running.pieces().collect();
        assert_eq!(text, "# system\nfirst\nsecond\n# interfaces\ntwo\nseven\nlast\n# state\nup\n");
    }

    #[test]
    fn many_lines_come_in_pieces_under_one_heading() {
        let mut running = Running::default();
        running.many(Phase::Policies, |_| ControlFlow::Break(()));
        let mut n = 0;
        running.many(Phase::Routes, move |text| {
            n += 1;
            text.push_str(["route 1\n", "route 2\n", "route 3\n"][n - 1]);
            if n < 3 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        let pieces: Vec<String> = running.pieces().collect();
        assert_eq!(pieces.len(), 3);
        assert_eq!(pieces.concat(), "# routes\nroute 1\nroute 2\nroute 3\n");
        assert_eq!(Running::default().pieces().next(), None);
    }

    #[test]
    fn a_name_that_would_be_taken_for_something_else_is_quoted() {
        assert_eq!(word("host-eth0.7"), "host-eth0.7");
        for (name, quoted) in
            [("what?", "\"what?\""), ("a\"b\\", "\"a\\\"b\\\\\""), ("", "\"\""), ("--json", "\"--json\"")]
        {
            assert_eq!(word(name), quoted);
        }
    }
}
