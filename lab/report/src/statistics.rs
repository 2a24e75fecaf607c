//! Facts of a result's runs.

use serde::{Deserialize, Serialize};

/// Facts of a result's runs. Values that are not finite are left out and counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Statistics {
    /// Runs with a finite value.
    pub n: usize,
    /// Runs without one.
    pub not_finite: usize,
    /// The middle value; of an even number the mean of the two in the middle.
    pub median: Option<f64>,
    /// The smallest.
    pub min: Option<f64>,
    /// The largest.
    pub max: Option<f64>,
    /// The arithmetic mean.
    pub mean: Option<f64>,
    /// Of a sample: divided by n - 1. Absent below 2 runs.
    pub sd: Option<f64>,
    /// `100 * (max - min) / median` in percent. Absent below 5 runs, where it says nothing, and for a median of 0.
    pub dispersion: Option<f64>,
    /// 95 % interval of the median by bootstrap with a fixed seed. Absent below 5 runs.
    pub ci: Option<(f64, f64)>,
}

/// Runs below which spread is not judged.
pub const FEW: usize = 5;
const RESAMPLES: usize = 2000;

impl Statistics {
    /// Of `values`, in any order.
    pub fn of(values: &[f64]) -> Self {
        let sorted = sorted(values);
        let n = sorted.len();
        let (Some(&min), Some(&max)) = (sorted.first(), sorted.last()) else {
            return Statistics { not_finite: values.len(), ..Statistics::default() };
        };
        let median = median(&sorted);
        let mean = sorted.iter().sum::<f64>() / n as f64;
        let squares: f64 = sorted.iter().map(|v| (v - mean).powi(2)).sum();
        Statistics {
            n,
            not_finite: values.len() - n,
            median,
            min: Some(min),
            max: Some(max),
            mean: Some(mean),
            sd: (n > 1).then(|| (squares / (n - 1) as f64).sqrt()),
            dispersion: median.filter(|m| *m != 0.0 && n >= FEW).map(|m| 100.0 * (max - min) / m),
            ci: if n >= FEW { interval(&[&sorted], |r| r.first().and_then(|r| median_of(r))) } else { None },
        }
    }
}

/// The finite ones, rising.
pub fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// Of values that rise.
pub fn median(sorted: &[f64]) -> Option<f64> {
    let middle = sorted.len() / 2;
    let upper = *sorted.get(middle)?;
    if sorted.len() % 2 == 1 {
        return Some(upper);
    }
    sorted.get(middle.checked_sub(1)?).map(|lower| f64::midpoint(*lower, upper))
}

/// Of values in any order.
pub fn median_of(values: &[f64]) -> Option<f64> {
    median(&sorted(values))
}

/// Nearest rank, as siitperf: the smallest value that at least `share` (0 to 1) of all do not exceed.
pub fn percentile(sorted: &[f64], share: f64) -> Option<f64> {
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied()
}

/// 95 % interval of what `figure` makes of the samples, each redrawn with replacement (percentile bootstrap).
pub fn interval(samples: &[&[f64]], figure: impl Fn(&[Vec<f64>]) -> Option<f64>) -> Option<(f64, f64)> {
    let mut random = SplitMix(0x5348_4f41_4c20_3935);
    let mut found = Vec::with_capacity(RESAMPLES);
    for _ in 0..RESAMPLES {
        let drawn: Vec<Vec<f64>> = samples
            .iter()
            .map(|s| (0..s.len()).filter_map(|_| s.get(random.below(s.len())).copied()).collect())
            .collect();
        found.push(figure(&drawn)?);
    }
    let found = sorted(&found);
    percentile(&found, 0.025).zip(percentile(&found, 0.975))
}

/// Steele, Lea and Flood's SplitMix64: small, and good enough to draw runs.
struct SplitMix(u64);

impl SplitMix {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        ((u128::from(z) * n as u128) >> 64) as usize
    }
}

/// Two-sided p of the Mann-Whitney U test. Up to 400 pairs and without ties the exact distribution is used, else the
/// normal approximation with correction for ties and continuity. `None` if a side has no value.
pub fn mann_whitney(left: &[f64], right: &[f64]) -> Option<f64> {
    let (left, right) = (sorted(left), sorted(right));
    let (m, n) = (left.len(), right.len());
    if m == 0 || n == 0 {
        return None;
    }
    let pairs = m * n;
    let mut u = 0.0_f64;
    for mine in &left {
        for other in &right {
            u += if mine > other {
                1.0
            } else if mine < other {
                0.0
            } else {
                0.5
            };
        }
    }
    let mut all = [left, right].concat();
    all.sort_by(f64::total_cmp);
    let ties: Vec<f64> = all.chunk_by(|x, y| x.total_cmp(y).is_eq()).map(|c| c.len() as f64).collect();
    let tied = ties.iter().any(|t| *t > 1.0);
    if !tied && pairs <= 400 {
        return Some(exact_p(m, n, u.min(pairs as f64 - u) as usize));
    }
    let total = (m + n) as f64;
    let correction: f64 = ties.iter().map(|t| t.powi(3) - t).sum::<f64>() / (total * (total - 1.0)).max(1.0);
    let variance = pairs as f64 / 12.0 * (total + 1.0 - correction);
    if variance <= 0.0 {
        return Some(1.0);
    }
    let z = ((u - pairs as f64 / 2.0).abs() - 0.5).max(0.0) / variance.sqrt();
    Some((2.0 * upper_tail(z)).min(1.0))
}

