//! The forms of line that the modules of a router declare, and lines read by them.

use std::rc::Rc;

use shoal_cli::{Forms, TableError, words};
use shoal_module::cli::{ArgType, Args, Expected};
use shoal_module::{Control, Inverse, Key, LineKind, Module, Order, Phase, Place};

use crate::names::Names;
use crate::template::{fill, value};

/// What divides the parts of a key; no line has it.
const BETWEEN: char = '\u{1f}';

/// One form, and what of it names interfaces.
#[derive(Debug)]
struct Known {
    kind: &'static LineKind,
    module: &'static str,
    /// Arguments that are interfaces.
    interfaces: Vec<&'static str>,
    /// Arguments that may have interfaces among their words.
    rests: Vec<&'static str>,
}

/// All forms of a router.
#[derive(Debug)]
pub struct Kinds {
    all: Vec<Known>,
    forms: Forms,
    /// The forms of the commands that take a line back, and the form of the line.
    inverses: Forms,
    inverse_of: Vec<usize>,
    /// Words that lines begin with whose order matters.
    in_order: Vec<String>,
}

/// A line that no form fits, or several do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoKind {
    /// No form does.
    #[error("`{line}' is no line of a configuration{}", near.as_ref().map(|n| format!("; the nearest form is `{n}'")).unwrap_or_default())]
    None {
        /// The line.
        line: String,
        /// The syntax that begins like it.
        near: Option<&'static str>,
    },
    /// Several do: a mistake of the modules.
    #[error("`{line}' has the forms `{one}' and `{other}'")]
    Several {
        /// The line.
        line: String,
        /// One.
        one: &'static str,
        /// Another one.
        other: &'static str,
    },
}

/// A line of a configuration.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    /// It, as it stands.
    pub text: Rc<str>,
    /// The number of its form.
    pub kind: usize,
    /// What it says.
    pub args: Args,
}

/// What a line needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Requirement {
    /// Its name.
    pub token: String,
    /// Whether the line can be there without it: then it only comes behind it.
    pub soft: bool,
}

/// The name by which lines need an interface.
pub(crate) fn interface_token(made_as: &str) -> String {
    format!("interface {made_as}")
}

