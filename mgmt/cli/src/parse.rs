//! From an input line to a command and its arguments, by VPP's rules.
//!
//! A word is matched against the words that may follow: the equal one wins, else the only one that begins
//! with it. Sub-commands are tried before the function of the place itself; where they fail, that function
//! gets the rest of the line.

use std::ops::Range;

use shoal_module::Control;
use shoal_module::cli::{Args, Item as Taken, nearest};

use crate::complaint::Complaint;
use crate::lex;
use crate::matcher::{self, Check, ExpectedToken, Input, Mismatch};
use crate::table::{Entry, Last, Node, Table, WordMatch};

/// A line that is a command.
#[derive(Debug)]
pub struct Parsed<'t> {
    /// The command.
    pub entry: &'t Entry,
    /// What followed its words.
    pub taken: Vec<Taken>,
}

/// How far the words of a line lead into the tree.
pub struct Walk<'t> {
    /// The words so far, in full.
    pub path: Vec<&'static str>,
    /// The commands on the way, with the place where their arguments begin; the deepest is last.
    pub reached: Vec<(&'t Entry, usize)>,
    /// Where it ended.
    pub node: &'t Node,
    /// The word that leads no further; empty at the end of the line.
    pub span: Range<usize>,
    /// The words it abbreviates, if several.
    pub several: Vec<&'static str>,
}

impl Table {
    /// Follows the words of a line up to one that leads no further, or up to `end`.
    pub fn walk(&self, line: &str, end: usize) -> Walk<'_> {
        let mut walk = Walk {
            path: Vec::new(),
            reached: Vec::new(),
            node: &self.root,
            span: end..end,
            several: Vec::new(),
        };
        let mut at = 0;
        loop {
            let token = lex::next(line, at, false).filter(|t| t.span.start < end);
            let Some(token) = token else {
                walk.span = end..end;
                return walk;
            };
            let found = if token.quoted { WordMatch::None } else { walk.node.find(&token.text) };
            match found {
                WordMatch::One(word, node) => {
                    at = token.span.end;
                    walk.path.push(word);
                    walk.node = node;
                    walk.reached.extend(self.entry(node).map(|entry| (entry, at)));
                }
                WordMatch::Several(all) => {
                    (walk.span, walk.several) = (token.span, all);
                    return walk;
                }
                WordMatch::None => {
                    walk.span = token.span;
                    return walk;
                }
            }
        }
    }

    /// The command of a line that begins with the words of the line before, and where its arguments begin. Where
    /// that is the deepest one on the way, it is tried first.
    fn as_before(&self, line: &str) -> Option<(&Entry, usize)> {
        let last = self.last.borrow();
        let Last { words, entry, from } = last.as_ref()?;
        let rest = line.strip_prefix(words.as_str())?;
        let ends = rest.as_bytes().first().is_some_and(|b| *b == b' ' || *b == b'\t');
        if ends { Some((self.entries.get(*entry)?, *from)) } else { None }
    }

    fn remember(&self, line: &str, walk: &Walk<'_>, (entry, from): (&Entry, usize)) {
        // The word that leads no further is remembered, too: another one might.
        let words = line.get(..walk.span.end).filter(|_| !walk.span.is_empty());
        let number = self.entries.iter().position(|e| std::ptr::eq(e, entry));
        *self.last.borrow_mut() = words
            .zip(number)
            .filter(|(words, _)| !words.contains(['"', '\'', '{', '}']))
            .map(|(words, entry)| Last { words: words.to_owned(), entry, from });
    }

    /// Whether a line is a command like the one before, so that it needs not be [parsed](Self::parse) to know that
    /// nothing is wrong with it. `false` says nothing.
    pub fn is_alike(&self, control: &Control, line: &str, check: Check) -> bool {
        self.as_before(line).is_some_and(|(entry, from)| {
            entry.plans.fits(Input { line, from, cursor: None, commas: entry.commas, check }, control)
        })
    }

    /// The command of a line that is like the one before, and its arguments in `room`.
    pub fn again(&self, control: &Control, line: &str, room: &mut Args) -> Option<&Entry> {
        let (entry, from) = self.as_before(line)?;
        let input = Input { line, from, cursor: None, commas: entry.commas, check: Check::Now };
        room.refill(line, |taken| entry.plans.repeat_into(input, control, taken)).then_some(entry)
    }

    /// Finds the command of a line and its arguments.
    pub fn parse(&self, control: &Control, line: &str, check: Check) -> Result<Parsed<'_>, Box<Complaint>> {
        if let Some((entry, from)) = self.as_before(line) {
            let input = Input { line, from, cursor: None, commas: entry.commas, check };
            if let Some(taken) = entry.plans.repeat(input, control) {
                return Ok(Parsed { entry, taken });
            }
        }
        let walk = self.walk(line, line.trim_end().len());
        let mut worst: Option<(&Entry, Mismatch)> = None;
        for (depth, (entry, from)) in walk.reached.iter().rev().enumerate() {
            match self.arguments(entry, control, line, *from, check) {
                Ok(taken) => {
                    if depth == 0 {
                        self.remember(line, &walk, (entry, *from));
                    }
                    return Ok(Parsed { entry, taken });
                }
                Err(m) if worst.as_ref().is_none_or(|(_, w)| m.span.start > w.span.start) => {
                    worst = Some((entry, m));
                }
                Err(_) => {}
            }
        }
        let wrong = worst.as_ref().map_or(0, |(_, mismatch)| mismatch.span.start).max(walk.span.start);
        if let Some(name) = self.lacks(line) {
            return Err(Box::new(Complaint::lacking(name, line, wrong..wrong.max(line.len()))));
        }
        match worst {
            Some((entry, mismatch))
                if mismatch.span.start >= walk.span.start || walk.node.children.is_empty() =>
            {
                // Where the tree ends at the same word, its words were possible there too.
                let words = if mismatch.span.start == walk.span.start { Some(&walk) } else { None };
                Err(Box::new(arguments_complaint(line, entry, &mismatch, words)))
            }
            _ => Err(Box::new(walk_complaint(line, &walk))),
        }
    }

    fn arguments(
        &self,
        entry: &Entry,
        control: &Control,
        line: &str,
        from: usize,
        check: Check,
    ) -> Result<Vec<Taken>, Mismatch> {
        let input = Input { line, from, cursor: None, commas: entry.commas, check };
        let mismatch = match entry.plans.run(&entry.items, input, &self.types, control) {
            Ok(taken) => return Ok(taken),
            Err(mismatch) => mismatch,
        };
        // Braces may wrap the whole of the arguments: match what is inside them.
        let open = lex::skip_blanks(line, from);
        let close =
            lex::closing_brace(line, open).filter(|_| line.get(open..).is_some_and(|r| r.starts_with('{')));
        match close {
            Some(close) if line.get(close + 1..).is_some_and(|rest| rest.trim().is_empty()) => {
                let inner = line.get(..close).unwrap_or("");
                let input = Input { line: inner, from: open + 1, ..input };
                matcher::run(&entry.items, input, &self.types, control)
            }
            _ => Err(mismatch),
        }
    }
}

