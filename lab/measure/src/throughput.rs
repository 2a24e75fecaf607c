//! Throughput: the highest rate at which nothing is lost (RFC 2544 26.1; RFC 5180 and RFC 8219 adopt it).

use std::time::Duration;

use shoal_lab_plan::{SummaryRow, Trust};

use crate::case::{mark, note};
use crate::{
    Bound, Estimate, Found, MeasureError, Repeated, Report, Runner, Search, Test, Traffic, TrialProcedure,
    repeat,
};
/// The test.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Throughput {
    /// The upper end, frames a second and direction; none: what the tester reaches or the link carries.
    pub most: Option<u64>,
    /// A later frame counts as lost: RFC 8219's special throughput with a frame timeout.
    pub frame_timeout: Option<Duration>,
    /// The share that may be lost, 0 to 1: 0 is RFC 2544's throughput.
    pub most_loss: f64,
}

/// Its result.
#[derive(Debug)]
pub struct ThroughputResult {
    /// Each run's.
    pub runs: Repeated<Found>,
    /// In frames a second and direction: of each run what passed, or under siitperf's rule what was tried last.
    pub values: Vec<f64>,
}

impl ThroughputResult {
    /// The median of the runs.
    pub fn median(&self) -> f64 {
        crate::statistics::median(&self.values).unwrap_or(0.0)
    }
}

impl Throughput {
    /// Measures.
    ///
    /// # Errors
    ///
    /// If no run came to its end.
    pub fn measure(
        &self,
        runner: &mut Runner<'_>,
        traffic: &dyn Traffic,
    ) -> Result<ThroughputResult, MeasureError> {
        self.measure_as(self.name(), runner, traffic)
    }

    /// The same under another test's name.
    ///
    /// # Errors
    ///
    /// As [`measure`](Self::measure).
    pub fn measure_as(
        &self,
        name: &str,
        runner: &mut Runner<'_>,
        traffic: &dyn Traffic,
    ) -> Result<ThroughputResult, MeasureError> {
        let most = self.most.unwrap_or_else(|| runner.most_rate(traffic.size()));
        let search = Search {
            most_loss: self.most_loss,
            frame_timeout: self.frame_timeout,
            ..Search::new(&runner.conduct, most)
        };
        let runs = repeat(runner, name, runner.conduct.runs, |r| search.run(r, traffic))?;
        let siitperf = runner.conduct.siitperf;
        let values = runs.map(|found| if siitperf { found.last as f64 } else { found.value as f64 });
        Ok(ThroughputResult { runs, values })
    }

    fn metric(&self) -> &'static str {
        match (self.frame_timeout, self.most_loss > 0.0) {
            (Some(_), _) => "special throughput",
            (None, true) => "PDR",
            (None, false) => "throughput",
        }
    }

    /// The summary's rows of a result.
    pub fn rows(&self, runner: &Runner<'_>, result: &ThroughputResult) -> Vec<SummaryRow> {
        let mut row = runner.rate_row(self.metric(), result.values.clone());
        for found in &result.runs.values {
            match found.bound {
                Bound::Device => {}
                Bound::Tester => {
                    mark(&mut row, Trust::TesterBound);
                    note(&mut row, "at least (tester limit)");
                }
                Bound::Ceiling => {
                    mark(&mut row, Trust::Ceiling);
                    note(&mut row, "at least (upper end of the search)");
                }
            }
        }
        if let Some(timeout) = self.frame_timeout {
            note(&mut row, &format!("frames later than {} ms are lost", timeout.as_secs_f64() * 1e3));
        }
        if self.most_loss > 0.0 {
            note(&mut row, &format!("loss ratio {} %", self.most_loss * 100.0));
        }
        if runner.conduct.loss_verification > 0 {
            note(&mut row, &format!("losses verified {}x (TST009)", runner.conduct.loss_verification));
        }
        if runner.conduct.siitperf {
            note(&mut row, "siitperf's rule: last rate tried");
        }
        vec![row]
    }
}

impl Test for Throughput {
    fn name(&self) -> &'static str {
        "throughput"
    }

    fn estimate(&self, conduct: &TrialProcedure, most: u64) -> Estimate {
        let trials = conduct.search_trials(conduct.precision, self.most.unwrap_or(most));
        Estimate::of(conduct, trials, conduct.duration).times(conduct.runs)
    }

    fn run(&self, runner: &mut Runner<'_>, traffic: &dyn Traffic) -> Result<Report, MeasureError> {
        let result = self.measure(runner, traffic)?;
        let rows = self.rows(runner, &result);
        Ok(Report { rows, ended: result.runs.ended })
    }
}
