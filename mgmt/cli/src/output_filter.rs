//! `show interface | include loop`: lines of an answer that are wanted, or their number.

use std::cell::{Cell, RefCell};
use std::future::Future as _;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use shoal_module::cli::{Client, ClientGone, Form, Reader, Sink};

/// What is wanted of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FilterMode {
    /// Lines with this in them.
    Include(String),
    /// Lines without it.
    Exclude(String),
    /// How many lines there are.
    Count,
}

impl FilterMode {
    /// A line in front of its wishes, and these, the first one first. `a|b` in one of them means either.
    pub(crate) fn of(line: &str) -> (&str, Vec<FilterMode>) {
        let (mut line, mut wishes) = (line, Vec::new());
        while let Some(at) = line.rfind(" | ")
            && let Some(wish) = line.get(at + 3..).and_then(Self::read)
        {
            wishes.insert(0, wish);
            line = line.get(..at).unwrap_or_default();
        }
        (line, wishes)
    }

    fn read(text: &str) -> Option<FilterMode> {
        let text = text.trim();
        let (verb, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let rest = rest.trim();
        let rest = rest.strip_prefix('"').and_then(|r| r.strip_suffix('"')).unwrap_or(rest).to_owned();
        let is = |word: &str, least: usize| verb.len() >= least && word.starts_with(verb);
        match rest.is_empty() {
            true if is("count", 2) => Some(FilterMode::Count),
            false if is("include", 1) || verb == "grep" => Some(FilterMode::Include(rest)),
            false if is("exclude", 1) => Some(FilterMode::Exclude(rest)),
            _ => None,
        }
    }

    fn keeps(&self, line: &str) -> bool {
        let any = |pattern: &str| pattern.split('|').any(|part| !part.is_empty() && line.contains(part));
        match self {
            FilterMode::Include(pattern) => any(pattern),
            FilterMode::Exclude(pattern) => !any(pattern),
            FilterMode::Count => true,
        }
    }
}

/// Lets through what is wanted.
pub(crate) struct OutputFilter {
    to: Sink,
    wishes: Vec<FilterMode>,
    /// The beginning of a line whose end is to come.
    begun: RefCell<String>,
    count: Cell<u64>,
}

impl OutputFilter {
    pub(crate) fn new(to: Sink, wishes: Vec<FilterMode>) -> Rc<Self> {
        Rc::new(OutputFilter { to, wishes, begun: RefCell::default(), count: Cell::new(0) })
    }

    fn counts(&self) -> bool {
        self.wishes.contains(&FilterMode::Count)
    }

    /// The lines of a text that are wanted.
    fn sift(&self, text: &str) -> String {
        let mut kept = String::new();
        let mut begun = self.begun.borrow_mut();
        for piece in text.split_inclusive('\n') {
            begun.push_str(piece);
            if piece.ends_with('\n') {
                let line = std::mem::take(&mut *begun);
                if self.wishes.iter().all(|wish| wish.keeps(&line)) {
                    self.count.set(self.count.get() + 1);
                    if !self.counts() {
                        kept.push_str(&line);
                    }
                }
            }
        }
        kept
    }

    /// What is left to say, behind the text of the answer.
    pub(crate) fn finish(&self, text: &str) -> String {
        let mut kept = self.sift(text);
        if !self.begun.borrow().is_empty() {
            kept.push_str(&self.sift("\n"));
        }
        if self.counts() { format!("{}\n", self.count.get()) } else { kept }
    }
}

impl Reader for OutputFilter {
    fn write(&self, text: &str) -> Result<(), ClientGone> {
        let kept = self.sift(text);
        if kept.is_empty() {
            return if self.to.is_gone() { Err(ClientGone) } else { Ok(()) };
        }
        self.to.text(&kept)
    }

    fn progress(&self, text: &str) {
        self.to.progress(text);
    }

    fn form(&self) -> Option<Form> {
        // Only text has lines to choose from; elsewhere the answer is made whole first.
        self.to.form().filter(|form| *form == Form::Text)
    }

    fn piece(&self, piece: &str) -> Result<(), ClientGone> {
        let kept = self.sift(piece);
        if kept.is_empty() {
            return if self.to.is_gone() { Err(ClientGone) } else { Ok(()) };
        }
        self.to.piece(&kept)
    }

    fn poll_room(&self, cx: &mut Context<'_>) -> Poll<()> {
        // What it waits for is the client's; the future itself has nothing to keep.
        pin!(self.to.room()).poll(cx).map(|_| ())
    }

    fn poll_gone(&self, cx: &mut Context<'_>) -> Poll<()> {
        pin!(self.to.gone()).poll(cx).map(|()| ())
    }

    fn is_gone(&self) -> bool {
        self.to.is_gone()
    }

    fn client(&self) -> Client {
        self.to.client()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wishes_stand_behind_a_line() {
        let of = |line| {
            let (line, wishes) = FilterMode::of(line);
            (line, wishes.len())
        };
        assert_eq!(of("show interface | include loop"), ("show interface", 1));
        assert_eq!(of("show interface | i loop | ex \"0 1\" | count"), ("show interface", 3));
        for whole in [
            "show interface",
            "vpplog a | b",
            "show x |include y",
            "show x | include",
            "trace filter tcp | udp",
        ] {
            assert_eq!(of(whole), (whole, 0));
        }
    }
}
