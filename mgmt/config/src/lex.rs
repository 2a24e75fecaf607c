//! Text to tokens: VPP's start-up syntax.
//!
//! Words are separated by white space; a brace is a token of its own wherever it stands. `#` at the start of a
//! word opens a comment to the end of the line, in files only: on the command line it is a letter like any
//! other. Double quotes hold blanks and braces together; `\"` and `\\` are the escapes inside them.

use crate::report::Problem;
use shoal_module::config::At;

/// A text to read: a file, or the words of the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// What messages call it.
    pub name: String,
    /// The text as it came.
    pub text: Vec<u8>,
    /// Whether `#` opens a comment.
    pub comments: bool,
}

impl Source {
    /// The text of a start-up file.
    pub fn file(name: impl Into<String>, text: impl Into<Vec<u8>>) -> Self {
        Self { name: name.into(), text: text.into(), comments: true }
    }

    /// Words of the command line, joined by blanks as VPP does; empty words and inner blanks are fine.
    pub fn words<W: AsRef<[u8]>>(words: impl IntoIterator<Item = W>) -> Self {
        let mut text = Vec::new();
        for (i, word) in words.into_iter().enumerate() {
            if i > 0 {
                text.push(b' ');
            }
            text.extend_from_slice(word.as_ref());
        }
        Self { name: "command line".into(), text, comments: false }
    }
}

/// A token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Token {
    /// A word.
    Word(Word),
    /// `{`
    Open(At),
    /// `}`
    Close(At),
}

/// A word and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// The text, without quotes and escapes.
    pub text: String,
    /// Whether it stood in quotes: then it is a value, never a key.
    pub quoted: bool,
    /// Where.
    pub at: At,
}

/// Splits a source into tokens. `index` is the source's number in every [`At`].
pub fn lex(source: &Source, index: usize) -> (Vec<Token>, Vec<Problem>) {
    let mut problems = Vec::new();
    let text = match std::str::from_utf8(&source.text) {
        Ok(text) => text,
        Err(bad) => {
            let good = source.text.get(..bad.valid_up_to()).unwrap_or_default();
            let good = String::from_utf8_lossy(good);
            let line = good.matches('\n').count() + 1;
            let column = good.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
            let at = At { source: index, line, column, width: 1 };
            problems.push(Problem::new(at, "this byte is not UTF-8 text".into()));
            return (Vec::new(), problems);
        }
    };
    let mut lexer =
        Lexer { chars: text.chars().peekable(), source: index, line: 1, column: 1, tokens: Vec::new() };
    while let Some(&c) = lexer.chars.peek() {
        match c {
            '{' | '}' => {
                let at = At { width: 1, ..lexer.here() };
                lexer.next();
                lexer.tokens.push(if c == '{' { Token::Open(at) } else { Token::Close(at) });
            }
            '#' if source.comments => while lexer.next().is_some_and(|c| c != '\n') {},
            '"' => {
                if let Err(problem) = lexer.quoted() {
                    problems.push(problem);
                }
            }
            c if c.is_whitespace() => {
                lexer.next();
            }
            _ => lexer.word(),
        }
    }
    (lexer.tokens, problems)
}

struct Lexer<'a> {
    chars: std::iter::Peekable<std::str::Chars<'a>>,
    source: usize,
    line: usize,
    column: usize,
    tokens: Vec<Token>,
}

impl Lexer<'_> {
    fn here(&self) -> At {
        At { source: self.source, line: self.line, column: self.column, width: 0 }
    }

    fn next(&mut self) -> Option<char> {
        let c = self.chars.next()?;
        if c == '\n' {
            self.line += 1;
            self.column = 1;
        } else {
            self.column += 1;
        }
        Some(c)
    }

    fn push(&mut self, text: String, quoted: bool, start: At) {
        let at = At { width: self.column - start.column, ..start };
        self.tokens.push(Token::Word(Word { text, quoted, at }));
    }

    fn word(&mut self) {
        let (start, mut text) = (self.here(), String::new());
        while let Some(&c) = self.chars.peek() {
            if c.is_whitespace() || c == '{' || c == '}' {
                break;
            }
            text.push(c);
            self.next();
        }
        self.push(text, false, start);
    }

    fn quoted(&mut self) -> Result<(), Problem> {
        let (start, mut text) = (self.here(), String::new());
        self.next();
        loop {
            match self.chars.peek() {
                None | Some('\n') => {
                    let at = At { width: 1, ..start };
                    return Err(Problem::new(at, "this quote is not closed on its line".into()));
                }
                Some('"') => {
                    self.next();
                    self.push(text, true, start);
                    return Ok(());
                }
                Some('\\') => {
                    self.next();
                    match self.chars.peek() {
                        Some(&c @ ('"' | '\\')) => {
                            text.push(c);
                            self.next();
                        }
                        _ => text.push('\\'),
                    }
                }
                Some(&c) => {
                    text.push(c);
                    self.next();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(source: &Source) -> Vec<String> {
        let (tokens, problems) = lex(source, 0);
        assert_eq!(problems, []);
        let show = |t| match t {
            Token::Word(w) => format!("{}@{}:{}+{}", w.text, w.at.line, w.at.column, w.at.width),
            Token::Open(at) => format!("{{@{}:{}", at.line, at.column),
            Token::Close(at) => format!("}}@{}:{}", at.line, at.column),
        };
        tokens.into_iter().map(show).collect()
    }

    #[test]
    fn braces_need_no_white_space() {
        let source = Source::file("f", "plugin a.so{enable}\n}");
        assert_eq!(
            show(&source),
            ["plugin@1:1+6", "a.so@1:8+4", "{@1:12", "enable@1:13+6", "}@1:19", "}@2:1"]
        );
    }

    #[test]
    fn comments_reach_to_the_end_of_the_line_and_start_only_at_a_word() {
        assert_eq!(show(&Source::file("f", "a # b {\nc#d }# e")), ["a@1:1+1", "c#d@2:1+3", "}@2:5"]);
    }

    #[test]
    fn the_command_line_has_no_comments_and_may_have_odd_words() {
        let source = Source::words(["unix {", "", "cli-listen ", "/a", " ", "#x", "}"]);
        assert_eq!(
            show(&source),
            ["unix@1:1+4", "{@1:6", "cli-listen@1:9+10", "/a@1:21+2", "#x@1:26+2", "}@1:29"]
        );
    }

    #[test]
    fn quotes_hold_blanks_and_braces_together() {
        assert_eq!(
            show(&Source::file("f", r#"p "a {b\" \\ \n" c"#)),
            ["p@1:1+1", r#"a {b" \ \n@1:3+14"#, "c@1:18+1"]
        );
    }
}
