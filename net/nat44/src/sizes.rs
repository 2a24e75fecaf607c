//! Sizes of VPP's tables, as its messages show them.

/// Buckets of a table with room for so many: the power of two next to two fifths of them.
pub fn buckets(entries: u32) -> u32 {
    let wanted = (u64::from(entries) * 2 / 5).max(1);
    let above = wanted.next_power_of_two().max(2);
    let below = above / 2;
    (if above - wanted < wanted - below { above } else { below }) as u32
}

#[cfg(test)]
mod tests {
    #[test]
    fn buckets_are_the_power_of_two_next_to_two_fifths() {
        assert_eq!([300, 960, 970, 1024, 10240].map(super::buckets), [128, 256, 512, 512, 4096]);
    }
}
