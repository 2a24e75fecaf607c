//! Text from outside, made harmless where it goes.

use std::fmt::Write as _;

/// As content or attribute of HTML and SVG. Characters that no document may have become U+FFFD.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\t' | '\n' | '\r' => out.push(c),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// A `data:` address of `text`: all but letters and digits as percent signs (RFC 2397, RFC 3986).
pub fn data_link(kind: &str, text: &str) -> String {
    let mut out = format!("data:{kind};charset=utf-8,");
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

/// A word as a shell takes it for one.
pub fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+%@".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_quotes_and_control_characters_are_harmless() {
        assert_eq!(escape("</script>\"'&\u{0}"), "&lt;/script&gt;&quot;&#39;&amp;\u{fffd}");
    }

    #[test]
    fn a_link_holds_any_text() {
        assert_eq!(data_link("text/csv", "a,\"ü\"\n"), "data:text/csv;charset=utf-8,a%2C%22%C3%BC%22%0A");
    }

    #[test]
    fn words_with_blanks_and_quotes_stay_one_word() {
        assert_eq!(shell_word("--size=64,1518"), "--size=64,1518");
        assert_eq!(shell_word("it's here"), r"'it'\''s here'");
        assert_eq!(shell_word(""), "''");
    }
}
