//! Commands of VPP that this version may lack: they are no typing mistakes.

use crate::lex;
use crate::table::{Table, WordMatch};

/// Names only, one a line.
static NAMES: &str = include_str!("vpp_commands.txt");

fn names() -> impl Iterator<Item = &'static str> {
    NAMES.lines().filter(|line| !line.starts_with('#') && !line.is_empty())
}

/// The message for such a command.
pub(crate) fn message() -> String {
    let (major, minor) = (env!("CARGO_PKG_VERSION_MAJOR"), env!("CARGO_PKG_VERSION_MINOR"));
    format!("VPP has this; Shoal {major}.{minor} has not yet")
}

impl Table {
    /// The command of VPP that a line is, by its full name, if this router has none of that name and the line's words
    /// reach it: shortened, as VPP takes them, as long as they are unique.
    pub(crate) fn lacks(&self, line: &str) -> Option<&'static str> {
        let mut words = Vec::new();
        let mut at = 0;
        while let Some(token) = lex::next(line, at, false)
            && words.len() < 8
        {
            at = token.span.end;
            words.push(token.text.into_owned());
        }
        let mut best: Option<(usize, bool, &'static str)> = None;
        for name in names() {
            let length = name.split(' ').count();
            let given = words.get(..length);
            let Some(given) = given else { continue };
            let fits = |(full, typed): (&str, &String)| full.starts_with(typed.as_str());
            if !name.split(' ').zip(given).all(fits) {
                continue;
            }
            let exact = name.split(' ').eq(given.iter().map(String::as_str));
            // One letter begins too many words.
            if !exact && given.iter().any(|typed| typed.len() < 2) {
                continue;
            }
            // The longest name is the most particular; of two, the one that was typed in full.
            if best.is_none_or(|(l, e, _)| (length, exact) > (l, e)) {
                best = Some((length, exact, name));
            }
        }
        best.map(|(_, _, name)| name).filter(|name| !self.has(name))
    }

    /// Whether a command of this router has this name, or its words lead on to one.
    fn has(&self, name: &str) -> bool {
        let mut node = &self.root;
        for word in name.split(' ') {
            match node.find(word) {
                WordMatch::One(_, next) => node = next,
                // An argument of the command that is here, perhaps: its own complaint knows more.
                WordMatch::None | WordMatch::Several(_) => {
                    return node.entry.and_then(|i| self.entries.get(i)).is_some_and(|entry| {
                        entry
                            .command
                            .syntax
                            .split(|c: char| !c.is_alphanumeric() && c != '-')
                            .any(|w| w == word)
                    });
                }
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shoal_module::Control;
    use shoal_module::cli::{Args, CliError, Command, Output};

    use crate::matcher::Check;

    fn silent(_: &Control, _: &Args) -> Result<Output, CliError> {
        Ok(Output::none())
    }

    static COMMANDS: &[Command] = &[
        Command::new("show interface [<name:word>] [address]", "Show interfaces", silent),
        Command::new("show version", "Show the version", silent),
        Command::new("create tap [id <id:u32>]", "Create a tap", silent),
    ];

    fn said(line: &str) -> String {
        let table = Table::new(COMMANDS, []).unwrap();
        table.parse(&Control::new(), line, Check::Now).unwrap_err().headline()
    }

    #[test]
    fn a_command_that_only_vpp_has_is_no_typing_mistake() {
        let absent = message();
        for (line, name) in [
            ("create bridge-domain 10", "create bridge-domain"),
            ("create bridge 10 learn 1", "create bridge-domain"),
            ("show nat44 sessions", "show nat44 sessions"),
            ("set interface l2 bridge tap0 10", "set interface l2 bridge"),
        ] {
            assert_eq!(said(line), format!("{name}: {absent}"), "{line}");
        }
    }

    #[test]
    fn a_typing_mistake_stays_one() {
        for line in
            ["show intrface", "create tap id x", "show version verbos", "frobnicate", "show", "c b 10"]
        {
            assert!(!said(line).contains("VPP"), "{line}: {}", said(line));
        }
    }

    #[test]
    fn names_are_sorted_and_there_once() {
        let all: Vec<_> = names().collect();
        assert!(all.len() > 500 && all.is_sorted() && all.windows(2).all(|two| two[0] != two[1]));
    }
}
