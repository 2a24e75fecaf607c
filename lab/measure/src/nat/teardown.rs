//! Connection teardown rate (RFC 9693 4.6): how fast a full table is emptied by the device's own command.

use std::time::{Duration, Instant};

use serde::Serialize;
use shoal_lab_plan::SummaryRow;

use super::{Sessions, Setup};
use crate::case::note;
use crate::{Estimate, MeasureError, Repeated, Runner, StatefulTraffic, TrialProcedure, repeat};

/// The test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Teardown {
    /// Connections.
    pub tuples: u64,
    /// A safe rate to make them at.
    pub rate: u64,
}

/// One run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TeardownRun {
    /// Emptying the full table took so long,
    pub full: Duration,
    /// and an empty one: what the command itself takes.
    pub empty: Duration,
    /// Connections a second; none if emptying the full table took no longer than the empty one.
    pub rate: Option<f64>,
}

impl TeardownRun {
    /// `tuples / (full - empty)`.
    pub fn of(tuples: u64, full: Duration, empty: Duration) -> TeardownRun {
        let net = full.saturating_sub(empty).as_secs_f64();
        TeardownRun { full, empty, rate: (net > 0.0).then(|| tuples as f64 / net) }
    }
}

impl Teardown {
    /// How long it will take, without the emptying.
    pub fn estimate(&self, conduct: &TrialProcedure) -> Estimate {
        Estimate::of(conduct, 1, Setup::filling(self.tuples, self.rate)).times(conduct.runs)
    }

    /// Measures. The table is emptied by `device`, timed from its beginning to its end.
    ///
    /// # Errors
    ///
    /// If no run came to its end, or the table cannot be filled.
    pub fn measure(
        &self,
        runner: &mut Runner<'_>,
        traffic: &dyn StatefulTraffic,
        device: &mut dyn Sessions,
    ) -> Result<Repeated<TeardownRun>, MeasureError> {
        self.measure_by(runner, traffic, device, &mut |device| {
            let began = Instant::now();
            device.clear()?;
            Ok(began.elapsed())
        })
    }

    /// The same with another clock than the system's.
    ///
    /// # Errors
    ///
    /// As [`measure`](Self::measure).
    pub fn measure_by(
        &self,
        runner: &mut Runner<'_>,
        traffic: &dyn StatefulTraffic,
        device: &mut dyn Sessions,
        timed: &mut dyn FnMut(&mut dyn Sessions) -> Result<Duration, MeasureError>,
    ) -> Result<Repeated<TeardownRun>, MeasureError> {
        repeat(runner, "nat-teardown-rate", runner.conduct.runs, |r| {
            let shown = Setup::fill(r, traffic, device, self.tuples, self.rate)?;
            if !Setup::is_filled(&shown, self.tuples) {
                return Err(MeasureError::Setting {
                    what: "preliminary rate",
                    value: self.rate.to_string(),
                    nearest: "failed to fill the state table; take a lower rate".into(),
                });
            }
            let full = timed(device)?;
            let empty = timed(device)?;
            Ok(TeardownRun::of(self.tuples, full, empty))
        })
    }

    /// The summary's row of a result.
    pub fn row(&self, runner: &Runner<'_>, runs: &Repeated<TeardownRun>) -> SummaryRow {
        let rates: Vec<f64> = runs.values.iter().filter_map(|r| r.rate).collect();
        let missing = runs.values.len() - rates.len();
        let mut row = runner.row("connection teardown rate", "connections/s", rates);
        note(&mut row, &format!("{} connections, net of the command itself", self.tuples));
        if missing > 0 {
            note(&mut row, &format!("too fast to be told from an empty table in {missing} runs"));
        }
        row
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commands_own_time_is_taken_off() {
        let run = TeardownRun::of(1_000_000, Duration::from_millis(2_100), Duration::from_millis(100));
        assert_eq!(run.rate, Some(500_000.0));
        assert_eq!(TeardownRun::of(10, Duration::from_millis(1), Duration::from_millis(2)).rate, None);
    }
}
