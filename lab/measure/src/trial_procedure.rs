//! How trials are conducted, whatever the test: lengths, waits, retries. And the presets (lab.md 4.1).

use std::time::Duration;

use serde::{Deserialize, Serialize};
use shoal_lab_plan::{MOST_TAKEN, Verify};

use crate::MeasureError;

/// How close a search comes to its result.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// Frames a second.
    Absolute(u64),
    /// A share of the upper end: 0.005 is half a percent.
    Relative(f64),
}

impl Precision {
    /// Whether a bracket is narrow enough. A difference of 1 always is: rates are whole numbers.
    pub fn reached(self, low: u64, high: u64) -> bool {
        let width = high.saturating_sub(low);
        match self {
            Precision::Absolute(e) => width <= e.max(1),
            Precision::Relative(share) => width <= 1 || width as f64 <= share * high as f64,
        }
    }

    /// Trials of a binary search from 0 to `most`: `ceil(log2(most / e))`.
    pub fn trials(self, most: u64) -> u32 {
        let e = match self {
            Precision::Absolute(e) => e.max(1) as f64,
            Precision::Relative(share) => (share * most as f64).max(1.0),
        };
        (most as f64 / e).log2().ceil().max(0.0) as u32
    }

    /// # Errors
    ///
    /// A share that is not between 0 and 1.
    pub fn checked(self) -> Result<Self, MeasureError> {
        match self {
            Precision::Relative(share) if !(share > 0.0 && share < 1.0) => Err(MeasureError::Setting {
                what: "precision",
                value: share.to_string(),
                nearest: "a share lies between 0 and 1, 0.005 say".into(),
            }),
            fine => Ok(fine),
        }
    }
}

/// What is done with a trial during which others had the processors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WhenDisturbed {
    /// Its figures count, and the result is marked: where a result is not about speed, or the machine is never quiet.
    Mark,
    /// It is tried again; if that is disturbed each time, the last try's figures count and the result is marked.
    Repeat,
    /// It is tried again; if that is disturbed each time, there is no result.
    #[default]
    Refuse,
}

impl WhenDisturbed {
    /// All of them.
    pub const ALL: [WhenDisturbed; 3] = [WhenDisturbed::Mark, WhenDisturbed::Repeat, WhenDisturbed::Refuse];

    /// As users write it.
    pub const fn name(self) -> &'static str {
        match self {
            WhenDisturbed::Mark => "mark",
            WhenDisturbed::Repeat => "repeat",
            WhenDisturbed::Refuse => "refuse",
        }
    }

    /// # Errors
    ///
    /// An unknown name, with the nearest known one.
    pub fn by_name(name: &str) -> Result<WhenDisturbed, MeasureError> {
        let unknown = || MeasureError::Setting {
            what: "when-disturbed",
            value: name.into(),
            nearest: format!(
                "mark, repeat or refuse; the nearest is {}",
                crate::nearest(name, WhenDisturbed::ALL.map(WhenDisturbed::name))
            ),
        };
        WhenDisturbed::ALL.into_iter().find(|w| w.name() == name).ok_or_else(unknown)
    }
}

/// How trials are conducted. Waits are those of RFC 2544 section 23 with siitperf's values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TrialProcedure {
    /// Length of a trial whose result is kept. RFC 2544 section 24 asks for 60 s.
    pub duration: Duration,
    /// Repetitions of a test. RFC 8219 asks for 20.
    pub runs: u32,
    /// Of searches.
    pub precision: Precision,
    /// A disturbed or invalid trial is tried again so often.
    pub retries: u32,
    /// A failed rate is tried again so often, and passes if one of them passes (ETSI TST009's loss verification). 0 is strict.
    pub loss_verification: u32,
    /// Silence between two trials.
    pub rest: Duration,
    /// Wait after what makes the device learn: routes, neighbours, addresses.
    pub settle: Duration,
    /// Frames are waited for so long after sending.
    pub timeout: Duration,
    /// Wait before sending.
    pub start_delay: Duration,
    /// Frames handed to a port at once, at most.
    pub burst: u32,
    /// How many received frames are looked at whole.
    pub verify: Verify,
    /// Sending may take this much longer than it should.
    pub tolerance: f64,
    /// A longer stall disturbs a trial; none: as long as the smallest ring takes to fill.
    pub most_stall: Option<Duration>,
    /// A trial is disturbed if others take a processor from tester or device for more than this share of its time, 0 to 1.
    pub most_taken: f64,
    /// What is done then.
    pub when_disturbed: WhenDisturbed,
    /// siitperf's rule: a rate that the tester cannot keep is a failed step and nothing more, and what is told is the last rate
    /// that was tried.
    pub siitperf: bool,
    /// Seeds whatever is random.
    pub seed: u64,
}

impl Default for TrialProcedure {
    fn default() -> Self {
        Preset::Normal.conduct()
    }
}

impl TrialProcedure {
    /// What a trial of `duration` takes with all its waits.
    pub fn trial_time(&self, duration: Duration) -> Duration {
        self.start_delay + duration + self.timeout + self.rest
    }

    /// The longest that such a trial can take. The engine ends sending after 1.1 times the trial's time and a second, whatever
    /// is left.
    pub fn most_trial_time(&self, duration: Duration, timeout: Duration) -> Duration {
        let sending = duration + duration / 10 + Duration::from_secs(1);
        self.rest + self.start_delay + sending + timeout
    }

