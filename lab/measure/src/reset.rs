//! Reset: how long a device forwards nothing when it restarts (RFC 6201, which updates RFC 2544 26.6).

use std::time::Duration;

use serde::Serialize;
use shoal_lab_plan::{Counts, DeviceError, Gap, Reset, Side, SummaryRow};

use crate::case::note;
use crate::{
    Estimate, MeasureError, MidTrialAction, Offer, Repeated, Runner, Traffic, TrialProcedure, TrialSpec,
    repeat,
};

/// The test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ResetTest {
    /// RFC 6201 4: the throughput for the smallest frame; a lower rate has to be told.
    pub rate: u64,
    /// How the device restarts.
    pub kind: Reset,
    /// When that is caused, since the trial's start.
    pub at: Duration,
    /// How long is sent: until forwarding has surely resumed.
    pub duration: Duration,
}

/// What causes a reset. It is asked on the thread that sends and receives, and so only begins the reset and returns at once;
/// the reset itself goes on elsewhere.
pub trait Resets {
    /// Begins it.
    fn begin(&mut self, kind: Reset);

    /// Waits until it is over: the device forwards again, or cannot. Called after each trial.
    ///
    /// # Errors
    ///
    /// What the device said.
    fn finish(&mut self) -> Result<(), DeviceError>;
}

/// One run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ResetRun {
    /// RFC 6201 3.1.1's frame-loss method: frames lost by the rate, in seconds.
    pub by_loss: f64,
    /// RFC 6201 3.1.2's time-stamp method: from the last frame before to the first after, in seconds.
    pub by_stamps: f64,
    /// They agree within `max(1 ms, 10 / rate)`; otherwise some frames were forwarded meanwhile, or some were lost elsewhere.
    pub agree: bool,
    /// Nothing arrived after the reset: the times say only "at least".
    pub never_resumed: bool,
}

impl ResetTest {
    /// Whether both ways of measuring say the same.
    pub fn agree(by_loss: f64, by_stamps: f64, rate: u64) -> bool {
        (by_loss - by_stamps).abs() <= (10.0 / rate.max(1) as f64).max(1e-3)
    }

    /// How long it will take.
    pub fn estimate(&self, conduct: &TrialProcedure) -> Estimate {
        Estimate::of(conduct, 1, self.duration).times(conduct.runs)
    }

    /// Measures.
    ///
    /// # Errors
    ///
    /// If no run came to its end, or the device could not be reset.
    pub fn measure(
        &self,
        runner: &mut Runner<'_>,
        traffic: &dyn Traffic,
        device: &mut dyn Resets,
    ) -> Result<Repeated<ResetRun>, MeasureError> {
        if self.at >= self.duration {
            return Err(MeasureError::Setting {
                what: "reset time",
                value: format!("{:?}", self.at),
                nearest: format!("it must be less than the duration, {:?}", self.duration),
            });
        }
        repeat(runner, "reset", runner.conduct.runs, |r| self.once(r, traffic, device))
    }

    fn once(
        &self,
        runner: &mut Runner<'_>,
        traffic: &dyn Traffic,
        device: &mut dyn Resets,
    ) -> Result<ResetRun, MeasureError> {
        let streams = traffic.streams(&Offer::steady(self.rate))?;
        let shot = TrialSpec::new(streams, self.rate as f64, self.duration).overloaded();
        let mut begun = false;
        let mut act = || {
            begun = true;
            device.begin(self.kind);
        };
        let shown = runner.trial_with(&shot, Some(MidTrialAction { at: self.at, act: &mut act }));
        if begun {
            device.finish()?;
        }
        let shown = shown?;
        runner.expect_answer(traffic, &shown)?;
        let outcome = &shown.outcome;
        // Each direction is an estimate of the same time; the longest counts.
        let longest = |number: &dyn Fn(&Counts) -> f64| {
            Side::BOTH.iter().map(|side| number(&outcome.direction(*side))).fold(0.0, f64::max)
        };
        let by_loss = longest(&|c| c.lost() as f64 / self.rate.max(1) as f64);
        let gaps: Vec<Gap> = outcome.streams.iter().filter(|s| s.expected).filter_map(|s| s.gap).collect();
        let by_stamps = gaps.iter().map(|g| g.to.saturating_sub(g.from).as_secs_f64()).fold(0.0, f64::max);
        let last_lost = outcome.streams.iter().filter(|s| s.expected).filter_map(|s| s.last_lost).max();
        let end = self.duration.as_secs_f64() - 2.0 / self.rate.max(1) as f64;
        let never_resumed = by_loss > 0.0 && last_lost.is_some_and(|t| t.as_secs_f64() >= end);
        let agree = Self::agree(by_loss, by_stamps, self.rate);
        Ok(ResetRun { by_loss, by_stamps, agree, never_resumed })
    }

    /// The summary's rows of a result.
    pub fn rows(&self, runner: &Runner<'_>, runs: &Repeated<ResetRun>) -> Vec<SummaryRow> {
        let mut rows = vec![
            runner.row("reset by loss", "s", runs.map(|r| r.by_loss)),
            runner.row("reset by stamps", "s", runs.map(|r| r.by_stamps)),
        ];
        let apart = runs.values.iter().filter(|r| !r.agree).count();
        let dead = runs.values.iter().filter(|r| r.never_resumed).count();
        for row in &mut rows {
            row.variant = kind_name(self.kind);
            note(row, &format!("at {} fps/dir", self.rate));
            if apart > 0 {
                note(row, &format!("both ways of measuring differ in {apart} runs: partial forwarding"));
            }
            if dead > 0 {
                note(
                    row,
                    &format!(
                        "did not resume within {:?} in {dead} runs",
                        self.duration.saturating_sub(self.at)
                    ),
                );
            }
        }
        rows
    }
}

fn kind_name(kind: Reset) -> String {
    match kind {
        Reset::Restart => "restart".into(),
        Reset::Crash => "crash".into(),
        Reset::Reload => "reload".into(),
        Reset::Flap => "flap".into(),
        Reset::Workers(n) => format!("workers={n}"),
        Reset::Flush => "flush".into(),
    }
}
