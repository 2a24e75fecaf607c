//! Templates of a [`LineKind`](shoal_module::LineKind), filled with a line's arguments.

use shoal_module::cli::{Args, Item};
use shoal_module::word;

/// All values of an argument of this name, or the word itself where a word of this name was given; empty if neither was.
pub(crate) fn value(args: &Args, name: &str) -> String {
    let of = |item: &&Item| !item.word && item.name == name;
    let values: Vec<&str> = args.items().iter().filter(of).map(|item| args.text_of(item)).collect();
    if values.is_empty() && args.has(name) { name.to_owned() } else { values.join(" ") }
}

/// Fills a template; `made` is what `<made>` stands for.
pub(crate) fn fill(template: &str, args: &Args, made: &str) -> String {
    if let Some(behind) = template.strip_prefix("...") {
        return format!("{}{behind}", args.line());
    }
    if let Some((from, to)) = template.split_once(" -> ") {
        let mut words: Vec<&str> = args.line().split(' ').collect();
        if let Some(word) = words.iter_mut().find(|word| **word == from) {
            *word = to;
        }
        return words.join(" ");
    }
    let text = filled(template, args, made);
    text.split(' ').filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// The same without looking at blanks; a group in brackets may have another text behind a bar, and groups in it.
fn filled(template: &str, args: &Args, made: &str) -> String {
    let mut text = String::new();
    let mut rest = template;
    while let Some(at) = rest.find(['<', '[']) {
        let (before, from) = rest.split_at(at);
        text.push_str(before);
        let is_group = from.starts_with('[');
        let end = if is_group { place_of(']', 1, from) } else { from.find('>') };
        let Some(end) = end else { break };
        let (inside, behind) =
            (from.get(1..end).unwrap_or_default(), from.get(end + 1..).unwrap_or_default());
        if is_group {
            text.push_str(&group(inside, args, made));
        } else {
            text.push_str(&argument(inside, args, made));
        }
        rest = behind;
    }
    text.push_str(rest);
    text
}

/// Each character of a template with its place, and in how many groups it stands: a bracket stands in its own.
fn in_groups(template: &str) -> impl Iterator<Item = (usize, char, usize)> {
    let mut open: usize = 0;
    template.char_indices().map(move |(at, c)| {
        open += usize::from(c == '[');
        let groups = open;
        open = open.saturating_sub(usize::from(c == ']'));
        (at, c, groups)
    })
}

/// Where a character stands that is in so many groups.
fn place_of(wanted: char, groups: usize, template: &str) -> Option<usize> {
    in_groups(template).find(|(_, c, of)| (*c, *of) == (wanted, groups)).map(|(at, ..)| at)
}

/// What stands in brackets: for a line that has what it names, `|` and a text for any other, or `!` and a word that stands
/// where the line has it not.
fn group(inside: &str, args: &Args, made: &str) -> String {
    if let Some(word) = inside.strip_prefix('!') {
        return if args.has(word) { String::new() } else { word.to_owned() };
    }
    let parts = place_of('|', 0, inside).and_then(|at| Some((inside.get(..at)?, inside.get(at + 1..)?)));
    let (group, other) = parts.unwrap_or((inside, ""));
    if is_given(group, args) { filled(group, args, made) } else { other.to_owned() }
}

fn argument(name: &str, args: &Args, made: &str) -> String {
    if name == "made" {
        return word(made).into_owned();
    }
    // What took the rest of the line stands as it is.
    let is_rest = |item: &Item| item.name == name && item.span.end == args.line().len() && !item.word;
    let last = args.items().last().filter(|item| is_rest(item));
    if let Some(item) = last
        && args.text_of(item).contains(' ')
    {
        return args.text_of(item).to_owned();
    }
    let of = |item: &&Item| item.name == name && !item.word;
    let values = args.items().iter().filter(of).map(|item| word(args.text_of(item)));
    values.collect::<Vec<_>>().join(" ")
}

/// Whether a line has all arguments that a group names, or all words of one that names none. Groups in it may be left out.
fn is_given(group: &str, args: &Args) -> bool {
    let group: String = in_groups(group).filter(|(.., groups)| *groups == 0).map(|(_, c, _)| c).collect();
    let mut names = group.split('<').skip(1).filter_map(|part| part.split('>').next()).peekable();
    if names.peek().is_some() {
        let is_there = |name: &str| args.items().iter().any(|item| item.name == name && !item.word);
        return names.all(is_there);
    }
    group.split_whitespace().all(|word| args.has(word))
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use shoal_module::Control;

    use super::*;

    fn args(line: &str) -> Args {
        // add 7 table 9 in
        Args::new(Rc::new(Control::new()), line)
            .with("n", "7", 0..0)
            .with("table", "my table", 0..0)
            .with_word("in", 0..0)
    }

    #[test]
    fn arguments_take_their_places_and_groups_stand_for_what_was_given() {
        let args = args("x add 7 in");
        for (template, text) in [
            ("del <n> [table <table>]", "del 7 table \"my table\""),
            ("del <n> [vrf <vrf>] end", "del 7 end"),
            ("del [in] [out] <n>", "del in 7"),
            ("make memif[<socket>|0]/<n>", "make memif0/7"),
            ("make [in|x]<n>", "make in7"),
            ("make [n <n> [in] [out|x]] end", "make n 7 in x end"),
            ("make [n <n> [table <table>|none]|no [in]]", "make n 7 table \"my table\""),
            ("make [vrf <vrf> [in]|no [in]] end", "make no [in] end"),
            ("set <n> [!in]", "set 7"),
            ("set <n> [!out]", "set 7 out"),
            ("delete <made>", "delete loop0"),
            ("... del", "x add 7 in del"),
            ("add -> del", "x del 7 in"),
        ] {
            assert_eq!(fill(template, &args, "loop0"), text, "{template}");
        }
        assert_eq!(
            (value(&args, "n"), value(&args, "in"), value(&args, "out")),
            ("7".into(), "in".into(), String::new())
        );
    }

    #[test]
    fn a_rest_stands_as_it_is() {
        let line = "l3xc via 10.0.0.1 loop0";
        let item =
            Item { name: "paths", text: shoal_module::cli::Text::InLine, span: 5..line.len(), word: false };
        let args = Args::new(Rc::new(Control::new()), line).with_items(vec![item]);
        assert_eq!(fill("del <paths>", &args, ""), "del via 10.0.0.1 loop0");
    }
}
