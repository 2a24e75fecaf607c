//! Which load is tried next.
//!
//! RFC 9971 leaves that open. Here: each goal is approached by coarser targets; the bounds of one are where the next looks
//! first. A missing bound is looked for in growing strides, a bracket is halved on a logarithmic scale.

use std::time::Duration;

use serde::Serialize;
use shoal_lab_plan::{Side, SummaryRow, Trust, Verdict};

use super::{Bounds, Class, Goal, LoadTrial, Loads, Target, classify, conditional_throughput};
use crate::case::{mark, note};
use crate::{Estimate, MeasureError, Offer, Report, Runner, Shown, Test, Traffic, TrialProcedure, TrialSpec};

/// The search.
#[derive(Clone, Debug, PartialEq)]
pub struct MlrSearch {
    /// What is searched for; each uses the others' trials.
    pub goals: Vec<Goal>,
    /// The smallest load that is tried, frames a second and direction.
    pub min: u64,
    /// The largest; none: what the tester reaches or the link carries.
    pub max: Option<u64>,
    /// When this much time was sent, the search ends with what it has.
    pub most_time: Duration,
}

impl Default for MlrSearch {
    /// CSIT's NDR and PDR of 0.5 %.
    fn default() -> Self {
        MlrSearch {
            goals: vec![Goal::csit(0.0), Goal::csit(0.005)],
            min: 1_000,
            max: None,
            most_time: Duration::from_mins(20),
        }
    }
}

/// What was found for a goal.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct GoalResult {
    /// The goal.
    pub goal: Goal,
    /// The relevant lower bound; none: even the smallest load is too much.
    pub lower: Option<u64>,
    /// The relevant upper bound; none: the largest load is carried: "at least".
    pub upper: Option<u64>,
    /// The conditional throughput of the lower bound, frames a second and direction.
    pub throughput: f64,
    /// The bounds are as near as the goal asks, or the range's end was reached. Otherwise the time was up.
    pub reached: bool,
    /// Trials of all goals until then.
    pub trials: usize,
}

struct State<'m> {
    loads: Loads,
    min: u64,
    max: u64,
    sent: Duration,
    most_time: Duration,
    measure: &'m mut dyn FnMut(u64, Duration) -> Result<f64, MeasureError>,
}

impl State<'_> {
    /// Tries `load` until it is decided. `None`: the time is up.
    fn decide(&mut self, load: u64, target: &Target) -> Result<Option<Class>, MeasureError> {
        loop {
            match classify(self.loads.of(load), target) {
                Class::Undecided => {}
                decided => return Ok(Some(decided)),
            }
            if self.sent >= self.most_time {
                return Ok(None);
            }
            let loss_ratio = (self.measure)(load, target.duration)?;
            self.sent += target.duration;
            self.loads.add(load, LoadTrial { duration: target.duration, loss_ratio });
        }
    }

    /// Finds bounds as near as the target asks; first at `hint`. `None`: the time is up.
    fn approach(&mut self, target: &Target, hint: Bounds) -> Result<Option<Bounds>, MeasureError> {
        let (mut stride, mut hints) = (target.width, vec![hint.upper, hint.lower]);
        loop {
            let bounds = self.loads.bounds(target);
            if self.is_done(bounds, target) {
                return Ok(Some(bounds));
            }
            let hinted = loop {
                match hints.pop() {
                    Some(Some(load)) if self.is_inside(load, bounds) => break Some(load),
                    Some(_) => {}
                    None => break None,
                }
            };
            let load = hinted.unwrap_or_else(|| self.next(bounds, &mut stride));
            if self.decide(load, target)?.is_none() {
                return Ok(None);
            }
        }
    }

    fn is_done(&self, bounds: Bounds, target: &Target) -> bool {
        let near = bounds.lower.zip(bounds.upper).is_some_and(|(l, u)| u - l <= 1);
        near || bounds.width().is_some_and(|w| w <= target.width)
            || bounds.lower == Some(self.max)
            || bounds.upper == Some(self.min)
    }

    fn is_inside(&self, load: u64, bounds: Bounds) -> bool {
        let (low, high) =
            (bounds.lower.map_or(self.min, |l| l + 1), bounds.upper.map_or(self.max, |u| u - 1));
        (low..=high).contains(&load)
    }

    fn next(&self, bounds: Bounds, stride: &mut f64) -> u64 {
        let Bounds { lower, upper } = bounds;
        let load = match (lower, upper) {
            (Some(l), Some(u)) => {
                return ((l as f64 * u as f64).sqrt() as u64).clamp(l + 1, (u - 1).max(l + 1));
            }
            (None, None) => self.max as f64,
            (None, Some(u)) => u as f64 * (1.0 - *stride),
            (Some(l), None) => l as f64 / (1.0 - *stride),
        };
        *stride = (*stride * 2.0).min(0.75);
        let low = lower.map_or(self.min, |l| l + 1);
        let high = upper.map_or(self.max, |u| u - 1).max(low);
        (load as u64).clamp(low, high)
    }
}

