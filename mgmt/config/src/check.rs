//! Tree to settings: every word is looked up in the declared sections, every value read.
//!
//! VPP's own parser needs no white space between a word and the next (`onupdate-interval 0.05`), and scripts
//! that start routers rely on it. So an unknown word is cut where a known key ends or begins, if what is left
//! over makes sense there; a plain typing mistake never does.

use crate::lex::Word;
use crate::machine::Machine;
use crate::parse::{Item, Items};
use crate::report::{Problem, did_you_mean, quoted};
use crate::startup::NoEffect;
use crate::value;
use shoal_module::config::{At, Body, Effect, Key, Kind, Section, Setting, Settings, TEXT, Value};
use std::collections::BTreeMap;

/// A declared stanza, or one of VPP's that is accepted whole.
#[derive(Clone, Copy)]
pub(crate) struct Stanza {
    pub(crate) body: Body,
    pub(crate) effect: Effect,
}

/// A word longer than this is no row of settings without white space; cutting it again and again would be slow.
const MAX_GLUED: usize = 256;

/// Every stanza by name.
pub(crate) type Known = BTreeMap<&'static str, Stanza>;

/// The check in progress.
pub(crate) struct Check<'a> {
    pub(crate) known: &'a Known,
    pub(crate) machine: &'a Machine,
    pub(crate) problems: Vec<Problem>,
    pub(crate) no_effect: Vec<NoEffect>,
    pub(crate) settings: BTreeMap<&'static str, Settings>,
}

