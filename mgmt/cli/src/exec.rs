//! `exec FILE`: reading the file and reporting its faults.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read};

use shoal_infra::budget;
use shoal_module::cli::Pace;

use crate::complaint::Complaint;

/// A file of commands beyond this is no file of commands: some twenty million routes.
const MAX_BYTES: u64 = 1 << 30;
/// Read at a time.
const CHUNK: u64 = 1 << 20;
/// A file with more faults is something else; the first ones say so.
pub(crate) const MOST_FAULTS: usize = 100;

/// The text of a file, with VPP's and Windows' line ends alike.
pub async fn read(file: &str, pace: &Pace) -> io::Result<Text> {
    let length = std::fs::metadata(file)?;
    if !length.is_file() {
        return Err(io::Error::other("not a file"));
    }
    let too_large = || io::Error::other("larger than 1 GiB");
    let length = usize::try_from(length.len()).map_err(|_| too_large())?;
    let mut bytes = Vec::new();
    // A file may grow while it is read, and says nothing of its length in /proc.
    let length = length.min(MAX_BYTES as usize) + 1;
    budget::take(length).map_err(io::Error::other)?;
    let mut text = Text { text: String::new(), taken: length };
    bytes.try_reserve_exact(length).map_err(io::Error::other)?;
    let mut file = File::open(file)?;
    while file.by_ref().take(CHUNK).read_to_end(&mut bytes)? > 0 {
        if bytes.len() as u64 > MAX_BYTES {
            return Err(too_large());
        }
        pace.give_way().await;
    }
    text.text = String::from_utf8(bytes).map_err(|_| io::Error::other("not UTF-8 text"))?;
    Ok(text)
}

/// The text of a file, counted as the tables' memory while it is there.
pub struct Text {
    text: String,
    taken: usize,
}

impl std::ops::Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl Drop for Text {
    fn drop(&mut self) {
        budget::give_back(self.taken);
    }
}

/// One text that names every fault with file and line.
pub fn refusal(file: &str, faults: &[(usize, Complaint)]) -> String {
    let or_more = if faults.len() >= MOST_FAULTS { " at least" } else { "" };
    let mut text = format!("{file}:{or_more} {} wrong, nothing was run", count(faults.len()));
    for (line, complaint) in faults {
        // Writing to a String cannot fail.
        let _ = write!(text, "\n{file}:{line}: {}", complaint.to_string().trim_end());
    }
    text
}

/// One text that names every line that was not run, with file and line, and how many there are of how many.
pub fn summary(file: &str, failed: usize, lines: usize, faults: &[(usize, Complaint)]) -> String {
    let mut text = format!("{file}: {failed} of {lines} lines failed, the others were run");
    for (line, complaint) in faults {
        // Writing to a String cannot fail.
        let _ = write!(text, "\n{file}:{line}: {}", complaint.to_string().trim_end());
    }
    if failed > faults.len() {
        let _ = write!(text, "\n... and {} more", failed - faults.len());
    }
    text
}

/// Lines of a configuration, to be asked whether they make another line true.
#[derive(Default)]
pub(crate) struct True {
    /// Their words; of those that were used up, none.
    lines: Vec<Vec<String>>,
    /// Names of interfaces before and after they were given others.
    names: HashMap<String, String>,
}

/// More lines than this are not searched for one that is like another.
const MOST_SEARCHED: usize = 50_000;
/// More interfaces than this are not followed through their names.
const MOST_NAMES: usize = 1_000;

impl True {
    pub(crate) fn new(text: &str) -> Self {
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect();
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let lines: Vec<Vec<String>> = lines.take(MOST_SEARCHED).map(words).collect();
        let names = lines.iter().filter_map(|words| naming(words)).take(MOST_NAMES).collect();
        True { lines, names }
    }