impl Kinds {
    /// The forms of these modules.
    ///
    /// # Errors
    /// Syntaxes that are none.
    pub fn new(
        modules: &[&'static Module],
        arg_types: impl IntoIterator<Item = &'static ArgType> + Clone,
    ) -> Result<Self, TableError> {
        Self::of(modules.iter().flat_map(|m| m.lines.iter().map(|kind| (m.name, kind))), arg_types)
    }

    /// These forms, of modules of these names.
    ///
    /// # Errors
    /// Syntaxes that are none.
    pub fn of(
        kinds: impl Iterator<Item = (&'static str, &'static LineKind)>,
        arg_types: impl IntoIterator<Item = &'static ArgType> + Clone,
    ) -> Result<Self, TableError> {
        let all: Vec<(&'static str, &'static LineKind)> = kinds.collect();
        let forms = Forms::new(all.iter().map(|(_, kind)| kind.syntax), arg_types.clone())?;
        let known = |(number, (module, kind)): (usize, &(&'static str, &'static LineKind))| Known {
            kind,
            module,
            interfaces: forms.arguments(number, "interface"),
            rests: forms.arguments(number, "rest"),
        };
        let known: Vec<Known> = all.iter().enumerate().map(known).collect();
        let mut inverse_of = Vec::new();
        let mut syntaxes = Vec::new();
        for (number, (_, kind)) in all.iter().enumerate() {
            if let Inverse::Command(template) = kind.inverse
                && let Some(syntax) = syntax_of_inverse(kind.syntax, template)
            {
                inverse_of.push(number);
                // They are made once and are there as long as the router.
                syntaxes.push(&*Box::leak(syntax.into_boxed_str()));
            }
        }
        let inverses = Forms::new(syntaxes, arg_types)?;
        let in_order = known.iter().enumerate().filter(|(_, known)| known.kind.order != Order::Any);
        let mut in_order: Vec<String> = in_order.map(|(number, _)| forms.words(number).to_owned()).collect();
        in_order.dedup();
        Ok(Kinds { all: known, forms, inverses, inverse_of, in_order })
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The form of a number, and the module that declares it.
    pub fn kind(&self, number: usize) -> Option<(&'static str, &'static LineKind)> {
        self.all.get(number).map(|known| (known.module, known.kind))
    }

    /// The number of a line's form.
    ///
    /// # Errors
    /// It has none, or several.
    pub fn number_of(&self, control: &Rc<Control>, line: &str) -> Result<usize, NoKind> {
        self.read(control, line).map(|line| line.kind)
    }

    /// The words that lines of a form begin with.
    pub(crate) fn words(&self, number: usize) -> &str {
        self.forms.words(number)
    }

    /// Reads a line.
    pub(crate) fn read(&self, control: &Rc<Control>, line: &str) -> Result<Line, NoKind> {
        let mut found = self.forms.of(control, line);
        match found.len() {
            1 => {}
            0 => return Err(NoKind::None { line: line.to_owned(), near: self.near(line) }),
            _ => {
                let syntax = |at: usize| {
                    found
                        .get(at)
                        .and_then(|(number, _)| self.kind(*number))
                        .map_or("", |(_, kind)| kind.syntax)
                };
                return Err(NoKind::Several { line: line.to_owned(), one: syntax(0), other: syntax(1) });
            }
        }
        let (kind, args) = found.remove(0);
        Ok(Line { text: line.into(), kind, args })
    }

    /// The lines that a command takes back: their forms and keys. Several forms may have the same.
    pub(crate) fn taken_back(
        &self,
        control: &Rc<Control>,
        command: &str,
        names: &Names,
    ) -> Vec<(usize, String)> {
        let found = self.inverses.of(control, command).into_iter();
        let of = |(number, args): (usize, Args)| {
            let kind = *self.inverse_of.get(number)?;
            Some((kind, self.key_of(kind, &args, names)))
        };
        found.filter_map(of).collect()
    }

    /// The syntax with the most leading words in common with a line, if there are two at least.
    fn near(&self, line: &str) -> Option<&'static str> {
        let given = words(line);
        let common = |syntax: &str| syntax.split(' ').zip(&given).take_while(|(a, b)| a == b).count();
        let best = self.all.iter().map(|known| known.kind.syntax).max_by_key(|syntax| common(syntax))?;
        (common(best) >= 2).then_some(best)
    }

    pub(crate) fn kind_of(&self, line: &Line) -> Option<&'static LineKind> {
        self.all.get(line.kind).map(|known| known.kind)
    }

    /// Whether a line may be there several times: each makes one thing more.
    pub(crate) fn is_counted(&self, line: &Line) -> bool {
        self.kind_of(line)
            .is_some_and(|kind| kind.key == Key::Line && matches!(kind.inverse, Inverse::Found(_)))
    }

    /// Where a line runs among others: by phase, then before the usual ones or not, then by form.
    pub(crate) fn order(&self, line: &Line) -> (Phase, Place, usize) {
        let kind = self.kind_of(line);
        (
            kind.map_or(Phase::State, |kind| kind.phase),
            kind.map_or(Place::Usual, |kind| kind.place),
            line.kind,
        )
    }

    /// The name that an interface of a line was made with. Lines before those that give names know no other.
    fn made_as(&self, kind: usize, name: &str, names: &Names) -> String {
        let is_late = self.all.get(kind).is_some_and(|known| known.kind.phase > Phase::Names);
        if is_late { names.made_as(name) } else { name.to_owned() }
    }

    /// What a line says, the same whatever names interfaces have.
    pub(crate) fn meaning(&self, line: &Line, names: &Names) -> String {
        let Some(known) = self.all.get(line.kind) else { return line.text.to_string() };
        let mut text = self.words(line.kind).to_owned();
        for item in line.args.items() {
            text.push(BETWEEN);
            let value = line.args.text_of(item);
            if item.word {
                text.push_str(item.name);
            } else if known.interfaces.contains(&item.name) {
                text.push_str(&self.made_as(line.kind, value, names));
            } else if known.rests.contains(&item.name) {
                let words = words(value);
                let words: Vec<String> = words.iter().map(|w| self.made_as(line.kind, w, names)).collect();
                text.push_str(&words.join(" "));
            } else {
                text.push_str(value);
            }
        }
        text
    }

