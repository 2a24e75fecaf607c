//! What an input answered.

use std::cell::{Cell, RefCell};
use std::fmt::Write as _;
use std::task::{Context, Poll};

use serde_json::Value;
use shoal_module::cli::{ClientGone, Form, Output, Reader};

use crate::complaint::Complaint;

/// The answer to one input, of one command or several. Text and JSON are made when asked for.
#[derive(Debug, Default)]
pub struct Reply {
    /// The first part; one command alone has no other.
    first: Option<Part>,
    more: Vec<Part>,
    quit: bool,
    /// Its last part was a listing, which the client has piece by piece.
    listed: bool,
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

    /// A listing that the client has.
    pub(crate) fn listed() -> Self {
        Self { listed: true, ..Self::default() }
    }

    /// Whether the client has its answer piece by piece.
    pub(crate) fn was_listed(&self) -> bool {
        self.listed
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
        self.listed = other.listed;
    }

    fn parts(&self) -> impl Iterator<Item = &Part> {
        self.first.iter().chain(&self.more)
    }

    /// Whether there is nothing to show.
    pub(crate) fn is_silent(&self) -> bool {
        self.parts().all(|part| matches!(part, Part::Output(output) if output.is_none()))
    }

    /// Takes what there is to show so far.
    pub(crate) fn take_text(&mut self) -> String {
        let text = self.text();
        (self.first, self.listed) = (None, false);
        self.more.clear();
        text
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

/// Keeps the beginning of what is printed, for callers that have room for so much.
#[derive(Default)]
pub(crate) struct Bounded {
    text: RefCell<String>,
    full: Cell<bool>,
}

impl Bounded {
    /// Bytes that are kept.
    pub const MAX: usize = 1 << 20;

    /// What was printed and then the reply, as far as there is room; a last line says it when something is missing.
    pub(crate) fn finish(&self, reply: &Reply) -> String {
        let last = if self.full.get() { String::new() } else { reply.text() };
        let _: Result<(), ClientGone> = self.write(&last);
        let mut text = self.text.take();
        if self.full.get() {
            let more = "... more than 1 MiB, which is all that one message has room for: ask on the command line's socket";
            // Writing to a String cannot fail.
            let _ = write!(text, "\n{more}\n");
        }
        text
    }

    /// Whether there was more than is kept.
    pub(crate) fn is_full(&self) -> bool {
        self.full.get()
    }
}

impl Reader for Bounded {
    fn write(&self, text: &str) -> Result<(), ClientGone> {
        let mut all = self.text.borrow_mut();
        let room = Self::MAX.saturating_sub(all.len());
        if self.full.get() || text.len() > room {
            self.full.set(true);
            // Whole lines only.
            let end =
                text.get(..text.floor_char_boundary(room)).and_then(|text| text.rfind('\n')).unwrap_or(0);
            all.push_str(text.get(..end).unwrap_or_default());
            return Err(ClientGone);
        }
        all.push_str(text);
        Ok(())
    }

    fn form(&self) -> Option<Form> {
        Some(Form::Text)
    }

    fn poll_gone(&self, _: &mut Context<'_>) -> Poll<()> {
        if self.full.get() { Poll::Ready(()) } else { Poll::Pending }
    }

    fn is_gone(&self) -> bool {
        self.full.get()
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
    fn write(&self, text: &str) -> Result<(), ClientGone> {
        let mut all = self.0.borrow_mut();
        if all.len() + text.len() > Self::MAX {
            return Err(ClientGone);
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
