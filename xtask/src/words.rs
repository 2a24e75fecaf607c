//! Words that documents and comments do without, each with plain ones to write instead.

use std::path::Path;

/// A word or a phrase, in lower case, and what to write instead.
const RIDDLES: [Riddle; 21] = [
    (&["whoever"], "every user who, the program that"),
    (&["whosoever"], "every user who, the program that"),
    (&["whomever"], "every user that, the client that"),
    (&["nobody"], "no thread, no host, without a listener"),
    (&["anew"], "again; to start anew is to restart"),
    (&["lest"], "so that not"),
    (&["whence"], "the source of, from which"),
    (&["to", "whom"], "the host that gets it, the destination"),
    (&["is", "told", "of"], "knows, learns, gets an error about"),
    (&["are", "told", "of"], "know, learn, get an error about"),
    (&["gives", "his"], "keeps its, frees its"),
    (&["nothing", "is", "said"], "by default, without a setting"),
    (&["nothing", "was", "said"], "by default, without a setting"),
    (&["if", "not", "said"], "by default"),
    (&["of", "which", "nothing"], "without a setting, unknown"),
    (&["is", "said"], "is configured, is reported, is sent"),
    (&["are", "said"], "are configured, are reported, are sent"),
    (&["was", "said"], "was configured, was reported, was sent"),
    (&["were", "said"], "were configured, were reported, were sent"),
    (&["be", "said"], "be configured, be reported, be sent"),
    (&["as", "that", "does", "not", "pay"], "when that costs more than it saves"),
];

/// A phrase, and what to write instead.
type Riddle = (&'static [&'static str], &'static str);

/// Every such word of a Markdown file, outside of its code.
pub fn violations(file: &str, text: &str) -> Vec<String> {
    let text = text.to_ascii_lowercase();
    let words = prose(&text);
    let (mut found, mut rest) = (Vec::new(), words.as_slice());
    while let Some(((line, _), behind)) = rest.split_first() {
        let riddle = RIDDLES.iter().find(|(phrase, _)| begins_with(rest, phrase));
        rest = riddle.and_then(|(phrase, _)| rest.get(phrase.len()..)).unwrap_or(behind);
        found.extend(riddle.map(|(phrase, plain)| {
            format!("{file}:{line}: \"{}\" is not plain\n  hint: for example: {plain}", phrase.join(" "))
        }));
    }
    found
}

/// Every such word in the comments of a Rust file or a shell script, outside of their code.
pub fn comment_violations(file: &str, text: &str) -> Vec<String> {
    let marker =
        if Path::new(file).extension().is_some_and(|extension| extension == "rs") { "//" } else { "#" };
    violations(file, &comments(text, marker))
}

/// The comments of a file, each on its line; every other line is empty.
fn comments(text: &str, marker: &str) -> String {
    let mut comments = String::with_capacity(text.len() / 4);
    for line in text.lines() {
        // Doc comments are `///` and `//!`.
        comments.push_str(comment(line, marker).trim_start_matches(['/', '!']));
        comments.push('\n');
    }
    comments
}

/// The comment of a line: all of it, or what follows code and a space. A marker in a string begins none.
fn comment<'a>(line: &'a str, marker: &str) -> &'a str {
    let start = line.trim_start();
    if let Some(comment) = start.strip_prefix(marker) {
        return comment;
    }
    // Most lines of code end here, before a search for two characters is made ready.
    if !start.contains(['/', '#']) {
        return "";
    }
    let mut places = start.match_indices(marker).filter_map(|(at, _)| start.split_at_checked(at));
    let quotes = |code: &str| code.matches('"').count() - code.matches("\\\"").count();
    let begins = |code: &str| code.ends_with(' ') && quotes(code).is_multiple_of(2);
    let found = places.find(|(code, _)| begins(code));
    found.and_then(|(_, comment)| comment.strip_prefix(marker)).unwrap_or_default()
}

fn begins_with(words: &[(usize, &str)], phrase: &[&str]) -> bool {
    // The first words differ nearly always.
    words.first().map(|(_, word)| *word) == phrase.first().copied()
        && words.len() >= phrase.len()
        && words.iter().zip(phrase).all(|((_, word), wanted)| word == wanted)
}

