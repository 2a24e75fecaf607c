//! What repeated values say together (lab.md 1.14).
//!
//! Percentiles are by nearest rank, as siitperf and RFC 8219 have them; deviation is of a sample (n - 1). All functions
//! take unsorted values, leave them alone, and answer `None` where too few values were given to say anything.

mod bootstrap;
mod histogram;
mod rank_test;
mod spread;

pub use bootstrap::{Interval, median_interval, ratio_interval};
pub use histogram::{histogram_count, histogram_median, histogram_percentile};
pub use rank_test::mann_whitney;
pub use spread::{Spread, mad, mean, median, percentile, sample_deviation, sorted};
