//! Line editing for terminals that let the server echo (telnet, interactive vppctl).
//!
//! Only the end of the line is edited; shoalctl is the comfortable client.

use std::collections::VecDeque;

/// What the client typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Typed {
    /// Nothing that ends or completes the line; the answer is echo.
    Nothing,
    /// A whole line.
    Line(String),
    /// Ctrl-C: give the line up.
    Cancel,
    /// Ctrl-D on an empty line.
    Leave,
    /// Tab: what could follow.
    Complete,
}

/// The line being typed, and those before it.
#[derive(Debug, Default)]
pub struct Editor {
    line: Vec<u8>,
    /// Bytes of an escape sequence; `None` outside one.
    escape: Option<u8>,
    after_return: bool,
    history: VecDeque<Vec<u8>>,
    /// How far back in the history the shown line is.
    back: usize,
}

const HISTORY: usize = 100;

impl Editor {
    /// The line so far.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.line).into_owned()
    }

    /// Its length in bytes.
    pub fn len(&self) -> usize {
        self.line.len()
    }

    /// Takes one byte; `echo` gets what the terminal should show.
    pub fn feed(&mut self, byte: u8, echo: &mut Vec<u8>) -> Typed {
        let after_return = std::mem::replace(&mut self.after_return, byte == b'\r');
        if let Some(first) = self.escape {
            self.escape_byte(first, byte, echo);
            return Typed::Nothing;
        }
        match byte {
            b'\n' | 0 if after_return => Typed::Nothing,
            b'\r' | b'\n' => {
                echo.extend(b"\r\n");
                self.enter()
            }
            b'\t' => Typed::Complete,
            3 => {
                echo.extend(b"^C\r\n");
                self.line.clear();
                Typed::Cancel
            }
            4 if self.line.is_empty() => Typed::Leave,
            8 | 127 => {
                self.backspace(echo);
                Typed::Nothing
            }
            21 => {
                self.replace(Vec::new(), echo);
                Typed::Nothing
            }
            23 => {
                let text = self.text();
                let kept = text.trim_end().rfind(' ').map_or("", |i| text.get(..=i).unwrap_or(""));
                self.replace(kept.into(), echo);
                Typed::Nothing
            }
            27 => {
                self.escape = Some(0);
                Typed::Nothing
            }
            0..32 => Typed::Nothing,
            _ => {
                self.line.push(byte);
                echo.push(byte);
                Typed::Nothing
            }
        }
    }

    fn enter(&mut self) -> Typed {
        let line = std::mem::take(&mut self.line);
        self.back = 0;
        let text = String::from_utf8_lossy(&line).into_owned();
        if !text.trim().is_empty() && self.history.front() != Some(&line) && line.len() < 4096 {
            self.history.push_front(line);
            self.history.truncate(HISTORY);
        }
        Typed::Line(text)
    }

    /// Removes the last character, all bytes of it.
    fn backspace(&mut self, echo: &mut Vec<u8>) {
        while let Some(byte) = self.line.pop() {
            if byte & 0xc0 != 0x80 {
                echo.extend(b"\x08 \x08");
                break;
            }
        }
    }

    fn escape_byte(&mut self, first: u8, byte: u8, echo: &mut Vec<u8>) {
        self.escape = match (first, byte) {
            (0, b'[' | b'O') => Some(byte),
            // Parameters of a longer sequence.
            (b'[', b'0'..=b'9' | b';') => Some(first),
            (b'[' | b'O', b'A') => self.recall(self.back + 1, echo),
            (b'[' | b'O', b'B') => self.recall(self.back.saturating_sub(1), echo),
            _ => None,
        };
    }

    /// Shows the line that was typed `back` lines ago. Always ends the escape sequence.
    fn recall(&mut self, back: usize, echo: &mut Vec<u8>) -> Option<u8> {
        let line = if back == 0 { Some(Vec::new()) } else { self.history.get(back - 1).cloned() };
        if let Some(line) = line {
            self.back = back;
            self.replace(line, echo);
        }
        None
    }

    /// Puts another text in the place of the line.
    pub fn replace(&mut self, line: Vec<u8>, echo: &mut Vec<u8>) {
        for _ in self.text().chars() {
            echo.extend(b"\x08 \x08");
        }
        echo.extend(&line);
        self.line = line;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn type_in(editor: &mut Editor, bytes: &[u8]) -> Vec<Typed> {
        let mut echo = Vec::new();
        bytes.iter().map(|b| editor.feed(*b, &mut echo)).filter(|t| *t != Typed::Nothing).collect()
    }

    #[test]
    fn keys_edit_the_end_of_the_line() {
        let mut e = Editor::default();
        assert_eq!(type_in(&mut e, b"shoe\x7fw ver\r\n"), [Typed::Line("show ver".into())]);
        assert_eq!(type_in(&mut e, b"one two\x17three\r\0"), [Typed::Line("one three".into())]);
        assert_eq!(type_in(&mut e, b"x\x15y\n"), [Typed::Line("y".into())]);
        assert_eq!(type_in(&mut e, "ü\x7f\x04".as_bytes()), [Typed::Leave]);
    }

    #[test]
    fn arrows_recall_lines() {
        let mut e = Editor::default();
        type_in(&mut e, b"one\ntwo\n");
        assert_eq!(type_in(&mut e, b"\x1b[A\x1b[A\r"), [Typed::Line("one".into())]);
        assert_eq!(type_in(&mut e, b"\x1b[A\x1b[B\x1b[3~x\r"), [Typed::Line("x".into())]);
    }
}
