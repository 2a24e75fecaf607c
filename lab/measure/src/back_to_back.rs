//! Back-to-back frames: the longest burst at the smallest gap that is forwarded whole (RFC 2544 26.4 as updated by RFC 9004).

use std::time::Duration;

use serde::Serialize;
use shoal_lab_plan::{Pace, Rate, Stamps, SummaryRow};

use crate::case::note;
use crate::search::bisect;
use crate::{
    Answer, Bound, Estimate, Found, MeasureError, Offer, Precision, Repeated, Report, Runner, Test, Traffic,
    TrialProcedure, TrialSpec, repeat,
};

/// The test. On a virtual link the highest frame rate is what the self-test found: say so.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BackToBack {
    /// The highest frame rate, frames a second and direction: of the link, or of the self-test.
    pub most_rate: u64,
    /// The throughput that was found for the size.
    pub throughput: f64,
    /// RFC 2544 26.4: 50 repetitions.
    pub repetitions: u32,
    /// The longest burst that is tried. RFC 9004 6.3: bursts of up to 2 s.
    pub longest: Duration,
}

impl BackToBack {
    /// As RFC 9004 says: 50 repetitions, bursts of up to 2 s.
    pub const fn rfc9004(most_rate: u64, throughput: f64) -> BackToBack {
        BackToBack { most_rate, throughput, repetitions: 50, longest: Duration::from_secs(2) }
    }
}

/// Its result.
#[derive(Debug)]
pub struct BackToBackResult {
    /// The longest burst of each repetition.
    pub runs: Repeated<Found>,
    /// Seconds that the mean burst lasts at the highest frame rate.
    pub implied: f64,
    /// The part of it that the device really stores: RFC 9004 6.4's correction for what it forwards meanwhile.
    pub corrected: f64,
}

impl BackToBack {
    fn most_frames(&self) -> u64 {
        (self.most_rate as f64 * self.longest.as_secs_f64()) as u64
    }

    /// Measures.
    ///
    /// # Errors
    ///
    /// If no run came to its end; a setting, if the throughput is the highest frame rate: RFC 9004 5 leaves such sizes out,
    /// because their buffer is never filled.
    pub fn measure(
        &self,
        runner: &mut Runner<'_>,
        traffic: &dyn Traffic,
    ) -> Result<BackToBackResult, MeasureError> {
        if self.throughput >= self.most_rate as f64 {
            return Err(MeasureError::Setting {
                what: "throughput",
                value: format!("{:.0} fps", self.throughput),
                nearest: format!(
                    "only below the highest frame rate, {} fps, is a buffer ever filled (RFC 9004 5)",
                    self.most_rate
                ),
            });
        }
        let runs = repeat(runner, self.name(), self.repetitions, |r| self.once(r, traffic))?;
        let frames = crate::statistics::mean(&runs.map(|f| f.value as f64)).unwrap_or(0.0);
        let most = self.most_rate as f64;
        // RFC 9004 6.4.
        let implied = frames / most;
        Ok(BackToBackResult { runs, implied, corrected: implied * (1.0 - self.throughput / most) })
    }

    fn once(&self, runner: &mut Runner<'_>, traffic: &dyn Traffic) -> Result<Found, MeasureError> {
        // The upper end is never tried by a bisection: one more, so that the longest burst can pass.
        bisect(0, self.most_frames() + 1, Precision::Absolute(1), |frames, bracket| {
            self.ask(runner, traffic, frames, bracket)
        })
    }

    fn ask(
        &self,
        runner: &mut Runner<'_>,
        traffic: &dyn Traffic,
        frames: u64,
        bracket: (u64, u64),
    ) -> Result<Answer, MeasureError> {
        let duration = burst_time(frames, self.most_rate);
        let streams = traffic.streams(&Offer::burst(frames, Some(self.most_rate)))?;
        // The record's rate is the burst's length here: that is what the bracket is of.
        let shot = TrialSpec { bracket: Some(bracket), ..TrialSpec::new(streams, frames as f64, duration) };
        for _ in 0..=runner.conduct.loss_verification {
            let shown = runner.trial(&shot)?;
            if shown.passed {
                return Ok(Answer::Pass);
            }
            if shown.is_tester_limit() {
                return Ok(Answer::Limit);
            }
            runner.expect_answer(traffic, &shown)?;
        }
        Ok(Answer::Fail)
    }

    /// The summary's rows of a result.
    pub fn rows(&self, runner: &Runner<'_>, result: &BackToBackResult) -> Vec<SummaryRow> {
        // Of each repetition: the RFC's figure is their mean.
        let most = self.most_rate as f64;
        let stored = 1.0 - self.throughput / most;
        let mut rows = vec![
            runner.row("back-to-back", "frames", result.runs.map(|f| f.value as f64)),
            runner.row("implied buffer time", "us", result.runs.map(|f| f.value as f64 * 1e6 / most)),
            runner.row(
                "corrected buffer time",
                "us",
                result.runs.map(|f| f.value as f64 * stored * 1e6 / most),
            ),
        ];
        let bound = |b| result.runs.values.iter().any(|f| f.bound == b);
        for row in &mut rows {
            note(row, &format!("bursts at {} fps/dir", self.most_rate));
            if runner.facts().link.is_virtual {
                note(row, "the highest frame rate is the self-test's");
            }
            if bound(Bound::Tester) {
                crate::case::mark(row, shoal_lab_plan::Trust::TesterBound);
                note(row, "at least (tester limit)");
            }
            if bound(Bound::Ceiling) {
                crate::case::mark(row, shoal_lab_plan::Trust::Ceiling);
                note(row, "at least (longest burst)");
            }
        }
        rows
    }
}

