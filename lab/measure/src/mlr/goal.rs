//! What is searched for (RFC 9971 4.6), and the coarser targets on the way to it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::MeasureError;

/// A search goal.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Goal {
    /// A trial that loses a larger share than this, 0 to 1, is bad.
    pub loss_ratio: f64,
    /// The length of trials that count in full.
    pub final_duration: Duration,
    /// The length of the first, coarse trials.
    pub initial_duration: Duration,
    /// Trials of so much time decide about a load.
    pub duration_sum: Duration,
    /// The share of that time that may be bad, 0 to 1 (1 not included).
    pub exceed_ratio: f64,
    /// The bounds are near enough when `(upper - lower) / upper` is no more.
    pub width: f64,
}

impl Goal {
    /// CSIT's: trials of 1 s, 21 s in sum, half of which may be bad, 0.5 % wide.
    pub const fn csit(loss_ratio: f64) -> Goal {
        let second = Duration::from_secs(1);
        Goal {
            loss_ratio,
            final_duration: second,
            initial_duration: second,
            duration_sum: Duration::from_secs(21),
            exceed_ratio: 0.5,
            width: 0.005,
        }
    }

    /// RFC 2544 as a goal: one trial of 60 s, none may be bad.
    pub const fn rfc2544() -> Goal {
        let minute = Duration::from_mins(1);
        Goal {
            loss_ratio: 0.0,
            final_duration: minute,
            initial_duration: minute,
            duration_sum: minute,
            exceed_ratio: 0.0,
            width: 0.005,
        }
    }

    /// ETSI TST009 with one repetition as a goal: one of two trials of 60 s may be bad.
    pub const fn tst009() -> Goal {
        Goal { duration_sum: Duration::from_mins(2), exceed_ratio: 0.5, ..Goal::rfc2544() }
    }

    /// # Errors
    ///
    /// Values outside RFC 9971's ranges.
    pub fn checked(&self) -> Result<(), MeasureError> {
        let wrong = |what, value: String, nearest: &str| {
            Err(MeasureError::Setting { what, value, nearest: nearest.into() })
        };
        if !(0.0..1.0).contains(&self.loss_ratio) {
            return wrong("loss ratio", self.loss_ratio.to_string(), "it is at least 0 and less than 1");
        }
        if !(0.0..1.0).contains(&self.exceed_ratio) {
            return wrong("exceed ratio", self.exceed_ratio.to_string(), "it is at least 0 and less than 1");
        }
        if !(self.width > 0.0 && self.width < 1.0) {
            return wrong("goal width", self.width.to_string(), "it is more than 0 and less than 1");
        }
        if self.initial_duration.is_zero() || self.initial_duration > self.final_duration {
            let most = format!("it is more than 0 and at most {:?}", self.final_duration);
            return wrong("initial duration", format!("{:?}", self.initial_duration), &most);
        }
        if self.duration_sum < self.final_duration {
            let least = format!("it is at least {:?}", self.final_duration);
            return wrong("duration sum", format!("{:?}", self.duration_sum), &least);
        }
        Ok(())
    }

    /// The way to the goal: two coarser targets with shorter trials and less time, and the goal itself. Each coarser one is
    /// four times as wide; durations grow geometrically.
    pub fn targets(&self) -> Vec<Target> {
        const COARSER: i32 = 2;
        let between = |first: Duration, last: Duration, step: i32| {
            let (a, b) = (first.as_secs_f64(), last.as_secs_f64());
            if step == COARSER {
                last
            } else {
                Duration::from_secs_f64(a * (b / a).powf(f64::from(step) / f64::from(COARSER)))
            }
        };
        (0..=COARSER)
            .map(|step| Target {
                loss_ratio: self.loss_ratio,
                exceed_ratio: self.exceed_ratio,
                duration: between(self.initial_duration, self.final_duration, step),
                duration_sum: between(self.initial_duration, self.duration_sum, step),
                width: (self.width * 4_f64.powi(COARSER - step)).min(0.5),
            })
            .collect()
    }
}

/// What a load is judged by: the goal, or a coarser form of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Target {
    /// A trial that loses more is bad.
    pub loss_ratio: f64,
    /// The share of time that may be bad.
    pub exceed_ratio: f64,
    /// Trials at least as long count in full.
    pub duration: Duration,
    /// So much time decides.
    pub duration_sum: Duration,
    /// How near the bounds have to be.
    pub width: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_target_is_the_goal() {
        for goal in [Goal::csit(0.005), Goal::rfc2544(), Goal::tst009()] {
            goal.checked().unwrap();
            let targets = goal.targets();
            let last = targets.last().unwrap();
            assert_eq!((last.duration, last.duration_sum), (goal.final_duration, goal.duration_sum));
            assert!((last.width - goal.width).abs() < 1e-12);
            assert!(
                targets.windows(2).all(|w| w[0].duration_sum <= w[1].duration_sum && w[0].width > w[1].width)
            );
        }
    }

    #[test]
    fn impossible_goals_are_refused() {
        for wrong in [
            Goal { loss_ratio: 1.0, ..Goal::csit(0.0) },
            Goal { exceed_ratio: 1.0, ..Goal::csit(0.0) },
            Goal { width: 0.0, ..Goal::csit(0.0) },
            Goal { duration_sum: Duration::from_millis(1), ..Goal::csit(0.0) },
            Goal { initial_duration: Duration::from_secs(2), ..Goal::csit(0.0) },
        ] {
            assert!(wrong.checked().is_err(), "{wrong:?}");
        }
    }
}
