//! Words of an input line, by byte position.
//!
//! The parser works on positions, not on a list of words, because some arguments take the raw text.

use std::borrow::Cow;
use std::ops::Range;

use shoal_module::word;

/// One word of the input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token<'a> {
    /// Its text; quotes are gone.
    pub text: Cow<'a, str>,
    /// Where it stands, quotes included.
    pub span: Range<usize>,
    /// Whether it was quoted, and so is never a brace or a comma.
    pub quoted: bool,
}

/// Bytes from `at` up to the next one that is no white space.
pub fn skip_blanks(line: &str, at: usize) -> usize {
    let rest = line.get(at..).unwrap_or("");
    // Nearly always there is none, or one blank and then a letter.
    match rest.as_bytes() {
        [b'!'..=b'~', ..] => at,
        [b' ', b'!'..=b'~', ..] => at + 1,
        _ => at + (rest.len() - rest.trim_start().len()),
    }
}

/// A line without white space around it. Nearly always there is none.
pub fn trimmed(line: &str) -> &str {
    match line.as_bytes() {
        [b'!'..=b'~', .., b'!'..=b'~'] => line,
        _ => line.trim(),
    }
}

/// Whether just this word stands at or after `at`, and where it ends. `false` says nothing of words in quotes.
pub fn stands(line: &str, at: usize, word: &str) -> Option<Range<usize>> {
    let start = skip_blanks(line, at);
    let end = start + word.len();
    let here = line.as_bytes().get(start..end)? == word.as_bytes();
    let ends = matches!(line.as_bytes().get(end), None | Some(b' ' | b'\t' | b'\n' | b'\r'));
    (here && ends).then_some(start..end)
}

/// The word that begins at or after `at`. Braces and, if `commas`, commas are words of their own.
pub fn next(line: &str, at: usize, commas: bool) -> Option<Token<'_>> {
    let start = skip_blanks(line, at);
    let rest = line.get(start..)?;
    match rest.as_bytes().first()? {
        quote @ (b'"' | b'\'') => return Some(quoted(rest, start, char::from(*quote))),
        b'{' | b'}' => return Some(plain(rest, start, 1)),
        b',' if commas => return Some(plain(rest, start, 1)),
        _ => {}
    }
    Some(plain(rest, start, word_end(rest, commas)))
}

/// All words of a line; one in quotes is one word.
pub fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut at = 0;
    while let Some(token) = next(line, at, false) {
        at = token.span.end;
        words.push(token.text.into_owned());
    }
    words
}

/// A word as it stands in a line: in quotes if it would be several, or none, without.
pub fn in_line(text: &str) -> Cow<'_, str> {
    let needs_quotes = text.is_empty() || text.contains([' ', '"', '\t']);
    if needs_quotes { word(text) } else { Cow::Borrowed(text) }
}

/// Where the word at the beginning ends. Plain ASCII, which nearly everything is, is looked at byte by byte.
fn word_end(rest: &str, commas: bool) -> usize {
    let bytes = rest.as_bytes();
    let end = if commas {
        bytes.iter().position(|b| !matches!(b, b'!'..=b'+' | b'-'..=b'z'))
    } else {
        bytes.iter().position(|b| !matches!(b, b'!'..=b'z'))
    };
    let at = end.unwrap_or(bytes.len());
    if matches!(bytes.get(at), None | Some(b' ' | b'\t' | b'\n' | b'\r' | b'{' | b'}' | b',')) {
        return at;
    }
    let ends = |c: char| c.is_whitespace() || c == '{' || c == '}' || (commas && c == ',');
    rest.find(ends).unwrap_or(rest.len())
}

fn plain(rest: &str, start: usize, len: usize) -> Token<'_> {
    Token { text: Cow::Borrowed(rest.get(..len).unwrap_or("")), span: start..start + len, quoted: false }
}

/// A backslash keeps the character after it. A quote that is never closed runs to the end.
fn quoted(rest: &str, start: usize, quote: char) -> Token<'_> {
    let mut text = String::new();
    let mut chars = rest.char_indices().skip(1);
    let mut end = rest.len();
    while let Some((i, c)) = chars.next() {
        if c == quote {
            end = i + c.len_utf8();
            break;
        }
        match c {
            '\\' => text.extend(chars.next().map(|(_, escaped)| escaped)),
            _ => text.push(c),
        }
    }
    Token { text: Cow::Owned(text), span: start..start + end, quoted: true }
}

/// The position of the `}` that closes the `{` at `open`.
pub fn closing_brace(line: &str, open: usize) -> Option<usize> {
    let mut depth = 0usize;
    for (i, byte) in line.bytes().enumerate().skip(open) {
        match byte {
            b'{' => depth += 1,
            b'}' if depth <= 1 => return Some(i),
            b'}' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// One command of a block of lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Statement<'a> {
    /// Its text; several lines if it holds braces.
    pub text: &'a str,
    /// The number of its first line, from 1.
    pub line: usize,
}

/// Cuts a block of lines into commands: one a line, except that open braces take in the lines up to the
/// closing one. Blank lines and lines that begin with `#` are left out.
pub fn statements(block: &str) -> Statements<'_> {
    Statements { rest: block, line: 0 }
}

/// The commands of a block, cut off one by one, so that a file of a million lines needs no list of them.
pub struct Statements<'a> {
    rest: &'a str,
    line: usize,
}

