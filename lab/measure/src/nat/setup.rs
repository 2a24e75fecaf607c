//! Maximum connection establishment rate (RFC 9693 4.4), with its validation (4.4.1).

use std::time::Duration;

use serde::Serialize;
use shoal_lab_plan::{Learnt, Side, SummaryRow};

use super::Sessions;
use crate::case::note;
use crate::search::bisect;
use crate::{
    Answer, Bound, Estimate, MeasureError, Precision, Repeated, Runner, Shown, StatefulTraffic,
    TrialProcedure, TrialSpec, repeat,
};

/// The test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Setup {
    /// Connections, each a four-tuple.
    pub tuples: u64,
    /// The highest rate that is tried, frames a second.
    pub most: u64,
    /// How close.
    pub precision: Precision,
    /// The check's rate as a share of the setup rate (RFC 9693's alpha); none: no check.
    pub check: Option<f64>,
}

/// One run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SetupFound {
    /// New connections a second.
    pub rate: u64,
    /// What kept it from being higher.
    pub bound: Bound,
    /// Connections of the check over which no answer came back; 0 also without a check.
    pub unanswered: u64,
    /// What was wrong with what was learnt: the worst filling, or the last that passed; and with answers in the check.
    pub wrong: TranslationErrors,
}

/// What was wrong with translations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TranslationErrors {
    /// Two flows had the same one.
    pub not_unique: u64,
    /// One changed.
    pub not_stable: u64,
    /// The answer did not come back to the flow.
    pub not_restored: u64,
    /// Flows without any arrival.
    pub never_answered: u64,
    /// Some of them.
    pub examples: Vec<String>,
}

impl TranslationErrors {
    /// Reads what was learnt.
    pub fn of(learnt: Option<&Learnt>) -> TranslationErrors {
        learnt.map_or_else(TranslationErrors::default, |l| TranslationErrors {
            not_unique: l.not_unique,
            not_stable: l.not_stable,
            not_restored: l.not_restored,
            never_answered: l.never_answered,
            examples: l.examples.clone(),
        })
    }

    /// Translations that break the device's promise; flows that were refused do not.
    pub fn broken(&self) -> u64 {
        self.not_unique + self.not_stable + self.not_restored
    }
}

impl Setup {
    /// The length of a trial that sends each tuple once.
    pub(super) fn filling(tuples: u64, rate: u64) -> Duration {
        Duration::from_micros((tuples as f64 * 1e6 / rate.max(1) as f64).ceil().max(1.0) as u64)
    }

    /// Forgets all sessions and makes `tuples` new ones at `rate`.
    ///
    /// # Errors
    ///
    /// If the device or the tester cannot.
    pub fn fill(
        runner: &mut Runner<'_>,
        traffic: &dyn StatefulTraffic,
        device: &mut dyn Sessions,
        tuples: u64,
        rate: u64,
    ) -> Result<Shown, MeasureError> {
        let most = u32::try_from(tuples).map_err(|_| MeasureError::Setting {
            what: "tuples",
            value: tuples.to_string(),
            nearest: format!("a state table has at most {}", u32::MAX),
        })?;
        let shot = TrialSpec {
            learn: Some((Side::Right, most)),
            stateful: true,
            ..TrialSpec::new(traffic.fill(tuples, rate)?, rate as f64, Self::filling(tuples, rate))
                .overloaded()
        };
        // A second filling of a table that is already full would prove nothing: it is emptied before each try.
        let mut tries = 0;
        loop {
            device.clear()?;
            runner.wait(runner.conduct.settle)?;
            let shown = runner.trial(&shot)?;
            tries += 1;
            if !shown.is_doubtful() || tries > runner.conduct.retries {
                return Ok(shown);
            }
        }
    }

    /// Whether each tuple arrived and was learnt rightly.
    pub(super) fn is_filled(shown: &Shown, tuples: u64) -> bool {
        let received = shown.outcome.direction(Side::Left).received;
        let learnt = shown.outcome.learnt.as_ref();
        let sound = learnt.is_none_or(|l| l.tuples >= tuples && TranslationErrors::of(Some(l)).broken() == 0);
        shown.passed && received >= tuples && sound
    }

    /// How long it will take: searches begin in the middle, so fillings of half the most are counted.
    pub fn estimate(&self, conduct: &TrialProcedure) -> Estimate {
        let trials = u64::from(self.precision.trials(self.most)) + 1;
        Estimate::of(conduct, trials, Self::filling(self.tuples, self.most / 2) + conduct.settle)
            .times(conduct.runs)
    }

