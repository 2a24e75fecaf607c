//! The arguments of one command, as the parser found them.

use std::fmt;
use std::ops::Range;
use std::rc::Rc;
use std::str::FromStr;

use super::{CliError, Expected, FromArg};
use crate::Control;

/// One word or argument of the input that matched an item of the syntax.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// The argument's name, or the word itself in full.
    pub name: &'static str,
    /// What was given, without quotes or braces around it.
    pub text: Text,
    /// Where it stands in the input line, in bytes.
    pub span: Range<usize>,
    /// A word of the syntax, not an argument. `table <table:u32>` gives one of each with the same name.
    pub word: bool,
}

/// What was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Text {
    /// What the line has there; nearly everything is.
    InLine,
    /// Something else: quotes are gone.
    Other(Box<str>),
}

/// What was given to a command: a typed bag of the items after its path, in input order.
///
/// Names are those of the syntax string: `<count:u32>` is `"count"`, the word `[del]` is `"del"`.
#[derive(Clone)]
pub struct Args {
    control: Rc<Control>,
    given: Rc<ParsedLine>,
    /// Which of them are in this bag.
    range: Range<usize>,
}

/// A line and what it consists of.
#[derive(Clone, Default)]
struct ParsedLine {
    line: String,
    all: Vec<Item>,
}

impl Args {
    /// An empty bag for one input line.
    pub fn new(control: Rc<Control>, line: &str) -> Self {
        Self { control, given: Rc::new(ParsedLine { line: line.to_owned(), all: Vec::new() }), range: 0..0 }
    }

    /// The bag of another line, in the memory of this one if it is not shared; `find` puts in its items, or says that
    /// it cannot.
    pub fn refill(&mut self, line: &str, find: impl FnOnce(&mut Vec<Item>) -> bool) -> bool {
        if Rc::get_mut(&mut self.given).is_none() {
            self.given = Rc::default();
        }
        let Some(given) = Rc::get_mut(&mut self.given) else { return false };
        given.line.clear();
        given.line.push_str(line);
        given.all.clear();
        let found = find(&mut given.all);
        self.range = 0..given.all.len();
        found
    }

    /// The same bag with one more argument; for tests.
    pub fn with(self, name: &'static str, text: impl Into<String>, span: Range<usize>) -> Self {
        self.with_item(Item { name, text: Text::Other(text.into().into()), span, word: false })
    }

    /// The same bag with one more word; for tests.
    pub fn with_word(self, name: &'static str, span: Range<usize>) -> Self {
        self.with_item(Item { name, text: Text::Other(name.into()), span, word: true })
    }

    /// The same bag with one more item.
    pub fn with_item(self, item: Item) -> Self {
        let mut items = self.items().to_vec();
        items.push(item);
        self.with_items(items)
    }

    /// The same bag with these items instead.
    pub fn with_items(self, items: Vec<Item>) -> Self {
        let (range, line) = (0..items.len(), self.given.line.clone());
        Self { given: Rc::new(ParsedLine { line, all: items }), range, ..self }
    }

    /// The whole input line.
    pub fn line(&self) -> &str {
        &self.given.line
    }

    /// All items in input order.
    pub fn items(&self) -> &[Item] {
        self.given.all.get(self.range.clone()).unwrap_or_default()
    }

    /// Whether the word or argument was given.
    pub fn has(&self, name: &str) -> bool {
        self.items().iter().any(|item| item.name == name)
    }

