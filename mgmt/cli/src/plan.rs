//! Lines of one shape, matched without searching.
//!
//! A file of routes is a million lines of the same shape. The search of `matcher` notes how it went when it went
//! straight, without a match that it had to take back: which word or argument each word of the line was, and which
//! argument types had refused it before. The next line goes the same way if each of its words meets the same
//! verdicts; then the search would have found just that. At the first difference the search starts again.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ops::Range;

use shoal_module::Control;
use shoal_module::cli::{ArgType, Item as Taken, Text};

use crate::grammar::Item;
use crate::lex;
use crate::matcher::{self, Check, Input, Mismatch};
use crate::table::Types;

/// Shapes remembered of each command.
const MOST: usize = 4;

/// How one word of a line was matched.
#[derive(Debug, Clone)]
pub struct Step {
    /// The word of the syntax, or the argument's name.
    pub name: &'static str,
    /// It is one of letters, digits and dashes.
    simple: bool,
    /// The argument's type; `None` for a word.
    pub ty: Option<&'static ArgType>,
    /// Types that refused the word before.
    pub refused: Vec<&'static ArgType>,
}

/// How a line was matched.
pub type Plan = Vec<Step>;

/// The shapes of a command's last lines.
#[derive(Debug, Default)]
pub struct Plans {
    /// The words of its syntax: a word of the line that is one of them is no argument for sure.
    words: Vec<&'static str>,
    /// The bytes they begin with, a bit for each of ASCII.
    firsts: u128,
    known: RefCell<VecDeque<(Check, Plan)>>,
}

impl Plans {
    /// None yet.
    pub fn new(items: &[Item]) -> Self {
        let mut words = Vec::new();
        collect(items, &mut words);
        words.sort_unstable();
        words.dedup();
        let first =
            |word: &&str| word.bytes().next().map_or(0, |b| 1u128.checked_shl(b.into()).unwrap_or(u128::MAX));
        let firsts = words.iter().map(first).fold(0, |all, one| all | one);
        Plans { words, firsts, known: RefCell::default() }
    }

    fn is_word(&self, text: &str) -> bool {
        let first = text.bytes().next().map_or(0, u32::from);
        self.firsts.checked_shr(first).is_none_or(|bits| bits & 1 == 1) && self.words.contains(&text)
    }

    /// Matches the input as an earlier line of its shape, or by searching.
    pub fn run(
        &self,
        items: &[Item],
        input: Input<'_>,
        types: &Types,
        control: &Control,
    ) -> Result<Vec<Taken>, Mismatch> {
        if let Some(taken) = self.repeat(input, control) {
            return Ok(taken);
        }
        let (taken, notes) = matcher::run_noting(items, input, types, control)?;
        if let Some(plan) = notes.and_then(|notes| notes.plan(&taken, types)) {
            let mut known = self.known.borrow_mut();
            known.truncate(MOST - 1);
            known.push_front((input.check, plan));
        }
        Ok(taken)
    }

    /// Matches the input as an earlier line of its shape, if that is possible.
    pub fn repeat(&self, input: Input<'_>, control: &Control) -> Option<Vec<Taken>> {
        let mut taken = Vec::new();
        self.repeat_into(input, control, &mut taken).then_some(taken)
    }

    /// The same into memory that is there already.
    pub fn repeat_into(&self, input: Input<'_>, control: &Control, taken: &mut Vec<Taken>) -> bool {
        let follows = |plan: &Plan| {
            taken.clear();
            follow(self, plan, input, control, |step, span| {
                let word = step.ty.is_none();
                taken.push(Taken { name: step.name, text: Text::InLine, span, word });
            })
            .then_some(())
        };
        self.known_as(input, follows).is_some()
    }

    /// Whether the input can be matched as an earlier line of its shape.
    pub fn fits(&self, input: Input<'_>, control: &Control) -> bool {
        self.known_as(input, |plan| follow(self, plan, input, control, |_, _| {}).then_some(())).is_some()
    }

    fn known_as<T>(&self, input: Input<'_>, fits: impl FnMut(&Plan) -> Option<T>) -> Option<T> {
        let known = self.known.borrow();
        let mut alike = known.iter().filter(|(check, _)| *check == input.check).map(|(_, plan)| plan);
        if input.cursor.is_none() { alike.find_map(fits) } else { None }
    }
}

