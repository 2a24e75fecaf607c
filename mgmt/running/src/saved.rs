//! What stands in a file: a heading, the commands, and a line that says that they are all there.

use std::fmt::Write;

/// How a file of ours begins.
const HEAD: &str = "# Shoal configuration, revision ";
/// How it ends.
const END: &str = "# end of revision ";

/// The text of a file for commands.
pub(crate) fn file(revision: u64, stamp: &str, commands: &str) -> String {
    let mut text = String::with_capacity(commands.len() + 128);
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{HEAD}{revision}, {stamp}");
    text.push_str(commands);
    let _ = writeln!(text, "{END}{revision}");
    text
}

/// A file as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Saved {
    /// All lines that are whole, heading included.
    pub text: String,
    /// Whether the end is missing: it is one of ours, and does not end as those do.
    pub cut: bool,
}

impl Saved {
    /// What a file says. A last line without its end is left out where the rest is missing, too: half a command may be
    /// another one.
    pub fn new(mut text: String) -> Self {
        let last = text.lines().next_back().unwrap_or_default();
        let cut = text.starts_with(HEAD) && !last.starts_with(END);
        if cut && !text.ends_with('\n') {
            let whole = text.rfind('\n').map_or(0, |at| at + 1);
            text.truncate(whole);
        }
        Saved { text, cut }
    }
}

/// The commands of a file of ours, without what stands around them.
pub fn body(text: &str) -> &str {
    let after_head =
        if text.starts_with(HEAD) { text.split_once('\n').map_or("", |(_, rest)| rest) } else { text };
    let end = after_head.trim_end_matches('\n').rfind('\n').map_or(0, |at| at + 1);
    match after_head.split_at_checked(end) {
        Some((commands, last)) if last.starts_with(END) => commands,
        _ => after_head,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_gives_back_the_commands_it_was_made_of() {
        for commands in ["", "# state\nset interface state loop0 up\n"] {
            let text = file(7, "2026-11-22T14:00:00Z", commands);
            assert_eq!(body(&text), commands);
            assert_eq!(Saved::new(text.clone()), Saved { text, cut: false });
        }
        // Somebody may have written the file.
        assert_eq!(body("comment mine\n"), "comment mine\n");
        assert!(!Saved::new("comment mine\n".into()).cut);
    }

    #[test]
    fn a_file_that_is_cut_off_says_so_and_loses_the_half_line() {
        let whole = file(7, "now", "ip route add 10.0.0.0/24 via drop\nip route add 10.1.0.0/24 via drop\n");
        for length in 0..whole.len() - 1 {
            let saved = Saved::new(whole[..length].to_owned());
            assert_eq!(saved.cut, length >= HEAD.len() && !whole[..length].contains(END), "{length}");
            if saved.cut {
                assert!(saved.text.is_empty() || saved.text.ends_with('\n'));
                assert!(whole.starts_with(&saved.text));
            }
        }
    }
}
