//! Repetitions of a test, and what is kept if they end early.

use shoal_lab_plan::SummaryRow;

use crate::{Estimate, MeasureError, Runner, Traffic, TrialProcedure};

/// What the repetitions of a test gave.
#[derive(Debug)]
pub struct Repeated<T> {
    /// Of each run that came to its end.
    pub values: Vec<T>,
    /// Why there are not more, if it ended early.
    pub ended: Option<MeasureError>,
}

impl<T> Repeated<T> {
    /// A number of each run.
    pub fn map(&self, number: impl Fn(&T) -> f64) -> Vec<f64> {
        self.values.iter().map(number).collect()
    }
}

/// Runs `once` so often. If a run ends with an error, the runs before it are kept and the error is told beside them.
///
/// # Errors
///
/// The error of the first run: there is nothing to keep then. A refusal of any run.
pub fn repeat<'a, T>(
    runner: &mut Runner<'a>,
    test: &str,
    runs: u32,
    mut once: impl FnMut(&mut Runner<'a>) -> Result<T, MeasureError>,
) -> Result<Repeated<T>, MeasureError> {
    let mut values = Vec::new();
    for run in 1..=runs.max(1) {
        runner.begin(test, run, runs);
        match once(runner) {
            Ok(value) => values.push(value),
            // Where others had the processors no figure is told, also none of the runs before: they ran beside the same.
            Err(error) if values.is_empty() || error.is_refusal() => return Err(error),
            Err(error) => return Ok(Repeated { values, ended: Some(error) }),
        }
    }
    Ok(Repeated { values, ended: None })
}

/// What a test hands to the results folder.
#[derive(Debug, Default)]
pub struct Report {
    /// Rows of the summary.
    pub rows: Vec<SummaryRow>,
    /// Why there is not more, if it ended early.
    pub ended: Option<MeasureError>,
}

/// A test that needs a [`Traffic`] and nothing else.
pub trait Test {
    /// As users write it: `throughput`.
    fn name(&self) -> &'static str;

    /// How long it will take for frames of `most` a second and direction at most.
    fn estimate(&self, conduct: &TrialProcedure, most: u64) -> Estimate;

    /// Runs it.
    ///
    /// # Errors
    ///
    /// If there is no result at all.
    fn run(&self, runner: &mut Runner<'_>, traffic: &dyn Traffic) -> Result<Report, MeasureError>;
}
