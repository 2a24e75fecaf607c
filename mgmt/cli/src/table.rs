//! All commands of all modules in one tree of words.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;

use shoal_module::cli::{ArgType, BUILT_IN, Command};

use crate::builtin::{self, Builtin};
use crate::grammar::{self, ArgKind, Sequence};
use crate::plan::Plans;

/// Argument types by name.
pub type Types = HashMap<&'static str, &'static ArgType>;

/// A command in the tree.
#[derive(Debug)]
pub struct Entry {
    /// What the feature declared.
    pub command: &'static Command,
    /// Its words, in full.
    pub path: String,
    /// What follows its words.
    pub items: Sequence,
    /// Whether its syntax has commas.
    pub commas: bool,
    /// Run by the CLI itself.
    pub builtin: Option<Builtin>,
    /// How its last lines were matched.
    pub plans: Plans,
}

/// A place in the tree.
#[derive(Debug, Default)]
pub struct Node {
    /// The words that may follow.
    pub children: BTreeMap<&'static str, Node>,
    /// The command that ends here, as an index into the entries.
    pub entry: Option<usize>,
}

/// The commands of a router.
#[derive(Debug)]
pub struct Table {
    /// The tree.
    pub root: Node,
    /// The commands in order of declaration.
    pub entries: Vec<Entry>,
    /// The argument types.
    pub types: Types,
    /// The words of the last line.
    pub last: RefCell<Option<Last>>,
}

/// How a line began, and what that led to.
#[derive(Debug)]
pub struct Last {
    /// Up to the end of the first word that is none of the command's path.
    pub words: String,
    /// The command, as an index into the entries.
    pub entry: usize,
    /// Where its arguments begin.
    pub from: usize,
}

/// The declarations of the modules contradict themselves or each other.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the command declarations are wrong:\n  {}", .0.join("\n  "))]
pub struct TableError(pub Vec<String>);

impl Table {
    /// Puts all commands into one tree, or lists everything that is wrong with them.
    pub fn new(
        commands: impl IntoIterator<Item = &'static Command>,
        arg_types: impl IntoIterator<Item = &'static ArgType>,
    ) -> Result<Self, TableError> {
        let mut problems = Vec::new();
        let mut types = Types::new();
        for ty in BUILT_IN.iter().chain(arg_types) {
            if types.insert(ty.name, ty).is_some() {
                problems.push(format!("argument type `{}' is declared twice", ty.name));
            }
        }
        let mut table = Self { root: Node::default(), entries: Vec::new(), types, last: RefCell::default() };
        let own = builtin::COMMANDS.iter().map(|(command, builtin)| (command, Some(*builtin)));
        for (command, builtin) in own.chain(commands.into_iter().map(|command| (command, None))) {
            if let Err(problem) = table.add(command, builtin) {
                problems.push(problem);
            }
        }
        if problems.is_empty() { Ok(table) } else { Err(TableError(problems)) }
    }

    fn add(&mut self, command: &'static Command, builtin: Option<Builtin>) -> Result<(), String> {
        let syntax = grammar::parse(command.syntax).map_err(|e| e.to_string())?;
        for arg in grammar::arguments(&syntax.items) {
            if let ArgKind::Type(ty) = arg.kind
                && !self.types.contains_key(ty)
            {
                return Err(format!("`{}': no argument type is called `{ty}'", command.syntax));
            }
        }
        let path = syntax.path.join(" ");
        let mut node = &mut self.root;
        for word in syntax.path {
            node = node.children.entry(word).or_default();
        }
        let other = node.entry.and_then(|i| self.entries.get(i));
        if let Some(other) = other {
            return Err(format!("`{}' and `{}' are the same command", other.command.syntax, command.syntax));
        }
        node.entry = Some(self.entries.len());
        let commas = grammar::has_word(&syntax.items, ",");
        let plans = Plans::new(&syntax.items);
        self.entries.push(Entry { command, path, items: syntax.items, commas, builtin, plans });
        Ok(())
    }

    /// The command that ends at a node.
    pub fn entry(&self, node: &Node) -> Option<&Entry> {
        node.entry.and_then(|i| self.entries.get(i))
    }

    /// All commands, sorted by path.
    pub fn sorted(&self) -> Vec<&Entry> {
        let mut all: Vec<_> = self.entries.iter().collect();
        all.sort_by(|a, b| a.path.cmp(&b.path));
        all
    }
}

/// What a word means among the children of a node.
#[derive(Debug, Clone)]
pub enum WordMatch<'t> {
    /// This child.
    One(&'static str, &'t Node),
    /// Several begin like that.
    Several(Vec<&'static str>),
    /// None begins like that.
    None,
}

impl Node {
    /// The children that begin with a prefix.
    pub fn starting_with(&self, prefix: &str) -> impl Iterator<Item = (&'static str, &Node)> {
        let from = (Bound::Included(prefix), Bound::Unbounded);
        let fits = self.children.range::<str, _>(from).map(|(name, node)| (*name, node));
        fits.take_while(move |(name, _)| name.starts_with(prefix))
    }

    /// The child that a word names: the equal one, or the only one that begins with it.
    pub fn find(&self, word: &str) -> WordMatch<'_> {
        if let Some((name, node)) = self.children.get_key_value(word) {
            return WordMatch::One(name, node);
        }
        let mut fits = self.starting_with(word);
        match (fits.next(), fits.next()) {
            _ if word.is_empty() => WordMatch::None,
            (None, _) => WordMatch::None,
            (Some((name, node)), None) => WordMatch::One(name, node),
            (Some((first, _)), Some((second, _))) => {
                let mut all = vec![first, second];
                all.extend(fits.map(|(name, _)| name));
                WordMatch::Several(all)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use shoal_module::Control;
    use shoal_module::cli::{Args, CliError, Output};

    use super::*;

    fn nothing(_: &Control, _: &Args) -> Result<Output, CliError> {
        Ok(Output::none())
    }

    #[test]
    fn lists_every_contradiction_at_once() {
        static BAD: &[Command] = &[
            Command::new("a b <x:u8>", "", nothing),
            Command::new("a b", "", nothing),
            Command::new("a c <x:no-such-type>", "", nothing),
            Command::new("a [", "", nothing),
        ];
        static TYPES: &[ArgType] = &[ArgType::new("u8", "again", shoal_module::cli::check::<u8>)];
        let TableError(problems) = Table::new(BAD, TYPES).unwrap_err();
        assert_eq!(problems.len(), 4, "{problems:?}");
    }

    #[test]
    fn an_equal_word_beats_longer_ones() {
        static COMMANDS: &[Command] =
            &[Command::new("show ip", "", nothing), Command::new("show ip6", "", nothing)];
        let table = Table::new(COMMANDS, []).unwrap();
        let WordMatch::One(_, show) = table.root.find("sh") else { panic!("show is the only one") };
        assert!(matches!(show.find("ip"), WordMatch::One("ip", _)));
        assert!(matches!(show.find("i"), WordMatch::Several(all) if all == ["ip", "ip6"]));
        assert!(matches!(show.find(""), WordMatch::None));
    }
}
