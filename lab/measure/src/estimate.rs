//! How long a test will take, before it begins.

use std::ops::Add;
use std::time::Duration;

use crate::{MeasureError, TrialProcedure};

/// A promise is twice its estimate, and this. Within it are trials that are tried again, rates at which sending takes longer,
/// searches that end far below the middle, and what starting a device takes.
pub const MARGIN: Duration = Duration::from_secs(30);

/// How many trials a test needs and how long they take, if none is disturbed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Estimate {
    /// Trials.
    pub trials: u64,
    /// With all waits.
    pub time: Duration,
}

impl Estimate {
    /// `trials` of `duration`, under `conduct`.
    pub fn of(conduct: &TrialProcedure, trials: u64, duration: Duration) -> Estimate {
        let each = conduct.trial_time(duration);
        Estimate { trials, time: Duration::from_secs_f64((each.as_secs_f64() * trials as f64).min(1e15)) }
    }

    /// So often.
    pub fn times(self, n: u32) -> Estimate {
        Estimate { trials: self.trials * u64::from(n), time: self.time.saturating_mul(n) }
    }

    /// What it takes at most, whatever happens: no trial begins that could end later.
    pub fn promise(self) -> Duration {
        self.time.saturating_mul(2).saturating_add(MARGIN)
    }

    /// # Errors
    ///
    /// [`MeasureError::OverBudget`] if it takes longer than `budget`.
    pub fn within(self, budget: Duration) -> Result<Estimate, MeasureError> {
        if self.time > budget {
            return Err(MeasureError::OverBudget { needed: self.time, budget });
        }
        Ok(self)
    }
}

impl Add for Estimate {
    type Output = Estimate;

    fn add(self, other: Estimate) -> Estimate {
        Estimate { trials: self.trials + other.trials, time: self.time.saturating_add(other.time) }
    }
}
