//! The command reference, in Markdown.

use std::fmt::Write as _;

use crate::session::Cli;
use crate::table::Entry;

impl Cli {
    /// Markdown of all commands, grouped by their first two words: the text of `docs/reference/cli.md`.
    pub fn reference(&self) -> String {
        let mut text = String::from(
            "# Command reference\n\nGenerated from the commands' declarations; do not edit. Words may be \
             shortened as long as they stay unique:\n`sh int` is `show interface`. `[x]` may be left out, \
             `{a | b}` is a choice, `<x>` stands for a value, `...` repeats.\n",
        );
        let mut group = String::new();
        for entry in self.table.sorted() {
            let of = entry.path.split(' ').take(2).collect::<Vec<_>>().join(" ");
            if of != group {
                // Writing to a String cannot fail.
                let _ = write!(text, "\n## {of}\n");
                group = of;
            }
            write_entry(&mut text, entry);
        }
        text
    }
}

fn write_entry(text: &mut String, entry: &Entry) {
    let command = entry.command;
    let _ = write!(text, "\n### `{}`\n\n```text\n{}\n```\n\n{}.\n", entry.path, command.syntax, command.help);
    if !command.doc.is_empty() {
        let _ = write!(text, "\n{}\n", command.doc.trim());
    }
    if !command.examples.is_empty() {
        let _ = write!(text, "\n```text\n{}\n```\n", command.examples.join("\n"));
    }
}
