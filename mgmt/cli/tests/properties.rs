//! What holds for every input.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)] // helpers of tests

use crate::sample;

use proptest::prelude::*;
use sample::{cli, control};
use shoal_cli::Cli;

const WORDS: &[&str] = &[
    "show",
    "sh",
    "set",
    "interface",
    "int",
    "ip",
    "address",
    "addr",
    "del",
    "tap0",
    "tap",
    "10.0.0.1/24",
    "all",
    "{",
    "}",
    "\"",
    "'",
    "\n",
    ",",
    "?",
    "help",
    "choices",
    "--json",
    "via",
    "drop",
    "weight",
    "route",
    "add",
    "up",
    "state",
    "trace",
    "packet-generator",
    "new",
    "5",
    "999999999999",
    "filter",
    "comment",
    "uncomment",
    "name",
    "create",
    "vxlan",
    "tunnel",
    "src",
    "dst",
    "vni",
    "fib",
    "table",
    "detail",
    "\u{1b}",
    "\u{0}",
    "ü",
    "-",
    "",
];

fn soup() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(WORDS), 0..14).prop_map(|words| words.join(" "))
}

/// All unique beginnings of each word of a path, one word at a time.
fn abbreviations(paths: &[Vec<String>], path: &[String], at: usize) -> Vec<String> {
    let siblings: Vec<&String> =
        paths.iter().filter(|p| p.len() > at && p[..at] == path[..at]).map(|p| &p[at]).collect();
    (1..=path[at].len())
        .map(|n| path[at][..n].to_owned())
        .filter(|short| siblings.iter().all(|s| **s == path[at] || !s.starts_with(short.as_str())))
        .collect()
}

fn paths(cli: &Cli) -> Vec<Vec<String>> {
    let text = cli.execute_now(&control(), "choices").text();
    text.lines().map(|l| l.split(' ').map(str::to_owned).collect()).collect()
}

#[test]
fn every_unique_abbreviation_of_every_path_resolves_to_it() {
    let (cli, control) = (cli(), control());
    let paths = paths(&cli);
    assert!(paths.len() > sample::COMMANDS.len());
    for path in paths.iter().filter(|p| p[0] != "comment") {
        for at in 0..path.len() {
            for short in abbreviations(&paths, path, at) {
                let mut line = path.clone();
                line[at] = short;
                let line = line.join(" ");
                let listed = cli.execute_now(&control, &format!("{line} choices")).text();
                assert!(listed.lines().any(|l| l == path.join(" ")), "{line}: {listed}");
            }
        }
    }
}

/// A line that is refused only because it ends too early, or not at all.
fn may_continue(cli: &Cli, line: &str) -> bool {
    let reply = cli.execute_now(&control(), line);
    reply.complaint().is_none_or(|_| {
        let json = reply.json();
        let at = json["at"][0].as_u64();
        // The position counts from the first word.
        at.is_none_or(|at| at as usize >= line.trim().len())
    })
}

#[test]
fn a_walk_through_completion_always_parses() {
    let (cli, control) = (cli(), control());
    let mut todo = vec![String::new()];
    let mut seen = 0;
    while let Some(line) = todo.pop() {
        seen += 1;
        let found = cli.complete(&control, &line, line.len());
        for candidate in found.candidates.iter().filter(|c| !c.hint) {
            let next = format!("{}{} ", &line[..found.start], candidate.text);
            if ["help", "choices", "exec", "quit"].contains(&candidate.text.as_str()) {
                continue;
            }
            assert!(may_continue(&cli, &next), "completion offers `{}' after `{line}'", candidate.text);
            if next.split(' ').count() < 6 {
                todo.push(next);
            }
        }
    }
    assert!(seen > 50, "{seen}");
}

proptest! {
    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let line = String::from_utf8_lossy(&bytes);
        let (cli, control) = (cli(), control());
        let _ = cli.execute_now(&control, &line).text();
        let _ = cli.complete(&control, &line, line.len() / 2);
        let _ = cli.check(&control, &line);
    }

    #[test]
    fn no_token_soup_panics(line in soup(), cut in 0usize..80) {
        let (cli, control) = (cli(), control());
        let reply = cli.execute_now(&control, &line);
        let _ = (reply.text(), reply.json());
        let cut = cut.min(line.len());
        let found = cli.complete(&control, &line, cut);
        prop_assert!(found.start <= cut);
        for candidate in found.candidates.iter().filter(|c| !c.hint) {
            prop_assert!(!candidate.text.is_empty());
        }
    }

    #[test]
    fn what_is_offered_after_token_soup_parses(line in soup()) {
        prop_assume!(!line.contains('\n') && !line.contains("--json") && !line.contains("comment"));
        let (cli, control) = (cli(), control());
        let found = cli.complete(&control, &line, line.len());
        for candidate in found.candidates.iter().filter(|c| !c.hint).take(5) {
            let next = format!("{}{} ", &line[..found.start], candidate.text);
            if next.contains("exec") || candidate.text == "help" { continue; }
            prop_assert!(may_continue(&cli, &next), "`{}' after `{line}'", candidate.text);
        }
    }
}

#[test]
fn a_line_of_very_many_words_ends_soon() {
    let (cli, control) = (cli(), control());
    let line = format!("show interface {}x", "tap0 ".repeat(150_000));
    let start = std::time::Instant::now();
    assert!(!cli.execute_now(&control, &line).is_ok());
    assert!(start.elapsed().as_secs() < 20);
    let deep = format!("packet-generator new {}", "{".repeat(500_000));
    let _ = cli.execute_now(&control, &deep).text();
}
