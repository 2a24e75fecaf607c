//! The known name that was probably meant.

/// Of `known`, the name with the fewest letters to change (Levenshtein 1965); the first of equals. Empty if none is known.
pub fn nearest<'a>(wrong: &str, known: impl IntoIterator<Item = &'a str>) -> &'a str {
    known.into_iter().min_by_key(|name| distance(wrong, name)).unwrap_or("")
}

/// How many letters have to be put in, taken out or exchanged to make one word of the other.
pub fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.chars().count()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut next = vec![i + 1];
        for ((y, diagonal), above) in b.chars().zip(&row).zip(row.iter().skip(1)) {
            let left = next.last().copied().unwrap_or(0);
            next.push((diagonal + usize::from(x != y)).min(above + 1).min(left + 1));
        }
        row = next;
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fewest_changes_win() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!((distance("", "abc"), distance("abc", "abc"), distance("vpp", "ovs")), (3, 0, 3));
        assert_eq!(nearest("thruput", ["latency", "throughput", "loss"]), "throughput");
        assert_eq!(nearest("x", []), "");
    }
}
