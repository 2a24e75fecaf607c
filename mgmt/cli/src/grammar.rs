//! From a syntax string to a tree. The strings are explained in [`shoal_module::cli`].

use std::fmt;

/// Items that follow each other.
pub type Sequence = Vec<Item>;

/// One item of a syntax.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// A word, literally.
    Word(&'static str),
    /// An argument.
    Arg(Arg),
    /// Exactly one of these.
    OneOf(Vec<Sequence>),
    /// These in any order.
    AnyOrder(Vec<Part>),
}

/// One of the items that come in any order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// What it consists of.
    pub items: Sequence,
    /// May be left out.
    pub optional: bool,
    /// May come several times.
    pub repeat: bool,
}

/// An argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arg {
    /// What the handler asks for.
    pub name: &'static str,
    /// How much it takes, and of which type.
    pub kind: ArgKind,
}

/// How much of the input an argument takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArgKind {
    /// One word of the type with this name.
    Type(&'static str),
    /// The rest of the line.
    Rest,
    /// A quoted string or the rest of the line.
    RestOrQuoted,
    /// The inside of balanced braces or the rest of the line.
    Block,
}

/// A syntax string that is no syntax.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("syntax `{syntax}', at byte {at}: {what}")]
pub struct SyntaxError {
    /// The string.
    pub syntax: &'static str,
    /// Where it stops making sense.
    pub at: usize,
    /// Why.
    pub what: &'static str,
}

/// Bits of the machine word that remembers which parts of a run have been seen.
const MAX_PARTS: usize = 64;
const MAX_DEPTH: usize = 16;

/// A syntax, cut into its path and what follows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Syntax {
    /// The leading words.
    pub path: Vec<&'static str>,
    /// Everything after them.
    pub items: Sequence,
}

/// Reads a syntax string.
pub fn parse(syntax: &'static str) -> Result<Syntax, SyntaxError> {
    let mut reader = Reader { syntax, at: 0 };
    let mut items = reader.sequence(0)?;
    if reader.peek().is_some() {
        return Err(reader.error("a closing bracket without an opening one"));
    }
    let words = items.iter().take_while(|item| matches!(item, Item::Word(w) if is_path_word(w))).count();
    let rest = items.split_off(words);
    let path: Vec<_> = items
        .iter()
        .filter_map(|item| match item {
            Item::Word(word) => Some(*word),
            _ => None,
        })
        .collect();
    if path.is_empty() {
        Err(reader.error("no word to call it by"))
    } else {
        Ok(Syntax { path, items: rest })
    }
}

fn is_path_word(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_alphanumeric())
}

struct Reader {
    syntax: &'static str,
    at: usize,
}

impl Reader {
    fn error(&self, what: &'static str) -> SyntaxError {
        SyntaxError { syntax: self.syntax, at: self.at, what }
    }

    fn rest(&self) -> &'static str {
        self.syntax.get(self.at..).unwrap_or("")
    }

    fn peek(&mut self) -> Option<char> {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
        self.rest().chars().next()
    }

    fn take(&mut self, text: &str) -> bool {
        self.peek();
        let found = self.rest().starts_with(text);
        if found {
            self.at += text.len();
        }
        found
    }

    /// Items up to a closing bracket, a separator or the end.
    fn sequence(&mut self, depth: usize) -> Result<Sequence, SyntaxError> {
        if depth > MAX_DEPTH {
            return Err(self.error("brackets nested too deeply"));
        }
        let mut items: Sequence = Vec::new();
        while let Some(c) = self.peek() {
            let (item, optional) = match c {
                ']' | '}' | '|' | '&' => break,
                '[' => (self.group(depth, '[', "]")?, true),
                '{' => (self.group(depth, '{', "}")?, false),
                '<' => (vec![Item::Arg(self.arg()?)], false),
                _ => (vec![self.word()?], false),
            };
            let repeat = self.take("...");
            if optional || repeat {
                self.join(&mut items, Part { items: item, optional, repeat })?;
            } else {
                items.extend(item);
            }
        }
        Ok(items)
    }

    /// Neighbouring groups that may be left out become one run.
    fn join(&self, items: &mut Sequence, part: Part) -> Result<(), SyntaxError> {
        if let Some(Item::AnyOrder(run)) = items.last_mut()
            && part.optional
            && run.iter().all(|p| p.optional)
        {
            run.push(part);
            literals_first(run, |p| &p.items);
            return if run.len() > MAX_PARTS { Err(self.error("too many groups")) } else { Ok(()) };
        }
        items.push(Item::AnyOrder(vec![part]));
        Ok(())
    }

    fn group(&mut self, depth: usize, open: char, close: &str) -> Result<Sequence, SyntaxError> {
        self.at += open.len_utf8();
        let mut choices = Vec::new();
        let mut separator = None;
        loop {
            let choice = self.sequence(depth + 1)?;
            if choice.is_empty() {
                return Err(self.error("an empty group or choice"));
            }
            choices.push(choice);
            if self.take(close) {
                break;
            }
            let Some(found @ ('|' | '&')) = self.peek() else {
                return Err(self.error("a group that is never closed"));
            };
            if separator.is_some_and(|s| s != found) {
                return Err(self.error("`|' and `&' in one group"));
            }
            separator = Some(found);
            self.at += 1;
        }
        match separator {
            None => Ok(choices.pop().unwrap_or_default()),
            Some('|') => {
                literals_first(&mut choices, |c| c);
                Ok(vec![Item::OneOf(choices)])
            }
            Some(_) => self.all_of(choices),
        }
    }

    fn all_of(&self, choices: Vec<Sequence>) -> Result<Sequence, SyntaxError> {
        let mut parts = Vec::new();
        for mut choice in choices {
            // `[x]` among them is a run of its own: lift its parts into this one.
            if choice.len() == 1
                && let Some(Item::AnyOrder(run)) = choice.first_mut()
            {
                parts.append(run);
            } else {
                parts.push(Part { items: choice, optional: false, repeat: false });
            }
        }
        if parts.len() > MAX_PARTS {
            return Err(self.error("too many groups"));
        }
        literals_first(&mut parts, |p| &p.items);
        Ok(vec![Item::AnyOrder(parts)])
    }

    fn arg(&mut self) -> Result<Arg, SyntaxError> {
        self.at += 1;
        let Some(end) = self.rest().find('>') else { return Err(self.error("`<' without `>'")) };
        let inside = self.rest().get(..end).unwrap_or("");
        let (name, ty) = inside.split_once(':').unwrap_or((inside, inside));
        let (name, ty) = (name.trim(), ty.trim());
        if name.is_empty() || ty.is_empty() {
            return Err(self.error("an argument without name or type"));
        }
        self.at += end + 1;
        let kind = match ty {
            "rest" => ArgKind::Rest,
            "rest-or-quoted" => ArgKind::RestOrQuoted,
            "block" => ArgKind::Block,
            _ => ArgKind::Type(ty),
        };
        Ok(Arg { name, kind })
    }

    fn word(&mut self) -> Result<Item, SyntaxError> {
        let rest = self.rest();
        let end = rest.find(|c: char| c.is_whitespace() || "[]{}<>|&,".contains(c)).unwrap_or(rest.len());
        let end = if end == 0 && rest.starts_with(',') { 1 } else { end };
        let word = rest.get(..end).unwrap_or("");
        if word.is_empty() || word == "..." {
            return Err(self.error("not a word"));
        }
        // `<interface>...` without a blank reads as well as with one.
        let word = word.strip_suffix("...").unwrap_or(word);
        self.at += word.len();
        Ok(Item::Word(word))
    }
}

