//! `sizes`: huge files rot.

use crate::{Outcome, Result, files};

const FILE: usize = 600;
const NODE: usize = 250;

/// Checks every Rust file. `// size: reason` in its first ten lines is a waiver.
pub fn check() -> Result<Outcome> {
    let (mut violations, mut count, mut longest) = (Vec::new(), 0, (0, String::new()));
    for file in files::all()?.into_iter().filter(|f| files::is_rust(f)) {
        let Some(text) = files::read(&file) else { continue };
        let lines = text.lines().count();
        count += 1;
        violations.extend(judge(&file, &text, lines));
        longest = longest.max((lines, file));
    }
    Ok(Outcome {
        violations,
        summary: format!("{count} files, the longest has {} lines ({})", longest.0, longest.1),
    })
}

fn judge(file: &str, text: &str, lines: usize) -> Option<String> {
    let node = file.starts_with("net/") && file.contains("/src/node/") && !file.ends_with("/mod.rs");
    let ceiling = if node { NODE } else { FILE };
    let waived = text
        .lines()
        .take(10)
        .any(|l| l.strip_prefix("// size:").is_some_and(|reason| !reason.trim().is_empty()));
    (lines > ceiling && !waived).then(|| {
        format!("{file}: {lines} lines, the ceiling is {ceiling}\n  hint: split it by meaning, or say why not: // size: REASON")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn node_files_have_a_lower_ceiling_and_a_reason_waives_it() {
        assert!(judge("net/ip4/src/node/lookup.rs", "", 251).is_some());
        assert!(judge("net/ip4/src/control.rs", "", 600).is_none());
        assert!(judge("net/ip4/src/control.rs", "", 601).is_some());
        assert!(judge("net/ip4/src/control.rs", "//! a\n// size: one table\n", 601).is_none());
        assert!(judge("net/ip4/src/control.rs", "//! a\n// size:\n", 601).is_some());
    }
}
