//! Why a test ended without a result, or before its end.

use std::time::Duration;

use shoal_lab_plan::{DeviceError, Processors, TesterError};
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
    /// Others had the processors each time, so that there is nothing to tell.
    #[error(
        "refused: not a measurement, tried {tries} times: {}. End them, or run the lab where nothing else runs; --when-disturbed \
         mark takes the figures all the same",
        processors.words()
    )]
    Refused {
        /// How often it was tried.
        tries: u32,
        /// Who had the processors the last time.
        processors: Box<Processors>,
    },
    /// The hypervisor had the processors each time.
    #[error(
        "refused: not a measurement, tried {tries} times: the hypervisor took {:.1} % of a processor's time. Use a machine of \
         its own, or try again when its host is quiet; --when-disturbed mark takes the figures all the same",
        share * 100.0
    )]
    Stolen {
        /// How often it was tried.
        tries: u32,
        /// The share of one processor's time, the last time.
        share: f64,
    },
    /// It would take longer than was promised.
    #[error("the promised time of {} is over; what was measured is kept, and `shoal-lab resume' goes on", spoken(*promised))]
    OverTime {
        /// What was promised, from the campaign's beginning to this test's end.
        promised: Duration,
    },
    /// The results folder takes no more.
    #[error("the results cannot be written: {0}")]
    Journal(#[from] std::io::Error),
}

impl MeasureError {
    /// Whether others had the processors, so that there is no figure.
    pub fn is_refusal(&self) -> bool {
        matches!(self, MeasureError::Refused { .. } | MeasureError::Stolen { .. })
    }
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