    /// Measures.
    ///
    /// # Errors
    ///
    /// If no run came to its end.
    pub fn measure(
        &self,
        runner: &mut Runner<'_>,
        traffic: &dyn StatefulTraffic,
        device: &mut dyn Sessions,
    ) -> Result<Repeated<SetupFound>, MeasureError> {
        repeat(runner, "nat-setup-rate", runner.conduct.runs, |r| self.once(r, traffic, device))
    }

    /// One search.
    ///
    /// # Errors
    ///
    /// As [`measure`](Self::measure), and [`MeasureError::Silent`] if not even a slow filling gets anything through.
    pub fn once(
        &self,
        runner: &mut Runner<'_>,
        traffic: &dyn StatefulTraffic,
        device: &mut dyn Sessions,
    ) -> Result<SetupFound, MeasureError> {
        let mut wrong = TranslationErrors::default();
        let found = bisect(0, self.most + 1, self.precision, |rate, _| {
            let shown = Self::fill(runner, traffic, device, self.tuples, rate)?;
            let passed = Self::is_filled(&shown, self.tuples);
            let now = TranslationErrors::of(shown.outcome.learnt.as_ref());
            // Broken translations are told whichever filling they were in; refused flows only of fillings that passed.
            if now.broken() > wrong.broken() || (passed && wrong.broken() == 0) {
                wrong = now;
            }
            if passed {
                return Ok(Answer::Pass);
            }
            if shown.is_tester_limit() {
                runner.limit(rate);
                return Ok(Answer::Limit);
            }
            if shown.outcome.direction(Side::Left).received == 0 {
                Self::expect_any(runner, traffic, device)?;
            }
            Ok::<_, MeasureError>(Answer::Fail)
        })?;
        let unanswered = match self.check {
            Some(alpha) if found.value > 0 => {
                let (unanswered, restored) = self.validate(runner, traffic, device, found.value, alpha)?;
                wrong.not_restored += restored.not_restored;
                wrong.examples.extend(restored.examples);
                unanswered
            }
            _ => 0,
        };
        Ok(SetupFound { rate: found.value, bound: found.bound, unanswered, wrong })
    }

    fn expect_any(
        runner: &mut Runner<'_>,
        traffic: &dyn StatefulTraffic,
        device: &mut dyn Sessions,
    ) -> Result<(), MeasureError> {
        let slow = Self::fill(runner, traffic, device, 10, 10)?;
        let counts = slow.outcome.direction(Side::Left);
        if counts.received == 0 {
            return Err(MeasureError::Silent { sent: counts.sent, rate: 10, where_to: "on the right" });
        }
        Ok(())
    }

    /// RFC 9693 4.4.1: the table is filled at the rate found, and the responder sends over each connection once. Each of
    /// these frames is looked at: an answer that comes back to another flow is no answer. How many did not come back, and
    /// what was wrong with those that did.
    fn validate(
        &self,
        runner: &mut Runner<'_>,
        traffic: &dyn StatefulTraffic,
        device: &mut dyn Sessions,
        rate: u64,
        alpha: f64,
    ) -> Result<(u64, TranslationErrors), MeasureError> {
        Self::fill(runner, traffic, device, self.tuples, rate)?;
        let slower = ((rate as f64 * alpha) as u64).max(1);
        let streams = traffic.check(self.tuples, slower)?;
        let shot = TrialSpec {
            stateful: true,
            verify_all: true,
            ..TrialSpec::new(streams, slower as f64, Self::filling(self.tuples, slower)).overloaded()
        };
        let shown = runner.trial(&shot)?;
        let wrong = TranslationErrors::of(shown.outcome.learnt.as_ref());
        Ok((self.tuples.saturating_sub(shown.outcome.direction(Side::Right).received), wrong))
    }

    /// The summary's row of a result.
    pub fn row(&self, runner: &Runner<'_>, runs: &Repeated<SetupFound>) -> SummaryRow {
        let mut row = runner.rate_row("connection setup rate", runs.map(|r| r.rate as f64));
        row.unit = "connections/s".into();
        note(&mut row, &format!("{} connections", self.tuples));
        let sum = |number: fn(&SetupFound) -> u64| runs.values.iter().map(number).sum::<u64>();
        let (unanswered, broken) = (sum(|r| r.unanswered), sum(|r| r.wrong.broken()));
        if unanswered > 0 {
            note(&mut row, &format!("validation: {unanswered} connections did not answer"));
        } else if self.check.is_some() {
            note(&mut row, "validated");
        }
        if broken > 0 {
            note(&mut row, &format!("{broken} translations were not unique, stable or restored"));
        }
        if runs.values.iter().any(|r| r.bound != Bound::Device) {
            crate::case::mark(&mut row, shoal_lab_plan::Trust::Ceiling);
            note(&mut row, "at least");
        }
        row
    }
}
