//! What the tester does without a device (lab.md 3.4): the ceiling and the floor that results are read against.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use shoal_lab_plan::Stamps;

use crate::statistics::histogram_percentile;
use crate::{Estimate, MeasureError, Offer, Runner, Search, Traffic, TrialProcedure, TrialSpec};

/// Of a tester whose ports are joined, with the traffic of the tests it is for.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SelfTest {
    /// The highest rate without loss, frames a second and direction: the most load (RFC 9971's Max Load).
    pub rate: u64,
    /// The latency floor at half that rate, in microseconds: the median,
    pub floor: f64,
    /// and the 99.9th percentile.
    pub floor_p999: f64,
    /// Passes of the tester's loop of more than 50 us in the latency trial.
    pub stalls: u64,
    /// The longest of them, in microseconds.
    pub longest_stall: f64,
    /// How late frames were sent at most, in microseconds.
    pub lateness: f64,
}

impl SelfTest {
    /// How long it will take.
    pub fn estimate(conduct: &TrialProcedure, most: u64) -> Estimate {
        Estimate::of(conduct, conduct.search_trials(conduct.precision, most) + 1, conduct.duration)
    }

    /// Measures over joined ports, up to `most` frames a second and direction.
    ///
    /// # Errors
    ///
    /// If a trial cannot be run, or nothing arrives.
    pub fn measure(
        runner: &mut Runner<'_>,
        traffic: &dyn Traffic,
        most: u64,
    ) -> Result<SelfTest, MeasureError> {
        runner.begin("selftest", 1, 1);
        let found = Search::new(&runner.conduct, most).run(runner, traffic)?;
        if found.value == 0 {
            return Err(MeasureError::Untrusted("the tester keeps no rate even without a device".into()));
        }
        let half = (found.value / 2).max(1);
        let streams = traffic.streams(&Offer::steady(half).stamped(Stamps::All))?;
        let duration = runner.conduct.duration.min(Duration::from_secs(10));
        let shown = runner.trial(&TrialSpec::new(streams, half as f64, duration))?;
        let histograms: Vec<&Vec<(u64, u64)>> =
            shown.outcome.streams.iter().filter_map(|s| s.delays.as_ref()).map(|d| &d.histogram).collect();
        // Of several streams, the worst.
        let worst = |percent: f64| {
            let each = histograms.iter().filter_map(|h| histogram_percentile(h, 0, percent));
            each.max().unwrap_or(0) as f64 / 1e3
        };
        Ok(SelfTest {
            rate: found.value,
            floor: worst(50.0),
            floor_p999: worst(99.9),
            stalls: shown.outcome.stall_count,
            longest_stall: shown.outcome.longest_stall.as_secs_f64() * 1e6,
            lateness: shown.outcome.lateness.max.as_secs_f64() * 1e6,
        })
    }
}
