//! Long output through `$PAGER`, when on a terminal.

use std::io::{IsTerminal, Write};
use std::process::{Command, Stdio};

use crate::show;

/// Shows a text: with the pager if it is longer than the screen (`rows`).
pub fn show(text: &str, rows: usize) {
    let long = text.lines().count() >= rows;
    if !long || !std::io::stdout().is_terminal() || !page(text) {
        show::print(text);
    }
}

fn page(text: &str) -> bool {
    let pager = std::env::var("PAGER").unwrap_or_default();
    let mut words = pager.split_whitespace();
    let (program, mut arguments) = match words.next() {
        Some("cat") => return false,
        Some(program) => (program, words.map(str::to_owned).collect()),
        None => ("less", Vec::new()),
    };
    if program == "less" && arguments.is_empty() {
        arguments.push("-FRX".to_owned());
    }
    let Ok(mut child) = Command::new(program).args(arguments).stdin(Stdio::piped()).spawn() else {
        return false;
    };
    if let Some(mut input) = child.stdin.take() {
        // The reader may leave before the end.
        let _ = input.write_all(text.as_bytes());
    }
    let _ = child.wait();
    true
}
