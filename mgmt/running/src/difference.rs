//! What is different between two configurations.

use std::time::Duration;

use similar::{Algorithm, ChangeTag, TextDiff};

/// Lines that are the same, around those that are not.
const CONTEXT: usize = 3;
/// How long the shortest difference is looked for; after that a longer one will do.
const PATIENCE: Duration = Duration::from_secs(5);

/// What is different.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Difference {
    /// As a unified diff; empty when nothing is.
    pub text: String,
    /// Lines that came.
    pub added: usize,
    /// Lines that went.
    pub removed: usize,
}

/// The difference between an old text and a new one, with the names they go by.
pub fn difference(old: (&str, &str), new: (&str, &str)) -> Difference {
    if old.1 == new.1 {
        return Difference::default();
    }
    let diff = TextDiff::configure().algorithm(Algorithm::Myers).timeout(PATIENCE).diff_lines(old.1, new.1);
    let text = diff.unified_diff().context_radius(CONTEXT).header(old.0, new.0).to_string();
    let count = |tag| diff.iter_all_changes().filter(|change| change.tag() == tag).count();
    Difference { text, added: count(ChangeTag::Insert), removed: count(ChangeTag::Delete) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_a_unified_diff() {
        let found = difference(("saved", "a\nb\nc\n"), ("running", "a\nc\nd\n"));
        assert_eq!(found.text, "--- saved\n+++ running\n@@ -1,3 +1,3 @@\n a\n-b\n c\n+d\n");
        assert_eq!((found.added, found.removed), (1, 1));
        assert_eq!(difference(("a", "x\n"), ("b", "x\n")), Difference::default());
    }
}
