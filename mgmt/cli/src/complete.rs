//! Completion: what may stand at the cursor.

use serde::Serialize;
use shoal_module::Control;

use crate::grammar::{Arg, ArgKind};
use crate::lex;
use crate::matcher::{self, Check, ExpectedToken, Input};
use crate::table::{Entry, Table};

/// One possibility.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Candidate {
    /// What to put in place of the word at the cursor; for a hint, the argument's name.
    pub text: String,
    /// What it is.
    pub help: String,
    /// It names an argument whose values cannot be listed; show it, do not insert it.
    pub hint: bool,
}

/// All possibilities.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Completion {
    /// Where the word at the cursor begins, in bytes.
    pub start: usize,
    /// What could be there.
    pub candidates: Vec<Candidate>,
}

impl Table {
    /// What may stand at `cursor`, a byte position in `line`.
    pub fn complete(&self, control: &Control, line: &str, cursor: usize) -> Completion {
        let mut end = cursor.min(line.len());
        while !line.is_char_boundary(end) {
            end -= 1;
        }
        let text = line.get(..end).unwrap_or("");
        let (start, prefix) = word_at_end(text);
        let walk = self.walk(text, start);
        let completion = Completion { start, candidates: Vec::new() };
        let mut found = CompletionContext { completion, prefix, control };
        if walk.span.start >= start {
            let prefix = found.prefix.clone();
            for (word, node) in walk.node.starting_with(&prefix) {
                let help = self.entry(node).map_or_else(|| node.summary(), |e| e.command.help.to_owned());
                found.add(word, help, false);
            }
        }
        for (entry, from) in walk.reached.iter().rev() {
            let input = Input {
                line: text,
                from: *from,
                cursor: Some(start),
                commas: entry.commas,
                check: Check::Now,
            };
            let Err(mismatch) = matcher::run(&entry.items, input, &self.types, control) else { continue };
            if mismatch.span.start >= start {
                self.wanted(entry, &mismatch.wants, &mut found);
                break;
            }
        }
        found.completion
    }

    fn wanted(&self, entry: &Entry, wants: &[ExpectedToken], found: &mut CompletionContext<'_>) {
        for want in wants {
            match want {
                ExpectedToken::Word(word) => found.add(word, entry.command.help.to_owned(), false),
                ExpectedToken::Arg(arg, _) => self.values(*arg, found),
                ExpectedToken::End => {}
            }
        }
    }

    /// The values of an argument, or a hint if there are none to list.
    fn values(&self, arg: Arg, found: &mut CompletionContext<'_>) {
        let ty = match arg.kind {
            ArgKind::Type(ty) => self.types.get(ty),
            _ => None,
        };
        let Some(ty) = ty else {
            found.hint(arg, "text");
            return;
        };
        let mut values = (ty.complete)(found.control, &found.prefix);
        values.retain(|v| (ty.check)(found.control, v).is_ok());
        values.sort_by_cached_key(|v| natural(v));
        values.dedup();
        if values.is_empty() {
            found.hint(arg, ty.help);
        }
        for value in values {
            found.add(&value, ty.help.to_owned(), true);
        }
    }
}

struct CompletionContext<'a> {
    completion: Completion,
    prefix: String,
    control: &'a Control,
}

impl CompletionContext<'_> {
    fn add(&mut self, text: &str, help: String, may_need_quotes: bool) {
        if !text.starts_with(&self.prefix) {
            return;
        }
        let special = |c: char| c.is_whitespace() || "{},\"'".contains(c);
        let text = if may_need_quotes && (text.contains(special) || text.is_empty()) {
            format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
        } else {
            text.to_owned()
        };
        self.push(Candidate { text, help, hint: false });
    }

    fn hint(&mut self, arg: Arg, help: &str) {
        self.push(Candidate { text: arg.to_string(), help: help.to_owned(), hint: true });
    }

    fn push(&mut self, candidate: Candidate) {
        if self.completion.candidates.iter().all(|c| c.text != candidate.text) {
            self.completion.candidates.push(candidate);
        }
    }
}

/// The word that touches the end of the text, and where it begins.
fn word_at_end(text: &str) -> (usize, String) {
    let mut at = 0;
    while let Some(token) = lex::next(text, at, false) {
        at = token.span.end;
        let closed = token.quoted && token.span.len() > 1 && text.ends_with(['"', '\'']);
        let brace = !token.quoted && matches!(token.text.as_ref(), "{" | "}");
        if at == text.len() && !closed && !brace {
            return (token.span.start, token.text.into_owned());
        }
    }
    (text.len(), String::new())
}

/// Sorts `tap2` before `tap10`.
fn natural(text: &str) -> (String, usize, String) {
    let head = text.trim_end_matches(|c: char| c.is_ascii_digit());
    let number = text.get(head.len()..).and_then(|n| n.parse().ok()).unwrap_or(0);
    (head.to_owned(), number, text.to_owned())
}
