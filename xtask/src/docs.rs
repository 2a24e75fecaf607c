//! `docs-check`: what a reader expects is there, in plain words, in comments too, and nothing of the
//! writer's machine is.

use crate::{Outcome, Result, files, words};
use std::path::Path;

/// Folders of people, in pieces so that this file passes its own check.
const PERSONAL: [&str; 3] = [concat!("/ho", "me/"), concat!("/ro", "ot/"), concat!("/Us", "ers/")];

/// Documents that every clone has.
const EXPECTED: [&str; 12] = [
    "README.md",
    "ARCHITECTURE.md",
    "CONVENTIONS.md",
    "CONTRIBUTING.md",
    "UNSAFE.md",
    "SECURITY.md",
    "CHANGELOG.md",
    "LICENSE",
    "docs/README.md",
    "docs/dependencies.md",
    "docs/reference/startup.md",
    "share/startup.conf",
];

/// Checks every file.
pub fn check() -> Result<Outcome> {
    let all = files::all()?;
    let has = |file: &str| all.iter().any(|f| f == file);
    let mut violations: Vec<String> =
        EXPECTED.iter().filter(|f| !has(f)).map(|f| format!("{f}: missing\n  hint: write it")).collect();
    for manifest in all.iter().filter(|f| f.ends_with("/Cargo.toml")) {
        let readme = manifest.replace("Cargo.toml", "README.md");
        let package = files::read(manifest).is_some_and(|t| t.contains("[package]"));
        if package && files::read(&readme).is_none_or(|t| t.trim().is_empty()) {
            violations.push(format!("{readme}: missing\n  hint: begin with the question the crate answers"));
        }
    }
    for file in &all {
        let Some(text) = files::read(file) else { continue };
        for (number, line) in text.lines().enumerate() {
            if let Some(path) = PERSONAL.iter().find(|path| names(line, path)) {
                violations.push(format!("{file}:{}: names {path}\n  hint: no path of a machine", number + 1));
            }
        }
        if Path::new(file).extension().is_some_and(|e| e == "md") {
            violations.extend(dead_links(file, &text, &all));
            // References are generated from the program's own words.
            if !file.starts_with("docs/reference/") {
                violations.extend(words::violations(file, &text));
            }
        }
        if Path::new(file).extension().is_some_and(|e| e == "rs" || e == "sh") {
            violations.extend(words::comment_violations(file, &text));
        }
    }
    if let (Some(table), Some(reasons)) = (files::read("Cargo.toml"), files::read("docs/dependencies.md")) {
        for name in dependencies(&table).filter(|name| !reasons.contains(&format!("| {name} |"))) {
            violations.push(format!(
                "docs/dependencies.md: nothing on {name}\n  hint: say why it is here and what it costs"
            ));
        }
    }
    Ok(Outcome { violations, summary: format!("{} files read", all.len()) })
}

/// Whether a line has `path` at the beginning of a path, not inside one.
fn names(line: &str, path: &str) -> bool {
    line.match_indices(path).any(|(at, _)| {
        let before = line.get(..at).and_then(|l| l.chars().next_back());
        before.is_none_or(|c| !c.is_alphanumeric() && !matches!(c, '/' | '.' | '_' | '-' | '}' | '*'))
    })
}

/// Relative links of a Markdown file that lead nowhere.
fn dead_links(file: &str, text: &str, all: &[String]) -> Vec<String> {
    let folder = file.rsplit_once('/').map_or("", |(folder, _)| folder);
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target);
    let local = targets.filter(|t| !t.contains("://") && !t.starts_with('#') && !t.starts_with("mailto:"));
    local
        .filter_map(|target| {
            let path = target.split('#').next().unwrap_or_default();
            let mut parts: Vec<&str> = folder.split('/').filter(|p| !p.is_empty()).collect();
            for part in path.split('/').filter(|p| !p.is_empty() && *p != ".") {
                if part == ".." {
                    parts.pop();
                } else {
                    parts.push(part);
                }
            }
            let path = parts.join("/");
            let there = all.iter().any(|f| *f == path || f.starts_with(&format!("{path}/")));
            (!there).then(|| format!("{file}: links to {target}, which is not there\n  hint: mend the link"))
        })
        .collect()
}

/// Third-party crates of the workspace's dependency table.
fn dependencies(table: &str) -> impl Iterator<Item = &str> {
    let table = table.split("[workspace.dependencies]").nth(1).unwrap_or_default();
    let lines = table.lines().take_while(|l| !l.starts_with('['));
    lines
        .filter_map(|l| l.split_once(" = "))
        .map(|(name, _)| name)
        .filter(|n| !n.starts_with("shoal-") && !n.starts_with('#'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_of_a_machine_is_found_only_at_its_beginning() {
        let [home, root, _] = PERSONAL;
        assert!(names(&format!("see {home}x"), home) && names(&format!("\"{root}x"), root));
        assert!(!names(&format!("net{home}x ../srv{root}y"), home));
    }

    #[test]
    fn dead_links_are_found_from_the_folder_of_the_file() {
        let all = ["a/b.md".to_owned(), "c/d/e.md".to_owned()];
        assert_eq!(
            dead_links("c/x.md", "[](../a/b.md#h) [](d/) [](https://x) [](#y)", &all),
            Vec::<String>::new()
        );
        assert_eq!(dead_links("c/x.md", "[](a/b.md)", &all).len(), 1);
    }

    #[test]
    fn every_third_party_crate_of_the_table_counts() {
        let table = "[workspace.dependencies]\nshoal-x = 1\n# a = b\nlibc = \"1\"\n\n[other]\ny = 1\n";
        assert_eq!(dependencies(table).collect::<Vec<_>>(), ["libc"]);
    }
}