    /// Trials of a search from 0 to `most`: about half its steps fail and are verified. A relative precision is that of the
    /// result, so a device far below `most` needs more steps: two for a quarter of it.
    pub fn search_trials(&self, precision: Precision, most: u64) -> u64 {
        let below = if matches!(precision, Precision::Relative(_)) { 2 } else { 0 };
        let steps = u64::from(precision.trials(most)) + below;
        steps + (steps * u64::from(self.loss_verification)).div_ceil(2)
    }

    /// # Errors
    ///
    /// Settings that no trial can be made of.
    pub fn checked(&self) -> Result<(), MeasureError> {
        self.precision.checked()?;
        let wrong = |what, value: String, nearest: &str| {
            Err(MeasureError::Setting { what, value, nearest: nearest.into() })
        };
        if self.duration < Duration::from_millis(1) {
            return wrong("duration", format!("{:?}", self.duration), "the shortest trial is 1 ms");
        }
        if self.runs == 0 {
            return wrong("runs", "0".into(), "the fewest are 1");
        }
        if self.burst == 0 {
            return wrong("burst", "0".into(), "the smallest is 1");
        }
        if self.tolerance.is_nan() || self.tolerance < 1.0 {
            return wrong("tolerance", self.tolerance.to_string(), "the strictest is 1");
        }
        if !(0.0..=1.0).contains(&self.most_taken) {
            return wrong(
                "most_taken",
                self.most_taken.to_string(),
                "a share lies between 0 and 1, 0.02 say",
            );
        }
        Ok(())
    }
}

/// How thorough a campaign is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Preset {
    /// As the RFCs ask: 60 s, 20 runs, to a single frame a second.
    Strict,
    /// 10 s, 10 runs, 0.1 %.
    Normal,
    /// 2 s, 3 runs, 1 %.
    Quick,
    /// For changes: ten trials of 1 s at the most load.
    Ci,
}

impl Preset {
    /// All, the most thorough first.
    pub const ALL: [Preset; 4] = [Preset::Strict, Preset::Normal, Preset::Quick, Preset::Ci];

    /// As users write it.
    pub const fn name(self) -> &'static str {
        match self {
            Preset::Strict => "strict",
            Preset::Normal => "normal",
            Preset::Quick => "quick",
            Preset::Ci => "ci",
        }
    }

    /// # Errors
    ///
    /// An unknown name, with the nearest known one.
    pub fn by_name(name: &str) -> Result<Preset, MeasureError> {
        Preset::ALL.into_iter().find(|p| p.name() == name).ok_or_else(|| MeasureError::Setting {
            what: "preset",
            value: name.into(),
            nearest: format!("the nearest is {}", crate::nearest(name, Preset::ALL.map(Preset::name))),
        })
    }

    /// What it means.
    pub fn conduct(self) -> TrialProcedure {
        let (seconds, runs, precision, rest, verification) = match self {
            Preset::Strict => (60, 20, Precision::Absolute(1), 5_000, 0),
            Preset::Normal => (10, 10, Precision::Relative(0.001), 1_000, 1),
            Preset::Quick => (2, 3, Precision::Relative(0.01), 100, 1),
            Preset::Ci => (1, 10, Precision::Relative(0.01), 100, 1),
        };
        let thorough = self == Preset::Strict;
        TrialProcedure {
            duration: Duration::from_secs(seconds),
            runs,
            precision,
            retries: 2,
            loss_verification: verification,
            rest: Duration::from_millis(rest),
            settle: Duration::from_millis(if thorough { 2000 } else { 500 }),
            timeout: Duration::from_millis(if thorough { 2000 } else { 500 }),
            start_delay: Duration::from_millis(if thorough { 2000 } else { 200 }),
            burst: 32,
            verify: Verify::Some,
            tolerance: 1.000_01,
            most_stall: None,
            most_taken: MOST_TAKEN,
            when_disturbed: WhenDisturbed::Refuse,
            siitperf: false,
            seed: 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_search_has_23_trials() {
        assert_eq!(Precision::Absolute(1).trials(8_000_000), 23);
        assert_eq!(Precision::Relative(0.01).trials(8_000_000), 7);
    }

    #[test]
    fn a_bracket_of_one_is_always_narrow_enough() {
        assert!(Precision::Relative(0.001).reached(0, 1));
        assert!(!Precision::Relative(0.001).reached(0, 2));
        assert!(Precision::Absolute(0).reached(4, 5));
    }

    #[test]
    fn settings_that_cannot_work_are_told_with_what_would() {
        let wrong = TrialProcedure { tolerance: 0.9, ..TrialProcedure::default() };
        assert_eq!(wrong.checked().unwrap_err().to_string(), "tolerance is 0.9; the strictest is 1");
        let wrong = TrialProcedure { precision: Precision::Relative(1.5), ..TrialProcedure::default() };
        assert!(wrong.checked().is_err());
        for most_taken in [-0.1, 1.1, f64::NAN] {
            assert!(
                TrialProcedure { most_taken, ..TrialProcedure::default() }.checked().is_err(),
                "{most_taken}"
            );
        }
        for preset in Preset::ALL {
            preset.conduct().checked().unwrap();
        }
    }

    #[test]
    fn an_unknown_preset_names_the_nearest() {
        let error = Preset::by_name("strickt").unwrap_err().to_string();
        assert_eq!(error, "preset is strickt; the nearest is strict");
        assert_eq!(Preset::by_name("ci").unwrap(), Preset::Ci);
        let error = WhenDisturbed::by_name("refuze").unwrap_err().to_string();
        assert_eq!(error, "when-disturbed is refuze; mark, repeat or refuse; the nearest is refuse");
        assert!(WhenDisturbed::ALL.iter().all(|w| WhenDisturbed::by_name(w.name()).unwrap() == *w));
    }
}
