//! Words of a stream description: separated by blanks, with braces and arrows as words of their own.

use crate::PgError;

/// The words left to read.
pub(crate) struct Tokens {
    words: Vec<String>,
    at: usize,
}

impl Tokens {
    pub(crate) fn new(text: &str) -> Self {
        let spaced = text.replace('{', " { ").replace('}', " } ").replace("->", " -> ");
        Tokens { words: spaced.split_whitespace().map(str::to_owned).collect(), at: 0 }
    }

    pub(crate) fn peek(&self) -> Option<&str> {
        self.words.get(self.at).map(String::as_str)
    }

    pub(crate) fn next(&mut self) -> Option<String> {
        let word = self.words.get(self.at).cloned();
        self.at += usize::from(word.is_some());
        word
    }

    /// Takes the next word if it is this one.
    pub(crate) fn take(&mut self, word: &str) -> bool {
        let there = self.peek() == Some(word);
        self.at += usize::from(there);
        there
    }

    /// An error at the word read last, or at the end.
    pub(crate) fn expected(&self, what: impl Into<String>) -> PgError {
        let from = self.at.saturating_sub(2);
        let near = self.words.get(from..self.at.min(self.words.len())).unwrap_or_default().join(" ");
        let near = if near.is_empty() { "the beginning".to_owned() } else { format!("`{near}'") };
        PgError::Syntax { near, expected: what.into() }
    }

    /// The next word, or an error that says what was expected.
    pub(crate) fn word(&mut self, expected: &str) -> Result<String, PgError> {
        self.next().ok_or_else(|| self.expected(format!("{expected}, not the end")))
    }

    /// The next word as something else.
    pub(crate) fn parse<T>(
        &mut self,
        expected: &str,
        read: impl Fn(&str) -> Option<T>,
    ) -> Result<T, PgError> {
        let word = self.word(expected)?;
        read(&word).ok_or_else(|| self.expected(expected))
    }

    /// The next word as a number in a range, decimal or hexadecimal.
    pub(crate) fn number(&mut self, what: &str, least: u64, most: u64) -> Result<u64, PgError> {
        let expected = format!("{what}, {least} to {most}");
        self.parse(&expected, |word| number(word).filter(|n| (least..=most).contains(n)))
    }
}

/// A number, decimal or hexadecimal after `0x`.
pub(crate) fn number(word: &str) -> Option<u64> {
    match word.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => word.parse().ok(),
    }
}
