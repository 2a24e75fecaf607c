//! Non-drop and partial-drop rates as T-Rex's ndr_bench looks for them: in percent of the highest rate, from a first trial at
//! all of it. For NDR and PDR by plain search see [`Throughput`](crate::Throughput) with a loss ratio; by RFC 9971,
//! [`MlrSearch`](crate::MlrSearch).

use std::time::Duration;

use serde::Serialize;
use shoal_lab_plan::{Stamps, SummaryRow};

use crate::case::note;
use crate::{
    Estimate, MeasureError, Offer, Repeated, Report, Runner, Shown, Test, Traffic, TrialProcedure, TrialSpec,
    repeat,
};

/// The test, with ndr_bench's defaults.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NdrBench {
    /// Loss that is allowed, in percent. 0: the non-drop rate.
    pub pdr: f64,
    /// The search ends when the bracket is this narrow, in percent of the highest rate.
    pub pdr_error: f64,
    /// Frames that the port refused and that were tried again, in percent of all: a step with more fails.
    pub queue_full: f64,
    /// A delay above this fails a step; none: delays are not measured.
    pub latency_ceiling: Option<Duration>,
    /// Steps at most.
    pub iterations: u32,
    /// Length of a step.
    pub duration: Duration,
    /// Length of the first trial, at 100 %.
    pub first: Duration,
    /// Silence after it.
    pub settle: Duration,
    /// Begins at `100 - loss` plus and minus 5 %.
    pub optimised: bool,
    /// What 100 % is; none: what the tester reaches or the link carries.
    pub most: Option<u64>,
}

impl Default for NdrBench {
    fn default() -> Self {
        let twenty = Duration::from_secs(20);
        NdrBench {
            pdr: 0.1,
            pdr_error: 1.0,
            queue_full: 2.0,
            latency_ceiling: None,
            iterations: 10,
            duration: twenty,
            first: twenty,
            settle: Duration::from_secs(15),
            optimised: false,
            most: None,
        }
    }
}

/// One run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct NdrBenchRun {
    /// The highest rate that passed, in percent of the highest.
    pub percent: f64,
    /// The same in frames a second and direction.
    pub rate: f64,
    /// Loss of the first trial, in percent.
    pub first_loss: f64,
    /// Steps that were needed.
    pub steps: u32,
}

impl NdrBench {
    /// Measures.
    ///
    /// # Errors
    ///
    /// If no run came to its end.
    pub fn measure(
        &self,
        runner: &mut Runner<'_>,
        traffic: &dyn Traffic,
    ) -> Result<Repeated<NdrBenchRun>, MeasureError> {
        let most = self.most.unwrap_or_else(|| runner.most_rate(traffic.size()));
        repeat(runner, self.name(), runner.conduct.runs, |r| self.once(r, traffic, most))
    }

    fn once(
        &self,
        runner: &mut Runner<'_>,
        traffic: &dyn Traffic,
        most: u64,
    ) -> Result<NdrBenchRun, MeasureError> {
        let at = |percent: f64| most as f64 * percent / 100.0;
        let first = self.offer(runner, traffic, most, self.first)?;
        let first_loss = 100.0 * first.outcome.loss();
        if self.holds(&first) {
            return Ok(NdrBenchRun { percent: 100.0, rate: most as f64, first_loss, steps: 1 });
        }
        runner.wait(self.settle)?;
        let (mut low, mut high): (f64, f64) = (0.0, 100.0);
        let mut guess =
            self.optimised.then(|| ((95.0 - first_loss).max(0.0), (105.0 - first_loss).min(100.0)));
        let mut steps = 1;
        while high - low > self.pdr_error && steps <= self.iterations {
            // The optimised mode first tries both ends of the bracket it expects.
            let percent = match &mut guess {
                Some((expected_low, _)) if *expected_low > low && *expected_low < high => *expected_low,
                Some((_, expected_high)) if *expected_high > low && *expected_high < high => *expected_high,
                _ => f64::midpoint(low, high),
            };
            let shown = self.offer(runner, traffic, at(percent) as u64, self.duration)?;
            steps += 1;
            if self.holds(&shown) { low = percent } else { high = percent }
        }
        Ok(NdrBenchRun { percent: low, rate: at(low), first_loss, steps })
    }

    fn offer(
        &self,
        runner: &mut Runner<'_>,
        traffic: &dyn Traffic,
        rate: u64,
        duration: Duration,
    ) -> Result<Shown, MeasureError> {
        let stamps = if self.latency_ceiling.is_some() { Stamps::All } else { Stamps::None };
        let streams = traffic.streams(&Offer::steady(rate.max(1)).stamped(stamps))?;
        let shown = runner.trial(&TrialSpec::new(streams, rate as f64, duration).overloaded())?;
        runner.expect_answer(traffic, &shown)?;
        Ok(shown)
    }

    fn holds(&self, shown: &Shown) -> bool {
        let streams = &shown.outcome.streams;
        let sent: u64 = streams.iter().map(|s| s.counts.sent).sum();
        let refused: u64 = streams.iter().map(|s| s.counts.retries).sum();
        let latest = streams.iter().filter_map(|s| s.delays.as_ref().map(|d| d.max)).max();
        let in_time = self
            .latency_ceiling
            .is_none_or(|ceiling| latest.is_none_or(|ns| u128::from(ns) <= ceiling.as_nanos()));
        let queue_full = 100.0 * refused as f64 / sent.max(1) as f64;
        let within = 100.0 * shown.outcome.loss() <= self.pdr;
        within && in_time && queue_full <= self.queue_full && !shown.is_tester_limit()
    }

    /// The summary's rows of a result.
    pub fn rows(&self, runner: &Runner<'_>, runs: &Repeated<NdrBenchRun>) -> Vec<SummaryRow> {
        let metric = if self.pdr == 0.0 { "NDR" } else { "PDR" };
        let mut rate = runner.rate_row(metric, runs.map(|r| r.rate));
        note(&mut rate, &format!("ndr_bench: loss up to {} %, within {} %", self.pdr, self.pdr_error));
        vec![rate]
    }
}

impl Test for NdrBench {
    fn name(&self) -> &'static str {
        "ndr-bench"
    }

    fn estimate(&self, conduct: &TrialProcedure, _most: u64) -> Estimate {
        let steps = Estimate::of(conduct, u64::from(self.iterations), self.duration);
        let first = Estimate::of(conduct, 1, self.first + self.settle);
        (steps + first).times(conduct.runs)
    }

    fn run(&self, runner: &mut Runner<'_>, traffic: &dyn Traffic) -> Result<Report, MeasureError> {
        let runs = self.measure(runner, traffic)?;
        let rows = self.rows(runner, &runs);
        Ok(Report { rows, ended: runs.ended })
    }
}
