//! Matches the input after a command's path against its syntax.
//!
//! A small backtracking machine with an explicit stack: input never recurses. It remembers what was
//! expected at the furthest place it reached; error messages and completion both come from that.

use std::ops::Range;
use std::rc::Rc;

use shoal_module::Control;
use shoal_module::cli::{ArgType, Expected, Item as Taken, Text};

use crate::grammar::{Arg, ArgKind, Item, Part, Sequence};
use crate::lex;
use crate::plan::Notes;
use crate::table::Types;

/// Work allowed for one line; only a syntax with many overlapping arguments comes near it.
const MAX_STEPS: usize = 200_000;
/// Abbreviated options in one line.
const MAX_ABBREVIATIONS: usize = 64;

/// How arguments are checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Check {
    /// Against the router as it is now.
    Now,
    /// By their shape only: what they name may exist later.
    Shape,
}

/// What is matched.
#[derive(Clone, Copy)]
pub struct Input<'a> {
    /// The whole line.
    pub line: &'a str,
    /// Where the arguments begin.
    pub from: usize,
    /// Completion: the word that begins here is still being typed, and nothing matches it.
    pub cursor: Option<usize>,
    /// Whether a comma is a word of its own.
    pub commas: bool,
    /// How arguments are checked.
    pub check: Check,
}

/// Something that could have stood at the furthest place.
#[derive(Debug, Clone)]
pub enum ExpectedToken {
    /// This word.
    Word(&'static str),
    /// This argument; with the reason if what stands there was refused.
    Arg(Arg, Option<Expected>),
    /// The end of the line.
    End,
}

/// Why the input does not match.
#[derive(Debug, Clone)]
pub struct Mismatch {
    /// The furthest place that was reached: the wrong word, or the end of the line.
    pub span: Range<usize>,
    /// What could have stood there.
    pub wants: Vec<ExpectedToken>,
    /// The options that the word there abbreviates, if several.
    pub ambiguous: Vec<&'static str>,
}

/// Matches the input, allowing options to be abbreviated where only one fits.
pub fn run(
    items: &[Item],
    input: Input<'_>,
    types: &Types,
    control: &Control,
) -> Result<Vec<Taken>, Mismatch> {
    run_noting(items, input, types, control).map(|(taken, _)| taken)
}

/// The same; how it went, too, where other lines can be matched that way.
pub fn run_noting(
    items: &[Item],
    input: Input<'_>,
    types: &Types,
    control: &Control,
) -> Result<(Vec<Taken>, Option<Notes>), Mismatch> {
    let mut full_words: Vec<(usize, &'static str)> = Vec::new();
    loop {
        let mut machine = Machine::new(input, types, control, &full_words);
        let mut mismatch = match machine.run(items) {
            Ok(taken) => {
                let notes = std::mem::take(&mut machine.notes);
                return Ok((taken, full_words.is_empty().then_some(notes)));
            }
            Err(mismatch) => mismatch,
        };
        let typed = lex::next(input.line, mismatch.span.start, input.commas).filter(|t| !t.quoted);
        let at_cursor = input.cursor.is_some_and(|c| mismatch.span.start >= c);
        let Some(typed) = typed.filter(|_| !at_cursor) else { return Err(mismatch) };
        let mut fits: Vec<&'static str> = Vec::new();
        for want in &mismatch.wants {
            if let ExpectedToken::Word(word) = want
                && word.starts_with(typed.text.as_ref())
                && !fits.contains(word)
            {
                fits.push(word);
            }
        }
        match fits.as_slice() {
            [one] if full_words.len() < MAX_ABBREVIATIONS && *one != typed.text => {
                full_words.push((typed.span.start, one));
            }
            [_, _, ..] => {
                mismatch.ambiguous = fits;
                return Err(mismatch);
            }
            _ => return Err(mismatch),
        }
    }
}

fn given(token: &lex::Token<'_>) -> Text {
    if token.quoted { Text::Other(token.text.as_ref().into()) } else { Text::InLine }
}

/// Whether a word can be an argument of this type.
pub fn accepts(ty: &ArgType, text: &str, check: Check, control: &Control) -> Result<(), Expected> {
    if ty.live && check == Check::Shape { Ok(()) } else { (ty.check)(control, text) }
}

fn bit(i: usize) -> u64 {
    1u64.checked_shl(i as u32).unwrap_or(0)
}

/// What remains to be matched: a list that shares its tail with other branches.
type Todo<'g> = Option<Rc<Cons<'g>>>;

struct Cons<'g> {
    step: Step<'g>,
    next: Todo<'g>,
}

#[derive(Clone, Copy)]
enum Step<'g> {
    Items(&'g [Item]),
    Run { parts: &'g [Part], used: u64, since: Option<usize> },
}

struct Branch<'g> {
    todo: Todo<'g>,
    at: usize,
    taken: usize,
}

struct Machine<'a, 'g> {
    input: Input<'a>,
    types: &'a Types,
    control: &'a Control,
    full_words: &'a [(usize, &'static str)],
    branches: Vec<Branch<'g>>,
    taken: Vec<Taken>,
    span: Range<usize>,
    wants: Vec<ExpectedToken>,
    /// The word that was looked at last, by the place it was looked for: all branches at one place see the same.
    seen: Option<(usize, Option<lex::Token<'a>>)>,
    notes: Notes,
}