/// Words outside of fenced blocks and of code in a line, with their lines. An empty one stands for code.
fn prose(text: &str) -> Vec<(usize, &str)> {
    let (mut words, mut fenced, mut code) = (Vec::new(), false, false);
    for (number, line) in (1..).zip(text.lines()) {
        let start = line.trim_start();
        let fence = start.starts_with("```");
        fenced ^= fence;
        // Code in a line may go on in the next one, but not beyond its paragraph: a backtick too many hides no more.
        code &= !fence && !start.is_empty() && !start.starts_with("- ") && !start.starts_with('|');
        if fence || fenced || start.is_empty() {
            words.push((number, ""));
            continue;
        }
        for (place, piece) in line.split('`').enumerate() {
            if place > 0 {
                code = !code;
                words.push((number, ""));
            }
            if !code {
                let pieces = piece.split(|c: char| !c.is_alphabetic()).filter(|word| !word.is_empty());
                words.extend(pieces.map(|word| (number, word)));
            }
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines and words of what is found.
    fn found(text: &str) -> Vec<String> {
        let short = |violation: &String| violation.split(" is not plain").next().unwrap().to_owned();
        violations("a.md", text).iter().map(short).collect()
    }

    #[test]
    fn words_are_found_in_any_case_and_only_whole() {
        assert_eq!(found("Whoever asks\nis NOBODY's host."), ["a.md:1: \"whoever\"", "a.md:2: \"nobody\""]);
        assert_eq!(found("| a manewver | everybody |"), Vec::<String>::new());
    }

    #[test]
    fn a_phrase_counts_once_and_may_go_on_in_the_next_line() {
        assert_eq!(found("Where nothing is\nsaid, 5."), ["a.md:1: \"nothing is said\""]);
        assert_eq!(found("5 if not said. What is said"), ["a.md:1: \"if not said\"", "a.md:1: \"is said\""]);
        assert_eq!(found("What it is\n\nSaid he"), Vec::<String>::new());
    }

    #[test]
    fn code_is_left_alone() {
        assert_eq!(found("a\n```console\nnobody\n```\n  ```\n  anew\n  ```\nanew"), ["a.md:8: \"anew\""]);
        assert_eq!(found("`nobody` and `set\nanew` is `x` said"), Vec::<String>::new());
    }

    #[test]
    fn a_backtick_too_many_hides_its_paragraph_only() {
        assert_eq!(found("a ` b\n\nnobody"), ["a.md:3: \"nobody\""]);
        assert_eq!(found("| a ` b |\n| anew |\n- a ` b\n- whoever").len(), 2);
    }

    /// Lines and words of what is found in comments.
    fn found_in_comments(file: &str, text: &str) -> Vec<String> {
        let short = |violation: &String| violation.split(" is not plain").next().unwrap().to_owned();
        comment_violations(file, text).iter().map(short).collect()
    }

    #[test]
    fn all_comments_of_rust_are_read() {
        let text =
            "//! Nobody.\n/// Starts\n/// anew.\nlet a = 1; // whoever\n    // What is\n    // said.\n";
        let expected =
            ["a.rs:1: \"nobody\"", "a.rs:3: \"anew\"", "a.rs:4: \"whoever\"", "a.rs:5: \"is said\""];
        assert_eq!(found_in_comments("a.rs", text), expected);
    }

    #[test]
    fn code_of_rust_and_in_its_comments_is_left_alone() {
        let code =
            ["let nobody = \"anew // anew\";", "/// `nobody`", "/// ```", "/// nobody(anew);", "/// ```"];
        assert_eq!(found_in_comments("a.rs", &code.join("\n")), Vec::<String>::new());
        assert_eq!(found_in_comments("a.rs", "let url = \"http://nobody\";"), Vec::<String>::new());
        assert_eq!(found_in_comments("a.rs", "// What is\nsaid();\n// said"), Vec::<String>::new());
    }

    #[test]
    fn comments_of_shell_scripts_are_read() {
        let text = "#!/bin/bash\n# nobody\necho nobody \"# anew\" # anew\necho ${#whoever}";
        assert_eq!(found_in_comments("a.sh", text), ["a.sh:2: \"nobody\"", "a.sh:3: \"anew\""]);
    }

    #[test]
    fn a_hint_names_plain_words() {
        assert!(violations("a.md", "anew").iter().all(|v| v.ends_with("restart")));
    }
}
