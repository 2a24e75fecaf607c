//! What is wrong with an input line, for people and for programs.

use std::fmt;
use std::ops::Range;

use serde_json::{Value, json};
use shoal_module::cli::{Args, CliError};

/// Characters of the input that are shown around the mark.
const SHOWN: usize = 100;
/// Possibilities that are listed.
const LISTED: usize = 12;

/// A line that is no command, or a command that failed.
///
/// Its first line is VPP's: the path in full, a colon, the message. What follows is ours: the input with a
/// mark under the wrong word, what was expected there, and the nearest valid text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Complaint {
    path: String,
    message: String,
    line: String,
    span: Option<Range<usize>>,
    expected: Vec<String>,
    several: Vec<String>,
    nearest: Option<String>,
}

impl Complaint {
    /// The input makes no sense from `span` on; empty means that something is missing at the end.
    pub fn parse(path: &str, line: &str, span: Range<usize>) -> Self {
        let rest = shorten(line.get(span.start..).unwrap_or("").trim());
        let message = match (rest.is_empty(), span.is_empty()) {
            (true, _) => "incomplete command".to_owned(),
            _ => format!("unknown input `{rest}'"),
        };
        let (expected, several) = (Vec::new(), Vec::new());
        let (path, line) = (path.to_owned(), line.to_owned());
        Self { path, message, line, span: Some(span), expected, several, nearest: None }
    }

    /// A command of VPP, by its full name, that this router has not.
    pub fn lacking(name: &str, line: &str, span: Range<usize>) -> Self {
        let (path, line) = (name.to_owned(), line.to_owned());
        let (expected, several) = (Vec::new(), Vec::new());
        Self {
            path,
            message: crate::vpp::message(),
            line,
            span: Some(span),
            expected,
            several,
            nearest: None,
        }
    }

    /// What is wrong, without the path.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// A command's function failed.
    pub fn failed(path: &str, args: &Args, error: &CliError) -> Self {
        let (span, nearest) = match error {
            CliError::Failed(_) => (None, None),
            CliError::Argument { name, nearest, .. } => (args.span(name), nearest.clone()),
        };
        let (path, message, line) = (path.to_owned(), error.message().to_owned(), args.line().to_owned());
        Self { path, message, line, span, expected: Vec::new(), several: Vec::new(), nearest }
    }

    /// Something else went wrong.
    pub fn other(path: &str, message: impl Into<String>) -> Self {
        let (path, message, line) = (path.to_owned(), message.into(), String::new());
        Self { path, message, line, span: None, expected: Vec::new(), several: Vec::new(), nearest: None }
    }

    /// The same with what could have stood there.
    pub fn expected(mut self, mut expected: Vec<String>) -> Self {
        if expected.len() > 1 && expected.iter().any(|e| e.starts_with("the end")) {
            expected.retain(|e| !e.starts_with("the end"));
        }
        if let [one] = expected.as_slice()
            && self.message == "incomplete command"
        {
            self.message = format!("missing {one}");
        }
        self.expected = expected;
        self
    }

    /// The same with the words that the wrong word abbreviates.
    pub fn several(mut self, several: Vec<String>) -> Self {
        if !several.is_empty() {
            self.message = self.message.replacen("unknown", "ambiguous", 1);
        }
        self.several = several;
        self
    }

    /// The same with the nearest valid text.
    pub fn nearest(mut self, nearest: Option<String>) -> Self {
        self.nearest = nearest;
        self
    }

    /// The first line: path and message.
    pub fn headline(&self) -> String {
        if self.path.is_empty() { self.message.clone() } else { format!("{}: {}", self.path, self.message) }
    }

    /// For programs.
    pub fn to_json(&self) -> Value {
        json!({
            "error": self.headline(),
            "path": self.path,
            "message": self.message,
            "at": self.span.as_ref().map(|s| [s.start, s.end]),
            "expected": self.expected,
            "candidates": self.several,
            "nearest": self.nearest,
        })
    }
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.headline())?;
        if let Some(span) = &self.span {
            let (shown, column) = around(&self.line, span.start);
            writeln!(f, "  {shown}\n  {:column$}^", "")?;
        }
        if !self.several.is_empty() {
            writeln!(f, "  could be {}", list(&self.several))?;
        } else if !self.expected.is_empty() {
            writeln!(f, "  expected {}", list(&self.expected))?;
        }
        match &self.nearest {
            Some(nearest) if self.several.is_empty() => writeln!(f, "  did you mean `{nearest}'?"),
            _ => Ok(()),
        }
    }
}

/// Text of a client goes back to terminals: no control characters, no walls of text.
fn shorten(text: &str) -> String {
    let mut shown: String = text.chars().take(SHOWN).map(printable).collect();
    if text.chars().nth(SHOWN).is_some() {
        shown.push_str("...");
    }
    shown
}

fn printable(c: char) -> char {
    match c {
        '\t' | '\n' | '\r' => ' ',
        c if c.is_control() => '?',
        c => c,
    }
}

/// The part of the input around a place, and the column of the place in it.
fn around(line: &str, at: usize) -> (String, usize) {
    let before = line.get(..at).unwrap_or(line);
    let start = before.rfind('\n').map_or(0, |i| i + 1);
    let before = before.get(start..).unwrap_or("");
    let after = line.get(at..).unwrap_or("").lines().next().unwrap_or("");
    let skip = before.chars().count().saturating_sub(SHOWN / 2);
    let lead = if skip > 0 { "..." } else { "" };
    let mut shown = lead.to_owned();
    shown.extend(before.chars().skip(skip).map(printable));
    let column = shown.chars().count();
    shown.push_str(&shorten(after));
    (shown.trim_end().to_owned(), column)
}

fn list(items: &[String]) -> String {
    let shown: Vec<&str> = items.iter().take(LISTED).map(String::as_str).collect();
    match shown.split_last() {
        _ if items.len() > LISTED => format!("{} or {} more", shown.join(", "), items.len() - LISTED),
        Some((last, others)) if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        _ => shown.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_at_the_wrong_word() {
        let c = Complaint::parse("show", "show intrface", 5..13)
            .expected(vec!["interface".into(), "version".into()])
            .nearest(Some("interface".into()));
        assert_eq!(
            c.to_string(),
            "show: unknown input `intrface'\n  show intrface\n       ^\n  expected interface or version\n  \
             did you mean `interface'?\n"
        );
    }

    #[test]
    fn a_missing_argument_is_named() {
        let c = Complaint::parse("a b", "a b", 3..3).expected(vec!["<count>".into()]);
        assert_eq!(c.headline(), "a b: missing <count>");
    }

    #[test]
    fn long_and_unprintable_input_is_tamed() {
        let line = format!("x{}\u{1b}[31m{}", "a".repeat(5000), "b".repeat(5000));
        let text = Complaint::parse("", &line, 3000..3001).to_string();
        assert!(text.len() < 600 && !text.contains('\u{1b}'), "{text}");
    }
}
