//! Forms of lines: which of many syntaxes a line has, and what its arguments are.
//!
//! Commands are found by their words alone, because no two have the same. Forms may share their words and differ in what
//! follows, as `ip route add` of IPv4 and of IPv6 do; a line has all those that match.

use std::collections::HashMap;
use std::rc::Rc;

use shoal_module::Control;
use shoal_module::cli::{ArgType, Args, BUILT_IN, Expected};

use crate::grammar::{self, Arg, ArgKind, Sequence};
use crate::lex;
use crate::matcher::{self, Check, Input};
use crate::table::{TableError, Types};

/// A form, by its place among those that were given.
#[derive(Debug)]
struct Form {
    number: usize,
    items: Sequence,
    commas: bool,
}

/// Many forms.
#[derive(Debug)]
pub struct Forms {
    /// By their leading words.
    by_words: HashMap<String, Vec<Form>>,
    /// Their leading words, in the order they were given.
    words: Vec<String>,
    arguments: Vec<Vec<Arg>>,
    types: Types,
    /// How many words lead at most.
    most_words: usize,
}

impl Forms {
    /// Reads forms. Their arguments have the built-in types and these.
    ///
    /// # Errors
    /// Syntaxes that are none, or name a type that is not there; all of them.
    pub fn new(
        syntaxes: impl IntoIterator<Item = &'static str>,
        arg_types: impl IntoIterator<Item = &'static ArgType>,
    ) -> Result<Self, TableError> {
        let types: Types = BUILT_IN.iter().chain(arg_types).map(|ty| (ty.name, ty)).collect();
        let mut forms = Forms {
            by_words: HashMap::new(),
            words: Vec::new(),
            arguments: Vec::new(),
            types,
            most_words: 0,
        };
        let mut problems = Vec::new();
        for (number, syntax) in syntaxes.into_iter().enumerate() {
            if let Err(problem) = forms.add(number, syntax) {
                problems.push(problem);
            }
        }
        if problems.is_empty() { Ok(forms) } else { Err(TableError(problems)) }
    }

    fn add(&mut self, number: usize, syntax: &'static str) -> Result<(), String> {
        let parsed = grammar::parse(syntax).map_err(|e| e.to_string())?;
        let arguments = grammar::arguments(&parsed.items);
        for arg in &arguments {
            if let ArgKind::Type(ty) = arg.kind
                && !self.types.contains_key(ty)
            {
                return Err(format!("`{syntax}': no argument type is called `{ty}'"));
            }
        }
        self.most_words = self.most_words.max(parsed.path.len());
        let words = parsed.path.join(" ");
        let commas = grammar::has_word(&parsed.items, ",");
        self.words.push(words.clone());
        self.arguments.push(arguments);
        self.by_words.entry(words).or_default().push(Form { number, items: parsed.items, commas });
        Ok(())
    }

    /// Whether a text is acceptable for a type now; one that is not known accepts all.
    ///
    /// # Errors
    /// What is expected.
    pub fn check(&self, ty: &str, control: &Control, text: &str) -> Result<(), Expected> {
        self.types.get(ty).map_or(Ok(()), |ty| (ty.check)(control, text))
    }

    /// The words that a form begins with.
    pub fn words(&self, number: usize) -> &str {
        self.words.get(number).map_or("", String::as_str)
    }

    /// The names of a form's arguments of a type, and of those that take the rest of the line if the type is `rest`.
    pub fn arguments(&self, number: usize, of: &str) -> Vec<&'static str> {
        let is_of = |arg: &&Arg| match arg.kind {
            ArgKind::Type(ty) => ty == of,
            ArgKind::Rest => of == "rest",
            ArgKind::RestOrQuoted | ArgKind::Block => false,
        };
        let all = self.arguments.get(number).map(Vec::as_slice).unwrap_or_default();
        let mut names: Vec<&'static str> = all.iter().filter(is_of).map(|arg| arg.name).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// The forms that a line has, and what its arguments are in each. Words are not abbreviated; arguments are checked by
    /// their shape, because what they name may be made by another line.
    pub fn of(&self, control: &Rc<Control>, line: &str) -> Vec<(usize, Args)> {
        let mut found = Vec::new();
        let (mut at, mut words) = (0, String::new());
        for _ in 0..self.most_words {
            let Some(token) = lex::next(line, at, false).filter(|token| !token.quoted) else { break };
            if !words.is_empty() {
                words.push(' ');
            }
            words.push_str(&token.text);
            at = token.span.end;
            for form in self.by_words.get(&words).map(Vec::as_slice).unwrap_or_default() {
                let input = Input { line, from: at, cursor: None, commas: form.commas, check: Check::Shape };
                if let Ok(taken) = matcher::run(&form.items, input, &self.types, control) {
                    found.push((form.number, Args::new(Rc::clone(control), line).with_items(taken)));
                }
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forms() -> Forms {
        Forms::new(
            [
                "ip route add <prefix:ip4-address> <paths:rest>",
                "ip route add <prefix:ip6-address> <paths:rest>",
                "set mtu <mtu:u32> <interface:word>",
                "set mtu {ip4 | ip6} <mtu:u32> <interface:word>",
                "cdp enable",
            ],
            [],
        )
        .unwrap()
    }

    fn of(line: &str) -> Vec<usize> {
        forms().of(&Rc::new(Control::new()), line).into_iter().map(|(number, _)| number).collect()
    }

    #[test]
    fn a_line_has_the_forms_that_all_of_it_matches() {
        assert_eq!(of("ip route add 10.0.0.0 via drop"), [0]);
        assert_eq!(of("ip route add 2001:db8:: via drop"), [1]);
        assert_eq!(of("set mtu 1500 loop0"), [2]);
        assert_eq!(of("set mtu ip6 1500 loop0"), [3]);
        assert_eq!(of("cdp enable"), [4]);
        for line in ["", "cdp", "cdp enable now", "set mtu 1500", "ip route add x via drop", "show version"] {
            assert!(of(line).is_empty(), "{line}");
        }
    }

    #[test]
    fn arguments_are_known_by_their_types() {
        let forms = forms();
        assert_eq!(forms.arguments(0, "rest"), ["paths"]);
        assert_eq!(forms.arguments(3, "word"), ["interface"]);
        let all = forms.of(&Rc::new(Control::new()), "set mtu ip4 1400 \"my loop\"");
        assert_eq!(all[0].1.text("interface"), Some("my loop"));
        assert!(all[0].1.has("ip4"));
    }

    #[test]
    fn a_type_that_is_not_there_is_named() {
        let error = Forms::new(["a <x:no-such-type>", "b [", "c"], []).unwrap_err();
        assert_eq!(error.0.len(), 2, "{error}");
    }
}
