//! Delay variation: PDV and IPDV (RFC 8219 7.3; RFC 3393's selection of neighbours that both arrived).

use std::time::Duration;

use serde::Serialize;
use shoal_lab_plan::{Delays, Stamps, StreamOutcome, SummaryRow};

use crate::case::note;
use crate::statistics::{histogram_count, histogram_median, histogram_percentile};
use crate::{
    Estimate, MeasureError, Offer, Repeated, Report, Runner, Test, Traffic, TrialProcedure, TrialSpec, repeat,
};

/// The test. Its rate is the throughput that was found for the size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelayVariation {
    /// Frames a second and direction.
    pub rate: u64,
    /// RFC 8219 7.3.1: at least 60 s.
    pub duration: Duration,
}

/// One run, in microseconds; of several streams, the worst of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct DelayVariationRun {
    /// The 99.9th percentile less the smallest delay, lost frames counting as the penalty.
    pub pdv: f64,
    /// Inter-packet delay variation: the smallest,
    pub ipdv_min: f64,
    /// the 0.1th percentile,
    pub ipdv_p01: f64,
    /// the median,
    pub ipdv_median: f64,
    /// the 99.9th percentile,
    pub ipdv_p999: f64,
    /// the largest,
    pub ipdv_max: f64,
    /// and the mean of its absolute values.
    pub ipdv_mean: f64,
    /// Frames that were lost.
    pub lost: u64,
    /// Delays below 0, taken as 0.
    pub negative: u64,
}

/// Its result.
#[derive(Debug)]
pub struct DelayVariationResult {
    /// Each run's.
    pub runs: Repeated<DelayVariationRun>,
}

const US: f64 = 1e-3;

impl DelayVariation {
    /// What a lost frame counts as, in microseconds: siitperf's `1000 * D + timeout` ms.
    fn penalty(&self, timeout: Duration) -> f64 {
        (self.duration + timeout).as_secs_f64() * 1e6
    }

    /// Measures.
    ///
    /// # Errors
    ///
    /// If no run came to its end.
    pub fn measure(
        &self,
        runner: &mut Runner<'_>,
        traffic: &dyn Traffic,
    ) -> Result<DelayVariationResult, MeasureError> {
        let runs = repeat(runner, self.name(), runner.conduct.runs, |r| self.once(r, traffic))?;
        Ok(DelayVariationResult { runs })
    }

    fn once(
        &self,
        runner: &mut Runner<'_>,
        traffic: &dyn Traffic,
    ) -> Result<DelayVariationRun, MeasureError> {
        let streams = traffic.streams(&Offer::steady(self.rate).stamped(Stamps::All))?;
        let shown = runner.trial(&TrialSpec::new(streams, self.rate as f64, self.duration))?;
        runner.expect_answer(traffic, &shown)?;
        let penalty = self.penalty(runner.conduct.timeout);
        let measured = |s: &StreamOutcome| s.delays.as_ref().map(|d| of_stream(d, s.counts.lost(), penalty));
        let streams: Vec<DelayVariationRun> = shown.outcome.streams.iter().filter_map(measured).collect();
        streams
            .into_iter()
            .reduce(worse)
            .ok_or_else(|| MeasureError::Untrusted("no stamped frame was told of".into()))
    }

    /// The summary's rows of a result.
    pub fn rows(&self, runner: &Runner<'_>, result: &DelayVariationResult) -> Vec<SummaryRow> {
        let runs = &result.runs;
        let mut rows = vec![
            runner.row("PDV", "us", runs.map(|r| r.pdv)),
            runner.row("IPDV min", "us", runs.map(|r| r.ipdv_min)),
            runner.row("IPDV p0.1", "us", runs.map(|r| r.ipdv_p01)),
            runner.row("IPDV median", "us", runs.map(|r| r.ipdv_median)),
            runner.row("IPDV p99.9", "us", runs.map(|r| r.ipdv_p999)),
            runner.row("IPDV max", "us", runs.map(|r| r.ipdv_max)),
            runner.row("mean |IPDV|", "us", runs.map(|r| r.ipdv_mean)),
        ];
        let lost: u64 = runs.values.iter().map(|r| r.lost).sum();
        let negative: u64 = runs.values.iter().map(|r| r.negative).sum();
        for row in &mut rows {
            note(row, &format!("at {} fps/dir", self.rate));
            note(row, &format!("{lost} frames lost"));
            if negative > 0 {
                note(row, &format!("{negative} negative delays taken as 0"));
            }
        }
        rows
    }
}

/// A stream's figures. Lost frames are later than any: if the percentile falls among them it is the penalty.
fn of_stream(delays: &Delays, lost: u64, penalty: f64) -> DelayVariationRun {
    let high = histogram_percentile(&delays.histogram, lost, 99.9).map_or(penalty, |ns| ns as f64 * US);
    let variation = &delays.variation;
    let at = |percent| histogram_percentile(variation, 0, percent).map_or(0.0, |ns| ns as f64 * US);
    let pairs = histogram_count(variation).max(1) as f64;
    let absolute: f64 = variation.iter().map(|(ns, count)| ns.unsigned_abs() as f64 * *count as f64).sum();
    DelayVariationRun {
        pdv: (high - delays.min as f64 * US).max(0.0),
        ipdv_min: variation.first().map_or(0.0, |(ns, _)| *ns as f64 * US),
        ipdv_p01: at(0.1),
        ipdv_median: histogram_median(variation).map_or(0.0, |ns| ns as f64 * US),
        ipdv_p999: at(99.9),
        ipdv_max: variation.last().map_or(0.0, |(ns, _)| *ns as f64 * US),
        ipdv_mean: absolute * US / pairs,
        lost,
        negative: delays.negative,
    }
}

fn worse(a: DelayVariationRun, b: DelayVariationRun) -> DelayVariationRun {
    let further = |x: f64, y: f64| if x.abs() >= y.abs() { x } else { y };
    DelayVariationRun {
        pdv: a.pdv.max(b.pdv),
        ipdv_min: a.ipdv_min.min(b.ipdv_min),
        ipdv_p01: a.ipdv_p01.min(b.ipdv_p01),
        ipdv_median: further(a.ipdv_median, b.ipdv_median),
        ipdv_p999: a.ipdv_p999.max(b.ipdv_p999),
        ipdv_max: a.ipdv_max.max(b.ipdv_max),
        ipdv_mean: a.ipdv_mean.max(b.ipdv_mean),
        lost: a.lost + b.lost,
        negative: a.negative + b.negative,
    }
}

impl Test for DelayVariation {
    fn name(&self) -> &'static str {
        "pdv"
    }

    fn estimate(&self, conduct: &TrialProcedure, _most: u64) -> Estimate {
        Estimate::of(conduct, 1, self.duration).times(conduct.runs)
    }

    fn run(&self, runner: &mut Runner<'_>, traffic: &dyn Traffic) -> Result<Report, MeasureError> {
        let result = self.measure(runner, traffic)?;
        let rows = self.rows(runner, &result);
        Ok(Report { rows, ended: result.runs.ended })
    }
}
