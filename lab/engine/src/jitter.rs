//! The two running figures that T-Rex prints and the thesis quotes, exactly as they are computed there.
//!
//! Neither is what its name says: the jitter begins with the first delay itself, because the transit before it is taken as
//! 0, and the average halves its past every half second. True figures stand beside them.

/// Between two steps of the average: T-Rex's sampling window.
const WINDOW: u64 = 500_000_000;

/// RFC 3550 A.8: `d = |transit - previous|; J += (d - J) / 16`, with a `previous` of 0 at first.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Jitter {
    previous: u64,
    value: f64,
}

impl Jitter {
    /// A frame took `transit` nanoseconds.
    #[inline]
    pub(crate) fn add(&mut self, transit: u64) {
        let difference = transit.abs_diff(self.previous) as f64;
        self.previous = transit;
        self.value += (difference - self.value) / 16.0;
    }

    /// Nanoseconds.
    pub(crate) fn value(&self) -> f64 {
        self.value
    }
}

/// `average = average / 2 + window mean / 2` for each half second in which a frame came, from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct WindowedAverage {
    window: u64,
    sum: u128,
    count: u64,
    value: f64,
}

impl WindowedAverage {
    /// A frame that took `delay` came at `moment`, both in nanoseconds.
    #[inline]
    pub(crate) fn add(&mut self, moment: u64, delay: u64) {
        let window = moment / WINDOW;
        if window != self.window {
            self.close();
            self.window = window;
        }
        self.sum += u128::from(delay);
        self.count += 1;
    }

    fn close(&mut self) {
        if self.count > 0 {
            self.value = self.value / 2.0 + self.sum as f64 / self.count as f64 / 2.0;
        }
        (self.sum, self.count) = (0, 0);
    }

    /// With the last window, whole or not. Nanoseconds.
    pub(crate) fn value(mut self) -> f64 {
        self.close();
        self.value
    }
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "sums of halves and sixteenths of small numbers are exact")]
mod tests {
    use super::*;

    fn jitter(delays: &[u64]) -> f64 {
        let mut jitter = Jitter::default();
        for delay in delays {
            jitter.add(*delay);
        }
        jitter.value()
    }

    #[test]
    fn the_first_delay_counts_as_a_difference_from_nothing() {
        assert_eq!(jitter(&[]), 0.0);
        // 160 / 16.
        assert_eq!(jitter(&[160]), 10.0);
        // 10 + (0 - 10) / 16: a steady delay wears the first one off.
        assert_eq!(jitter(&[160, 160]), 9.375);
        // 9.375 + (32 - 9.375) / 16.
        assert_eq!(jitter(&[160, 160, 128]), 10.789_062_5);
        // RFC 3550 does not care whether a delay rises or falls.
        assert_eq!(jitter(&[160, 160, 192]), 10.789_062_5);
    }

    #[test]
    fn the_average_halves_its_past_each_half_second() {
        let mut average = WindowedAverage::default();
        assert_eq!(average.value(), 0.0);
        average.add(0, 100);
        average.add(499_999_999, 300);
        // (100 + 300) / 2 / 2.
        assert_eq!(average.value(), 100.0);
        average.add(500_000_000, 500);
        assert_eq!(average.value(), 300.0);
        // Windows in which nothing came change nothing.
        average.add(3_000_000_000, 100);
        assert_eq!(average.value(), 200.0);
    }
}
