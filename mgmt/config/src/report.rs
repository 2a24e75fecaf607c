//! Mistakes, gathered and shown: place, source line, caret, and the nearest word that is known.

use crate::lex::Source;
use shoal_module::config::At;
use std::fmt;

/// Longer lists are of no use; the rest is counted.
const MAX_SHOWN: usize = 50;
/// Characters of a source line that are shown around the mistake.
const WINDOW: usize = 100;

/// One mistake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Where.
    pub at: At,
    /// What is wrong and what would be right, one line.
    pub message: String,
}

impl Problem {
    /// A mistake at a place.
    pub fn new(at: At, message: String) -> Self {
        Self { at, message }
    }
}

/// Every mistake of a start-up configuration. Displays as one message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Sorted by place.
    pub problems: Vec<Problem>,
    sources: Vec<Source>,
}

impl std::error::Error for Report {}

impl Report {
    pub(crate) fn new(mut problems: Vec<Problem>, sources: &[Source]) -> Self {
        problems.sort_by_key(|p| (p.at.source, p.at.line, p.at.column));
        Self { problems, sources: sources.to_vec() }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n = self.problems.len();
        let s = if n == 1 { "" } else { "s" };
        write!(f, "{n} mistake{s} in the start-up configuration, nothing was started")?;
        for problem in self.problems.iter().take(MAX_SHOWN) {
            let at = problem.at;
            let Some(source) = self.sources.get(at.source) else { continue };
            write!(f, "\n{}:{}:{}: {}", source.name, at.line, at.column, problem.message)?;
            let line = source.text.split(|&b| b == b'\n').nth(at.line.saturating_sub(1)).unwrap_or_default();
            let (line, column) = window(&String::from_utf8_lossy(line), at.column);
            let number = at.line.to_string();
            let width = at.width.clamp(1, WINDOW + 3 - column.min(WINDOW + 2));
            write!(f, "\n {number} | {line}")?;
            write!(f, "\n {:1$} | {2:3$}{4}", "", number.len(), "", column - 1, "^".repeat(width))?;
        }
        if n > MAX_SHOWN {
            write!(f, "\n... and {} more", n - MAX_SHOWN)?;
        }
        Ok(())
    }
}

/// The part of a line around `column`, one printed character for each character, and the column in that part.
fn window(line: &str, column: usize) -> (String, usize) {
    let clean = |c: char| if c.is_control() { ' ' } else { c };
    let line: Vec<char> = line.trim_end().chars().map(clean).collect();
    if line.len() <= WINDOW {
        return (line.into_iter().collect(), column);
    }
    let skip = column.saturating_sub(WINDOW / 2).min(line.len() - WINDOW);
    let shown: String = line.iter().skip(skip).take(WINDOW).collect();
    let (before, lead) = if skip > 0 { ("...", 3) } else { ("", 0) };
    let after = if skip + WINDOW < line.len() { "..." } else { "" };
    (format!("{before}{shown}{after}"), column - skip + lead)
}

/// A word as messages quote it: short, and without control characters.
pub(crate) fn quoted(word: &str) -> String {
    let mut shown: String = word.chars().take(40).flat_map(char::escape_debug).collect();
    if word.chars().nth(40).is_some() {
        shown.push_str("...");
    }
    format!("'{shown}'")
}

/// `; did you mean 'x'?` when a known word is near enough, else nothing.
pub(crate) fn did_you_mean<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    match nearest(word, known) {
        Some(near) => format!("; did you mean '{near}'?"),
        None => String::new(),
    }
}

/// The known word with the fewest typing mistakes to `word`: at most one per three letters. A word that is the
/// beginning of the other (`warning`, `warn`) counts as one mistake.
pub(crate) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word: Vec<char> =
        word.chars().take(64).map(|c| if c == '_' { '-' } else { c.to_ascii_lowercase() }).collect();
    known
        .into_iter()
        .map(|k| {
            let letters: Vec<char> = k.chars().collect();
            let short = letters.len().min(word.len());
            let begins = short >= 3 && letters.get(..short) == word.get(..short);
            (if begins && letters.len() != word.len() { 1 } else { distance(&word, &letters) }, k)
        })
        .filter(|&(d, k)| d <= (k.len().min(word.len()) / 3).max(1) && d < k.len().min(word.len()).max(1))
        .min_by_key(|&(d, _)| d)
        .map(|(_, k)| k)
}

/// Letters to insert, delete, replace or swap with their neighbour (Damerau-Levenshtein, restricted).
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, cb) in b.iter().enumerate() {
            let at = |row: &[usize], j: usize| row.get(j).copied().unwrap_or(usize::MAX / 2);
            let mut best =
                (at(&last, j) + usize::from(ca != cb)).min(at(&last, j + 1) + 1).min(at(&row, j) + 1);
            if i > 0 && j > 0 && Some(ca) == b.get(j - 1) && a.get(i - 1) == Some(cb) {
                best = best.min(at(&before, j - 1) + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut last, row);
    }
    last.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_forgives_one_mistake_in_three_letters() {
        let known = ["workers", "main-core", "on"];
        assert_eq!(nearest("wrokers", known), Some("workers"));
        assert_eq!(nearest("main_core", known), Some("main-core"));
        assert_eq!(nearest("Workers", known), Some("workers"));
        assert_eq!(nearest("main", known), Some("main-core"));
        assert_eq!(nearest("workersxyz", known), Some("workers"));
        assert_eq!(nearest("nat44", known), None);
        assert_eq!(nearest("x", known), None);
    }
}
