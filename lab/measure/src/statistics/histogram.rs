//! Percentiles of values that were counted: pairs of a value and how often it was seen, rising.

use super::spread::rank;

/// How many values a histogram holds.
pub fn histogram_count<V>(histogram: &[(V, u64)]) -> u64 {
    histogram.iter().map(|(_, count)| count).sum()
}

/// The nearest-rank percentile of a rising histogram, with `beyond` more values that are larger than all in it (lost frames,
/// which count as later than any). `None` if the percentile is among those, or nothing was counted.
pub fn histogram_percentile<V: Copy>(histogram: &[(V, u64)], beyond: u64, percent: f64) -> Option<V> {
    let wanted = rank(histogram_count(histogram) + beyond, percent)?;
    let mut seen = 0;
    histogram.iter().find_map(|(value, count)| {
        seen += count;
        (seen >= wanted).then_some(*value)
    })
}

/// The median of a rising histogram; of an even number of values the lower of the two middle ones, so that it is a value seen.
pub fn histogram_median<V: Copy>(histogram: &[(V, u64)]) -> Option<V> {
    histogram_percentile(histogram, 0, 50.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEEN: [(u64, u64); 3] = [(10, 90), (20, 9), (500, 1)];

    #[test]
    fn counted_values_have_the_percentiles_of_the_listed_ones() {
        assert_eq!(histogram_percentile(&SEEN, 0, 90.0), Some(10));
        assert_eq!(histogram_percentile(&SEEN, 0, 91.0), Some(20));
        assert_eq!(histogram_percentile(&SEEN, 0, 100.0), Some(500));
        assert_eq!(histogram_median(&[(-3_i64, 2), (4, 1)]), Some(-3));
    }

    #[test]
    fn lost_frames_are_later_than_any() {
        assert_eq!(histogram_percentile(&SEEN, 100, 50.0), Some(500));
        assert_eq!(histogram_percentile(&SEEN, 100, 51.0), None);
        assert_eq!(histogram_percentile::<u64>(&[], 0, 50.0), None);
    }
}
