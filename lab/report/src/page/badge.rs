//! Marks of trust, in one word and in a sentence.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use shoal_lab_plan::Trust;

use super::table::Cell;
use crate::results::trust_word;

/// How much a mark takes from a figure: class of its colour.
const fn weight(trust: Trust) -> &'static str {
    match trust {
        Trust::Invalid | Trust::Disturbed | Trust::Refused => "bad",
        Trust::TesterBound | Trust::Ceiling | Trust::SharedCore => "warn",
        Trust::VirtualLink | Trust::FewRuns | Trust::ShortTrials => "mild",
    }
}

/// A mark's name for people.
pub const fn name(trust: Trust) -> &'static str {
    match trust {
        Trust::TesterBound => "tester-bound",
        Trust::Disturbed => "disturbed",
        Trust::Refused => "refused",
        Trust::Invalid => "invalid trials",
        Trust::VirtualLink => "virtual link",
        Trust::FewRuns => "n < 20",
        Trust::ShortTrials => "short trials",
        Trust::SharedCore => "shared core",
        Trust::Ceiling => "ceiling",
    }
}

/// What it means, a sentence.
pub const fn meaning(trust: Trust) -> &'static str {
    match trust {
        Trust::TesterBound => {
            "The tester, not the device, set the figure (above 90 % of what it reaches alone): read it as \u{201c}at least\u{201d}."
        }
        Trust::Disturbed => {
            "Something else took the processor during trials, more often than they could be tried again."
        }
        Trust::Refused => {
            "There is no figure: other processes had the processors of tester or device each time it was tried."
        }
        Trust::Invalid => {
            "Some trials were invalid: frames were lost by the tester, corrupt, or of an earlier trial."
        }
        Trust::VirtualLink => {
            "The wire has no speed of its own (memif, veth, TAP); \u{201c}line rate\u{201d} is a nominal number."
        }
        Trust::FewRuns => "Fewer than the 20 runs that the RFC and the paper ask for.",
        Trust::ShortTrials => "Trials were shorter than the 60 seconds that RFC 2544 asks for.",
        Trust::SharedCore => "Tester and device shared a processor: a shape at best, not a measurement.",
        Trust::Ceiling => "The search reached its upper end: read it as \u{201c}at least\u{201d}.",
    }
}

/// The marks as HTML.
pub fn badges(marks: &[Trust]) -> String {
    let mut out = String::new();
    for mark in marks.iter().collect::<BTreeSet<_>>() {
        let _ = write!(
            out,
            "<span class=\"badge {}\" title=\"{}\">{}</span>",
            weight(*mark),
            super::escape(meaning(*mark)),
            super::escape(name(*mark))
        );
    }
    out
}

/// The marks as a cell.
pub fn cell(marks: &[Trust]) -> Cell {
    let words: Vec<_> = marks.iter().map(|m| trust_word(*m)).collect();
    Cell::Markup(badges(marks), words.join(" "))
}

/// Whether the figure is a lower bound.
pub fn is_at_least(marks: &[Trust]) -> bool {
    marks.contains(&Trust::TesterBound) || marks.contains(&Trust::Ceiling)
}

/// Whether the figure is not the device's own.
pub fn is_hollow(marks: &[Trust]) -> bool {
    is_at_least(marks) || marks.contains(&Trust::SharedCore) || marks.contains(&Trust::Invalid)
}
