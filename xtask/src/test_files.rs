//! Part of `layers`: every file of tests is part of a program that runs.
//!
//! A crate with several files of tests has one program of them, `tests/all.rs`, and says `autotests = false`. Then cargo
//! no longer looks for files, and one that nothing names would never run. In the same way a library that says `test = false`
//! or `doctest = false`, so that nothing is built for it, must have no tests in its sources or documents.

use crate::{Outcome, Result, files};
use std::collections::{BTreeMap, BTreeSet};

/// Where the modules of the one program stand.
const ALL: &str = "all";

/// Checks every crate that git knows.
pub fn check() -> Result<Outcome> {
    let mut crates: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for file in files::all()? {
        if let Some((folder, name)) = test_file(&file) {
            crates.entry(folder.to_owned()).or_default().insert(name.to_owned());
        }
    }
    let (mut violations, mut programs, mut found) = (Vec::new(), 0, 0);
    for file in files::all()? {
        let Some((folder, _)) = file.split_once("/src/") else { continue };
        let Some(manifest) =
            files::is_rust(&file).then(|| files::read(&format!("{folder}/Cargo.toml"))).flatten()
        else {
            continue;
        };
        violations.extend(unbuilt(&file, &manifest, &files::read(&file).unwrap_or_default()));
    }
    for (folder, names) in &crates {
        let manifest = files::read(&format!("{folder}/Cargo.toml")).unwrap_or_default();
        let all = files::read(&format!("{folder}/tests/{ALL}.rs")).unwrap_or_default();
        let judged = judge(folder, names, &manifest, &all);
        violations.extend(judged.violations);
        programs += judged.programs;
        found += names.len();
    }
    Ok(Outcome { violations, summary: format!("{found} files of tests in {programs} programs") })
}

/// The crate's folder and the file's name without `.rs`, of a file directly in a folder `tests`.
fn test_file(file: &str) -> Option<(&str, &str)> {
    let (folder, name) = file.rsplit_once('/')?;
    let folder = folder.strip_suffix("/tests")?;
    Some((folder, name.strip_suffix(".rs")?))
}

/// Tests in a source file that its manifest says are not there.
fn unbuilt(file: &str, manifest: &str, source: &str) -> Vec<String> {
    let library = manifest.split("\n[").find(|section| section.starts_with("lib]")).unwrap_or_default();
    let says = |what: &str| library.lines().any(|line| line == what);
    let mut violations = Vec::new();
    if says("test = false") && source.lines().any(|line| line.trim().starts_with("#[test]")) {
        violations.push(format!(
            "{file}: has tests, but its library says `test = false`\n  hint: take that out of Cargo.toml"
        ));
    }
    if says("doctest = false") && has_doctest(source) {
        violations.push(format!(
            "{file}: has an example in its documents, but its library says `doctest = false`\n  hint: take that out of \
             Cargo.toml"
        ));
    }
    violations
}

