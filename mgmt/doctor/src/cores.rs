//! Lists of cores as the kernel writes them: `0-3,8`.

use std::collections::BTreeSet;

/// No machine has more; a longer list is somebody's joke.
const MOST: u32 = 8192;

/// Reads a list; what is no number ends it.
pub(crate) fn read(text: &str) -> BTreeSet<u32> {
    let mut list = BTreeSet::new();
    for part in text.split(',') {
        let (first, last) = part.trim().split_once('-').unwrap_or((part.trim(), part.trim()));
        let (Ok(first), Ok(last)) = (first.parse::<u32>(), last.parse::<u32>()) else { break };
        if last < MOST {
            list.extend(first..=last);
        }
    }
    list
}

/// Writes a list.
pub(crate) fn show(list: &BTreeSet<u32>) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for &core in list {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == core => *last = core,
            _ => runs.push((core, core)),
        }
    }
    let show = |(a, b): (u32, u32)| if a == b { a.to_string() } else { format!("{a}-{b}") };
    runs.into_iter().map(show).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_come_back_as_they_were_and_nonsense_is_short() {
        for list in ["0", "0-3,8", "1,3,5-6", ""] {
            assert_eq!(show(&read(list)), list);
        }
        assert_eq!(show(&read("3-1,0-4294967295,x")), "");
        assert_eq!(show(&read("\n")), "");
    }
}