fn arguments_complaint(line: &str, entry: &Entry, mismatch: &Mismatch, walk: Option<&Walk<'_>>) -> Complaint {
    let typed = line.get(mismatch.span.clone()).unwrap_or("");
    let mut expected: Vec<String> = Vec::new();
    let mut words: Vec<&'static str> = Vec::new();
    let mut suggestion = None;
    for want in &mismatch.wants {
        let text = match want {
            ExpectedToken::Word(word) => {
                words.push(word);
                (*word).to_owned()
            }
            ExpectedToken::Arg(arg, Some(refused)) => {
                suggestion = suggestion.or_else(|| refused.nearest.clone());
                format!("{} for {arg}", refused.what)
            }
            ExpectedToken::Arg(arg, None) => arg.to_string(),
            ExpectedToken::End => "the end of the line".to_owned(),
        };
        if !expected.contains(&text) {
            expected.push(text);
        }
    }
    let mut several: Vec<String> = mismatch.ambiguous.iter().map(|w| (*w).to_owned()).collect();
    if let Some(walk) = walk {
        words.extend(walk.node.children.keys());
        several.extend(walk.several.iter().map(|w| (*w).to_owned()));
        // The end of the line alone says nothing once there are words that could follow.
        expected.extend(walk.node.children.keys().map(|w| (*w).to_owned()));
    }
    let suggestion = suggestion.or_else(|| nearest(typed, words).map(str::to_owned));
    Complaint::parse(&entry.path, line, mismatch.span.clone())
        .expected(expected)
        .several(several)
        .nearest(suggestion)
}

fn walk_complaint(line: &str, walk: &Walk<'_>) -> Complaint {
    let typed = line.get(walk.span.clone()).unwrap_or("");
    let words = || walk.node.children.keys().copied();
    Complaint::parse(&walk.path.join(" "), line, walk.span.clone())
        .expected(words().map(str::to_owned).collect())
        .several(walk.several.iter().map(|w| (*w).to_owned()).collect())
        .nearest(nearest(typed, words()).map(str::to_owned))
}
