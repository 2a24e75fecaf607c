//! What a feature declares of each form of line that it writes into the [running configuration](crate::Running): what a
//! later line of that form replaces, how a line is taken back, and what that interrupts.
//!
//! Changes of a configuration are planned from these declarations. They stand in `lines.rs`, beside the `running.rs` that
//! writes the lines.
//!
//! ```
//! use shoal_module::{LineKind, Phase};
//!
//! pub static LINES: &[LineKind] = &[
//!     LineKind::setting(
//!         Phase::Settings,
//!         "set interface tag <interface> <tag:word>",
//!         "interface",
//!         "set interface tag <interface> \"\"",
//!     ),
//!     LineKind::item(Phase::Tables, "ip table add <table:u32> [<name:word>]", "ip table del <table>")
//!         .key("table")
//!         .makes("ip table <table>")
//!         .recreates("all routes of the table"),
//! ];
//! ```
//!
//! # Templates
//!
//! An inverse, a name of what a line makes and a name of what it needs are templates, which a line's arguments fill:
//!
//! | written | meaning |
//! |---|---|
//! | `<name>` | the argument of that name |
//! | `<made>` | in an inverse: the name that the interface has which the line makes |
//! | `[table <table>]` | left out unless the line has the arguments that it names, or the words of a group that names none |
//! | `[tun\|tap]` | the text behind the bar where the group would be left out |
//! | `[!disable]` | the word, where the line has it not |
//! | `?ip of <interface>` | at the beginning of what a line needs: it need not be there, but the line comes behind it |
//! | `... del` | the whole line, and what follows |
//! | `add -> del` | the whole line, with the second word in the place of the first one |

use crate::cli::Args;
use crate::{Control, Phase};

/// One form of line.
#[derive(Debug, Clone, Copy)]
pub struct LineKind {
    /// Where it stands.
    pub phase: Phase,
    /// Whether it stands before the other lines of its phase, whichever modules write those.
    pub place: Place,
    /// Its words and arguments, in the syntax of [commands](crate::cli).
    pub syntax: &'static str,
    /// Which lines of the form say something about the same thing.
    pub key: Key,
    /// How a line is taken back.
    pub inverse: Inverse,
    /// How one line becomes another one with the same key.
    pub change: Change,
    /// What it interrupts that a line is changed or taken back.
    pub class: Class,
    /// Whether it matters in which order such lines run.
    pub order: Order,
    /// Templates, with `; ` between them, that name what other lines need; empty if they need nothing of it.
    pub makes: &'static str,
    /// Templates that name what the line needs. The interfaces that it names need not be listed.
    pub needs: &'static [&'static str],
    /// Asks, before anything is changed, whether the machine has what a new line needs of it: the kernel's interface, a network
    /// namespace. The error names it and the nearest there is.
    pub check: Option<Check>,
    /// Whether another party has brought a line that the router has, Linux for one: no configuration of before takes it away, and none
    /// misses it.
    pub brought: Option<Brought>,
}

/// Asks the machine for what a line needs of it, by the line's arguments. The error is a sentence.
pub type Check = fn(&Control, &Args) -> Result<(), String>;

/// Whether another party has brought a line that the router has, by the line's arguments.
pub type Brought = fn(&Control, &Args) -> bool;

/// Where a line stands among those of its phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// Before all others.
    First,
    /// In the order of modules, and in a module in the order of its declarations.
    Usual,
}

/// Whether it matters in which order lines of a form run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// It does not.
    Any,
    /// It does among lines that have the same words and the same arguments of these names.
    Among(&'static str),
}

/// Which lines of a form say something about the same thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// Those that are the same.
    Line,
    /// Those with the same arguments of these names, which blanks divide. All, if there is no name.
    Args(&'static str),
}

/// How a line is taken back.
#[derive(Debug, Clone, Copy)]
pub enum Inverse {
    /// By the command of this template.
    Command(&'static str),
    /// By a command that names something by what the router knows it by.
    Found(fn(&Control, &Args) -> Option<String>),
    /// Together with the line that makes what it needs.
    WithNeeded,
}

/// How one line becomes another one with the same key.
#[derive(Debug, Clone, Copy)]
pub enum Change {
    /// The old line is taken back, and what needs it before; then the new ones run.
    Again,
    /// The new line replaces the old one.
    Replace,
    /// By the commands that this function says of the old and the new line.
    By(fn(old: &Args, new: &Args) -> Vec<String>),
}

/// What it interrupts that a line is changed or taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Nothing but what the line is about.
    Live,
    /// This, for a moment.
    Flap(&'static str),
    /// This goes, and comes again if the line is changed; all that names it does, too.
    Recreate(&'static str),
}

impl LineKind {
    /// One of many: each line stands for itself.
    pub const fn item(phase: Phase, syntax: &'static str, inverse: &'static str) -> Self {
        Self {
            phase,
            place: Place::Usual,
            syntax,
            key: Key::Line,
            inverse: Inverse::Command(inverse),
            change: Change::Again,
            class: Class::Live,
            order: Order::Any,
            makes: "",
            needs: &[],
            check: None,
            brought: None,
        }
    }

    /// A value: a later line with the same arguments of these names replaces an earlier one. The inverse sets what is there
    /// without any line.
    pub const fn setting(
        phase: Phase,
        syntax: &'static str,
        key: &'static str,
        inverse: &'static str,
    ) -> Self {
        Self { key: Key::Args(key), change: Change::Replace, ..Self::item(phase, syntax, inverse) }
    }

    /// The same; there is one line for each value of these arguments.
    pub const fn key(self, key: &'static str) -> Self {
        Self { key: Key::Args(key), ..self }
    }

    /// The same, which makes what this template names.
    pub const fn makes(self, makes: &'static str) -> Self {
        Self { makes, ..self }
    }

    /// The same, which needs what these templates name.
    pub const fn needs(self, needs: &'static [&'static str]) -> Self {
        Self { needs, ..self }
    }

    /// The same, for whose new lines this function asks the machine before anything is changed.
    pub const fn checked_by(self, check: Check) -> Self {
        Self { check: Some(check), ..self }
    }

    /// The same; this function says which lines another party has brought.
    pub const fn brought_by_others(self, brought: Brought) -> Self {
        Self { brought: Some(brought), ..self }
    }

    /// The same; a change interrupts this for a moment.
    pub const fn flaps(self, what: &'static str) -> Self {
        Self { class: Class::Flap(what), ..self }
    }

    /// The same; a change takes this away and makes it again.
    pub const fn recreates(self, what: &'static str) -> Self {
        Self { class: Class::Recreate(what), ..self }
    }

    /// The same, changed by what this function says.
    pub const fn changed_by(self, change: fn(old: &Args, new: &Args) -> Vec<String>) -> Self {
        Self { change: Change::By(change), ..self }
    }

    /// The same, taken back by the command that this function finds.
    pub const fn found(self, inverse: fn(&Control, &Args) -> Option<String>) -> Self {
        Self { inverse: Inverse::Found(inverse), ..self }
    }

    /// The same, which no command takes back: it goes with the line that makes what it needs.
    pub const fn with_needed(self) -> Self {
        Self { inverse: Inverse::WithNeeded, ..self }
    }

    /// The same; its lines keep their order among those with the same arguments of these names.
    pub const fn in_order_of(self, names: &'static str) -> Self {
        Self { order: Order::Among(names), ..self }
    }

    /// The same, before all others of its phase.
    pub const fn first(self) -> Self {
        Self { place: Place::First, ..self }
    }
}