/// Whether a block in comments for rustdoc is Rust.
fn has_doctest(source: &str) -> bool {
    let mut inside = false;
    source.lines().map(str::trim).any(|line| {
        let Some(text) = line.strip_prefix("///").or_else(|| line.strip_prefix("//!")) else {
            return line.starts_with("#[doc = include_str!");
        };
        let Some(language) = text.trim().strip_prefix("```") else { return false };
        inside = !inside;
        inside && !matches!(language, "text" | "console" | "sh" | "c" | "toml" | "json")
    })
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Judged {
    violations: Vec<String>,
    programs: usize,
}

fn judge(folder: &str, names: &BTreeSet<String>, manifest: &str, all: &str) -> Judged {
    let lines = |text: &str| -> Vec<String> { text.lines().map(|l| l.trim().to_owned()).collect() };
    let manifest = lines(manifest);
    if !manifest.iter().any(|line| line == "autotests = false") {
        let mut violations = Vec::new();
        if names.contains(ALL) {
            violations.push(format!(
                "{folder}: tests/{ALL}.rs, but no `autotests = false`: its tests run twice\n  hint: say so in {folder}/Cargo.toml"
            ));
        }
        return Judged { violations, programs: names.len() };
    }
    let own: BTreeSet<&str> = manifest
        .iter()
        .zip(manifest.iter().skip(1))
        .filter(|(section, _)| *section == "[[test]]")
        .filter_map(|(_, name)| name.strip_prefix("name = \"")?.strip_suffix('"'))
        .collect();
    let modules: BTreeSet<String> = lines(all)
        .iter()
        .filter_map(|line| Some(line.strip_prefix("mod ")?.strip_suffix(';')?.to_owned()))
        .collect();
    let violations = names
        .iter()
        .filter_map(|name| match (own.contains(name.as_str()), modules.contains(name)) {
            (false, false) => Some(format!(
                "{folder}/tests/{name}.rs: no program has it, so it never runs\n  hint: `mod {name};` in \
                 {folder}/tests/{ALL}.rs, or a `[[test]]` of its own if it looks at the whole process"
            )),
            (true, true) => Some(format!(
                "{folder}/tests/{name}.rs: it runs twice\n  hint: either `mod {name};` or a `[[test]]`, not both"
            )),
            _ => None,
        })
        .collect();
    Judged { violations, programs: own.len() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|&n| n.to_owned()).collect()
    }

    const MANIFEST: &str = "[package]\nname = \"x\"\nautotests = false\n\n[[test]]\nname = \"all\"\n\n[[test]]\nname = \"memory\"\n";

    #[test]
    fn files_in_the_one_program_or_in_their_own_pass() {
        let judged =
            judge("net/x", &names(&["all", "api", "memory"]), MANIFEST, "//! x\n\nmod api;\nmod support;\n");
        assert_eq!(judged, Judged { violations: vec![], programs: 2 });
        let judged = judge("net/x", &names(&["api", "cli"]), "[package]\n", "");
        assert_eq!(judged, Judged { violations: vec![], programs: 2 });
    }

    #[test]
    fn a_file_that_nothing_names_or_that_runs_twice_is_named() {
        let found = judge("net/x", &names(&["all", "api", "memory"]), MANIFEST, "mod memory;\n").violations;
        assert_eq!(found.len(), 2);
        assert!(found[0].starts_with("net/x/tests/api.rs: no program has it"), "{found:?}");
        assert!(found[1].starts_with("net/x/tests/memory.rs: it runs twice"), "{found:?}");
        let found = judge("net/x", &names(&["all", "api"]), "[package]\n", "mod api;\n").violations;
        assert!(found[0].contains("its tests run twice"), "{found:?}");
        // A module in a comment is none.
        let found = judge("net/x", &names(&["all", "api"]), MANIFEST, "// mod api;\n").violations;
        assert_eq!(found.len(), 1);
    }

    #[test]
    fn a_library_that_says_it_has_no_tests_has_none() {
        let manifest = "[package]\nname = \"x\"\n\n[lib]\ntest = false\ndoctest = false\n\n[dependencies]\n";
        for (source, count) in [
            ("fn a() {}\n/// ```text\n/// a\n/// ```\nfn b() {}\n", 0),
            ("mod tests {\n    #[test]\n    fn a() {}\n}\n", 1),
            ("//! ```\n//! a();\n//! ```\n", 1),
            ("/// ```text\n/// ```\n/// ```no_run\n", 1),
            ("#[doc = include_str!(\"../README.md\")]\nstruct X;\n", 1),
            ("// #[test] is not here, and ``` not for rustdoc\n", 0),
        ] {
            assert_eq!(unbuilt("net/x/src/lib.rs", manifest, source).len(), count, "{source}");
            // What another section says does not matter.
            let other = manifest.replace("[lib]", "[[bin]]");
            assert_eq!(unbuilt("net/x/src/lib.rs", &other, source), Vec::<String>::new());
        }
    }

    #[test]
    fn only_files_directly_in_tests_are_looked_at() {
        assert_eq!(test_file("net/x/tests/api.rs"), Some(("net/x", "api")));
        assert_eq!(test_file("net/x/tests/support/mod.rs"), None);
        assert_eq!(test_file("net/x/src/tests/api.rs"), Some(("net/x/src", "api")));
        assert_eq!(test_file("net/x/tests/page.py"), None);
        assert_eq!(test_file("net/x/src/lib.rs"), None);
    }
}