impl MlrSearch {
    /// The search itself, over anything that answers load and duration with a loss ratio.
    ///
    /// # Errors
    ///
    /// Goals or loads out of range, and what `measure` says.
    pub fn search(
        &self,
        max: u64,
        measure: &mut dyn FnMut(u64, Duration) -> Result<f64, MeasureError>,
    ) -> Result<Vec<GoalResult>, MeasureError> {
        self.goals.iter().try_for_each(Goal::checked)?;
        let min = self.min.max(1);
        if min >= max {
            return Err(MeasureError::Setting {
                what: "smallest load",
                value: min.to_string(),
                nearest: format!("it must be less than the largest, {max}"),
            });
        }
        let loads = Loads::default();
        let mut state = State { loads, min, max, sent: Duration::ZERO, most_time: self.most_time, measure };
        let mut found = Bounds::default();
        if let Some(first) = self.goals.first() {
            // What arrives at the largest load is where the search begins.
            let loss_ratio = (state.measure)(max, first.initial_duration)?;
            state.loads.add(max, LoadTrial { duration: first.initial_duration, loss_ratio });
            let received = (max as f64 * (1.0 - loss_ratio)) as u64;
            found.lower = (loss_ratio > 0.0).then_some(received.clamp(min, max));
        }
        let mut results = Vec::new();
        for goal in &self.goals {
            results.push(pursue(&mut state, goal, &mut found)?);
        }
        Ok(results)
    }

    /// Measures over a tester.
    ///
    /// # Errors
    ///
    /// If a trial cannot be run, a goal is impossible, or the device answers nothing.
    pub fn measure(
        &self,
        runner: &mut Runner<'_>,
        traffic: &dyn Traffic,
    ) -> Result<Vec<GoalResult>, MeasureError> {
        runner.begin(self.name(), 1, 1);
        let max = self.max.unwrap_or_else(|| runner.most_rate(traffic.size()));
        self.search(max, &mut |load, duration| {
            let streams = traffic.streams(&Offer::steady(load))?;
            let shown = runner.trial(&TrialSpec::new(streams, load as f64, duration).overloaded())?;
            runner.expect_answer(traffic, &shown)?;
            if shown.is_tester_limit() {
                runner.limit(load);
            }
            Ok(loss_ratio(&shown))
        })
    }

    /// The summary's rows of results.
    pub fn rows(&self, runner: &Runner<'_>, results: &[GoalResult]) -> Vec<SummaryRow> {
        results
            .iter()
            .map(|result| {
                let metric = if result.goal.loss_ratio == 0.0 { "NDR" } else { "PDR" };
                let mut row = runner.rate_row(metric, vec![result.throughput]);
                note(&mut row, &format!("MLRsearch, loss ratio {} %", result.goal.loss_ratio * 100.0));
                note(&mut row, &format!("lower bound {}, upper {}", or(result.lower), or(result.upper)));
                if result.upper.is_none() && result.lower.is_some() {
                    mark(&mut row, Trust::Ceiling);
                    note(&mut row, "at least (largest load)");
                }
                let limited = |cap: u64| result.upper.is_none_or(|upper| upper >= cap);
                if runner.cap().is_some_and(limited) {
                    mark(&mut row, Trust::TesterBound);
                    note(&mut row, "at least (tester limit)");
                }
                if !result.reached {
                    note(&mut row, "the time was up before the bounds were near enough");
                }
                row
            })
            .collect()
    }
}

/// Goes through a goal's targets, and tells what was found when the last is reached or the time is up.
fn pursue(state: &mut State<'_>, goal: &Goal, found: &mut Bounds) -> Result<GoalResult, MeasureError> {
    let targets = goal.targets();
    let mut reached = true;
    for target in &targets {
        match state.approach(target, *found)? {
            Some(bounds) => *found = bounds,
            None => reached = false,
        }
    }
    let Some(last) = targets.last() else { unreachable!("a goal is its own last target") };
    let bounds = state.loads.bounds(last);
    let throughput =
        bounds.lower.map_or(0.0, |load| conditional_throughput(load, state.loads.of(load), last));
    Ok(GoalResult {
        goal: *goal,
        lower: bounds.lower,
        upper: bounds.upper,
        throughput,
        reached,
        trials: state.loads.count(),
    })
}

fn or(load: Option<u64>) -> String {
    load.map_or_else(|| "none".into(), |l| l.to_string())
}

/// The share that did not arrive, over all directions, of what should have been sent in the time: what the tester could not
/// send is lost too (RFC 9971's advice for testers that cannot keep the load).
fn loss_ratio(shown: &Shown) -> f64 {
    let sides = Side::BOTH.map(|side| shown.outcome.direction(side));
    let due: u64 = sides.iter().map(|c| c.requested).sum();
    let received: u64 = sides.iter().map(|c| c.received).sum();
    let lost = 1.0 - received as f64 / due.max(1) as f64;
    let late = match shown.verdict {
        Verdict::TesterLimit(_) => {
            1.0 - shown.outcome.planned.as_secs_f64() / shown.outcome.took.as_secs_f64().max(1e-9)
        }
        // Frames that the device refused until their time was over are among these.
        Verdict::Fail(share) => share,
        _ => 0.0,
    };
    lost.max(late).clamp(0.0, 1.0)
}

impl Test for MlrSearch {
    fn name(&self) -> &'static str {
        "mlrsearch"
    }

    /// About: each goal decides about eight loads, half of its duration sum each.
    fn estimate(&self, conduct: &TrialProcedure, _most: u64) -> Estimate {
        let of = |goal: &Goal| {
            let each = (goal.duration_sum.as_secs_f64() / goal.final_duration.as_secs_f64() / 2.0).ceil();
            Estimate::of(conduct, 8 * each as u64, goal.final_duration)
        };
        self.goals.iter().map(of).fold(Estimate::default(), |a, b| a + b)
    }

    fn run(&self, runner: &mut Runner<'_>, traffic: &dyn Traffic) -> Result<Report, MeasureError> {
        let results = self.measure(runner, traffic)?;
        Ok(Report { rows: self.rows(runner, &results), ended: None })
    }
}
