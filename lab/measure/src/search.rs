//! Binary search in whole numbers (RFC 2544 26.1; ETSI TST009's loss verification).

use std::time::Duration;

use serde::Serialize;

use crate::{MeasureError, Offer, Precision, Runner, Traffic, TrialProcedure, TrialSpec};

/// What a step of a search answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Go higher.
    Pass,
    /// Go lower.
    Fail,
    /// The tester cannot go as far: no statement about the device.
    Limit,
}

/// What kept a search from finding more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Bound {
    /// The device failed above.
    Device,
    /// The tester cannot do more: the result is "at least".
    Tester,
    /// Nothing failed up to the upper end: the result is "at least".
    Ceiling,
}

/// The result of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Found {
    /// The highest that passed.
    pub value: u64,
    /// The lowest that did not.
    pub above: u64,
    /// The last that was tried: what siitperf's script prints.
    pub last: u64,
    /// What kept it from being higher.
    pub bound: Bound,
}

/// Halves the bracket `low`..`most` until it is narrow enough. `ask` is given the value and the bracket before it. `low` is
/// taken to pass and `most` to fail; neither is tried.
///
/// # Errors
///
/// Those of `ask`.
pub fn bisect<E>(
    low: u64,
    most: u64,
    precision: Precision,
    mut ask: impl FnMut(u64, (u64, u64)) -> Result<Answer, E>,
) -> Result<Found, E> {
    let (mut l, mut h) = (low, most.max(low));
    let mut found = Found { value: l, above: h, last: l, bound: Bound::Ceiling };
    while !precision.reached(l, h) {
        let r = u64::midpoint(l, h);
        match ask(r, (l, h))? {
            Answer::Pass => l = r,
            Answer::Fail => (h, found.bound) = (r, Bound::Device),
            Answer::Limit => (h, found.bound) = (r, Bound::Tester),
        }
        found.last = r;
    }
    (found.value, found.above) = (l, h);
    Ok(found)
}

/// A search for the highest rate that passes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Search {
    /// The upper end, frames a second and direction.
    pub most: u64,
    /// How close.
    pub precision: Precision,
    /// The share that may be lost, 0 to 1.
    pub most_loss: f64,
    /// Length of a trial.
    pub duration: Duration,
    /// A later frame counts as lost.
    pub frame_timeout: Option<Duration>,
}

impl Search {
    /// Without loss, as `conduct` says, up to `most`.
    pub fn new(conduct: &TrialProcedure, most: u64) -> Search {
        Search {
            most,
            precision: conduct.precision,
            most_loss: 0.0,
            duration: conduct.duration,
            frame_timeout: None,
        }
    }

    /// Searches. A rate that the tester cannot keep caps this search and later ones of the same test.
    ///
    /// # Errors
    ///
    /// If a trial cannot be run, and [`MeasureError::Silent`] if the device answers nothing.
    pub fn run(&self, runner: &mut Runner<'_>, traffic: &dyn Traffic) -> Result<Found, MeasureError> {
        let capped = runner.cap().filter(|cap| *cap < self.most);
        let most = capped.unwrap_or(self.most);
        let mut found =
            bisect(0, most, self.precision, |rate, bracket| self.ask(runner, traffic, rate, bracket))?;
        if capped.is_some() && found.bound == Bound::Ceiling {
            found.bound = Bound::Tester;
        }
        Ok(found)
    }

    /// One step: the rate is tried, and again if it fails and losses are to be verified.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    pub fn ask(
        &self,
        runner: &mut Runner<'_>,
        traffic: &dyn Traffic,
        rate: u64,
        bracket: (u64, u64),
    ) -> Result<Answer, MeasureError> {
        for _ in 0..=runner.conduct.loss_verification {
            let shot = TrialSpec {
                bracket: Some(bracket),
                most_loss: self.most_loss,
                frame_timeout: self.frame_timeout,
                ..TrialSpec::new(traffic.streams(&Offer::steady(rate))?, rate as f64, self.duration)
            };
            let shown = runner.trial(&shot)?;
            if shown.passed {
                return Ok(Answer::Pass);
            }
            if shown.is_tester_limit() {
                if runner.conduct.siitperf {
                    return Ok(Answer::Fail);
                }
                runner.limit(rate);
                return Ok(Answer::Limit);
            }
            runner.expect_answer(traffic, &shown)?;
        }
        Ok(Answer::Fail)
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use proptest::prelude::*;

    use super::*;

    fn up_to(capacity: u64, most: u64, precision: Precision) -> Found {
        let answer = |r, _| Ok::<_, Infallible>(if r <= capacity { Answer::Pass } else { Answer::Fail });
        bisect(0, most, precision, answer).unwrap()
    }

    proptest! {
        #[test]
        fn a_search_ends_within_e_below_the_capacity(capacity in 0_u64..8_000_000, e in 1_u64..10_000) {
            let found = up_to(capacity, 8_000_000, Precision::Absolute(e));
            prop_assert!(found.value <= capacity && capacity - found.value < e.max(1));
            prop_assert!(found.above > capacity || found.bound == Bound::Ceiling);
        }

        #[test]
        fn it_takes_as_many_trials_as_estimated(capacity in 0_u64..8_000_000, e in 1_u64..10_000) {
            let mut trials = 0;
            let ask = |r, _| { trials += 1; Ok::<_, Infallible>(if r <= capacity { Answer::Pass } else { Answer::Fail }) };
            bisect(0, 8_000_000, Precision::Absolute(e), ask).unwrap();
            prop_assert!(trials <= Precision::Absolute(e).trials(8_000_000));
        }
    }

    #[test]
    fn one_failed_trial_costs_its_branch_as_in_the_paper() {
        let mut tried = 0;
        let unlucky = |_, _| {
            tried += 1;
            Ok::<_, Infallible>(if tried == 1 { Answer::Fail } else { Answer::Pass })
        };
        assert_eq!(bisect(0, 8_000_000, Precision::Absolute(1), unlucky).unwrap().value, 3_999_999);
    }

    #[test]
    fn an_upper_end_that_is_never_reached_is_told() {
        assert_eq!(up_to(9_000, 8_000, Precision::Absolute(1)).bound, Bound::Ceiling);
        assert_eq!(up_to(7_000, 8_000, Precision::Absolute(1)).bound, Bound::Device);
    }
}