/// Twice the share of all arrangements with U at most `u`, by counting: arrangements of m and n with U = k are those of
/// (m - 1, n) with U = k - n and of (m, n - 1) with U = k.
fn exact_p(m: usize, n: usize, u: usize) -> f64 {
    let mut counts: Vec<Vec<f64>> = vec![vec![1.0]; n + 1];
    for i in 1..=m {
        let mut row: Vec<Vec<f64>> = vec![vec![1.0]];
        for j in 1..=n {
            let mut ways = vec![0.0; i * j + 1];
            let with = counts.get(j).map_or(&[][..], Vec::as_slice);
            for (way, count) in ways.iter_mut().skip(j).zip(with) {
                *way += count;
            }
            let without = row.last().map_or(&[][..], Vec::as_slice);
            for (way, count) in ways.iter_mut().zip(without) {
                *way += count;
            }
            row.push(ways);
        }
        counts = row;
    }
    let ways = counts.last().map_or(&[][..], Vec::as_slice);
    let below: f64 = ways.iter().take(u + 1).sum();
    (2.0 * below / ways.iter().sum::<f64>()).min(1.0)
}

/// Share of the normal distribution above z >= 0 (Abramowitz and Stegun 7.1.26, error below 1.5e-7).
fn upper_tail(z: f64) -> f64 {
    let x = z / std::f64::consts::SQRT_2;
    let t = 1.0 / (1.0 + 0.327_591_1 * x);
    let poly = [1.061_405_429, -1.453_152_027, 1.421_413_741, -0.284_496_736, 0.254_829_592]
        .iter()
        .fold(0.0, |sum, c| (sum + c) * t);
    0.5 * poly * (-x * x).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_run_has_no_figures_and_one_has_no_spread() {
        assert_eq!(Statistics::of(&[]), Statistics::default());
        let one = Statistics::of(&[7.0]);
        assert_eq!((one.n, one.median, one.sd, one.dispersion, one.ci), (1, Some(7.0), None, None, None));
    }

    #[test]
    fn twenty_runs_have_all_of_them() {
        let values: Vec<f64> = (1..=20).map(f64::from).collect();
        let s = Statistics::of(&values);
        assert_eq!((s.median, s.min, s.max, s.mean), (Some(10.5), Some(1.0), Some(20.0), Some(10.5)));
        assert!((s.sd.unwrap() - 35.0_f64.sqrt()).abs() < 1e-12, "n - 1: {:?}", s.sd);
        assert!((s.dispersion.unwrap() - 100.0 * 19.0 / 10.5).abs() < 1e-12);
        let (low, high) = s.ci.unwrap();
        assert!((5.0..=9.0).contains(&low) && (12.0..=16.0).contains(&high), "{low} {high}");
    }

    #[test]
    fn what_is_no_number_is_left_out_and_counted_and_zero_has_no_dispersion() {
        let s = Statistics::of(&[f64::NAN, 1.0, f64::INFINITY, 3.0]);
        assert_eq!((s.n, s.not_finite, s.median), (2, 2, Some(2.0)));
        assert_eq!(Statistics::of(&[0.0; 6]).dispersion, None);
        assert_eq!(Statistics::of(&[f64::NAN]).not_finite, 1);
    }

    #[test]
    fn percentiles_are_those_of_the_nearest_rank() {
        let values: Vec<f64> = (1..=500).map(f64::from).collect();
        assert_eq!(percentile(&values, 0.999), Some(500.0), "of 500 tags it is the largest");
        assert_eq!(percentile(&values, 0.5), Some(250.0));
        assert_eq!(percentile(&values, 0.0), Some(1.0));
        assert_eq!(percentile(&[], 0.5), None);
    }

    #[test]
    fn mann_whitney_of_small_samples_is_exact() {
        // 3 against 3 apart: 1 of C(6,3) = 20 arrangements on either side.
        assert!((mann_whitney(&[1., 2., 3.], &[4., 5., 6.]).unwrap() - 0.1).abs() < 1e-12);
        // 5 against 5 apart: 2 / 252.
        let p = mann_whitney(&[6., 7., 8., 9., 10.], &[1., 2., 3., 4., 5.]).unwrap();
        assert!((p - 2.0 / 252.0).abs() < 1e-12, "{p}");
        assert!(mann_whitney(&[1., 4., 5.], &[2., 3., 6.]).unwrap() > 0.5);
    }

    #[test]
    fn mann_whitney_with_ties_is_approximated_and_equal_samples_do_not_differ() {
        assert_eq!(mann_whitney(&[5.0; 4], &[5.0; 9]), Some(1.0));
        assert_eq!(mann_whitney(&[], &[1.0]), None);
        let a: Vec<f64> = (0..30).map(f64::from).collect();
        let b: Vec<f64> = (20..50).map(f64::from).collect();
        let p = mann_whitney(&a, &b).unwrap();
        // U = 50 + ties 10/2: z = (450 - 50 - 0.5) / 67.6 = 5.9.
        assert!(p < 1e-7 && p > 1e-10, "{p}");
    }
}
