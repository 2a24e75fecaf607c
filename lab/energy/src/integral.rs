//! Energy from looks at power.

use crate::{Gap, PowerSample};

/// Watt-hours of power that runs straight from each sample to the next (trapezium rule).
pub fn watt_hours(samples: &[PowerSample]) -> f64 {
    let joules: f64 = samples
        .iter()
        .zip(samples.iter().skip(1))
        .map(|(a, b)| f64::midpoint(a.watts, b.watts) * (b.at - a.at))
        .sum();
    joules / 3600.0
}

/// Joins neighbouring failed looks to gaps.
#[derive(Debug, Default)]
pub struct Gaps {
    done: Vec<Gap>,
    open: Option<Gap>,
    last_good: f64,
}

impl Gaps {
    /// A look succeeded.
    pub fn good(&mut self, at: f64) {
        self.close(at);
        self.last_good = at;
    }

    /// A look failed.
    pub fn bad(&mut self, why: String) {
        let from = self.last_good;
        self.open.get_or_insert(Gap { from, to: from, why });
    }

    /// No more looks.
    pub fn finish(mut self, at: f64) -> Vec<Gap> {
        self.close(at);
        self.done
    }

    fn close(&mut self, at: f64) {
        if let Some(gap) = self.open.take() {
            self.done.push(Gap { to: at, ..gap });
        }
    }
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "exact values are expected")]
mod tests {
    use super::*;

    fn at(at: f64, watts: f64) -> PowerSample {
        PowerSample { at, watts }
    }

    #[test]
    fn constant_power_is_power_times_time() {
        let looks: Vec<_> = (0..=120).map(|s| at(f64::from(s), 150.0)).collect();
        // 150 W for 120 s are 5 Wh: the idle figure of seed 003.
        assert!((watt_hours(&looks) - 5.0).abs() < 1e-12);
    }

    #[test]
    fn a_ramp_is_exact_however_the_looks_are_spread() {
        let looks = [at(0.0, 0.0), at(1.0, 10.0), at(7.5, 75.0), at(10.0, 100.0)];
        assert!((watt_hours(&looks) * 3600.0 - 500.0).abs() < 1e-9);
    }

    #[test]
    fn one_look_or_none_is_no_energy() {
        assert_eq!(watt_hours(&[]), 0.0);
        assert_eq!(watt_hours(&[at(3.0, 99.0)]), 0.0);
    }

    #[test]
    fn failed_looks_in_a_row_are_one_gap_from_good_to_good() {
        let mut gaps = Gaps::default();
        gaps.good(0.0);
        gaps.bad("first".into());
        gaps.bad("second".into());
        gaps.good(3.0);
        gaps.bad("at the end".into());
        let found = gaps.finish(5.0);
        let wanted = [
            Gap { from: 0.0, to: 3.0, why: "first".into() },
            Gap { from: 3.0, to: 5.0, why: "at the end".into() },
        ];
        assert_eq!(found, wanted);
    }
}
