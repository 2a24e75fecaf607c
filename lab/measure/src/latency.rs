//! Latency: typical and worst case (RFC 8219 7.2), and RFC 2544 26.2's mean.

use std::time::Duration;

use serde::Serialize;
use shoal_lab_plan::{Pace, Stamps, SummaryRow};

use crate::case::{note, with_curve};
use crate::statistics::{mean, median, percentile};
use crate::{
    Estimate, MeasureError, Offer, Repeated, Report, Runner, Test, Traffic, TrialProcedure, TrialSpec, repeat,
};

/// The test. Its rate is the throughput that was found for the size, or a stated part of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Latency {
    /// Frames a second and direction.
    pub rate: u64,
    /// RFC 8219 7.2: at least 120 s.
    pub duration: Duration,
    /// RFC 8219 7.2: tagging begins after 60 s.
    pub delay: Duration,
    /// Tagged frames of each direction. RFC 8219: at least 500; siitperf at most 50,000. With 500 the worst case is the
    /// largest; 10,000 make it mean something.
    pub tags: u32,
}

impl Latency {
    /// RFC 8219's where trials are as long as the RFCs ask, else one as long as the others.
    pub fn of(conduct: &TrialProcedure, rate: u64) -> Latency {
        if conduct.duration < Duration::from_mins(1) {
            Latency::under(conduct, rate)
        } else {
            Latency::rfc8219(rate)
        }
    }

    /// RFC 8219's: 120 s, the second half tagged, 50,000 tags as siitperf's script.
    pub const fn rfc8219(rate: u64) -> Latency {
        Latency { rate, duration: Duration::from_mins(2), delay: Duration::from_mins(1), tags: 50_000 }
    }

    /// As long as a trial of `conduct`, the second half tagged; 50,000 tags, or as many as there are frames.
    pub fn under(conduct: &TrialProcedure, rate: u64) -> Latency {
        let delay = conduct.duration / 2;
        let frames = (rate as f64 * conduct.duration.saturating_sub(delay).as_secs_f64()) as u64;
        let tags = frames.clamp(1, 50_000) as u32;
        Latency { rate, duration: conduct.duration, delay, tags }
    }
}

/// One run, in microseconds. Of several directions, of all their tags together.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LatencyRun {
    /// Typical: the median.
    pub typical: f64,
    /// Worst case: the 99.9th percentile by nearest rank.
    pub worst: f64,
    /// The mean of all tags that arrived.
    pub mean: f64,
    /// The smallest.
    pub min: f64,
    /// Tags that never arrived; each counts as the penalty.
    pub lost: u64,
    /// All tags' delays with penalties, rising.
    pub delays: Vec<f64>,
    /// How long the tester could have left a frame lying.
    pub uncertainty: f64,
    /// Delays below 0, taken as 0.
    pub negative: u64,
}

/// Its result.
#[derive(Debug)]
pub struct LatencyResult {
    /// Each run's.
    pub runs: Repeated<LatencyRun>,
}

const US: f64 = 1e-3;

impl Latency {
    /// What a lost tag counts as, in microseconds: siitperf's `1000 * (D - delay) + timeout` ms.
    fn penalty(&self, timeout: Duration) -> f64 {
        (self.duration.saturating_sub(self.delay) + timeout).as_secs_f64() * 1e6
    }

    /// Measures.
    ///
    /// # Errors
    ///
    /// If no run came to its end, or there are fewer frames than tags.
    pub fn measure(
        &self,
        runner: &mut Runner<'_>,
        traffic: &dyn Traffic,
    ) -> Result<LatencyResult, MeasureError> {
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
    ) -> Result<LatencyResult, MeasureError> {
        if self.delay >= self.duration {
            return Err(MeasureError::Setting {
                what: "delay",
                value: format!("{:?}", self.delay),
                nearest: format!("it must be less than the duration, {:?}", self.duration),
            });
        }
        let frames = self.rate as f64 * self.duration.saturating_sub(self.delay).as_secs_f64();
        if self.tags == 0 || f64::from(self.tags) > frames {
            return Err(MeasureError::Setting {
                what: "tags",
                value: self.tags.to_string(),
                nearest: format!("1 to {frames:.0} frames can be tagged at this rate and length"),
            });
        }
        let runs = repeat(runner, name, runner.conduct.runs, |r| self.once(r, traffic))?;
        Ok(LatencyResult { runs })
    }

