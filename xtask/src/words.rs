//! Words that documents do without, each with plain ones to write instead.

/// A word or a phrase, in lower case, and what to write instead.
const RIDDLES: [(&[&str], &str); 6] = [
    (&["whoever"], "every user who, the program that"),
    (&["nobody"], "no thread, no host, without a listener"),
    (&["anew"], "again; to start anew is to restart"),
    (&["nothing", "is", "said"], "by default, without a setting"),
    (&["if", "not", "said"], "by default"),
    (&["is", "said"], "is configured, is reported, is sent"),
];

/// Every such word of a Markdown file, outside of its code.
pub fn violations(file: &str, text: &str) -> Vec<String> {
    let words = prose(text);
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

fn begins_with(words: &[(usize, String)], phrase: &[&str]) -> bool {
    words.len() >= phrase.len() && words.iter().zip(phrase).all(|((_, word), wanted)| word == wanted)
}

/// Words outside of fenced blocks and of code in a line, in lower case, with their lines. An empty one stands for code.
fn prose(text: &str) -> Vec<(usize, String)> {
    let (mut words, mut fenced, mut code) = (Vec::new(), false, false);
    for (number, line) in (1..).zip(text.lines()) {
        let start = line.trim_start();
        let fence = start.starts_with("```");
        fenced ^= fence;
        // Code in a line may go on in the next one, but not beyond its paragraph: a backtick too many hides no more.
        code &= !fence && !start.is_empty() && !start.starts_with("- ") && !start.starts_with('|');
        if fence || fenced || start.is_empty() {
            words.push((number, String::new()));
            continue;
        }
        for (place, piece) in line.split('`').enumerate() {
            if place > 0 {
                code = !code;
                words.push((number, String::new()));
            }
            if !code {
                let pieces = piece.split(|c: char| !c.is_alphabetic()).filter(|word| !word.is_empty());
                words.extend(pieces.map(|word| (number, word.to_lowercase())));
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

    #[test]
    fn a_hint_names_plain_words() {
        assert!(violations("a.md", "anew").iter().all(|v| v.ends_with("restart")));
    }
}
