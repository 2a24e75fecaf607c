//! Why a test ended without a result, or before its end.

use std::time::Duration;

use shoal_lab_plan::{DeviceError, TesterError};
use thiserror::Error;

/// Why a test ended without a result, or before its end.
#[derive(Debug, Error)]
pub enum MeasureError {
    /// Someone wanted it to end; what was measured until then is kept.
    #[error("interrupted")]
    Interrupted,
    /// The tester failed.
    #[error(transparent)]
    Tester(TesterError),
    /// The device failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// Nothing comes back, at any rate.
    #[error(
        "the device answers nothing: of {sent} frames at {rate} fps none arrived {where_to}; see its routes, neighbours and ports"
    )]
    Silent {
        /// Frames of the last try.
        sent: u64,
        /// Frames a second and direction of it.
        rate: u64,
        /// `on the left`, `on the right`, `anywhere`.
        where_to: &'static str,
    },
    /// The traffic cannot be made.
    #[error("traffic: {0}")]
    Traffic(String),
    /// A setting that cannot work.
    #[error("{what} is {value}; {nearest}")]
    Setting {
        /// Its name.
        what: &'static str,
        /// As given.
        value: String,
        /// What would work.
        nearest: String,
    },
    /// It would take longer than it may.
    #[error("this would take {} and the budget is {}; shorten it, or allow it with --yes", spoken(*needed), spoken(*budget))]
    OverBudget {
        /// The estimate.
        needed: Duration,
        /// What was allowed.
        budget: Duration,
    },
    /// Trials were disturbed or invalid more often than they could be repeated, so that there is nothing to tell.
    #[error("no trial could be trusted: {0}")]
    Untrusted(String),
    /// The results folder takes no more.
    #[error("the results cannot be written: {0}")]
    Journal(#[from] std::io::Error),
}

impl From<TesterError> for MeasureError {
    fn from(error: TesterError) -> Self {
        match error {
            TesterError::Interrupted => MeasureError::Interrupted,
            other => MeasureError::Tester(other),
        }
    }
}

/// `9 h 28 min`, `4 min 10 s`, `12 s`.
pub fn spoken(time: Duration) -> String {
    let seconds = (time.as_secs_f64()).round() as u64;
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_spoken_as_people_do() {
        assert_eq!(spoken(Duration::from_mins(568)), "9 h 28 min");
        assert_eq!(spoken(Duration::from_millis(250_400)), "4 min 10 s");
        assert_eq!(spoken(Duration::from_millis(11_600)), "12 s");
    }
}