/// Every stanza, those of `declared` first.
pub(crate) fn known(declared: &[&'static Section]) -> Known {
    let mut known = Known::new();
    for &(name, _, why) in crate::sections::FOREIGN {
        known.insert(name, Stanza { body: Body::Anything, effect: Effect::Accepted(why) });
    }
    for section in crate::sections::OWN.iter().chain(declared.iter().copied()) {
        known.insert(section.name, Stanza { body: section.body, effect: section.effect });
    }
    known
}

/// The inside of a stanza that is somebody else's to read, under the key [`shoal_module::config::TEXT`]: its words as
/// they stood, line by line.
fn kept(item: &Item) -> Settings {
    let (mut text, mut line) = (String::new(), 0);
    let (Item::Block(at, _) | Item::Word(Word { at, .. })) = item;
    match item {
        Item::Block(_, inner) => write_items(inner, &mut text, &mut line),
        Item::Word(_) => write_items(&Items::from([item.clone()]), &mut text, &mut line),
    }
    let mut settings = Settings::default();
    settings.push(Setting { key: TEXT, value: Value::Text(text), at: *at });
    settings
}

fn write_items(items: &Items, text: &mut String, line: &mut usize) {
    for item in items {
        let (Item::Block(at, _) | Item::Word(Word { at, .. })) = item;
        if !text.is_empty() {
            text.push(if at.line == *line { ' ' } else { '\n' });
        }
        *line = at.line;
        match item {
            // Nested no deeper than the parser allows.
            Item::Block(_, inner) => {
                text.push('{');
                write_items(inner, text, line);
                text.push_str(" }");
            }
            Item::Word(word) if word.quoted => {
                text.push('"');
                text.push_str(&word.text.replace('\\', "\\\\").replace('"', "\\\""));
                text.push('"');
            }
            Item::Word(word) => text.push_str(&word.text),
        }
    }
}

impl Check<'_> {
    /// All stanzas.
    pub(crate) fn stanzas(&mut self, mut items: Items) {
        while let Some(item) = items.pop_front() {
            let word = match item {
                Item::Word(word) => word,
                Item::Block(at, _) => {
                    self.problem(at, "this block has no name before it".into());
                    continue;
                }
            };
            let known = self.known.get_key_value(word.text.as_str()).filter(|_| !word.quoted);
            let Some((&name, &stanza)) = known else {
                self.unknown_stanza(&word);
                // What belongs to it: words up to its block or to the next stanza.
                while let Some(Item::Word(next)) = items.front() {
                    if self.known.contains_key(next.text.as_str()) {
                        break;
                    }
                    items.pop_front();
                }
                if let Some(Item::Block(..)) = items.front() {
                    items.pop_front();
                }
                continue;
            };
            self.stanza(name, stanza, &word, &mut items);
        }
    }

    fn stanza(&mut self, name: &'static str, stanza: Stanza, word: &Word, items: &mut Items) {
        if let Effect::Accepted(why) = stanza.effect {
            self.no_effect.push(NoEffect { what: name.into(), why, at: word.at });
        }
        // VPP takes `name { ... }`, and `name word` where a block holds one word.
        let settings = match (items.pop_front(), stanza.body) {
            (None, _) => {
                let wants = match stanza.body {
                    Body::Value(kind) => value::expected(kind),
                    _ => "a block { ... }".into(),
                };
                return self.problem(word.at, format!("{name} needs {wants}"));
            }
            (Some(item), Body::Anything) => kept(&item),
            (Some(Item::Block(_, inner)), Body::Keys(keys)) => self.block(name, keys, inner),
            (Some(only), Body::Keys(keys)) => self.block(name, keys, Items::from([only])),
            (Some(Item::Word(v)), Body::Value(kind)) => self.single(name, kind, &v),
            (Some(Item::Block(at, mut inner)), Body::Value(kind)) => {
                match (inner.pop_front(), inner.is_empty()) {
                    (Some(Item::Word(v)), true) => self.single(name, kind, &v),
                    _ => return self.problem(at, format!("{name} needs {}", value::expected(kind))),
                }
            }
        };
        self.settings.entry(name).or_default().extend(settings);
    }

    fn single(&mut self, name: &'static str, kind: Kind, word: &Word) -> Settings {
        let mut settings = Settings::default();
        match value::read(kind, &word.text, self.machine) {
            Ok(value) => settings.push(Setting { key: name, value, at: word.at }),
            Err(why) => self.problem(word.at, format!("{name} {why}")),
        }
        settings
    }

    /// The inside of a block: `path` is what messages call it.
    fn block(&mut self, path: &str, keys: &'static [Key], mut items: Items) -> Settings {
        let mut settings = Settings::default();
        let mut skipping = false;
        while let Some(item) = items.pop_front() {
            let word = match item {
                Item::Word(word) => word,
                Item::Block(..) if skipping => continue,
                Item::Block(at, _) => {
                    self.problem(at, format!("this block stands where {path} has a setting"));
                    continue;
                }
            };
            match find(keys, &word, &mut items) {
                Some((key, at)) => {
                    skipping = false;
                    if let Some(setting) = self.setting(path, keys, key, at, &mut items) {
                        settings.push(setting);
                    }
                }
                // After an unknown word, what follows up to the next known one belongs to the same mistake.
                None if skipping => {}
                None => {
                    skipping = true;
                    self.unknown_key(path, keys, &word);
                }
            }
        }
        settings
    }

    fn setting(
        &mut self,
        path: &str,
        keys: &'static [Key],
        key: &'static Key,
        at: At,
        items: &mut Items,
    ) -> Option<Setting> {
        if let Effect::Accepted(why) = key.effect {
            self.no_effect.push(NoEffect { what: format!("{path} {}", key.name), why, at });
        }
        let made = |value, at| Some(Setting { key: key.name, value, at });
        let needs = || format!("{} needs {}", key.name, value::expected(key.kind));
        match key.kind {
            Kind::Flag => {
                if let Some(Item::Block(brace, _)) = items.front() {
                    let brace = *brace;
                    items.pop_front();
                    self.problem(brace, format!("{} takes no block", key.name));
                }
                return made(Value::Flag, at);
            }
            Kind::Anything => {
                while let Some(item) = items.front() {
                    if matches!(item, Item::Word(w) if keys.iter().any(|k| k.name == w.text)) {
                        break;
                    }
                    items.pop_front();
                }
                return made(Value::Anything, at);
            }
            Kind::Block(inner) => {
                if let Some(Item::Block(..)) = items.front()
                    && let Some(Item::Block(brace, block)) = items.pop_front()
                {
                    let settings = self.block(&format!("{path} {}", key.name), inner, block);
                    return made(Value::Block(settings), brace);
                }
                self.problem(at, needs());
                return None;
            }
            _ => {}
        }
        let mut word = match items.pop_front() {
            Some(Item::Word(word)) => word,
            Some(Item::Block(brace, _)) => {
                self.problem(brace, format!("{} needs {}, not a block", key.name, value::expected(key.kind)));
                return None;
            }
            None => {
                self.problem(at, needs());
                return None;
            }
        };
        if let Kind::Named(inner) = key.kind {
            let mut settings = Settings::default();
            if let Some(Item::Block(..)) = items.front()
                && let Some(Item::Block(_, block)) = items.pop_front()
            {
                settings = self.block(&format!("{path} {}", key.name), inner, block);
            }
            return made(Value::Named(word.text, settings), word.at);
        }
        if matches!(key.kind, Kind::CpuList) {
            join_list(&mut word, items);
        }
        match value::read(key.kind, &word.text, self.machine) {
            Ok(value) => made(value, word.at),
            Err(why) => {
                if !word.quoted
                    && let Some((value, rest)) = self.cut_after_value(key.kind, keys, &word)
                {
                    let at = At { width: word.at.width - rest.at.width, ..word.at };
                    items.push_front(Item::Word(rest));
                    return made(value, at);
                }
                self.problem(word.at, format!("{} {why}", key.name));
                // A key in the place of a value: the value was forgotten, the key still counts.
                if keys.iter().any(|k| k.name == word.text) {
                    items.push_front(Item::Word(word));
                }
                None
            }
        }
    }

    /// `onupdate-interval`: a value with a key right behind it.
    fn cut_after_value(&self, kind: Kind, keys: &'static [Key], word: &Word) -> Option<(Value, Word)> {
        keys.iter().find_map(|key| {
            let cut = word.text.find(key.name).filter(|&cut| cut > 0)?;
            let (head, tail) = word.text.split_at_checked(cut)?;
            let rest = cut_word(word, tail);
            find(keys, &rest, &mut Items::new())?;
            Some((value::read(kind, head, self.machine).ok()?, rest))
        })
    }

    fn unknown_stanza(&mut self, word: &Word) {
        let name = word.text.as_str();
        let section_of = self.known.iter().find(|(_, s)| match s.body {
            Body::Keys(keys) => keys.iter().any(|k| k.name == name),
            _ => false,
        });
        let hint = match section_of {
            Some((section, _)) => format!("; it is a setting of {section} {{ ... }}"),
            None => did_you_mean(name, self.known.keys().copied()),
        };
        self.problem(word.at, format!("unknown section {}{hint}", quoted(name)));
    }

    fn unknown_key(&mut self, path: &str, keys: &'static [Key], word: &Word) {
        let near = did_you_mean(&word.text, keys.iter().map(|k| k.name));
        let elsewhere = self.known.iter().find(|(_, s)| match s.body {
            Body::Keys(keys) => keys.iter().any(|k| k.name == word.text),
            _ => false,
        });
        let hint = match elsewhere {
            _ if !near.is_empty() => near,
            Some((section, _)) => format!("; it is a setting of {section} {{ ... }}"),
            None => {
                let names: Vec<_> = keys.iter().map(|k| k.name).collect();
                if names.len() <= 8 { format!("; it has {}", names.join(", ")) } else { String::new() }
            }
        };
        self.problem(word.at, format!("{path} has no setting {}{hint}", quoted(&word.text)));
    }

    pub(crate) fn problem(&mut self, at: At, message: String) {
        self.problems.push(Problem::new(at, message));
    }
}