    /// The text of an argument, the first if there are several.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.values(name).next().map(|item| self.text_of(item))
    }

    /// The text of an item.
    pub fn text_of<'a>(&'a self, item: &'a Item) -> &'a str {
        match &item.text {
            Text::InLine => self.given.line.get(item.span.clone()).unwrap_or_default(),
            Text::Other(text) => text,
        }
    }

    /// Where the argument, or else the word, stands in the input line, in bytes.
    pub fn span(&self, name: &str) -> Option<Range<usize>> {
        let word = || self.items().iter().find(|item| item.name == name);
        self.values(name).next().or_else(word).map(|item| item.span.clone())
    }

    /// The value of an argument that must be there.
    pub fn get<T: FromArg>(&self, name: &str) -> Result<T, CliError> {
        self.opt(name)?.ok_or_else(|| CliError::argument(name, format!("<{name}> is missing")))
    }

    /// The value of an argument that may be left out.
    pub fn opt<T: FromArg>(&self, name: &str) -> Result<Option<T>, CliError> {
        self.values(name).next().map(|item| self.read(item)).transpose()
    }

    /// The value of an argument, or `default` if it was left out.
    pub fn or<T: FromArg>(&self, name: &str, default: T) -> Result<T, CliError> {
        Ok(self.opt(name)?.unwrap_or(default))
    }

    /// The values of an argument that may be repeated, in input order.
    pub fn all<T: FromArg>(&self, name: &str) -> Result<Vec<T>, CliError> {
        self.values(name).map(|item| self.read(item)).collect()
    }

    /// The value of an argument whose type has [`FromStr`] but not [`FromArg`].
    ///
    /// `expected` completes the sentence "expected ...", as in `a MAC address such as 02:fe:00:00:00:01`.
    pub fn parse<T: FromStr>(&self, name: &str, expected: &str) -> Result<T, CliError> {
        self.parse_opt(name, expected)?
            .ok_or_else(|| CliError::argument(name, format!("<{name}> is missing, expected {expected}")))
    }

    /// As [`Args::parse`], for an argument that may be left out.
    pub fn parse_opt<T: FromStr>(&self, name: &str, expected: &str) -> Result<Option<T>, CliError> {
        let Some(item) = self.values(name).next() else { return Ok(None) };
        let text = self.text_of(item);
        text.parse().map(Some).map_err(|_| refused(item, text, Expected::new(expected)))
    }

    /// The input cut before each `name`: one bag for each repetition of a group that starts with it.
    ///
    /// Items before the first `name` belong to none. `via 10.0.0.1 weight 2 via 10.0.0.2` gives two bags.
    pub fn groups(&self, name: &str) -> Vec<Self> {
        let items = self.items();
        let by_word = items.iter().any(|item| item.word && item.name == name);
        let begins = |item: &Item| item.name == name && item.word == by_word;
        let mut starts =
            items.iter().zip(self.range.clone()).filter(|(item, _)| begins(item)).map(|(_, at)| at);
        let mut groups: Vec<Self> = Vec::new();
        let mut start = starts.next();
        while let Some(from) = start {
            start = starts.next();
            groups.push(Self { range: from..start.unwrap_or(self.range.end), ..self.clone() });
        }
        groups
    }

    /// The arguments of a name, in input order.
    fn values<'a, 'n>(&'a self, name: &'n str) -> impl Iterator<Item = &'a Item> + use<'a, 'n> {
        self.items().iter().filter(move |item| !item.word && item.name == name)
    }

    /// The value of an item.
    pub fn read<T: FromArg>(&self, item: &Item) -> Result<T, CliError> {
        let text = self.text_of(item);
        T::from_arg(text, &self.control).map_err(|expected| refused(item, text, expected))
    }
}

fn refused(item: &Item, text: &str, expected: Expected) -> CliError {
    let message = format!("bad <{}> `{text}', expected {}", item.name, expected.what);
    CliError::argument(item.name, message).nearest(expected.nearest)
}

impl fmt::Debug for Args {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Args")
            .field("line", &self.line())
            .field("items", &self.items())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args() -> Args {
        Args::new(Rc::new(Control::new()), "add 300 via a weight 2 via b")
            .with_word("add", 0..3)
            .with("n", "300", 4..7)
            .with_word("via", 8..11)
            .with("next", "a", 12..13)
            .with_word("weight", 14..20)
            .with("weight", "2", 21..22)
            .with_word("via", 23..26)
            .with("next", "b", 27..28)
    }

    #[test]
    fn reads_words_and_values_by_name() {
        let a = args();
        assert!(a.has("add") && !a.has("del"));
        assert_eq!(a.get::<u16>("n"), Ok(300));
        assert_eq!(a.opt::<u16>("m"), Ok(None));
        assert_eq!(a.or("m", 7u16), Ok(7));
        assert_eq!(a.all::<String>("next"), Ok(vec!["a".into(), "b".into()]));
        assert_eq!(a.span("n"), Some(4..7));
    }

    #[test]
    fn a_refused_value_names_the_argument_and_the_range() {
        let e = args().get::<u8>("n").unwrap_err();
        assert!(matches!(&e, CliError::Argument { name, .. } if name == "n"));
        assert!(e.message().contains("300 does not fit, 0 to 255"), "{e}");
        assert!(args().get::<u8>("gone").unwrap_err().message().contains("is missing"));
        assert!(args().parse::<std::net::Ipv4Addr>("n", "an address").is_err());
    }

    #[test]
    fn a_bag_that_is_filled_again_does_not_change_one_that_was_taken_from_it() {
        let item = |span: Range<usize>| Item { name: "n", text: Text::InLine, span, word: false };
        let mut a = Args::new(Rc::new(Control::new()), "");
        let fill = |a: &mut Args, line: &str, span: Range<usize>| {
            a.refill(line, |items| {
                items.push(item(span));
                true
            })
        };
        assert!(fill(&mut a, "go 1", 3..4));
        let (kept, groups) = (a.clone(), a.groups("n"));
        assert!(fill(&mut a, "go on 22", 6..8));
        assert_eq!((a.get::<u8>("n"), kept.get::<u8>("n"), groups[0].get::<u8>("n")), (Ok(22), Ok(1), Ok(1)));
        assert_eq!((a.line(), kept.line()), ("go on 22", "go 1"));
        assert!(!a.refill("x", |_| false) && a.items().is_empty());
    }

    #[test]
    fn groups_keep_the_arguments_of_each_repetition_together() {
        let groups = args().groups("via");
        assert_eq!(groups.len(), 2);
        assert_eq!(groups[0].opt::<u8>("weight"), Ok(Some(2)));
        assert_eq!(groups[1].opt::<u8>("weight"), Ok(None));
        assert_eq!(groups[1].text("next"), Some("b"));
    }
}
