//! Maximum forwarding rate: the most that arrives at any offered load, and that load (RFC 2889 5.6, RFC 2285 3.6.3).

use shoal_lab_plan::{SummaryRow, Trust};

use crate::case::{mark, note, with_curve};
use crate::{
    Estimate, FrameLoss, FrameLossResult, LossPoint, MeasureError, Report, Runner, Steps, Test, Traffic,
    TrialProcedure,
};

/// The test. Loads go down from the highest in steps of 10 % until two in a row lose nothing: below these, less arrives
/// because less is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ForwardingRate {
    /// The highest load, frames a second and direction; none: what the tester reaches or the link carries.
    pub most: Option<u64>,
}

impl ForwardingRate {
    fn loads(self) -> FrameLoss {
        FrameLoss { steps: Steps::Rfc, most: self.most }
    }

    /// The summary's rows of a result: the rate with the curve of what arrived, and the load at which it was seen.
    pub fn rows(runner: &Runner<'_>, result: &FrameLossResult) -> Vec<SummaryRow> {
        let best: Vec<&LossPoint> =
            result.runs.values.iter().filter_map(|points| most_arrived(points)).collect();
        let received = result.curve().into_iter().map(|(load, got, _)| (load as f64, got)).collect();
        let mut rate = runner.rate_row("forwarding rate", best.iter().map(|p| p.received).collect());
        let mut load = runner.row("offered load", "fps/dir", best.iter().map(|p| p.offered as f64).collect());
        // RFC 2285 3.6.3: the rate must be cited with the load that was applied.
        if let Some((offered, _)) = result.peak() {
            note(&mut rate, &format!("seen at an offered load of {offered} fps/dir"));
        }
        note(&mut load, "at which the forwarding rate was seen");
        let points = || result.runs.values.iter().flatten();
        for row in [&mut rate, &mut load] {
            if points().any(|p| p.tester_limit) {
                mark(row, Trust::TesterBound);
            }
            let highest = points().map(|p| p.offered).max();
            if points().any(|p| Some(p.offered) == highest && p.loss[2] == 0.0) {
                mark(row, Trust::Ceiling);
                note(row, "at least (the highest load lost nothing)");
            }
        }
        vec![with_curve(rate, received, "offered fps/dir", "received fps/dir"), load]
    }
}

/// The point of a run at which the most arrived.
fn most_arrived(points: &[LossPoint]) -> Option<&LossPoint> {
    points.iter().max_by(|a, b| a.received.total_cmp(&b.received))
}

impl Test for ForwardingRate {
    fn name(&self) -> &'static str {
        "forwarding-rate"
    }

    fn estimate(&self, conduct: &TrialProcedure, most: u64) -> Estimate {
        self.loads().estimate(conduct, most)
    }

    fn run(&self, runner: &mut Runner<'_>, traffic: &dyn Traffic) -> Result<Report, MeasureError> {
        let result = self.loads().measure_as(self.name(), runner, traffic)?;
        Ok(Report { rows: Self::rows(runner, &result), ended: result.runs.ended })
    }
}
