//! Middle and spread of some values.

use serde::Serialize;

/// Rising; what is no number is left out.
pub fn sorted(values: &[f64]) -> Vec<f64> {
    let mut all: Vec<f64> = values.iter().copied().filter(|v| !v.is_nan()).collect();
    all.sort_by(f64::total_cmp);
    all
}

/// The nearest-rank percentile: the smallest value that at least `percent` of 100 of all values do not exceed.
pub fn percentile(values: &[f64], percent: f64) -> Option<f64> {
    let all = sorted(values);
    let rank = rank(all.len() as u64, percent)?;
    all.get(usize::try_from(rank).ok()? - 1).copied()
}

/// The rank from 1 of a percentile among `count` values.
///
/// 99.9 has no exact binary form, so the product is rounded to a millionth before it is rounded up: otherwise the
/// 99.9th percentile of 1,000 values would be the 1,000th and not the 999th.
pub(super) fn rank(count: u64, percent: f64) -> Option<u64> {
    if count == 0 || !(0.0..=100.0).contains(&percent) {
        return None;
    }
    let exact = percent * count as f64 / 100.0;
    let steady = (exact * 1e6).round() / 1e6;
    Some((steady.ceil() as u64).clamp(1, count))
}

/// The middle value; of an even number of values the mean of the two middle ones (RFC 8219 7.2).
pub fn median(values: &[f64]) -> Option<f64> {
    let all = sorted(values);
    let half = all.len() / 2;
    let upper = *all.get(half)?;
    if all.len() % 2 == 1 {
        return Some(upper);
    }
    all.get(half.checked_sub(1)?).map(|lower| f64::midpoint(*lower, upper))
}

/// The arithmetic mean.
pub fn mean(values: &[f64]) -> Option<f64> {
    if values.is_empty() { None } else { Some(values.iter().sum::<f64>() / values.len() as f64) }
}

/// The standard deviation of a sample: divided by n - 1. Needs two values.
pub fn sample_deviation(values: &[f64]) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    let middle = mean(values)?;
    let squares: f64 = values.iter().map(|v| (v - middle).powi(2)).sum();
    Some((squares / (values.len() - 1) as f64).sqrt())
}

/// The median distance from the median, unscaled.
pub fn mad(values: &[f64]) -> Option<f64> {
    let middle = median(values)?;
    let distances: Vec<f64> = values.iter().map(|v| (v - middle).abs()).collect();
    median(&distances)
}

/// All of it, for a table's line.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// How many values.
    pub n: usize,
    /// The middle.
    pub median: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
    /// The arithmetic mean.
    pub mean: f64,
    /// The deviation of a sample; of one value none.
    pub sd: Option<f64>,
    /// `100 * (max - min) / median`, the paper's dispersion in percent; none for a median of 0 and for less than five values,
    /// too few for a verdict.
    pub dispersion: Option<f64>,
    /// The median distance from the median.
    pub mad: f64,
    /// The 1st percentile.
    pub p1: f64,
    /// The 99th percentile.
    pub p99: f64,
}

impl Spread {
    /// Of some values; none of none.
    pub fn of(values: &[f64]) -> Option<Spread> {
        let all = sorted(values);
        let (min, max) = (*all.first()?, *all.last()?);
        let median = median(&all)?;
        let told = all.len() >= 5 && median != 0.0;
        Some(Spread {
            n: all.len(),
            median,
            min,
            max,
            mean: mean(&all)?,
            sd: sample_deviation(&all),
            dispersion: told.then(|| 100.0 * (max - min) / median),
            mad: mad(&all)?,
            p1: percentile(&all, 1.0)?,
            p99: percentile(&all, 99.0)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_by_nearest_rank() {
        let values: Vec<f64> = (1..=1000).rev().map(f64::from).collect();
        assert_eq!(percentile(&values, 99.9), Some(999.0));
        assert_eq!(percentile(&values, 50.0), Some(500.0));
        assert_eq!(percentile(&values, 0.0), Some(1.0));
        assert_eq!(percentile(&values, 100.0), Some(1000.0));
        let twenty: Vec<f64> = (1..=20).map(f64::from).collect();
        assert_eq!((percentile(&twenty, 1.0), percentile(&twenty, 99.0)), (Some(1.0), Some(20.0)));
    }

    #[test]
    fn percentiles_of_nothing_or_beyond_hundred_are_none() {
        assert_eq!(percentile(&[], 50.0), None);
        assert_eq!(percentile(&[1.0], 100.1), None);
        assert_eq!(percentile(&[1.0], f64::NAN), None);
        assert_eq!(median(&[]), None);
    }

    #[test]
    fn an_even_number_has_the_mean_of_the_two_middle_ones() {
        assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), Some(2.5));
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
    }

    #[test]
    fn deviation_divides_by_one_less_than_n() {
        let sd = sample_deviation(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).unwrap();
        assert!((sd - (32.0_f64 / 7.0).sqrt()).abs() < 1e-12, "{sd}");
        assert_eq!(sample_deviation(&[1.0]), None);
    }

    #[test]
    fn dispersion_needs_five_values_and_is_the_papers() {
        let spread = Spread::of(&[90.0, 100.0, 100.0, 100.0, 110.0]).unwrap();
        assert_eq!(spread.dispersion, Some(20.0));
        assert_eq!(Spread::of(&[1.0, 2.0, 3.0, 4.0]).unwrap().dispersion, None);
        assert_eq!(Spread::of(&[0.0; 6]).unwrap().dispersion, None);
    }

    #[test]
    fn one_outlier_moves_the_deviation_and_not_the_median_distance() {
        assert_eq!(mad(&[1.0, 1.0, 2.0, 2.0, 4.0, 6.0, 9.0]), Some(1.0));
        assert_eq!(mad(&[1.0, 1.0, 2.0, 2.0, 4.0, 6.0, 9e9]), Some(1.0));
    }
}