/// How long a burst takes, rounded up to a microsecond.
fn burst_time(frames: u64, rate: u64) -> Duration {
    Duration::from_micros((frames as f64 * 1e6 / rate.max(1) as f64).ceil().max(1.0) as u64)
}

impl Test for BackToBack {
    fn name(&self) -> &'static str {
        "back-to-back"
    }

    fn estimate(&self, conduct: &TrialProcedure, _most: u64) -> Estimate {
        let trials = conduct.search_trials(Precision::Absolute(1), self.most_frames());
        Estimate::of(conduct, trials, self.longest / 4).times(self.repetitions)
    }

    fn run(&self, runner: &mut Runner<'_>, traffic: &dyn Traffic) -> Result<Report, MeasureError> {
        let result = self.measure(runner, traffic)?;
        let rows = self.rows(runner, &result);
        Ok(Report { rows, ended: result.runs.ended })
    }
}

/// Bursty traffic (RFC 2544 21): for bursts of some lengths the smallest gap between two that loses nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct BurstGap {
    /// Frames of a burst. RFC 2544 21: 16, 64, 256, 1024.
    pub bursts: Vec<u64>,
    /// Frames a second and direction within a burst.
    pub most_rate: u64,
    /// The longest gap that is tried.
    pub longest_gap: Duration,
}

impl BurstGap {
    /// RFC 2544's burst lengths, gaps of up to 100 ms.
    pub fn rfc2544(most_rate: u64) -> BurstGap {
        BurstGap { bursts: vec![16, 64, 256, 1024], most_rate, longest_gap: Duration::from_millis(100) }
    }
}

/// The smallest gap for a length of bursts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct GapFound {
    /// Frames of a burst.
    pub burst: u64,
    /// The smallest gap that lost nothing; none: even the longest loses.
    pub gap: Option<Duration>,
}

impl BurstGap {
    /// Measures: for each length, each run's.
    ///
    /// # Errors
    ///
    /// If no run came to its end.
    pub fn measure(
        &self,
        runner: &mut Runner<'_>,
        traffic: &dyn Traffic,
    ) -> Result<Repeated<Vec<GapFound>>, MeasureError> {
        repeat(runner, self.name(), runner.conduct.runs, |r| {
            self.bursts.iter().map(|burst| self.smallest(r, traffic, *burst)).collect()
        })
    }

    /// Larger gaps pass and smaller fail, so the search runs over what is left of the longest gap, in microseconds.
    fn smallest(
        &self,
        runner: &mut Runner<'_>,
        traffic: &dyn Traffic,
        burst: u64,
    ) -> Result<GapFound, MeasureError> {
        let longest = self.longest_gap.as_micros() as u64;
        if self.ask(runner, traffic, burst, longest)? != Answer::Pass {
            return Ok(GapFound { burst, gap: None });
        }
        let found = bisect(0, longest + 1, Precision::Absolute(1), |less, _| {
            self.ask(runner, traffic, burst, longest - less)
        })?;
        Ok(GapFound { burst, gap: Some(Duration::from_micros(longest - found.value)) })
    }

    fn ask(
        &self,
        runner: &mut Runner<'_>,
        traffic: &dyn Traffic,
        burst: u64,
        gap_us: u64,
    ) -> Result<Answer, MeasureError> {
        let gap = Duration::from_micros(gap_us);
        let one = burst_time(burst, self.most_rate) + gap;
        let duration = runner.conduct.duration;
        let bursts = ((duration.as_secs_f64() / one.as_secs_f64()) as u64).max(1);
        let pace = Pace::Bursts {
            frames: burst,
            bursts,
            rate: Some(Rate::per_second(self.most_rate)),
            gap,
            after: Duration::ZERO,
        };
        let streams = traffic.streams(&Offer { pace, stamps: Stamps::None })?;
        let shot = TrialSpec::new(streams, (burst * bursts) as f64 / duration.as_secs_f64(), duration);
        let shown = runner.trial(&shot)?;
        runner.expect_answer(traffic, &shown)?;
        Ok(match (shown.passed, shown.is_tester_limit()) {
            (true, _) => Answer::Pass,
            (_, true) => Answer::Limit,
            _ => Answer::Fail,
        })
    }
}

impl Test for BurstGap {
    fn name(&self) -> &'static str {
        "burst-gap"
    }

    fn estimate(&self, conduct: &TrialProcedure, _most: u64) -> Estimate {
        let each = u64::from(Precision::Absolute(1).trials(self.longest_gap.as_micros() as u64)) + 1;
        Estimate::of(conduct, each * self.bursts.len() as u64, conduct.duration).times(conduct.runs)
    }

    fn run(&self, runner: &mut Runner<'_>, traffic: &dyn Traffic) -> Result<Report, MeasureError> {
        let runs = self.measure(runner, traffic)?;
        let rows = self
            .bursts
            .iter()
            .map(|burst| {
                let gaps = runs.values.iter().flatten().filter(|g| g.burst == *burst);
                let values: Vec<f64> = gaps.filter_map(|g| g.gap.map(|t| t.as_secs_f64() * 1e6)).collect();
                let mut row = runner.row("smallest gap", "us", values);
                row.variant = format!("burst={burst}");
                if row.values.len() < runs.values.len() {
                    note(&mut row, &format!("loses even with gaps of {:?}", self.longest_gap));
                }
                row
            })
            .collect();
        Ok(Report { rows, ended: runs.ended })
    }
}