    fn once(&self, runner: &mut Runner<'_>, traffic: &dyn Traffic) -> Result<LatencyRun, MeasureError> {
        let stamps = Stamps::Even { after: self.delay, count: self.tags };
        let streams = traffic.streams(&Offer::steady(self.rate).stamped(stamps))?;
        let tagged =
            streams.iter().any(|s| matches!(s.pace, Pace::Steady { .. }) && s.stamps != Stamps::None);
        if !tagged {
            return Err(MeasureError::Traffic("none of its streams can be tagged for latency".into()));
        }
        let shown = runner.trial(&TrialSpec::new(streams, self.rate as f64, self.duration))?;
        runner.expect_answer(traffic, &shown)?;
        let timeout = runner.conduct.timeout;
        let (mut delays, mut arrived, mut lost) = (Vec::new(), Vec::new(), 0);
        let (mut uncertainty, mut negative) = (0, 0);
        for all in shown.outcome.streams.iter().filter_map(|s| s.delays.as_ref()) {
            for tag in &all.tags {
                let us = tag.map(|ns| ns as f64 * US);
                arrived.extend(us);
                lost += u64::from(tag.is_none());
                delays.push(us.unwrap_or_else(|| self.penalty(timeout)));
            }
            uncertainty = uncertainty.max(all.uncertainty);
            negative += all.negative;
        }
        delays.sort_by(f64::total_cmp);
        let (Some(typical), Some(worst)) = (median(&delays), percentile(&delays, 99.9)) else {
            return Err(MeasureError::Untrusted("no tagged frame was told of".into()));
        };
        Ok(LatencyRun {
            typical,
            worst,
            mean: mean(&arrived).unwrap_or(0.0),
            min: arrived.iter().copied().fold(f64::INFINITY, f64::min).min(worst),
            lost,
            delays,
            uncertainty: uncertainty as f64 * US,
            negative,
        })
    }

    /// The summary's rows of a result: TL, WCL, the mean, and TL's curve of percentiles over all runs.
    pub fn rows(&self, runner: &Runner<'_>, result: &LatencyResult) -> Vec<SummaryRow> {
        let runs = &result.runs;
        let mut rows = vec![
            runner.row("TL", "us", runs.map(|r| r.typical)),
            runner.row("WCL", "us", runs.map(|r| r.worst)),
            runner.row("mean latency", "us", runs.map(|r| r.mean)),
            runner.row("min latency", "us", runs.map(|r| r.min)),
        ];
        let all: Vec<f64> = runs.values.iter().flat_map(|r| r.delays.iter().copied()).collect();
        let lost: u64 = runs.values.iter().map(|r| r.lost).sum();
        let uncertainty = runs.values.iter().map(|r| r.uncertainty).fold(0.0, f64::max);
        for row in &mut rows {
            note(row, &format!("at {} fps/dir", self.rate));
            note(row, &format!("{lost} tags lost"));
            note(row, &format!("stamps at the tester's API, uncertain by {uncertainty:.3} us"));
        }
        let points = [1.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.9, 99.99, 99.999];
        let curve = points.iter().filter_map(|p| percentile(&all, *p).map(|v| (*p, v))).collect();
        if let Some(first) = rows.first_mut() {
            *first = with_curve(first.clone(), curve, "percentile", "us");
        }
        rows
    }
}

impl Test for Latency {
    fn name(&self) -> &'static str {
        "latency"
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
