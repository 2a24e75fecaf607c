//! How prefixes of the Internet's routing tables are distributed over lengths.
//!
//! In parts per ten thousand, rounded from what public route collectors show: sixty percent of IPv4 routes are /24s,
//! nearly half of IPv6 routes are /48s.

/// Length and share of the prefixes, in parts per ten thousand.
pub type Share = (u8, u32);

/// IPv4.
pub const IP4: &[Share] = &[
    (8, 1),
    (10, 1),
    (11, 1),
    (12, 3),
    (13, 6),
    (14, 12),
    (15, 20),
    (16, 140),
    (17, 85),
    (18, 145),
    (19, 260),
    (20, 450),
    (21, 520),
    (22, 1170),
    (23, 1060),
    (24, 6126),
];

/// IPv6.
pub const IP6: &[Share] = &[
    (20, 2),
    (24, 8),
    (26, 4),
    (28, 30),
    (29, 330),
    (30, 60),
    (31, 40),
    (32, 1180),
    (33, 190),
    (34, 150),
    (35, 90),
    (36, 560),
    (38, 130),
    (39, 60),
    (40, 960),
    (42, 250),
    (44, 1050),
    (45, 150),
    (46, 350),
    (47, 256),
    (48, 4050),
    (56, 60),
    (64, 40),
];

/// How many prefixes of each length there are among `count`: rounded, and the rest goes to the most frequent length.
pub fn split(shares: &[Share], count: usize) -> Vec<(u8, usize)> {
    let mut split: Vec<(u8, usize)> =
        shares.iter().map(|(len, share)| (*len, count * *share as usize / 10_000)).collect();
    let missing = count - split.iter().map(|(_, n)| n).sum::<usize>();
    if let Some((_, most)) = split.iter_mut().max_by_key(|(_, n)| *n) {
        *most += missing;
    }
    split
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_parts_of_ten_thousand() {
        for shares in [IP4, IP6] {
            assert_eq!(shares.iter().map(|(_, share)| share).sum::<u32>(), 10_000);
        }
    }

    #[test]
    fn a_split_loses_nothing() {
        for count in [0, 1, 99, 230_000, 1_000_000] {
            assert_eq!(split(IP6, count).iter().map(|(_, n)| n).sum::<usize>(), count);
        }
    }
}