impl<'a, 'g> Machine<'a, 'g> {
    fn new(
        input: Input<'a>,
        types: &'a Types,
        control: &'a Control,
        full_words: &'a [(usize, &'static str)],
    ) -> Self {
        let (branches, taken, wants) = (Vec::new(), Vec::new(), Vec::new());
        let span = input.from..input.from;
        Self {
            input,
            types,
            control,
            full_words,
            branches,
            taken,
            span,
            wants,
            seen: None,
            notes: Notes::default(),
        }
    }

    fn run(&mut self, items: &'g [Item]) -> Result<Vec<Taken>, Mismatch> {
        self.span = self.input.from..self.input.from;
        self.branch(&None, Step::Items(items), self.input.from, 0);
        let mut steps = 0;
        while let Some(Branch { todo, at, taken }) = self.branches.pop() {
            steps += 1;
            if steps > MAX_STEPS {
                break;
            }
            self.taken.truncate(taken);
            let Some(cons) = todo else {
                if self.at_end(at) {
                    return Ok(std::mem::take(&mut self.taken));
                }
                continue;
            };
            match cons.step {
                Step::Items([]) => self.branches.push(Branch { todo: cons.next.clone(), at, taken }),
                Step::Items([first, rest @ ..]) => self.item(first, rest, &cons.next, at),
                Step::Run { parts, used, since } => self.parts(parts, used, since, &cons.next, at),
            }
        }
        Err(Mismatch {
            span: self.span.clone(),
            wants: std::mem::take(&mut self.wants),
            ambiguous: Vec::new(),
        })
    }

    fn branch(&mut self, next: &Todo<'g>, step: Step<'g>, at: usize, taken: usize) {
        self.branches.push(Branch { todo: Some(Rc::new(Cons { step, next: next.clone() })), at, taken });
    }

    fn item(&mut self, item: &'g Item, rest: &'g [Item], next: &Todo<'g>, at: usize) {
        let taken = self.taken.len();
        match item {
            Item::Word(word) => {
                if let Some(end) = self.word(word, at) {
                    self.branch(next, Step::Items(rest), end, taken + 1);
                }
            }
            Item::Arg(arg) => {
                if let Some(end) = self.arg(*arg, at) {
                    self.branch(next, Step::Items(rest), end, taken + 1);
                }
            }
            Item::OneOf(choices) => {
                let then = Some(Rc::new(Cons { step: Step::Items(rest), next: next.clone() }));
                let barred = self.barred(choices.iter().map(Some), at);
                // The stack is last in, first out: the first choice goes on top.
                for (i, choice) in choices.iter().enumerate().rev() {
                    if barred & bit(i) == 0 {
                        self.branch(&then, Step::Items(choice), at, taken);
                    }
                }
            }
            Item::AnyOrder(parts) => {
                let then = Some(Rc::new(Cons { step: Step::Items(rest), next: next.clone() }));
                self.branch(&then, Step::Run { parts, used: 0, since: None }, at, taken);
            }
        }
    }

    fn parts(&mut self, parts: &'g [Part], used: u64, since: Option<usize>, next: &Todo<'g>, at: usize) {
        let taken = self.taken.len();
        let open = |i: usize, part: &Part| used & bit(i) == 0 || part.repeat;
        if parts.iter().enumerate().all(|(i, part)| part.optional || used & bit(i) != 0) {
            self.branches.push(Branch { todo: next.clone(), at, taken });
        }
        // A round that took nothing would take nothing for ever.
        if since == Some(at) {
            return;
        }
        let wanted = parts.iter().enumerate().map(|(i, part)| open(i, part).then_some(&part.items));
        let barred = self.barred(wanted, at);
        for (i, part) in parts.iter().enumerate().rev() {
            if open(i, part) && barred & bit(i) == 0 {
                let again = Step::Run { parts, used: used | bit(i), since: Some(at) };
                let then = Some(Rc::new(Cons { step: again, next: next.clone() }));
                self.branch(&then, Step::Items(&part.items), at, taken);
            }
        }
    }

    /// Which of these sequences begin with a word that does not stand here: a bit for each of the first 64.
    fn barred(&mut self, all: impl Iterator<Item = Option<&'g Sequence>>, at: usize) -> u64 {
        let mut barred = 0;
        for (i, items) in all.enumerate() {
            if let Some(items) = items
                && bit(i) != 0
                && self.bars(items, at)
            {
                barred |= bit(i);
            }
        }
        barred
    }

    /// The word at a place, unless the cursor is on it.
    fn token(&mut self, at: usize) -> (Range<usize>, Option<lex::Token<'a>>) {
        let start = lex::skip_blanks(self.input.line, at);
        if self.input.cursor.is_some_and(|c| start >= c) {
            let start = self.input.cursor.unwrap_or(start);
            return (start..start, None);
        }
        let token = self.word_at(at).cloned();
        (token.as_ref().map_or(start..start, |t| t.span.clone()), token)
    }

    fn word_at(&mut self, at: usize) -> Option<&lex::Token<'a>> {
        if self.seen.as_ref().is_none_or(|(place, _)| *place != at) {
            self.seen = Some((at, lex::next(self.input.line, at, self.input.commas)));
        }
        self.seen.as_ref().and_then(|(_, token)| token.as_ref())
    }

    /// Whether a sequence begins with a word that does not stand at this place: it is not worth a branch.
    fn bars(&mut self, items: &[Item], at: usize) -> bool {
        let Some(Item::Word(word)) = items.first() else { return false };
        let (input, full_words) = (self.input, self.full_words);
        if input.cursor.is_some_and(|c| lex::skip_blanks(input.line, at) >= c) {
            return false;
        }
        let Some(token) = self.word_at(at) else { return false };
        let fits = |t: &lex::Token<'_>| {
            !t.quoted && (t.text == *word || full_words.contains(&(t.span.start, *word)))
        };
        if fits(token) {
            return false;
        }
        let span = token.span.clone();
        self.want(span, ExpectedToken::Word(word));
        true
    }

    fn at_end(&mut self, at: usize) -> bool {
        let (span, token) = self.token(at);
        if token.is_none() && self.input.cursor.is_none() {
            return true;
        }
        self.want(span, ExpectedToken::End);
        false
    }

    fn word(&mut self, word: &'static str, at: usize) -> Option<usize> {
        let (span, token) = self.token(at);
        let fits = token.as_ref().is_some_and(|t| {
            !t.quoted && (t.text == word || self.full_words.contains(&(t.span.start, word)))
        });
        if fits && let Some(t) = token {
            self.notes.matched(span.start, None);
            self.taken.push(Taken { name: word, text: given(&t), span: span.clone(), word: true });
            return Some(span.end);
        }
        self.want(span, ExpectedToken::Word(word));
        None
    }

    fn arg(&mut self, arg: Arg, at: usize) -> Option<usize> {
        let (span, token) = self.token(at);
        let Some(token) = token else {
            self.want(span, ExpectedToken::Arg(arg, None));
            return None;
        };
        if let ArgKind::Type(ty) = arg.kind {
            return self.typed(arg, ty, token);
        }
        self.notes.raw = true;
        let raw = match arg.kind {
            ArgKind::Block if token.text == "{" && !token.quoted => {
                let Some(close) = lex::closing_brace(self.input.line, span.start) else {
                    self.want(span, ExpectedToken::Arg(arg, Some("a closing `}'".into())));
                    return None;
                };
                self.take(arg.name, span.start + 1..close);
                return Some(close + 1);
            }
            ArgKind::RestOrQuoted if token.quoted => {
                self.taken.push(Taken {
                    name: arg.name,
                    text: given(&token),
                    span: span.clone(),
                    word: false,
                });
                return Some(span.end);
            }
            _ => span.start..self.input.line.len(),
        };
        let end = raw.end;
        self.take(arg.name, raw);
        Some(end)
    }

    fn take(&mut self, name: &'static str, raw: Range<usize>) {
        let text = self.input.line.get(raw.clone()).unwrap_or("").trim();
        let text = Text::Other(text.into());
        self.taken.push(Taken { name, text, span: raw, word: false });
    }

    fn typed(&mut self, arg: Arg, ty: &'static str, token: lex::Token<'a>) -> Option<usize> {
        let bracket = !token.quoted && matches!(token.text.as_ref(), "{" | "}" | ",");
        // An option given in short belongs to the option, not to an argument that takes any word.
        let abbreviates = self.full_words.iter().any(|(at, _)| *at == token.span.start);
        let verdict = if bracket || abbreviates {
            Err(None)
        } else {
            let of_type = |ty: &&ArgType| accepts(ty, &token.text, self.input.check, self.control);
            self.types.get(ty).map_or(Ok(()), of_type).map_err(Some)
        };
        match verdict {
            Ok(()) => {
                let end = token.span.end;
                self.notes.raw |= token.quoted;
                self.notes.matched(token.span.start, Some(ty));
                self.taken.push(Taken { name: arg.name, text: given(&token), span: token.span, word: false });
                Some(end)
            }
            Err(expected) => {
                self.notes.refused.push((token.span.start, ty));
                self.want(token.span, ExpectedToken::Arg(arg, expected));
                None
            }
        }
    }

    fn want(&mut self, span: Range<usize>, want: ExpectedToken) {
        if span.start > self.span.start || self.wants.is_empty() {
            self.wants.clear();
            self.span = span;
        } else if span.start < self.span.start {
            return;
        }
        // A repeated failure at one place is one failure; the list stays short.
        if self.wants.len() < 256 {
            self.wants.push(want);
        }
    }
}
