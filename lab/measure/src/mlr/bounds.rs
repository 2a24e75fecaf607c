//! Which loads are bounds (RFC 9971 6.1 and its appendices on load classification and conditional throughput).

use std::collections::BTreeMap;
use std::time::Duration;

use super::Target;

/// A trial at some load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoadTrial {
    /// How long was sent.
    pub duration: Duration,
    /// The share that did not arrive, 0 to 1, over all directions.
    pub loss_ratio: f64,
}

/// What is known of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// The goal is met here, whatever further trials might give.
    Lower,
    /// It is not, whatever they might give.
    Upper,
    /// More trials are needed.
    Undecided,
}

/// Judges a load by its trials.
///
/// Trials shorter than the target's can only speak against a load, and only by what good short ones do not make up for.
pub fn classify(trials: &[LoadTrial], target: &Target) -> Class {
    let sum = |long: bool, bad: bool| -> f64 {
        let seconds = trials
            .iter()
            .filter(|t| (t.duration >= target.duration) == long && (t.loss_ratio > target.loss_ratio) == bad)
            .map(|t| t.duration.as_secs_f64());
        seconds.sum()
    };
    let (good, bad) = (sum(true, false), sum(true, true));
    let made_up = sum(false, false) * target.exceed_ratio / (1.0 - target.exceed_ratio);
    let excess = bad + (sum(false, true) - made_up).max(0.0);
    let whole = (good + excess).max(target.duration_sum.as_secs_f64());
    let allowed = whole * target.exceed_ratio;
    // All that is missing might be good, or bad.
    let (best, worst) = (excess, whole - good);
    if worst <= allowed {
        Class::Lower
    } else if best > allowed {
        Class::Upper
    } else {
        Class::Undecided
    }
}

/// The forwarding rate that a lower bound promises: the load less the loss that is not exceeded for longer than the exceed
/// ratio allows. Time that was not measured counts as all lost.
pub fn conditional_throughput(load: u64, trials: &[LoadTrial], target: &Target) -> f64 {
    let mut long: Vec<&LoadTrial> = trials.iter().filter(|t| t.duration >= target.duration).collect();
    long.sort_by(|a, b| a.loss_ratio.total_cmp(&b.loss_ratio));
    let measured: f64 = long.iter().map(|t| t.duration.as_secs_f64()).sum();
    let whole = measured.max(target.duration_sum.as_secs_f64());
    let mut left = whole * (1.0 - target.exceed_ratio);
    let mut loss: Option<f64> = None;
    for trial in long {
        if loss.is_some() && left <= 0.0 {
            break;
        }
        loss = Some(trial.loss_ratio);
        left -= trial.duration.as_secs_f64();
    }
    let promised = if left > 0.0 { 1.0 } else { loss.unwrap_or(1.0) };
    load as f64 * (1.0 - promised)
}

/// All trials so far, by load in frames a second and direction.
#[derive(Clone, Debug, Default)]
pub struct Loads(BTreeMap<u64, Vec<LoadTrial>>);

/// The relevant bounds of a target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// The largest lower bound that is below the upper.
    pub lower: Option<u64>,
    /// The smallest upper bound.
    pub upper: Option<u64>,
}

impl Bounds {
    /// `(upper - lower) / upper`, if both are known.
    pub fn width(&self) -> Option<f64> {
        let (lower, upper) = (self.lower?, self.upper?);
        Some((upper - lower) as f64 / upper.max(1) as f64)
    }
}

impl Loads {
    /// Adds a trial.
    pub fn add(&mut self, load: u64, trial: LoadTrial) {
        self.0.entry(load).or_default().push(trial);
    }

    /// The trials of a load.
    pub fn of(&self, load: u64) -> &[LoadTrial] {
        self.0.get(&load).map_or(&[], Vec::as_slice)
    }

    /// How many trials there were.
    pub fn count(&self) -> usize {
        self.0.values().map(Vec::len).sum()
    }