impl<'a> Iterator for Statements<'a> {
    type Item = Statement<'a>;

    fn next(&mut self) -> Option<Statement<'a>> {
        while !self.rest.is_empty() {
            let line = self.line + 1;
            let (end, lines) = statement_end(self.rest);
            let (text, after) = self.rest.split_at(end);
            self.line += lines;
            self.rest = after.strip_prefix('\n').unwrap_or("");
            let shown = trimmed(text);
            if !shown.is_empty() && !shown.starts_with('#') {
                return Some(Statement { text: shown, line });
            }
        }
        None
    }
}

/// The end of the first line, or of the line on which its open braces close, and how many lines that are. If they
/// never do, the first line stands alone, so that one missing brace does not swallow the file.
fn statement_end(text: &str) -> (usize, usize) {
    let first = text.find('\n').unwrap_or(text.len());
    let line = text.get(..first).unwrap_or("");
    if !line.as_bytes().contains(&b'{') || is_comment(line) || open_braces(line) <= 0 {
        return (first, 1);
    }
    let (mut depth, mut lines) = (0i64, 1);
    for (i, byte) in text.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            b'\n' if depth <= 0 => return (i, lines),
            b'\n' => lines += 1,
            _ => {}
        }
    }
    if depth <= 0 { (text.len(), lines) } else { (first, 1) }
}

/// Braces opened and not closed in this text.
pub fn open_braces(text: &str) -> i64 {
    text.bytes().fold(0, |depth, byte| match byte {
        b'{' => depth + 1,
        b'}' => depth - 1,
        _ => depth,
    })
}

/// Whether the line is a remark, whose braces mean nothing.
pub fn is_comment(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with('#') || line.split_whitespace().next() == Some("comment")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words_of(line: &str, commas: bool) -> Vec<String> {
        let mut at = 0;
        let mut words = Vec::new();
        while let Some(token) = next(line, at, commas) {
            at = token.span.end;
            words.push(token.text.into_owned());
        }
        words
    }

    #[test]
    fn braces_are_words_without_blanks_around_them() {
        assert_eq!(words_of("plugin x {enable}", false), ["plugin", "x", "{", "enable", "}"]);
    }

    #[test]
    fn commas_are_words_only_where_the_syntax_has_them() {
        assert_eq!(words_of("a, b", true), ["a", ",", "b"]);
        assert_eq!(words_of("a, b", false), ["a,", "b"]);
    }

    #[test]
    fn quotes_hold_blanks_and_may_be_left_open() {
        assert_eq!(words_of(r#"filter "tcp port 80" x"#, false), ["filter", "tcp port 80", "x"]);
        assert_eq!(words_of(r#""a\"b" 'c"d'"#, false), ["a\"b", "c\"d"]);
        assert_eq!(words_of("'open end", false), ["open end"]);
    }

    #[test]
    fn a_statement_takes_the_lines_up_to_its_closing_brace() {
        let block = "# first\nshow version\n\npacket-generator new {\n  name x\n}\nshow errors";
        let found: Vec<_> = statements(block).map(|s| (s.line, s.text)).collect();
        assert_eq!(
            found,
            [(2, "show version"), (4, "packet-generator new {\n  name x\n}"), (7, "show errors")]
        );
    }

    #[test]
    fn statements_are_numbered_by_their_lines_and_have_no_white_space_around_them() {
        let block = "a\r\n\n \tb  \n#{\nc{}\n\u{a0}d\u{a0}\n{\n}\nlast";
        let found: Vec<_> = statements(block).map(|s| (s.line, s.text)).collect();
        assert_eq!(found, [(1, "a"), (3, "b"), (5, "c{}"), (6, "d"), (7, "{\n}"), (9, "last")]);
        assert_eq!(["", " ", "x", " x", "x\n", "x y"].map(trimmed), ["", "", "x", "x", "x", "x y"]);
    }

    #[test]
    fn a_word_stands_where_the_lexer_finds_it() {
        for (line, at) in [("a via b", 1), ("a via", 1), ("a  via\tb", 1), ("avia", 1)] {
            let token = next(line, at, false).unwrap();
            assert_eq!(stands(line, at, "via"), Some(token.span), "{line}");
        }
        for line in ["a viab", "a vi", "a via{", "a via,", "a \"via\"", "a", "a vi\u{e4}", "a via\u{a0}b"] {
            assert_eq!(stands(line, 1, "via"), None, "{line}");
        }
    }

    #[test]
    fn a_missing_brace_spoils_one_line_only() {
        let found: Vec<_> = statements("a {\nb\nc").map(|s| s.text).collect();
        assert_eq!(found, ["a {", "b", "c"]);
        let found: Vec<_> = statements("comment {\nb }").map(|s| s.text).collect();
        assert_eq!(found, ["comment {", "b }"]);
    }
}
