//! The thesis's measurement: a heavy stream at a fixed rate beside a stream of 5,000 frames a second whose delay is measured
//! (lab.md 1.10). Its definitions of average and jitter stand beside true ones, and nothing is discarded.

use std::time::Duration;

use serde::Serialize;
use shoal_lab_plan::{StreamOutcome, SummaryRow};

use crate::case::note;
use crate::statistics::{mad, mean, median};
use crate::{
    Estimate, MeasureError, Offer, Repeated, Report, Runner, Test, Traffic, TrialProcedure, TrialSpec, repeat,
};

/// The test. Its traffic makes the latency streams beside what is offered; they are known by being stamped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LatencyUnderLoad {
    /// Frames a second and direction of the heavy stream.
    pub rate: u64,
    /// 120 s.
    pub duration: Duration,
    /// 20.
    pub repetitions: u32,
}

impl LatencyUnderLoad {
    /// 120 s, 20 repetitions.
    pub const fn at(rate: u64) -> LatencyUnderLoad {
        LatencyUnderLoad { rate, duration: Duration::from_mins(2), repetitions: 20 }
    }
}

/// One repetition. Times in microseconds, of several latency streams the worst; losses in percent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct LatencyUnderLoadRun {
    /// Of all streams together: what T-Rex counts.
    pub loss: f64,
    /// Of the heavy streams.
    pub heavy_loss: f64,
    /// Of the latency streams.
    pub latency_loss: f64,
    /// T-Rex's `average`, which is not a mean: half the last, half the window's mean.
    pub trex_average: f64,
    /// The mean.
    pub mean: f64,
    /// RFC 3550's jitter with T-Rex's first sample.
    pub jitter: f64,
    /// The smallest delay,
    pub min: f64,
    /// and the largest.
    pub max: f64,
    /// Frames delivered,
    pub frames: u64,
    /// and their bytes, with FCS: for packets and bytes per watt-hour.
    pub bytes: u64,
}

const US: f64 = 1e-3;

impl LatencyUnderLoad {
    /// Measures.
    ///
    /// # Errors
    ///
    /// If no repetition came to its end.
    pub fn measure(
        &self,
        runner: &mut Runner<'_>,
        traffic: &dyn Traffic,
    ) -> Result<Repeated<LatencyUnderLoadRun>, MeasureError> {
        repeat(runner, self.name(), self.repetitions, |r| {
            let streams = traffic.streams(&Offer::steady(self.rate))?;
            let shown = r.trial(&TrialSpec::new(streams, self.rate as f64, self.duration).overloaded())?;
            r.expect_answer(traffic, &shown)?;
            Ok(evaluate(&shown.outcome.streams))
        })
    }

    /// The summary's rows of a result. Values that lie far out stay and are counted in the note.
    pub fn rows(&self, runner: &Runner<'_>, runs: &Repeated<LatencyUnderLoadRun>) -> Vec<SummaryRow> {
        let mut rows = vec![
            runner.row("loss", "%", runs.map(|r| r.loss)),
            runner.row("heavy loss", "%", runs.map(|r| r.heavy_loss)),
            runner.row("latency loss", "%", runs.map(|r| r.latency_loss)),
            runner.row("trex average", "us", runs.map(|r| r.trex_average)),
            runner.row("mean latency", "us", runs.map(|r| r.mean)),
            runner.row("jitter", "us", runs.map(|r| r.jitter)),
            runner.row("min latency", "us", runs.map(|r| r.min)),
            runner.row("max latency", "us", runs.map(|r| r.max)),
            runner.row("delivered", "frames", runs.map(|r| r.frames as f64)),
            runner.row("delivered bytes", "bytes", runs.map(|r| r.bytes as f64)),
        ];
        for row in &mut rows {
            note(row, &format!("heavy stream of {} fps/dir", self.rate));
            note(row, &format!("mean {:.6}", mean(&row.values).unwrap_or(0.0)));
            match outliers(&row.values) {
                0 => {}
                n => note(row, &format!("{n} far out, kept")),
            }
        }
        rows
    }
}

/// How many values are more than five scaled median distances from the median.
fn outliers(values: &[f64]) -> usize {
    let (Some(middle), Some(distance)) = (median(values), mad(values)) else { return 0 };
    // 1.4826 makes the median distance the deviation of a normal distribution.
    let limit = 5.0 * 1.4826 * distance;
    if limit == 0.0 { 0 } else { values.iter().filter(|v| (*v - middle).abs() > limit).count() }
}

fn loss<'s>(streams: impl Iterator<Item = &'s StreamOutcome>) -> f64 {
    let (sent, lost) = streams.fold((0, 0), |(sent, lost), s| (sent + s.counts.sent, lost + s.counts.lost()));
    if sent == 0 { 0.0 } else { 100.0 * lost as f64 / sent as f64 }
}

fn evaluate(streams: &[StreamOutcome]) -> LatencyUnderLoadRun {
    let latency = || streams.iter().filter(|s| s.delays.is_some());
    let mut run = LatencyUnderLoadRun {
        loss: loss(streams.iter()),
        heavy_loss: loss(streams.iter().filter(|s| s.delays.is_none())),
        latency_loss: loss(latency()),
        min: f64::INFINITY,
        frames: streams.iter().map(|s| s.counts.received).sum(),
        bytes: streams.iter().map(|s| s.counts.bytes).sum(),
        ..LatencyUnderLoadRun::default()
    };
    for delays in latency().filter_map(|s| s.delays.as_ref()).filter(|d| d.count > 0) {
        run.trex_average = run.trex_average.max(delays.trex_average * US);
        run.mean = run.mean.max(delays.mean * US);
        run.jitter = run.jitter.max(delays.jitter * US);
        run.min = run.min.min(delays.min as f64 * US);
        run.max = run.max.max(delays.max as f64 * US);
    }
    if run.min.is_infinite() {
        run.min = 0.0;
    }
    run
}

impl Test for LatencyUnderLoad {
    fn name(&self) -> &'static str {
        "thesis"
    }

    fn estimate(&self, conduct: &TrialProcedure, _most: u64) -> Estimate {
        Estimate::of(conduct, 1, self.duration).times(self.repetitions)
    }

    fn run(&self, runner: &mut Runner<'_>, traffic: &dyn Traffic) -> Result<Report, MeasureError> {
        let runs = self.measure(runner, traffic)?;
        let rows = self.rows(runner, &runs);
        Ok(Report { rows, ended: runs.ended })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shoal_lab_plan::{Counts, Delays};

    #[test]
    fn losses_of_both_streams_are_told_apart() {
        let stream = |sent, received, delays| StreamOutcome {
            counts: Counts { sent, received, ..Counts::default() },
            delays,
            ..StreamOutcome::default()
        };
        let stamped = Delays { count: 5_000, min: 1_000, max: 9_000, mean: 2_500.0, ..Delays::default() };
        let run = evaluate(&[stream(81_274, 80_005, None), stream(5_000, 5_000, Some(stamped))]);
        assert!((run.loss - 1.4709).abs() < 1e-3, "{}", run.loss);
        assert!((run.heavy_loss - 1.5614).abs() < 1e-3 && run.latency_loss == 0.0);
        assert_eq!((run.min, run.max, run.mean), (1.0, 9.0, 2.5));
    }

    #[test]
    fn far_values_are_counted_and_equal_ones_are_not() {
        assert_eq!(outliers(&[1.0, 1.1, 0.9, 1.0, 1.05, 50.0]), 1);
        assert_eq!(outliers(&[1.0; 6]), 0);
    }
}