    /// RFC 9971 4.8: the relevant bounds. Where loss is inverted (a larger load loses less) the upper one decides.
    pub fn bounds(&self, target: &Target) -> Bounds {
        let upper = self.0.iter().find(|(_, t)| classify(t, target) == Class::Upper).map(|(load, _)| *load);
        let below = self.0.range(..upper.unwrap_or(u64::MAX));
        let lower = below.rev().find(|(_, t)| classify(t, target) == Class::Lower).map(|(load, _)| *load);
        Bounds { lower, upper }
    }
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "these figures are exact")]
mod tests {
    use super::super::Goal;
    use super::*;

    fn csit() -> Target {
        Goal::csit(0.0).targets()[2]
    }

    fn trials(good: usize, bad: usize) -> Vec<LoadTrial> {
        let one = |loss_ratio| LoadTrial { duration: Duration::from_secs(1), loss_ratio };
        [vec![one(0.0); good], vec![one(0.1); bad]].concat()
    }

    #[test]
    fn eleven_of_twenty_one_decide_and_ten_do_not() {
        assert_eq!(classify(&trials(11, 0), &csit()), Class::Lower);
        assert_eq!(classify(&trials(10, 0), &csit()), Class::Undecided);
        assert_eq!(classify(&trials(0, 11), &csit()), Class::Upper);
        assert_eq!(classify(&trials(10, 10), &csit()), Class::Undecided);
        assert_eq!(classify(&trials(11, 10), &csit()), Class::Lower);
    }

    #[test]
    fn rfc_2544_is_decided_by_one_trial() {
        let target = Goal::rfc2544().targets()[2];
        let minute = |loss_ratio| [LoadTrial { duration: Duration::from_mins(1), loss_ratio }];
        assert_eq!(classify(&minute(0.0), &target), Class::Lower);
        assert_eq!(classify(&minute(1e-9), &target), Class::Upper);
    }

    #[test]
    fn short_trials_only_speak_against_a_load() {
        let target = Goal::rfc2544().targets()[2];
        let short = |loss_ratio| [LoadTrial { duration: Duration::from_secs(1), loss_ratio }];
        assert_eq!(classify(&short(0.0), &target), Class::Undecided);
        assert_eq!(classify(&short(0.5), &target), Class::Upper);
    }

    #[test]
    fn good_short_trials_make_up_for_bad_ones_by_the_exceed_ratio() {
        let target = Target { exceed_ratio: 0.5, ..Goal::rfc2544().targets()[2] };
        let short = |seconds, loss_ratio| LoadTrial { duration: Duration::from_secs(seconds), loss_ratio };
        // 40 s are more than half of 60 s; of them 20 s are made up for.
        assert_eq!(classify(&[short(40, 0.5)], &target), Class::Upper);
        assert_eq!(classify(&[short(40, 0.5), short(20, 0.0)], &target), Class::Undecided);
    }

    #[test]
    fn throughput_is_conditional_on_the_loss_that_is_not_exceeded() {
        assert_eq!(conditional_throughput(1000, &trials(11, 10), &csit()), 1000.0);
        let lossy: Vec<LoadTrial> = (0..21)
            .map(|i| LoadTrial { duration: Duration::from_secs(1), loss_ratio: f64::from(i) / 100.0 })
            .collect();
        // Half of 21 s may be worse: the 11th smallest loss, 10 %, is promised.
        assert!((conditional_throughput(1000, &lossy, &csit()) - 900.0).abs() < 1e-9);
        assert_eq!(conditional_throughput(1000, &trials(5, 0), &csit()), 0.0);
    }

    #[test]
    fn an_inverted_loss_is_decided_by_the_smaller_upper_bound() {
        let mut loads = Loads::default();
        for (load, good) in [(100, true), (200, false), (300, true), (400, false)] {
            for trial in if good { trials(21, 0) } else { trials(0, 21) } {
                loads.add(load, trial);
            }
        }
        assert_eq!(loads.bounds(&csit()), Bounds { lower: Some(100), upper: Some(200) });
    }
}