    /// Whether these words, of a command in full, give an interface the name that it has; it is known by that from then on.
    pub(crate) fn names(&mut self, words: &[String]) -> bool {
        let Some((before, now)) = naming(words) else { return false };
        let is = self.names.get(&before) == Some(&now);
        if is {
            self.names.remove(&before);
        }
        is
    }

    /// Whether an interface has another name than that by which lines know it.
    pub(crate) fn has_names(&self) -> bool {
        !self.names.is_empty()
    }

    /// A line with the names that its interfaces have, in place of those they have until the lines come that name them.
    pub(crate) fn with_names<'t>(&self, line: &'t str) -> Cow<'t, str> {
        let now = |word: &str| self.names.get(word).map(String::as_str);
        if !self.has_names() || !line.split_whitespace().any(|word| now(word).is_some()) {
            return Cow::Borrowed(line);
        }
        let words = line.split_inclusive(char::is_whitespace).map(|piece| {
            let word = piece.trim_end();
            let end = piece.get(word.len()..).unwrap_or_default();
            [now(word).unwrap_or(word), end].concat()
        });
        Cow::Owned(words.collect())
    }

    /// One line more is true.
    pub(crate) fn add(&mut self, words: Vec<String>) {
        if self.lines.len() < MOST_SEARCHED {
            self.lines.push(words);
        }
    }

    /// Whether these words, of a command in full, are those of a line, or the line says more of the same: a number or an
    /// address that was drawn.
    pub(crate) fn covers(&self, words: &[String]) -> bool {
        self.lines.iter().any(|line| says(line, words))
    }

    /// The same; a line says so once only: two loopbacks are made by two lines.
    pub(crate) fn use_up(&mut self, words: &[String]) -> bool {
        let found = self.lines.iter_mut().find(|line| says(line, words));
        found.map(std::mem::take).is_some()
    }
}

/// `set interface name OLD NEW`: the old and the new name.
fn naming(words: &[String]) -> Option<(String, String)> {
    match words {
        [set, interface, name, before, now] if [set, interface, name] == ["set", "interface", "name"] => {
            Some((before.clone(), now.clone()))
        }
        _ => None,
    }
}

/// Whether `words` are in `line` in their order, the first two at its beginning.
fn says(line: &[String], words: &[String]) -> bool {
    let head = words.len().min(2);
    if words.is_empty() || line.get(..head) != words.get(..head) {
        return false;
    }
    let mut rest = line.iter();
    words.iter().all(|word| rest.any(|other| other == word))
}

fn count(n: usize) -> String {
    if n == 1 { "1 line is".into() } else { format!("{n} lines are") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn interfaces_are_known_by_the_names_they_were_given_until_a_line_gives_them() {
        let mut saved = True::new("create loopback interface instance 1\nset interface name loop1 inside\n");
        assert_eq!(saved.with_names("set interface  state loop1 up"), "set interface  state inside up");
        assert_eq!(saved.with_names("set interface state loop11 up"), "set interface state loop11 up");
        assert!(!saved.names(&words("set interface name loop1 outside")));
        assert!(saved.names(&words("set interface name loop1 inside")));
        assert_eq!(saved.with_names("set interface state loop1 up"), "set interface state loop1 up");
    }

    #[test]
    fn a_line_is_true_when_a_configuration_says_it_or_more() {
        let mut lines = True::new(
            "# interfaces\ncreate loopback interface mac 02:fe:00:00:00:01 instance 0\nset interface state loop0 up\n",
        );
        for line in [
            "create loopback interface",
            "create loopback interface instance 0",
            "set interface state loop0 up",
        ] {
            assert!(lines.covers(&words(line)), "{line}");
        }
        for line in
            ["create loopback interface instance 1", "set interface state loop0 down", "# interfaces", ""]
        {
            assert!(!lines.covers(&words(line)), "{line}");
        }
        assert!(lines.use_up(&words("create loopback interface")));
        assert!(!lines.use_up(&words("create loopback interface")), "the second one is another");
    }
}
