//! From values to places, and where ticks stand.

use crate::number;

/// How values are spread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    /// Evenly.
    #[default]
    Linear,
    /// By orders of magnitude.
    Log,
    /// Shares 0 to 1 by the distance to 1: 0, 0.9, 0.99, 0.999 are evenly spread. To five nines.
    Nines,
}

/// An axis: its label, and the values it shows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Axis {
    /// What it shows, with its unit.
    pub label: String,
    /// How values are spread.
    pub scale: Scale,
    /// The smallest value shown.
    pub from: f64,
    /// The largest.
    pub to: f64,
    /// Ticks stand at whole numbers only: workers.
    pub whole: bool,
}

/// Five nines, in halves of the way to 1 by tenths.
const MOST_NINES: f64 = 5.0;

impl Axis {
    /// Over all finite `values`. A linear axis begins at 0; a logarithmic one at a power of ten, and values that are not
    /// above 0 stand at its beginning. `None` if there is nothing to show.
    pub fn over(label: &str, scale: Scale, values: impl Iterator<Item = f64>) -> Option<Self> {
        let values: Vec<f64> = values.filter(|v| v.is_finite()).collect();
        let max = values.iter().copied().fold(f64::MIN, f64::max);
        let (from, to) = match scale {
            _ if values.is_empty() => return None,
            Scale::Nines => (0.0, 0.99999),
            Scale::Linear => {
                let min = values.iter().copied().fold(0.0, f64::min);
                (min, if max > min { max + (max - min) * 0.04 } else { min + 1.0 })
            }
            Scale::Log => {
                let min = values.iter().copied().filter(|v| *v > 0.0).fold(f64::MAX, f64::min);
                if min > max {
                    (0.1, 10.0)
                } else {
                    let from = 10_f64.powf(min.log10().floor());
                    let top = 10_f64.powf(max.log10().ceil());
                    // Half a decade of emptiness is spared where two or five do.
                    let to = [0.2, 0.5, 1.0].into_iter().map(|f| f * top).find(|t| *t >= max).unwrap_or(top);
                    (from, if to > from { to } else { from * 10.0 })
                }
            }
        };
        Some(Axis { label: label.into(), scale, from, to, whole: false })
    }

    /// Logarithmic if the values above 0 are more than a factor of 20 apart and there are none of 0; else linear.
    pub fn fitting(label: &str, values: &[f64]) -> Option<Self> {
        let finite: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
        let max = finite.iter().copied().fold(0.0, f64::max);
        let min = finite.iter().copied().fold(f64::MAX, f64::min);
        let scale = if min > 0.0 && max > 20.0 * min { Scale::Log } else { Scale::Linear };
        Self::over(label, scale, finite.into_iter())
    }

    /// Where `value` stands, 0 to 1 within the axis; outside values at its ends.
    pub fn place(&self, value: f64) -> f64 {
        let part = match self.scale {
            Scale::Linear => (value - self.from) / (self.to - self.from),
            Scale::Log => {
                let (from, to) = (self.from.log10(), self.to.log10());
                (value.max(self.from).log10() - from) / (to - from)
            }
            Scale::Nines => -(1.0 - value.clamp(0.0, 1.0 - 1e-12)).log10() / MOST_NINES,
        };
        if part.is_finite() { part.clamp(0.0, 1.0) } else { 0.0 }
    }

    /// Values with their labels, at most ten.
    pub fn ticks(&self) -> Vec<(f64, String)> {
        match self.scale {
            Scale::Linear => {
                let mut ticks = linear_ticks(self.from, self.to);
                ticks.retain(|(v, _)| !self.whole || v.fract().abs() < 1e-9);
                ticks
            }
            Scale::Log => log_ticks(self.from, self.to),
            Scale::Nines => [0.0, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999]
                .into_iter()
                .map(|p| (p, format!("{}\u{202f}%", (p * 1e7_f64).round() / 1e5)))
                .collect(),
        }
    }
}

fn linear_ticks(from: f64, to: f64) -> Vec<(f64, String)> {
    let rough = (to - from) / 5.0;
    if !(rough.is_finite() && rough > 0.0) {
        return Vec::new();
    }
    let power = 10_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|m| m * power).find(|s| *s >= rough).unwrap_or(rough);
    let first = (from / step).ceil() as i64;
    (first..first + 10)
        .map(|k| k as f64 * step)
        .take_while(|v| *v <= to * (1.0 + 1e-9))
        .map(|v| (v, number::si(v)))
        .collect()
}

fn log_ticks(from: f64, to: f64) -> Vec<(f64, String)> {
    let (first, last) = (from.log10().floor() as i32, to.log10().ceil() as i32);
    let decades = last - first;
    let within: &[f64] = match decades {
        ..=2 => &[1.0, 2.0, 5.0],
        _ => &[1.0],
    };
    let every = (decades / 8 + 1).max(1);
    (first..=last)
        .filter(|d| (d - first) % every == 0)
        .flat_map(|d| within.iter().map(move |m| m * 10_f64.powi(d)))
        .filter(|v| *v >= from * 0.999 && *v <= to * 1.001)
        .map(|v| (v, number::si(v)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_linear_axis_begins_at_zero_and_has_round_ticks() {
        let axis = Axis::over("x", Scale::Linear, [3.0, 93.0].into_iter()).unwrap();
        let ticks: Vec<f64> = axis.ticks().iter().map(|t| t.0).collect();
        assert_eq!(ticks, [0.0, 20.0, 40.0, 60.0, 80.0]);
        assert!(axis.place(0.0).abs() < 1e-12 && axis.place(93.0) < 1.0);
    }

    #[test]
    fn orders_of_magnitude_make_it_logarithmic_and_zero_does_not_break_it() {
        let axis = Axis::fitting("x", &[200.0, 2e6]).unwrap();
        assert_eq!((axis.scale, axis.from, axis.to), (Scale::Log, 100.0, 2e6));
        assert_eq!(Axis::fitting("x", &[0.0, 2e6]).unwrap().scale, Scale::Linear);
        assert!(axis.place(0.0).abs() < 1e-12 && axis.place(f64::NAN).abs() < 1e-12);
    }

    #[test]
    fn nothing_to_show_is_no_axis_and_equal_values_are_one() {
        assert_eq!(Axis::fitting("x", &[f64::NAN]), None);
        let axis = Axis::fitting("x", &[0.0, 0.0]).unwrap();
        assert!(axis.to > axis.from && !axis.ticks().is_empty());
        let one = Axis::over("x", Scale::Log, [10.0].into_iter()).unwrap();
        assert!(one.to > one.from);
    }

    #[test]
    fn nines_are_evenly_spread() {
        let axis = Axis::over("x", Scale::Nines, [0.5].into_iter()).unwrap();
        assert!((axis.place(0.9) - 0.2).abs() < 1e-9 && (axis.place(0.999) - 0.6).abs() < 1e-9);
        assert!((axis.place(1.0) - 1.0).abs() < 1e-9);
        assert_eq!(axis.ticks().last().unwrap().1, "99.999\u{202f}%");
    }
}
