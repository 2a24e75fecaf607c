//! What a meter gave.

use serde::{Deserialize, Serialize};

use crate::integral::watt_hours_within;

/// What a meter gave between `start` and `stop`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Reading {
    /// `snmp-raritan`, `rapl`, `command`, `none`.
    pub source: String,
    /// What was measured: `outlet 3 of PDU 1 (wall)`, `package-0, dram (not wall)`. Different scopes do not compare.
    pub scope: String,
    /// Watt-hours; `None` is "not measured".
    pub wh: Option<f64>,
    /// Mean power in watts; `None` is "not measured".
    pub watts: Option<f64>,
    /// Seconds from the first to the last look.
    pub seconds: f64,
    /// Each look's power.
    pub samples: Vec<PowerSample>,
    /// Times in which looks failed. Power is taken to run straight from the look before to the look after.
    pub gaps: Vec<Gap>,
    /// What the source's own energy counter says, in watt-hours: a check only.
    pub counter_wh: Option<f64>,
    /// What is to be known when reading it.
    pub notes: Vec<String>,
}

/// Power at a time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PowerSample {
    /// Seconds since the start.
    pub at: f64,
    /// Watts; of RAPL, the mean since the look before.
    pub watts: f64,
}

/// A time without a look that succeeded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Gap {
    /// Seconds since the start: the last look that succeeded.
    pub from: f64,
    /// Seconds since the start: the next look that succeeded, or the end.
    pub to: f64,
    /// Why the first of the looks failed.
    pub why: String,
}

impl Reading {
    /// Nothing was measured.
    pub fn not_measured(seconds: f64) -> Self {
        Reading { source: "none".into(), scope: "not measured".into(), seconds, ..Reading::default() }
    }

    /// Whether it has a figure.
    pub fn is_measured(&self) -> bool {
        self.wh.is_some()
    }

    /// The same of the time within `windows` only (from, to, in seconds since the start): while frames were sent. The
    /// source's counter, which knows no windows, is left out. Looks are a second apart: of windows not much longer than that
    /// the figure is coarse.
    #[must_use]
    pub fn within(&self, windows: &[(f64, f64)]) -> Reading {
        let seconds: f64 = windows.iter().map(|(from, to)| (to - from).max(0.0)).sum();
        let means = self.source == "rapl";
        let wh =
            self.wh.and_then(|_| watt_hours_within(&self.samples, means, windows)).filter(|_| seconds > 0.0);
        Reading { wh, watts: wh.map(|wh| wh * 3600.0 / seconds), seconds, counter_wh: None, ..self.clone() }
    }

    /// Watt-hours above what `idle` (the device doing nothing, measured by the same source and scope) would have taken in
    /// the same time. `None` if either was not measured or they measured different things. Less than 0 is possible
    /// and is noise: it is given as it is. What is less than a billionth of either is the rounding of their figures, and 0.
    pub fn above_idle(&self, idle: &Reading) -> Option<f64> {
        if self.source != idle.source || self.scope != idle.scope {
            return None;
        }
        let (taken, at_rest) = (self.wh?, idle.watts? * self.seconds / 3600.0);
        let above = taken - at_rest;
        Some(if above.abs() <= 1e-9 * taken.abs().max(at_rest.abs()) { 0.0 } else { above })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_taken_while_sending_is_told_apart_from_the_rest() {
        // 100 W at rest, 200 W while sending from the 10th to the 20th second.
        let watts = |at: u32| if (10..=20).contains(&at) { 200.0 } else { 100.0 };
        let samples: Vec<_> = (0..=30).map(|s| PowerSample { at: f64::from(s), watts: watts(s) }).collect();
        let whole = Reading {
            source: "command".into(),
            wh: Some(1.1),
            counter_wh: Some(1.0),
            samples,
            ..Reading::default()
        };
        let sending = whole.within(&[(10.0, 15.0), (16.0, 20.0)]);
        assert_eq!((sending.watts, sending.seconds, sending.counter_wh), (Some(200.0), 9.0, None));
        assert!((sending.wh.unwrap() - 0.5).abs() < 1e-12);
        assert_eq!(whole.within(&[]).wh, None);
        assert_eq!(Reading::not_measured(3.0).within(&[(0.0, 1.0)]).wh, None);
    }
}
