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

/// Watt-hours within `windows` (from, to, in the samples' seconds), of power that runs straight from each sample to the next;
/// or, if `means`, that is each sample's since the one before. What lies outside the samples counts as the nearest one's.
pub fn watt_hours_within(samples: &[PowerSample], means: bool, windows: &[(f64, f64)]) -> Option<f64> {
    let (first, last) = (samples.first()?, samples.last()?);
    let joules = |from: f64, to: f64| -> f64 {
        let outside =
            (first.at.min(to) - from).max(0.0) * first.watts + (to - last.at.max(from)).max(0.0) * last.watts;
        let inside = samples.iter().zip(samples.iter().skip(1)).map(|(a, b)| {
            let (from, to, span) = (from.max(a.at), to.min(b.at), b.at - a.at);
            if to <= from || span <= 0.0 {
                return 0.0;
            }
            let power =
                |at: f64| if means { b.watts } else { a.watts + (b.watts - a.watts) * (at - a.at) / span };
            f64::midpoint(power(from), power(to)) * (to - from)
        });
        outside + inside.sum::<f64>()
    };
    Some(
        windows.iter().filter(|(from, to)| to > from).map(|&(from, to)| joules(from, to)).sum::<f64>()
            / 3600.0,
    )
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
    fn windows_take_their_part_of_a_ramp() {
        let looks = [at(0.0, 0.0), at(10.0, 100.0)];
        let joules = |windows: &[(f64, f64)]| watt_hours_within(&looks, false, windows).unwrap() * 3600.0;
        assert!((joules(&[(0.0, 10.0)]) - 500.0).abs() < 1e-9);
        assert!((joules(&[(2.0, 4.0), (6.0, 8.0)]) - 200.0).abs() < 1e-9);
        // Before the first look and after the last nothing else is known than these.
        assert!((joules(&[(-1.0, 0.0), (10.0, 12.0)]) - 200.0).abs() < 1e-9);
        assert_eq!(joules(&[(5.0, 5.0), (7.0, 6.0)]), 0.0);
        assert_eq!(watt_hours_within(&[], false, &[(0.0, 1.0)]), None);
    }

    #[test]
    fn means_hold_since_the_look_before() {
        let looks = [at(0.0, 50.0), at(1.0, 10.0), at(3.0, 30.0)];
        let joules = watt_hours_within(&looks, true, &[(0.5, 2.0)]).unwrap() * 3600.0;
        assert!((joules - (5.0 + 30.0)).abs() < 1e-9, "{joules}");
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
