//! What stands in a file: a heading, the commands, and a line that says that they are all there.

use std::fmt::{self, Write};

/// How a file of ours begins.
const HEAD: &str = "# Shoal configuration, revision ";
/// How it ends.
const END: &str = "# end of revision ";

/// Where a configuration comes from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Origin {
    /// Who saved it; empty if that is not known.
    pub user: String,
    /// Lines that it has and the one before had not.
    pub added: usize,
    /// Lines that the one before had.
    pub removed: usize,
    /// The user's comment.
    pub comment: String,
}

impl Origin {
    /// What the first line of a file says behind the time.
    fn read(text: &str) -> Option<Origin> {
        let (user, rest) = text.strip_prefix(", by ")?.split_once(", +")?;
        let (size, comment) = rest.split_once(": ").unwrap_or((rest, ""));
        let (added, removed) = size.split_once(" -")?;
        Some(Origin {
            user: user.to_owned(),
            added: added.parse().ok()?,
            removed: removed.parse().ok()?,
            comment: comment.to_owned(),
        })
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.user.is_empty() {
            return Ok(());
        }
        // It stands in one line.
        let plain = |text: &str| text.replace(|c: char| c.is_control(), " ");
        write!(f, ", by {}, +{} -{}", plain(&self.user).replace(", +", " "), self.added, self.removed)?;
        if self.comment.is_empty() { Ok(()) } else { write!(f, ": {}", plain(&self.comment)) }
    }
}

/// What the first line of a file of ours says of where it comes from; nothing if it says nothing.
pub(crate) fn origin(head: &str) -> Origin {
    let rest = head.strip_prefix(HEAD).and_then(|rest| rest.split_once(", ")).map_or("", |(_, rest)| rest);
    // Behind the time.
    let at = rest.find(", by ").unwrap_or(rest.len());
    Origin::read(rest.get(at..).unwrap_or_default().trim_end()).unwrap_or_default()
}

/// The text of a file for commands.
pub(crate) fn file(revision: u64, stamp: &str, origin: &Origin, commands: &str) -> String {
    let mut text = String::with_capacity(commands.len() + 256);
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{HEAD}{revision}, {stamp}{origin}");
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
            let text = file(7, "2026-11-22T14:00:00Z", &Origin::default(), commands);
            assert_eq!(body(&text), commands);
            assert_eq!(Saved::new(text.clone()), Saved { text, cut: false });
        }
        // Somebody may have written the file.
        assert_eq!(body("comment mine\n"), "comment mine\n");
        assert!(!Saved::new("comment mine\n".into()).cut);
    }

    #[test]
    fn a_file_says_where_it_comes_from() {
        let of = Origin {
            user: "anna".into(),
            added: 3,
            removed: 1,
            comment: "uplink: 9000, +1 -1\nof the second port".into(),
        };
        let text = file(7, "2026-11-22T14:00:00Z", &of, "");
        let read = origin(text.lines().next().unwrap());
        assert_eq!(read, Origin { comment: of.comment.replace('\n', " "), ..of });
        assert_eq!(origin("# Shoal configuration, revision 7, 2026-11-22T14:00:00Z"), Origin::default());
        assert_eq!(origin("comment mine"), Origin::default());
    }

    #[test]
    fn a_file_that_is_cut_off_says_so_and_loses_the_half_line() {
        let whole = file(
            7,
            "now",
            &Origin::default(),
            "ip route add 10.0.0.0/24 via drop\nip route add 10.1.0.0/24 via drop\n",
        );
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
