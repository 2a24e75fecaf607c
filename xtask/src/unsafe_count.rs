//! `unsafe`: unsafe code stays on its islands, and UNSAFE.md counts it.
//!
//! The source is scanned as text with comments, strings and character literals taken out; no parser is needed
//! to find a keyword.

use crate::{Outcome, Result, files};
use std::collections::BTreeMap;
use std::fmt::Write;

const FILE: &str = "UNSAFE.md";
const BEGIN: &str = "<!-- begin: counted by `cargo xtask unsafe --write` -->";
const END: &str = "<!-- end -->";

/// Where unsafe code may be. Each has a heading in UNSAFE.md with its invariant and its tests.
const ISLANDS: &[&str] = &[
    "core/infra/src/raw",
    "core/buffer",
    "core/graph/src/raw",
    "drivers/*/src/sys",
    "core/testkit/src/alloc",
    "plugin/abi",
    "plugin/sdk",
    "plugin/host/src/sys",
    "plugin/dpdk/src/sys",
    "lab",
];

/// Unsafe code of one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Count {
    blocks: usize,
    impls: usize,
    /// Functions, traits, foreign blocks and attributes: what asks others to prove something.
    declarations: usize,
}

/// The island of a file. A prefix names a folder, a file, or files that begin so (`sys.rs`, `sys_ring.rs`).
fn island(file: &str) -> Option<&'static str> {
    ISLANDS.iter().copied().find(|island| match island.split_once("/*/") {
        None => match file.strip_prefix(island) {
            Some(rest) => rest.starts_with(['/', '.', '_']),
            None => false,
        },
        Some((top, below)) => file
            .strip_prefix(top)
            .and_then(|f| f.strip_prefix('/'))
            .and_then(|f| f.split_once('/'))
            .and_then(|(_, rest)| rest.strip_prefix(below))
            .is_some_and(|rest| rest.starts_with(['/', '.', '_'])),
    })
}

/// Whether a crate's folder is one that has an island, or is one.
fn may_have_island(folder: &str) -> bool {
    ISLANDS.iter().any(|place| match place.split_once("/*/") {
        Some((top, _)) => folder.rsplit_once('/').is_some_and(|(above, _)| above == top),
        None => {
            format!("{place}/").starts_with(&format!("{folder}/")) || folder.starts_with(&format!("{place}/"))
        }
    })
}

/// Counts every Rust file, compares with UNSAFE.md or writes it.
pub fn check(write: bool) -> Result<Outcome> {
    let mut violations = Vec::new();
    let mut counts = BTreeMap::new();
    let all = files::all()?;
    for file in all.iter().filter(|f| files::is_rust(f)) {
        let Some(text) = files::read(file) else { continue };
        let found = count(&code(&text));
        if found != Count::default() {
            if island(file).is_none() {
                violations.push(format!("{file}: unsafe code outside the islands\n  hint: move it behind a safe API of an island; a new island is a written decision"));
            }
            counts.insert(file.clone(), found);
        }
        let folder = file.strip_suffix("/src/lib.rs").or_else(|| file.strip_suffix("/src/main.rs"));
        if folder.is_some_and(|f| !may_have_island(f)) && !text.contains("#![forbid(unsafe_code)]") {
            violations
                .push(format!("{file}: does not forbid unsafe code\n  hint: add #![forbid(unsafe_code)]"));
        }
    }
    let document = files::read(FILE).ok_or("UNSAFE.md is missing")?;
    for used in ISLANDS.iter().filter(|i| counts.keys().any(|f| island(f) == Some(i))) {
        if !document.contains(&format!("### `{used}`")) {
            violations.push(format!(
                "{FILE}: no heading for the island {used}\n  hint: write its invariant and how it is tested"
            ));
        }
    }
    let table = table(&counts);
    let (head, rest) = document.split_once(BEGIN).ok_or("UNSAFE.md has lost its first marker")?;
    let (old, tail) = rest.split_once(END).ok_or("UNSAFE.md has lost its second marker")?;
    if write {
        std::fs::write(files::root().join(FILE), format!("{head}{BEGIN}\n{table}{END}{tail}"))?;
    } else if old.trim() != table.trim() {
        violations.push(format!("{FILE}: the table is out of date{}\n  hint: cargo xtask unsafe --write, and read the new code once more", changes(old, &table)));
    }
    let total: usize = counts.values().map(|c| c.blocks + c.impls + c.declarations).sum();
    Ok(Outcome { violations, summary: format!("{total} places in {} files, all on islands", counts.len()) })
}

fn table(counts: &BTreeMap<String, Count>) -> String {
    let mut table = String::from("| file | blocks | impls | declarations |\n|---|---:|---:|---:|\n");
    let mut sum = Count::default();
    for (file, c) in counts {
        let _ = writeln!(table, "| {file} | {} | {} | {} |", c.blocks, c.impls, c.declarations);
        sum.blocks += c.blocks;
        sum.impls += c.impls;
        sum.declarations += c.declarations;
    }
    let _ = writeln!(table, "| all | {} | {} | {} |", sum.blocks, sum.impls, sum.declarations);
    table
}

/// Lines that differ, for the message.
fn changes(old: &str, new: &str) -> String {
    let mut text = String::new();
    for (sign, lines, others) in [('-', old, new), ('+', new, old)] {
        for line in lines.trim().lines().filter(|l| others.lines().all(|o| o != *l)) {
            let _ = write!(text, "\n  {sign} {line}");
        }
    }
    text
}

