//! `?`, `help` and `choices` at the end of a line.

use std::fmt::{self, Write as _};

use serde::Serialize;
use shoal_module::Control;

use crate::complaint::Complaint;
use crate::lex;
use crate::table::{Entry, Node, Table};

/// What is asked about a place in the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Question {
    /// What may follow.
    Help,
    /// All commands below.
    Choices,
}

/// The question at the end of a line, and the line before it.
pub fn question(line: &str) -> Option<(Question, &str)> {
    let line = line.trim_end();
    // The last bytes of `?', `help' and `choices'; most lines are none of these.
    if !matches!(line.as_bytes().last(), Some(b'?' | b'p' | b's')) {
        return None;
    }
    if let Some(before) = line.strip_suffix('?') {
        return Some((Question::Help, before));
    }
    let (at, last) = line.rfind(char::is_whitespace).map_or((0, line), |i| (i, line.get(i..).unwrap_or("")));
    let question = match last.trim() {
        "help" => Question::Help,
        "choices" => Question::Choices,
        _ => return None,
    };
    Some((question, line.get(..at).unwrap_or("")))
}

impl Node {
    /// The words that follow, in short: the help of a place without a command.
    pub fn summary(&self) -> String {
        let mut text = self.children.keys().take(5).copied().collect::<Vec<_>>().join(", ");
        if self.children.len() > 5 {
            text.push_str(", ...");
        }
        text
    }
}

impl Table {
    /// Answers a question about the place that `line` leads to; nothing if the line is no place.
    pub fn answer(
        &self,
        control: &Control,
        question: Question,
        line: &str,
    ) -> Option<Result<String, Box<Complaint>>> {
        if lex::is_comment(line) {
            return None;
        }
        let end = line.trim_end().len();
        let walk = self.walk(line, end);
        if !walk.several.is_empty() || (walk.span.start < end && walk.reached.is_empty()) {
            // The parser finds the same fault and words it.
            return Some(self.parse(control, line, crate::matcher::Check::Now).map(|_| String::new()));
        }
        if question == Question::Choices {
            return (walk.span.start >= end).then(|| Ok(self.choices(&walk.path.join(" "))));
        }
        let mut text = String::new();
        if walk.span.start >= end
            && let Some(entry) = self.entry(walk.node)
        {
            let _ = writeln!(text, "{}\n  {}", entry.command.syntax, entry.command.help);
        }
        let asked = format!("{} ", line.trim_end());
        let asked = asked.trim_start();
        for candidate in self.complete(control, asked, asked.len()).candidates {
            line_of(&mut text, "  ", &candidate.text, &candidate.help);
        }
        Some(Ok(text))
    }

    /// The paths of all commands at or below a path.
    fn choices(&self, below: &str) -> String {
        let below_it = |e: &&Entry| {
            below.is_empty() || e.path.strip_prefix(below).is_some_and(|r| r.is_empty() || r.starts_with(' '))
        };
        self.sorted().into_iter().filter(below_it).flat_map(|e| [e.path.as_str(), "\n"]).collect()
    }

    /// Every command with its help.
    pub fn show_cli(&self) -> CommandList {
        let listed =
            |e: &Entry| Listed { path: e.path.clone(), syntax: e.command.syntax, help: e.command.help };
        CommandList(self.sorted().into_iter().map(listed).collect())
    }
}

/// The answer of `show cli`.
#[derive(Debug, Serialize)]
pub struct CommandList(Vec<Listed>);

#[derive(Debug, Serialize)]
struct Listed {
    path: String,
    syntax: &'static str,
    help: &'static str,
}

impl fmt::Display for CommandList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        for command in &self.0 {
            line_of(&mut text, "", &command.path, command.help);
        }
        f.write_str(&text)
    }
}

/// VPP's two columns: the name in thirty characters, then its help.
fn line_of(text: &mut String, indent: &str, name: &str, help: &str) {
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{}", format!("{indent}{name:<30} {help}").trim_end());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_question() {
        assert_eq!(question("show ?"), Some((Question::Help, "show ")));
        assert_eq!(question("?"), Some((Question::Help, "")));
        assert_eq!(question("help"), Some((Question::Help, "")));
        assert_eq!(question("show choices"), Some((Question::Choices, "show")));
        assert_eq!(question("show helper"), None);
    }
}
