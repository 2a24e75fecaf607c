//! Which of the known words was meant.

/// The word of `known` that is nearest to `word`, if any is near.
pub(crate) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let near = known.into_iter().map(|k| (distance(word, k), k)).min()?;
    (near.0 <= word.len() / 3 + 1).then_some(near.1)
}

/// How many letters must be changed, put in or taken out.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().take(64).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().take(64).enumerate() {
        let mut corner = i;
        let mut left = i + 1;
        for (slot, y) in row.iter_mut().skip(1).zip(&b) {
            let above = *slot;
            left = (corner + usize::from(x != *y)).min(above + 1).min(left + 1);
            corner = above;
            *slot = left;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_finger_is_found_and_another_word_is_not() {
        let known = ["num-rx-queues", "num-tx-queues", "name"];
        assert_eq!(nearest("num-rx-quues", known), Some("num-rx-queues"));
        assert_eq!(nearest("nmae", known), Some("name"));
        assert_eq!(nearest("elephant", known), None);
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
    }
}