fn count(code: &str) -> Count {
    let mut count = Count::default();
    let words = |c: char| c.is_alphanumeric() || c == '_';
    for (at, word) in code.match_indices("unsafe") {
        let before = code.get(..at).and_then(|c| c.chars().next_back());
        let after = code.get(at + word.len()..).unwrap_or_default();
        if before.is_some_and(words) || after.starts_with(words) {
            continue;
        }
        let after = after.trim_start();
        if after.starts_with('{') {
            count.blocks += 1;
        } else if after.starts_with("impl") {
            count.impls += 1;
        } else {
            count.declarations += 1;
        }
    }
    count
}

/// The source without comments and with empty literals.
fn code(source: &str) -> String {
    let chars: Vec<char> = source.chars().collect();
    let at = |i: usize| chars.get(i).copied().unwrap_or('\0');
    let (mut out, mut i) = (String::with_capacity(source.len()), 0);
    while i < chars.len() {
        let c = at(i);
        let in_word = i > 0 && (at(i - 1).is_alphanumeric() || at(i - 1) == '_');
        match (c, at(i + 1)) {
            ('/', '/') => {
                while i < chars.len() && at(i) != '\n' {
                    i += 1;
                }
            }
            ('/', '*') => {
                let mut depth = 0;
                while i < chars.len() {
                    match (at(i), at(i + 1)) {
                        ('/', '*') => (depth, i) = (depth + 1, i + 2),
                        ('*', '/') => (depth, i) = (depth - 1, i + 2),
                        _ => i += 1,
                    }
                    if depth == 0 {
                        break;
                    }
                }
                out.push(' ');
            }
            ('r', '"' | '#') | ('b' | 'c', 'r') if !in_word && raw_string(&chars, i).is_some() => {
                i = raw_string(&chars, i).unwrap_or(i + 1);
                out.push_str("\"\"");
            }
            ('"', _) => {
                i = literal_end(&chars, i, '"');
                out.push_str("\"\"");
            }
            // A character literal, not a lifetime: it closes after one character or an escape.
            ('\'', next) if next == '\\' || at(i + 2) == '\'' => {
                i = literal_end(&chars, i, '\'');
                out.push(' ');
            }
            _ => {
                out.push(c);
                i += 1;
            }
        }
    }
    out
}

/// The place after a literal that opens at `i`.
fn literal_end(chars: &[char], i: usize, quote: char) -> usize {
    let mut i = i + 1;
    while let Some(&c) = chars.get(i) {
        i += if c == '\\' { 2 } else { 1 };
        if c == quote {
            break;
        }
    }
    i
}

/// The place after a raw string that opens at `i`; None if none does.
fn raw_string(chars: &[char], i: usize) -> Option<usize> {
    let mut at = i + usize::from(chars.get(i) != Some(&'r'));
    if chars.get(at) != Some(&'r') {
        return None;
    }
    at += 1;
    let hashes = chars.get(at..)?.iter().take_while(|&&c| c == '#').count();
    at += hashes;
    if chars.get(at) != Some(&'"') {
        return None;
    }
    at += 1;
    while at < chars.len() {
        if chars.get(at) == Some(&'"')
            && chars.get(at + 1..).is_some_and(|r| r.iter().take_while(|&&c| c == '#').count() >= hashes)
        {
            return Some(at + 1 + hashes);
        }
        at += 1;
    }
    Some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_strings_and_other_words_do_not_count() {
        let source = r##"
            //! unsafe { }
            /* unsafe /* unsafe */ unsafe */
            #![forbid(unsafe_code)]
            const A: &str = "unsafe { \" unsafe"; const B: &str = r#"unsafe " unsafe"#; const C: &[u8] = br"unsafe \";
            fn f<'a>(x: &'a str) -> char { let unsafe_ = '"'; '\'' } // unsafe
        "##;
        assert_eq!(count(&code(source)), Count::default());
    }

    #[test]
    fn every_form_counts_once() {
        let source = "unsafe impl Send for X {} unsafe fn f() { unsafe { g() } } let x = unsafe\n{ 1 };
            #[unsafe(no_mangle)] unsafe extern \"C\" { } fn h<'a>(c: char) { c == 'x'; unsafe{} }";
        assert_eq!(count(&code(source)), Count { blocks: 3, impls: 1, declarations: 3 });
    }

    #[test]
    fn islands_are_folders_files_or_families_of_files() {
        for file in [
            "core/buffer/src/pool.rs",
            "core/infra/src/raw/ring.rs",
            "core/infra/src/raw.rs",
            "drivers/tap/src/sys.rs",
            "drivers/tap/src/sys/ioctl.rs",
            "drivers/tap/src/sys_ring.rs",
            "core/testkit/src/alloc.rs",
            "lab/graph/src/main.rs",
        ] {
            assert!(island(file).is_some(), "{file}");
        }
        for file in [
            "core/buffer2/src/lib.rs",
            "core/infra/src/rawest.rs",
            "drivers/tap/src/rx.rs",
            "drivers/tap/src/system.rs",
            "net/ip4/src/sys.rs",
            "labour/x.rs",
        ] {
            assert!(island(file).is_none(), "{file}");
        }
    }

    #[test]
    fn only_crates_with_an_island_need_not_forbid_unsafe() {
        assert!(
            ["core/infra", "core/buffer", "drivers/tap", "lab/graph", "core/testkit"]
                .into_iter()
                .all(may_have_island)
        );
        assert!(
            ["core/module", "core/wire", "net/ip4", "mgmt/cli", "bin/shoal", "xtask"]
                .into_iter()
                .all(|f| !may_have_island(f))
        );
    }

    #[test]
    fn the_message_shows_the_lines_that_changed() {
        assert_eq!(changes("a\nb\n", "a\nc\n"), "\n  - b\n  + c");
    }
}