    /// What a line is about: lines of the same form and key cannot be there at the same time.
    pub(crate) fn key(&self, line: &Line, names: &Names) -> (usize, String) {
        match self.kind_of(line).map(|kind| kind.key) {
            Some(Key::Args(_)) => (line.kind, self.key_of(line.kind, &line.args, names)),
            _ => (line.kind, self.meaning(line, names)),
        }
    }

    /// Whether a line may be of a form whose lines have an order that matters.
    pub(crate) fn may_be_in_order(&self, line: &str) -> bool {
        self.in_order.iter().any(|words| line.starts_with(words.as_str()))
    }

    /// The lines among which the order of a line matters, if it does.
    pub(crate) fn in_order(&self, line: &Line, names: &Names) -> Option<(usize, String)> {
        let kind = self.kind_of(line)?;
        let Order::Among(list) = kind.order else { return None };
        let part = |name: &str| self.made_as(line.kind, &value(&line.args, name), names);
        let first = self.in_order.iter().position(|words| words == self.words(line.kind))?;
        Some((first, list.split_whitespace().map(part).collect::<Vec<_>>().join("\u{1f}")))
    }

    fn key_of(&self, kind: usize, args: &Args, names: &Names) -> String {
        let Some(known) = self.all.get(kind) else { return String::new() };
        let part = |name: &str| {
            let value = value(args, name);
            if known.interfaces.contains(&name) && !value.is_empty() {
                self.made_as(kind, &value, names)
            } else {
                value
            }
        };
        match known.kind.key {
            Key::Args(list) => list.split_whitespace().map(part).collect::<Vec<_>>().join("\u{1f}"),
            Key::Line => {
                // The line's own form has the same arguments in another order.
                let mut all: Vec<String> =
                    args.items().iter().filter(|i| !i.word).map(|i| part(i.name)).collect();
                all.sort_unstable();
                all.join("\u{1f}")
            }
        }
    }

    /// Whether a key that was found by a command that takes a line back is the key of this line.
    pub(crate) fn has_key(&self, line: &Line, key: &str, names: &Names) -> bool {
        self.key_of(line.kind, &line.args, names) == key
    }

    /// What a line makes that others may need.
    pub(crate) fn made(&self, line: &Line, names: &Names) -> Vec<String> {
        let Some(kind) = self.kind_of(line) else { return Vec::new() };
        if kind.makes.is_empty() {
            return Vec::new();
        }
        kind.makes.split("; ").map(|template| self.token(template, line, names)).collect()
    }

    /// Whether a line may be of a form that is wanted, by its words.
    fn may_be(&self, line: &str, wanted: impl Fn(&LineKind) -> bool) -> bool {
        let all = self.all.iter().enumerate().filter(|(_, known)| wanted(known.kind));
        all.map(|(number, _)| self.words(number)).any(|words| line.starts_with(words))
    }

    /// Whether a line may be one that makes an interface.
    pub(crate) fn may_make_interface(&self, line: &str) -> bool {
        self.may_be(line, |kind| kind.makes.starts_with("interface "))
    }

    /// Whether a line may be of a form whose lines others bring.
    pub(crate) fn may_be_brought(&self, line: &str) -> bool {
        self.may_be(line, |kind| kind.brought.is_some())
    }

    /// Whether another party has brought a line that the router has.
    pub(crate) fn is_brought(&self, control: &Control, line: &Line) -> bool {
        self.kind_of(line).and_then(|kind| kind.brought).is_some_and(|brought| brought(control, &line.args))
    }

    /// The interfaces that a line names, as it calls them.
    pub(crate) fn interfaces_of(&self, line: &Line) -> Vec<String> {
        let Some(known) = self.all.get(line.kind) else { return Vec::new() };
        let items =
            line.args.items().iter().filter(|item| !item.word && known.interfaces.contains(&item.name));
        items.map(|item| line.args.text_of(item).to_owned()).collect()
    }

    /// Whether the router has an interface of this name.
    pub(crate) fn has_interface(&self, control: &Control, name: &str) -> Result<(), Expected> {
        self.forms.check("interface", control, name)
    }

