//! "Did you mean": the candidate with the fewest edits.

/// The candidate that is closest to `text`, if any is close enough to be worth suggesting.
///
/// Distance counts insertions, removals, replacements and swaps of neighbours; a third of the longer word
/// may differ. A candidate that starts with `text` always counts as close.
pub fn nearest<'a>(text: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let mut best: Option<(usize, &'a str)> = None;
    for candidate in candidates {
        // Names are short; anything else is no typing mistake and not worth the quadratic work.
        if candidate.len() > 64 || text.len() > 64 || text.is_empty() {
            continue;
        }
        let allowed = (candidate.chars().count().max(text.chars().count()) / 3).max(1);
        let cost = if candidate.starts_with(text) { 0 } else { distance(text, candidate) };
        if cost <= allowed && best.is_none_or(|(least, _)| cost < least) {
            best = Some((cost, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// Edits from one word to the other (optimal string alignment).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    let mut previous = None;
    for (i, ca) in a.chars().enumerate() {
        let mut row = Vec::with_capacity(b.len() + 1);
        row.push(i + 1);
        for (j, &cb) in b.iter().enumerate() {
            let at = |v: &[usize], k: usize| v.get(k).copied().unwrap_or(usize::MAX / 2);
            let mut cost =
                (at(&last, j + 1) + 1).min(at(&row, j) + 1).min(at(&last, j) + usize::from(ca != cb));
            if j > 0 && previous == Some(cb) && b.get(j - 1) == Some(&ca) {
                cost = cost.min(at(&before, j - 1) + 1);
            }
            row.push(cost);
        }
        before = std::mem::replace(&mut last, row);
        previous = Some(ca);
    }
    last.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_edits_and_swaps() {
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("loop0", "loop0"), 0);
        assert_eq!(distance("lopo0", "loop0"), 1);
        assert_eq!(distance("kitten", "sitting"), 3);
    }

    #[test]
    fn suggests_the_closest_and_nothing_far() {
        assert_eq!(nearest("intrface", ["interface", "ip"]), Some("interface"));
        assert_eq!(nearest("tap", ["loop0", "tap0"]), Some("tap0"));
        assert_eq!(nearest("xyzzy", ["interface", "ip"]), None);
        assert_eq!(nearest("", ["ip"]), None);
    }
}