/// A literal beats an argument that would take the same word.
fn literals_first<T>(list: &mut [T], items: impl Fn(&T) -> &Sequence) {
    list.sort_by_key(|entry| !matches!(items(entry).first(), Some(Item::Word(_))));
}

/// Every argument of a syntax, in order.
pub fn arguments(items: &[Item]) -> Vec<Arg> {
    let mut found = Vec::new();
    for item in items {
        match item {
            Item::Word(_) => {}
            Item::Arg(arg) => found.push(*arg),
            Item::OneOf(choices) => found.extend(choices.iter().flat_map(|c| arguments(c))),
            Item::AnyOrder(parts) => found.extend(parts.iter().flat_map(|p| arguments(&p.items))),
        }
    }
    found
}

/// Whether the syntax holds this word anywhere.
pub fn has_word(items: &[Item], word: &str) -> bool {
    items.iter().any(|item| match item {
        Item::Word(w) => *w == word,
        Item::Arg(_) => false,
        Item::OneOf(choices) => choices.iter().any(|c| has_word(c, word)),
        Item::AnyOrder(parts) => parts.iter().any(|p| has_word(&p.items, word)),
    })
}

impl fmt::Display for Arg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<{}>", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(w: &'static str) -> Item {
        Item::Word(w)
    }

    #[test]
    fn leading_words_are_the_path() {
        let syntax = parse("set interface state <interface> {up | down}").unwrap();
        assert_eq!(syntax.path, ["set", "interface", "state"]);
        assert_eq!(
            syntax.items,
            [
                Item::Arg(Arg { name: "interface", kind: ArgKind::Type("interface") }),
                Item::OneOf(vec![vec![word("up")], vec![word("down")]]),
            ]
        );
    }

    #[test]
    fn neighbouring_options_become_one_run_with_literals_first() {
        let syntax = parse("show x [<interface>] ... [address] [max <n:u32>]").unwrap();
        let Item::AnyOrder(parts) = &syntax.items[0] else { panic!("no run") };
        assert_eq!(syntax.items.len(), 1);
        assert_eq!(parts[0].items, [word("address")]);
        assert!(parts[2].repeat && parts[2].optional);
    }

    #[test]
    fn ampersands_ask_for_all_in_any_order() {
        let syntax = parse("t {src <a:word> & dst <b:word> & [ttl <n:u8>]}").unwrap();
        let Item::AnyOrder(parts) = &syntax.items[0] else { panic!("no run") };
        assert_eq!(parts.iter().map(|p| p.optional).collect::<Vec<_>>(), [false, false, true]);
    }

    #[test]
    fn repeated_groups_may_touch_their_dots() {
        let a = parse("x <i:word>...").unwrap();
        assert_eq!(a, parse("x <i:word> ...").unwrap());
        let Item::AnyOrder(parts) = &a.items[0] else { panic!("no run") };
        assert!(parts[0].repeat && !parts[0].optional);
    }

    #[test]
    fn nonsense_is_refused_with_its_place() {
        for bad in
            ["", "<x>", "a [b", "a b]", "a {}", "a {b|}", "a <x", "a <>", "a {b | c & d}", "a ...", "a }"]
        {
            let syntax: &'static str = bad;
            assert!(parse(syntax).is_err(), "{syntax}");
        }
        let deep: &'static str =
            Box::leak(format!("a {}b{}", "[".repeat(40), "]".repeat(40)).into_boxed_str());
        assert!(parse(deep).is_err());
    }
}
