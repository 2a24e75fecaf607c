//! Whether two sets of values differ, without a word on how they are distributed (Mann and Whitney 1947).

use super::sorted;

/// The two-sided p of the Mann-Whitney U test by the normal approximation, corrected for ties and continuity.
/// `None` if a set is empty; 1 if all values are equal. With less than eight values a side it is only rough.
pub fn mann_whitney(first: &[f64], second: &[f64]) -> Option<f64> {
    let (n1, n2) = (first.len() as f64, second.len() as f64);
    if first.is_empty() || second.is_empty() {
        return None;
    }
    let joined: Vec<f64> = first.iter().chain(second).copied().collect();
    let all = sorted(&joined);
    let rank_sum: f64 = first.iter().map(|v| mean_rank(&all, *v)).sum();
    let u = rank_sum - n1 * (n1 + 1.0) / 2.0;
    let n = n1 + n2;
    let variance = n1 * n2 / 12.0 * ((n + 1.0) - ties(&all) / (n * (n - 1.0)));
    if variance <= 0.0 {
        return Some(1.0);
    }
    let distance = ((u - n1 * n2 / 2.0).abs() - 0.5).max(0.0) / variance.sqrt();
    Some((2.0 * (1.0 - normal_below(distance))).clamp(0.0, 1.0))
}

/// The mean of the ranks (from 1) that equal values share.
fn mean_rank(all: &[f64], value: f64) -> f64 {
    let below = all.partition_point(|v| *v < value) as f64;
    let through = all.partition_point(|v| *v <= value) as f64;
    f64::midpoint(below + 1.0, through)
}

/// The sum of `t^3 - t` over groups of `t` equal values.
fn ties(all: &[f64]) -> f64 {
    all.chunk_by(|a, b| a.total_cmp(b).is_eq())
        .map(|group| (group.len() as f64).powi(3) - group.len() as f64)
        .sum()
}

/// The share of a normal distribution below `z >= 0`: Abramowitz and Stegun 26.2.17, within 7.5e-8.
fn normal_below(z: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.231_641_9 * z);
    let factors = [0.319_381_530, -0.356_563_782, 1.781_477_937, -1.821_255_978, 1.330_274_429];
    let sum = factors.iter().rev().fold(0.0, |sum, f| (sum + f) * t);
    1.0 - (-z * z / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt() * sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p_is_that_of_the_textbook_formula() {
        // U = 0, mean 50, deviation sqrt(10*10*21/12) = 13.2288; z = 49.5 / 13.2288 = 3.7418; p = 1.826e-4.
        let low: Vec<f64> = (0..10).map(f64::from).collect();
        let high: Vec<f64> = (10..20).map(f64::from).collect();
        let p = mann_whitney(&low, &high).unwrap();
        assert!((p - 1.826e-4).abs() < 2e-6, "{p}");
        assert_eq!(mann_whitney(&high, &low), Some(p));
    }

    #[test]
    fn equal_values_do_not_differ() {
        assert_eq!(mann_whitney(&[5.0; 10], &[5.0; 10]), Some(1.0));
        let mixed = [1.0, 2.0, 3.0, 4.0];
        assert!(mann_whitney(&mixed, &mixed).unwrap() > 0.8);
    }

    #[test]
    fn an_empty_set_says_nothing() {
        assert_eq!(mann_whitney(&[], &[1.0]), None);
    }
}
