//! What many windows say together.

/// Of several measurements of one thing.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Summary {
    pub min: f64,
    pub median: f64,
    /// From the 10th to the 90th percentile, as a share of the median.
    pub spread: f64,
}

/// Sums up; `None` of nothing.
pub fn summary(values: impl IntoIterator<Item = f64>) -> Option<Summary> {
    let mut sorted: Vec<f64> = values.into_iter().collect();
    sorted.sort_by(f64::total_cmp);
    let median = percentile(&sorted, 0.5)?;
    let wide = percentile(&sorted, 0.9)? - percentile(&sorted, 0.1)?;
    let spread = if median > 0.0 { wide / median } else { 0.0 };
    Some(Summary { min: *sorted.first()?, median, spread })
}

/// Of sorted values, with the values between two of them on a straight line.
fn percentile(sorted: &[f64], share: f64) -> Option<f64> {
    let at = share * sorted.len().checked_sub(1)? as f64;
    let (low, high) = (*sorted.get(at.floor() as usize)?, *sorted.get(at.ceil() as usize)?);
    Some(low + (high - low) * at.fract())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_has_no_summary() {
        assert_eq!(summary([]), None);
    }

    #[test]
    fn one_value_is_its_own_summary() {
        assert_eq!(summary([7.0]), Some(Summary { min: 7.0, median: 7.0, spread: 0.0 }));
    }

    #[test]
    fn the_median_of_an_even_count_lies_between_the_middle_two() {
        let s = summary([4.0, 1.0, 3.0, 2.0]).unwrap();
        assert_eq!((s.min, s.median), (1.0, 2.5));
    }

    #[test]
    fn one_outlier_moves_neither_minimum_nor_median() {
        let s = summary([10.0, 10.0, 10.0, 10.0, 1000.0]).unwrap();
        assert_eq!((s.min, s.median), (10.0, 10.0));
    }

    #[test]
    fn the_spread_is_from_the_tenth_to_the_ninetieth_percentile() {
        let s = summary((0..=100).map(f64::from)).unwrap();
        assert_eq!((s.median, s.spread), (50.0, 80.0 / 50.0));
    }
}
