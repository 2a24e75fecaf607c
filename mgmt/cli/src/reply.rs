//! What an input answered.

use std::cell::RefCell;
use std::fmt::Write as _;
use std::task::{Context, Poll};

use serde_json::Value;
use shoal_module::cli::{Gone, Output, Reader};

use crate::complaint::Complaint;

/// The answer to one input, of one command or several. Text and JSON are made when asked for.
#[derive(Debug, Default)]
pub struct Reply {
    /// The first part; one command alone has no other.
    first: Option<Part>,
    more: Vec<Part>,
    quit: bool,
}

#[derive(Debug)]
enum Part {
    Output(Output),
    /// The line asked for JSON itself, with `--json`.
    Json(Output),
    Error(Complaint),
}

impl Reply {
    pub(crate) fn output(output: Output, json: bool) -> Self {
        let part = if json { Part::Json(output) } else { Part::Output(output) };
        Self { first: Some(part), ..Self::default() }
    }

    pub(crate) fn error(complaint: Complaint) -> Self {
        Self { first: Some(Part::Error(complaint)), ..Self::default() }
    }

    pub(crate) fn leave() -> Self {
        Self { quit: true, ..Self::default() }
    }

    pub(crate) fn append(&mut self, other: Self) {
        for part in other.first.into_iter().chain(other.more) {
            match self.first {
                Some(_) => self.more.push(part),
                None => self.first = Some(part),
            }
        }
        self.quit |= other.quit;
    }

    fn parts(&self) -> impl Iterator<Item = &Part> {
        self.first.iter().chain(&self.more)
    }

    /// Whether there is nothing to show.
    pub(crate) fn is_silent(&self) -> bool {
        self.parts().all(|part| matches!(part, Part::Output(output) if output.is_none()))
    }

    /// Puts what was printed meanwhile in front.
    pub(crate) fn prepend_text(&mut self, printed: String) {
        if !printed.is_empty() {
            self.more.splice(0..0, self.first.take());
            self.first = Some(Part::Output(Output::text(printed)));
        }
    }

    /// Shows every answer as JSON.
    pub(crate) fn make_json(&mut self) {
        for part in self.first.iter_mut().chain(&mut self.more) {
            if let Part::Output(output) = part {
                *part = Part::Json(std::mem::replace(output, Output::none()));
            }
        }
    }

    /// Whether every command succeeded.
    pub fn is_ok(&self) -> bool {
        !self.parts().any(|p| matches!(p, Part::Error(_)))
    }

    /// Whether the client asked to leave.
    pub fn wants_to_quit(&self) -> bool {
        self.quit
    }

    /// The text for people.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for part in self.parts() {
            match part {
                Part::Output(output) => text.push_str(&output.to_text()),
                Part::Json(output) => {
                    // Writing to a String cannot fail.
                    let _ = write!(text, "{:#}", output.to_json());
                }
                Part::Error(complaint) => {
                    let _ = write!(text, "{complaint}");
                }
            }
            if !text.is_empty() && !text.ends_with('\n') {
                text.push('\n');
            }
        }
        text
    }

    /// The answer for programs: one value, or an array if there were several commands.
    pub fn json(&self) -> Value {
        let mut values: Vec<Value> = self
            .parts()
            .map(|part| match part {
                Part::Output(output) | Part::Json(output) => output.to_json(),
                Part::Error(complaint) => complaint.to_json(),
            })
            .collect();
        if values.len() > 1 { Value::Array(values) } else { values.pop().unwrap_or(Value::Null) }
    }

    /// The first failure.
    pub fn complaint(&self) -> Option<&Complaint> {
        self.parts().find_map(|part| match part {
            Part::Error(complaint) => Some(complaint),
            _ => None,
        })
    }
}

/// Keeps what a slow command prints, for callers without a client to stream to.
#[derive(Default)]
pub(crate) struct Collected(RefCell<String>);

impl Collected {
    const MAX: usize = 64 << 20;

    pub(crate) fn take(&self) -> String {
        self.0.take()
    }
}

impl Reader for Collected {
    fn write(&self, text: &str) -> Result<(), Gone> {
        let mut all = self.0.borrow_mut();
        if all.len() + text.len() > Self::MAX {
            return Err(Gone);
        }
        all.push_str(text);
        Ok(())
    }

    fn poll_gone(&self, _: &mut Context<'_>) -> Poll<()> {
        Poll::Pending
    }

    fn is_gone(&self) -> bool {
        false
    }
}
