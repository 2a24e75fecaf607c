//! Printing answers.

use std::io::{self, IsTerminal, Write};

use crate::client::{Answer, Interim};

/// Prints what a command says while it runs, and long answers as they come.
pub fn stream(said: Interim<'_>) -> bool {
    match said {
        Interim::Said(text) | Interim::Piece(text) => print(text),
    }
    true
}

/// Shows how far a long run is, to somebody who watches.
pub fn progress(text: &str) {
    if io::stderr().is_terminal() {
        eprintln!("{text}");
    }
}

/// Prints an answer: errors on standard error, after `place`. False if it is an error.
pub fn answer(answer: &Answer, place: &str) -> bool {
    match &answer.json {
        Some(json) => print(&format!("{json:#}\n")),
        None if answer.in_pieces => print("\n"),
        None if answer.ok => print(&answer.text),
        None => eprint!("{place}{}", answer.text),
    }
    answer.ok
}

/// Prints to standard output. When its reader has left (`| head`), there is nothing more to do.
pub fn print(text: &str) {
    let mut out = io::stdout().lock();
    if out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_err() {
        std::process::exit(0);
    }
}