/// Whether all of the input goes as a plan says; `take` gets its words.
fn follow(
    plans: &Plans,
    plan: &Plan,
    input: Input<'_>,
    control: &Control,
    mut take: impl FnMut(&Step, Range<usize>),
) -> bool {
    let mut at = input.from;
    for step in plan {
        if step.simple
            && let Some(span) = lex::stands(input.line, at, step.name)
        {
            at = span.end;
            take(step, span);
            continue;
        }
        let Some(token) = lex::next(input.line, at, input.commas).filter(|t| !t.quoted) else { return false };
        at = token.span.end;
        let accepts = |ty: &ArgType| matcher::accepts(ty, &token.text, input.check, control).is_ok();
        let fits = match step.ty {
            None => token.text == step.name,
            Some(ty) => {
                !plans.is_word(&token.text) && !matches!(token.text.as_ref(), "{" | "}" | ",") && accepts(ty)
            }
        };
        if !fits || step.refused.iter().any(|ty| accepts(ty)) {
            return false;
        }
        take(step, token.span);
    }
    lex::skip_blanks(input.line, at) >= input.line.len()
}

fn collect(items: &[Item], words: &mut Vec<&'static str>) {
    for item in items {
        match item {
            Item::Word(word) => words.push(word),
            Item::Arg(_) => {}
            Item::OneOf(choices) => choices.iter().for_each(|c| collect(c, words)),
            Item::AnyOrder(parts) => parts.iter().for_each(|p| collect(&p.items, words)),
        }
    }
}

/// What a search notes for a plan.
#[derive(Default)]
pub struct Notes {
    /// Types that refused the word at a place.
    pub refused: Vec<(usize, &'static str)>,
    /// There was a match that no plan can repeat: raw text, a quoted word.
    pub raw: bool,
    /// What each match was, taken back or not: its place, and the type of an argument.
    steps: Vec<(usize, Option<&'static str>)>,
}

impl Notes {
    /// A word of the line was matched.
    pub fn matched(&mut self, at: usize, ty: Option<&'static str>) {
        self.steps.push((at, ty));
    }

    /// The plan, if the search went straight.
    fn plan(self, taken: &[Taken], types: &Types) -> Option<Plan> {
        if self.raw || self.steps.len() != taken.len() {
            return None;
        }
        let step = |(item, (_, ty)): (&Taken, &(usize, Option<&'static str>))| {
            let here = |(at, ty): &(usize, &'static str)| (*at == item.span.start).then_some(*ty);
            let mut refused: Vec<&'static str> = self.refused.iter().filter_map(here).collect();
            refused.dedup();
            let refused: Vec<_> = refused.into_iter().filter_map(|ty| types.get(ty).copied()).collect();
            let ty = ty.and_then(|ty| types.get(ty).copied());
            let plain = item.name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
            let simple = ty.is_none() && refused.is_empty() && plain;
            Step { name: item.name, simple, ty, refused }
        };
        Some(taken.iter().zip(&self.steps).map(step).collect())
    }
}

#[cfg(test)]
mod tests {
    use shoal_module::cli::{Args, CliError, Command, Expected, Output};

    use super::*;
    use crate::parse::Parsed;
    use crate::table::Table;

    fn nothing(_: &Control, _: &Args) -> Result<Output, CliError> {
        Ok(Output::none())
    }

    fn even(_: &Control, text: &str) -> Result<(), Expected> {
        if text.parse::<u32>().is_ok_and(|n| n % 2 == 0) { Ok(()) } else { Err("an even number".into()) }
    }

    static TYPES: &[shoal_module::cli::ArgType] =
        &[shoal_module::cli::ArgType::new("even", "even number", even)];
    static COMMANDS: &[Command] = &[Command::new(
        "go {add | del} [fast] [times <times:u32>] {<even> | <number:u32> | <name:word>} [slow] ...",
        "",
        nothing,
    )];

    fn taken(table: &Table, line: &str) -> Result<Vec<Taken>, String> {
        let parsed = table.parse(&Control::new(), line, Check::Now);
        parsed.map(|Parsed { taken, .. }| taken).map_err(|c| c.to_string())
    }

    /// Each line as it is understood after all others, and on its own.
    #[test]
    fn a_line_is_understood_the_same_whatever_came_before() {
        let lines = [
            "go add 2",
            "go add 3",
            "go add fast",
            "go add fast 4",
            "go add x",
            "go add slow",
            "go add slow slow",
            "go del 2 slow",
            "go del 3 fast",
            "go add times 3",
            "go add times 3 4",
            "go add times times",
            "go add \"2\"",
            "go add {2}",
            "go add fa 2",
            "go a 2",
            "go add",
            "go add 2 3",
            "go add ,",
        ];
        let alone = |line: &str| taken(&Table::new(COMMANDS, TYPES).unwrap(), line);
        for first in lines {
            let table = Table::new(COMMANDS, TYPES).unwrap();
            for line in std::iter::once(first).chain(lines).chain(lines) {
                let alike = table.is_alike(&Control::new(), line, Check::Now);
                assert!(!alike || alone(line).is_ok(), "`{line}' after `{first}'");
                assert_eq!(taken(&table, line), alone(line), "`{line}' after `{first}'");
            }
        }
    }
}