/// `2, 3 ,4`: a list that has blanks beside its commas is one word.
fn join_list(word: &mut Word, items: &mut Items) {
    let goes_on = |word: &Word, next: &Word| {
        !next.quoted && (word.text.ends_with(',') || next.text.starts_with(',')) && !word.quoted
    };
    while matches!(items.front(), Some(Item::Word(next)) if goes_on(word, next)) {
        let Some(Item::Word(next)) = items.pop_front() else { return };
        word.text.push_str(&next.text);
        if next.at.line == word.at.line {
            word.at.width = (next.at.column + next.at.width).saturating_sub(word.at.column);
        }
    }
}

/// The key that `word` is or begins with. Takes the second word of a two-word key from `items`; puts back what
/// stands glued behind the key.
fn find(keys: &'static [Key], word: &Word, items: &mut Items) -> Option<(&'static Key, At)> {
    if word.quoted {
        return None;
    }
    let two = keys.iter().find(|key| match (key.name.split_once(' '), items.front()) {
        (Some((first, second)), Some(Item::Word(next))) => first == word.text && second == next.text,
        _ => false,
    });
    if let Some(key) = two {
        items.pop_front();
        return Some((key, word.at));
    }
    if let Some(key) = keys.iter().find(|key| key.name == word.text) {
        return Some((key, word.at));
    }
    if word.text.len() > MAX_GLUED {
        return None;
    }
    let glued = |key: &&Key| word.text.strip_prefix(key.name).is_some_and(|rest| fits(key.kind, rest, keys));
    let key = keys.iter().filter(glued).max_by_key(|key| key.name.len())?;
    let rest = cut_word(word, word.text.strip_prefix(key.name)?);
    let at = At { width: word.at.width - rest.at.width, ..word.at };
    items.push_front(Item::Word(rest));
    Some((key, at))
}

/// Whether `rest`, glued behind a key of this kind, can be what follows it.
fn fits(kind: Kind, rest: &str, keys: &'static [Key]) -> bool {
    match kind {
        Kind::Flag => keys.iter().any(|key| rest.starts_with(key.name)),
        Kind::Switch => rest.starts_with("on") || rest.starts_with("off"),
        Kind::Choice(words) => words.iter().any(|w| rest.starts_with(w)),
        Kind::Path => rest.starts_with('/'),
        Kind::U64 { .. } | Kind::Size { .. } | Kind::Seconds { .. } | Kind::Core | Kind::CpuList => {
            rest.starts_with(|c: char| c.is_ascii_digit())
        }
        _ => false,
    }
}

/// The end of a word as a word of its own.
fn cut_word(word: &Word, tail: &str) -> Word {
    let width = tail.chars().count();
    let at = At { column: word.at.column + word.at.width - width, width, ..word.at };
    Word { text: tail.into(), quoted: false, at }
}
