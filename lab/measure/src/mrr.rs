//! Maximum receive rate: what arrives when as much as possible is offered (FD.io CSIT's MRR). The cheapest signal, and hardly
//! moved by single lost frames.

use serde::Serialize;
use std::time::Duration;

use shoal_lab_plan::{SummaryRow, Trust};

use crate::case::{mark, note};
use crate::{
    Estimate, MeasureError, NO_MATTER, Offer, Repeated, Report, Runner, Test, Traffic, TrialProcedure,
    TrialSpec, repeat,
};

/// The test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mrr {
    /// What is offered, frames a second and direction; none: what the tester reaches or the link carries.
    pub rate: Option<u64>,
    /// How often.
    pub trials: u32,
    /// For how long.
    pub duration: Duration,
}

impl Default for Mrr {
    /// CSIT's ten trials of a second.
    fn default() -> Self {
        Mrr { rate: None, trials: 10, duration: Duration::from_secs(1) }
    }
}

/// One trial.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct MrrTrial {
    /// Frames a second and direction that arrived.
    pub received: f64,
    /// The tester could not send as fast as it should.
    pub tester_limit: bool,
}

impl Mrr {
    /// Measures: each trial's.
    ///
    /// # Errors
    ///
    /// If no trial came to its end.
    pub fn measure(
        &self,
        runner: &mut Runner<'_>,
        traffic: &dyn Traffic,
    ) -> Result<Repeated<MrrTrial>, MeasureError> {
        let rate = self.rate.unwrap_or_else(|| runner.most_rate(traffic.size()));
        repeat(runner, self.name(), self.trials, |r| once(r, traffic, rate, self.duration))
    }

    /// The summary's row of a result.
    pub fn row(&self, runner: &Runner<'_>, trials: &Repeated<MrrTrial>) -> SummaryRow {
        let mut row = runner.rate_row("MRR", trials.map(|t| t.received));
        let mean = crate::statistics::mean(&row.values).unwrap_or(0.0);
        note(&mut row, &format!("mean {mean:.0}"));
        if trials.values.iter().any(|t| t.tester_limit) {
            mark(&mut row, Trust::TesterBound);
            note(&mut row, "at least (the tester could not offer more)");
        }
        row
    }
}

/// One trial of it, outside any repetition.
///
/// # Errors
///
/// If it cannot be run, or the device answers nothing.
pub fn once(
    runner: &mut Runner<'_>,
    traffic: &dyn Traffic,
    rate: u64,
    duration: Duration,
) -> Result<MrrTrial, MeasureError> {
    let streams = traffic.streams(&Offer::steady(rate))?;
    let shot =
        TrialSpec { own_loss: NO_MATTER, ..TrialSpec::new(streams, rate as f64, duration).overloaded() };
    let shown = runner.trial(&shot)?;
    runner.expect_answer(traffic, &shown)?;
    Ok(MrrTrial { received: shown.received_rate(), tester_limit: shown.is_tester_limit() })
}

impl Test for Mrr {
    fn name(&self) -> &'static str {
        "mrr"
    }

    fn estimate(&self, conduct: &TrialProcedure, _most: u64) -> Estimate {
        Estimate::of(conduct, u64::from(self.trials), self.duration)
    }

    fn run(&self, runner: &mut Runner<'_>, traffic: &dyn Traffic) -> Result<Report, MeasureError> {
        let trials = self.measure(runner, traffic)?;
        let rows = vec![self.row(runner, &trials)];
        Ok(Report { rows, ended: trials.ended })
    }
}
