//! System recovery: how long the device goes on losing frames after an overload ended (RFC 2544 26.5).

use std::time::Duration;

use serde::Serialize;
use shoal_lab_plan::{Pace, Rate, Stamps, Step, SummaryRow};

use crate::case::note;
use crate::{
    Estimate, MeasureError, Offer, Repeated, Report, Runner, Test, Traffic, TrialProcedure, TrialSpec, repeat,
};

/// The test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Recovery {
    /// The throughput that was found for the size, frames a second and direction.
    pub throughput: u64,
    /// The highest rate the tester reaches.
    pub most_rate: u64,
    /// RFC 2544 26.5: the overload lasts at least 60 s.
    pub overload: Duration,
    /// How long the lower rate is held: recovery is looked for that long.
    pub after: Duration,
}

/// One run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RecoveryRun {
    /// From the fall of the rate to the time at which the last lost frame was sent, in seconds; 0 if loss stopped at once.
    pub seconds: f64,
    /// The device lost nothing even during the overload: recovery says nothing then.
    pub never_overloaded: bool,
    /// It still lost frames at the end of the trial: it did not recover in that time.
    pub never_recovered: bool,
}

/// How near the trial's end a loss counts as "still losing", as a share of the time after the overload.
const END: f64 = 0.02;

impl Recovery {
    /// RFC 2544's lengths.
    pub const fn rfc2544(throughput: u64, most_rate: u64) -> Recovery {
        let minute = Duration::from_mins(1);
        Recovery { throughput, most_rate, overload: minute, after: minute }
    }

    /// The overload's rate: 110 % of the throughput, or the highest there is.
    pub fn overload_rate(&self) -> u64 {
        ((u128::from(self.throughput) * 11).div_ceil(10) as u64).min(self.most_rate)
    }

    /// Measures.
    ///
    /// # Errors
    ///
    /// If no run came to its end; a setting, if the tester cannot overload the device.
    pub fn measure(
        &self,
        runner: &mut Runner<'_>,
        traffic: &dyn Traffic,
    ) -> Result<Repeated<RecoveryRun>, MeasureError> {
        if self.overload_rate() <= self.throughput {
            return Err(MeasureError::Setting {
                what: "throughput",
                value: format!("{} fps", self.throughput),
                nearest: format!("only what is below the tester's {} fps can be overloaded", self.most_rate),
            });
        }
        repeat(runner, self.name(), runner.conduct.runs, |r| self.once(r, traffic))
    }

    fn once(&self, runner: &mut Runner<'_>, traffic: &dyn Traffic) -> Result<RecoveryRun, MeasureError> {
        let high = self.overload_rate();
        let steps = vec![
            Step { at: Duration::ZERO, rate: Rate::per_second(high) },
            // RFC 2544 26.5: "reduce the rate to 50 % of the above rate".
            Step { at: self.overload, rate: Rate::per_second(high).share(1, 2) },
        ];
        let offer = Offer { pace: Pace::Steps { steps }, stamps: Stamps::None };
        let length = self.overload + self.after;
        let shot = TrialSpec::new(traffic.streams(&offer)?, high as f64, length).overloaded();
        let shown = runner.trial(&shot)?;
        runner.expect_answer(traffic, &shown)?;
        let last = shown.outcome.streams.iter().filter(|s| s.expected).filter_map(|s| s.last_lost).max();
        let seconds = last.map_or(0.0, |b| b.saturating_sub(self.overload).as_secs_f64());
        let after = self.after.as_secs_f64();
        Ok(RecoveryRun {
            seconds,
            never_overloaded: last.is_none(),
            never_recovered: seconds > after * (1.0 - END),
        })
    }

    /// The summary's row of a result.
    pub fn row(&self, runner: &Runner<'_>, runs: &Repeated<RecoveryRun>) -> SummaryRow {
        let mut row = runner.row("recovery", "s", runs.map(|r| r.seconds));
        note(&mut row, &format!("overload of {} fps/dir", self.overload_rate()));
        let count = |which: fn(&RecoveryRun) -> bool| runs.values.iter().filter(|r| which(r)).count();
        match count(|r| r.never_overloaded) {
            0 => {}
            n => note(&mut row, &format!("nothing was lost during the overload in {n} runs")),
        }
        match count(|r| r.never_recovered) {
            0 => {}
            n => note(&mut row, &format!("not recovered within {:?} in {n} runs", self.after)),
        }
        if runs.values.iter().all(|r| r.seconds == 0.0 && !r.never_overloaded) {
            note(&mut row, "loss stopped at once");
        }
        row
    }
}

impl Test for Recovery {
    fn name(&self) -> &'static str {
        "recovery"
    }

    fn estimate(&self, conduct: &TrialProcedure, _most: u64) -> Estimate {
        Estimate::of(conduct, 1, self.overload + self.after).times(conduct.runs)
    }

    fn run(&self, runner: &mut Runner<'_>, traffic: &dyn Traffic) -> Result<Report, MeasureError> {
        let runs = self.measure(runner, traffic)?;
        let rows = vec![self.row(runner, &runs)];
        Ok(Report { rows, ended: runs.ended })
    }
}
