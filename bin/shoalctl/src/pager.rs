//! Long output through `$PAGER`, when on a terminal.

use std::io::{IsTerminal, Write};
use std::process::{Child, Command, Stdio};

use crate::client::Interim;
use crate::show;

/// Shows a text: with the pager if it is longer than the screen (`rows`).
pub fn show(text: &str, rows: usize) {
    let long = text.lines().count() >= rows;
    if !long || !std::io::stdout().is_terminal() || !page(text) {
        show::print(text);
    }
}

fn page(text: &str) -> bool {
    let Some(mut child) = start() else { return false };
    if let Some(mut input) = child.stdin.take() {
        // The reader may leave before the end.
        let _ = input.write_all(text.as_bytes());
    }
    let _ = child.wait();
    true
}

/// What long answers go through while they come.
#[derive(Default)]
pub struct Pager {
    child: Option<Child>,
    /// There is none, or it was left.
    without: bool,
    left: bool,
}

impl Pager {
    /// Shows what comes before an answer; false when its reader has left.
    pub fn stream(&mut self, said: Interim<'_>) -> bool {
        let Interim::Piece(text) = said else { return show::stream(said) };
        if self.child.is_none() && !self.without {
            self.child = if std::io::stdout().is_terminal() { start() } else { None };
            self.without = self.child.is_none();
        }
        let Some(input) = self.child.as_mut().and_then(|child| child.stdin.as_mut()) else {
            return !self.left && show::stream(said);
        };
        if input.write_all(text.as_bytes()).is_err() {
            self.left = true;
            self.finish();
        }
        !self.left
    }

    /// The end of the answer: waits until its reader leaves. Tells whether that was before the end.
    pub fn finish(&mut self) -> bool {
        if let Some(mut child) = self.child.take() {
            drop(child.stdin.take());
            let _ = child.wait();
            self.without = true;
        }
        self.left
    }
}

/// The pager, if there is to be one.
fn start() -> Option<Child> {
    let pager = std::env::var("PAGER").unwrap_or_default();
    let mut words = pager.split_whitespace();
    let (program, mut arguments) = match words.next() {
        Some("cat") => return None,
        Some(program) => (program, words.map(str::to_owned).collect()),
        None => ("less", Vec::new()),
    };
    if program == "less" && arguments.is_empty() {
        arguments.push("-FRX".to_owned());
    }
    Command::new(program).args(arguments).stdin(Stdio::piped()).spawn().ok()
}
