//! Intervals by resampling (Efron's bootstrap, percentile form).
//!
//! The seed is fixed: the same values give the same interval on any machine, so that a report can be made again.

use fastrand::Rng;
use serde::Serialize;

use super::{median, percentile};

const SEED: u64 = 0x5348_4f41_4c00_0001;
const RESAMPLES: usize = 4_000;

/// Where a figure lies with 95 % confidence.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Interval {
    /// Whether all of it is below `limit`.
    pub fn is_below(self, limit: f64) -> bool {
        self.high < limit
    }

    fn of(figures: &[f64]) -> Option<Interval> {
        Some(Interval { low: percentile(figures, 2.5)?, high: percentile(figures, 97.5)? })
    }
}

/// The 95 % interval of the median. `None` of no values; of one value it is that value.
pub fn median_interval(values: &[f64]) -> Option<Interval> {
    let mut random = Rng::with_seed(SEED);
    let figures: Vec<f64> = (0..RESAMPLES).filter_map(|_| median(&resampled(values, &mut random))).collect();
    Interval::of(&figures)
}

/// The 95 % interval of `median(values) / median(base)`, both resampled. `None` if either is empty or base's median is 0.
pub fn ratio_interval(values: &[f64], base: &[f64]) -> Option<Interval> {
    if median(base)? == 0.0 {
        return None;
    }
    let mut random = Rng::with_seed(SEED);
    let figures: Vec<f64> = (0..RESAMPLES)
        .filter_map(|_| {
            let above = median(&resampled(values, &mut random))?;
            let below = median(&resampled(base, &mut random))?;
            (below != 0.0).then(|| above / below)
        })
        .collect();
    Interval::of(&figures)
}

/// As many values as there are, each drawn from all.
fn resampled(values: &[f64], random: &mut Rng) -> Vec<f64> {
    (0..values.len()).filter_map(|_| values.get(random.usize(..values.len())).copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_values_give_the_same_interval() {
        let values = [9.0, 10.0, 11.0, 10.5, 9.5, 10.2, 9.9];
        assert_eq!(median_interval(&values), median_interval(&values));
    }

    #[test]
    fn the_interval_holds_the_median_and_stays_within_the_values() {
        let values = [9.0, 10.0, 11.0, 10.5, 9.5, 10.2, 9.9];
        let interval = median_interval(&values).unwrap();
        assert!(9.0 <= interval.low && interval.low < 10.0, "{interval:?}");
        assert!(10.0 < interval.high && interval.high <= 11.0, "{interval:?}");
    }

    #[test]
    fn equal_sets_have_a_ratio_about_one_and_halves_about_a_half() {
        let base: Vec<f64> = (0..10).map(|i| 100.0 + f64::from(i)).collect();
        let half: Vec<f64> = base.iter().map(|v| v / 2.0).collect();
        let same = ratio_interval(&base, &base).unwrap();
        assert!(same.low <= 1.0 && same.high >= 1.0 && !same.is_below(0.93), "{same:?}");
        assert!(ratio_interval(&half, &base).unwrap().is_below(0.6));
    }

    #[test]
    fn nothing_has_no_interval() {
        assert_eq!(median_interval(&[]), None);
        assert_eq!(ratio_interval(&[1.0], &[0.0]), None);
        assert_eq!(ratio_interval(&[], &[1.0]), None);
    }

    #[test]
    fn about_nineteen_of_twenty_intervals_hold_the_true_median() {
        let mut random = Rng::with_seed(7);
        let held = (0..200)
            .filter(|_| {
                let values: Vec<f64> = (0..20).map(|_| random.f64()).collect();
                let interval = median_interval(&values).unwrap();
                interval.low <= 0.5 && 0.5 <= interval.high
            })
            .count();
        assert!((176..=200).contains(&held), "{held} of 200");
    }
}