    /// The interface that a line makes, by the name it is made with.
    pub(crate) fn interface_made(&self, line: &Line) -> Option<String> {
        let kind = self.kind_of(line)?;
        let name = kind.makes.split("; ").next()?.strip_prefix("interface ")?;
        Some(fill(name, &line.args, ""))
    }

    /// What a line needs: the interfaces that it names, and what its form says.
    pub(crate) fn needs(&self, line: &Line, names: &Names) -> Vec<Requirement> {
        let Some(known) = self.all.get(line.kind) else { return Vec::new() };
        let mut all = Vec::new();
        for item in
            line.args.items().iter().filter(|item| known.interfaces.contains(&item.name) && !item.word)
        {
            let made_as = self.made_as(line.kind, line.args.text_of(item), names);
            all.push(Requirement { token: interface_token(&made_as), soft: false });
        }
        for item in line.args.items().iter().filter(|item| known.rests.contains(&item.name)) {
            // Any of these words may be an interface; no line makes one that is not.
            for name in words(line.args.text_of(item)) {
                let made_as = self.made_as(line.kind, &name, names);
                all.push(Requirement { token: interface_token(&made_as), soft: true });
            }
        }
        for template in known.kind.needs {
            let (soft, template) = match template.replacen('?', "", 1) {
                plain if plain.len() < template.len() => (true, plain),
                plain => (false, plain),
            };
            let token = self.token(&template, line, names);
            if !token.is_empty() {
                all.push(Requirement { token, soft });
            }
        }
        all
    }

    /// A template of what is made or needed, with interfaces by the names they were made with.
    fn token(&self, template: &str, line: &Line, names: &Names) -> String {
        let Some(known) = self.all.get(line.kind) else { return String::new() };
        let mut args = line.args.clone();
        if known.interfaces.iter().any(|name| template.contains(&format!("<{name}>"))) {
            let items = line.args.items().iter().map(|item| {
                let mut item = item.clone();
                if known.interfaces.contains(&item.name) && !item.word {
                    let made_as = self.made_as(line.kind, line.args.text_of(&item), names);
                    item.text = shoal_module::cli::Text::Other(made_as.into());
                }
                item
            });
            let items = items.collect();
            args = args.with_items(items);
        }
        fill(template, &args, "")
    }
}

/// The syntax of a command that takes lines of a form back, if its template tells which line that is.
fn syntax_of_inverse(syntax: &str, template: &str) -> Option<String> {
    if template.is_empty() {
        return None;
    }
    if let Some(behind) = template.strip_prefix("...") {
        return (!syntax.ends_with(":rest>")).then(|| format!("{syntax}{behind}"));
    }
    if let Some((from, to)) = template.split_once(" -> ") {
        let words: Vec<&str> = syntax.split(' ').map(|word| if word == from { to } else { word }).collect();
        return Some(words.join(" "));
    }
    let mut text = String::new();
    let mut rest = template;
    while let Some((before, behind)) = rest.split_once('<') {
        let (name, after) = behind.split_once('>')?;
        text.push_str(before);
        if name == "made" {
            return None;
        }
        let typed = [format!("<{name}:"), format!("<{name}>")];
        let start = typed.iter().find_map(|start| syntax.find(start.as_str()))?;
        let end = syntax.get(start..)?.find('>')? + start;
        text.push_str(syntax.get(start..=end)?);
        rest = after;
    }
    text.push_str(rest);
    // What is left out for one line and not for another cannot be told from the command alone.
    (!text.contains(['|', '!'])).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_syntax_of_an_inverse_has_the_types_of_the_line() {
        for (syntax, template, inverse) in [
            ("ip table add <id:u32> [<name:word>]", "ip table del <id>", Some("ip table del <id:u32>")),
            ("set x <interface> up", "set x <interface> down", Some("set x <interface> down")),
            ("nat add <a:u8> [vrf <vrf:u32>]", "... del", Some("nat add <a:u8> [vrf <vrf:u32>] del")),
            ("igmp enable <a:u8>", "enable -> disable", Some("igmp disable <a:u8>")),
            ("create loop <n:u8>", "delete loop <made>", None),
            ("l3xc add <rest:rest>", "... del", None),
        ] {
            assert_eq!(syntax_of_inverse(syntax, template).as_deref(), inverse, "{syntax}");
        }
    }
}
