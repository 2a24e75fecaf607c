//! Soak: a rate somewhat below the highest is held for long, and the seconds with losses are counted.

use std::time::Duration;

use serde::Serialize;
use shoal_lab_plan::Sample;

use crate::case::{note, with_curve};
use crate::{Estimate, MeasureError, Offer, Report, Runner, Test, Traffic, TrialProcedure, TrialSpec};

/// The test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Soak {
    /// Frames a second and direction: 95 % of the NDR.
    pub rate: u64,
    /// For how long.
    pub duration: Duration,
}

/// Its result.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SoakResult {
    /// Seconds in all.
    pub seconds: u64,
    /// Seconds that miss frames: frames sent in it that never came.
    pub bad: u64,
    /// The share of frames lost, 0 to 1.
    pub loss: f64,
    /// Each second's end and the frames missing for good by then.
    pub missing: Vec<(f64, f64)>,
}

/// The end of each second in which frames were sent, and how many of all sent until then never came, of `lost` in all. Losses
/// that no second has, because frames have no numbers, are entered into the last.
fn missing(samples: &[Sample], lost: u64) -> Vec<(f64, u64)> {
    let mut sum = 0;
    let mut missing: Vec<(f64, u64)> = samples
        .iter()
        .filter(|sample| sample.sent != [0, 0])
        .map(|sample| {
            sum += sample.lost.iter().sum::<u64>();
            (sample.at.as_secs_f64(), sum)
        })
        .collect();
    if let Some((_, last)) = missing.last_mut() {
        *last = lost.max(*last);
    }
    missing
}

impl Soak {
    /// 95 % of `ndr` for `duration`.
    pub const fn below(ndr: u64, duration: Duration) -> Soak {
        Soak { rate: ndr / 100 * 95 + ndr % 100 * 95 / 100, duration }
    }

    /// Measures.
    ///
    /// # Errors
    ///
    /// If it cannot be run or the device answers nothing.
    pub fn measure(
        &self,
        runner: &mut Runner<'_>,
        traffic: &dyn Traffic,
    ) -> Result<SoakResult, MeasureError> {
        runner.begin(self.name(), 1, 1);
        let streams = traffic.streams(&Offer::steady(self.rate))?;
        let shot = TrialSpec {
            sample_every: Some(Duration::from_secs(1)),
            ..TrialSpec::new(streams, self.rate as f64, self.duration).overloaded()
        };
        let shown = runner.trial(&shot)?;
        runner.expect_answer(traffic, &shown)?;
        let lost: u64 = shoal_lab_plan::Side::BOTH.iter().map(|s| shown.outcome.direction(*s).lost()).sum();
        let missing = missing(&shown.outcome.samples, lost);
        let mut before = 0;
        let mut bad = 0;
        for (_, now) in &missing {
            bad += u64::from(*now > before);
            before = *now;
        }
        Ok(SoakResult {
            seconds: self.duration.as_secs(),
            bad,
            loss: shown.loss(),
            missing: missing.into_iter().map(|(at, n)| (at, n as f64)).collect(),
        })
    }
}

impl Test for Soak {
    fn name(&self) -> &'static str {
        "soak"
    }

    fn estimate(&self, conduct: &TrialProcedure, _most: u64) -> Estimate {
        Estimate::of(conduct, 1, self.duration)
    }

    fn run(&self, runner: &mut Runner<'_>, traffic: &dyn Traffic) -> Result<Report, MeasureError> {
        let result = self.measure(runner, traffic)?;
        let bad = runner.row("bad seconds", "s", vec![result.bad as f64]);
        let mut bad = with_curve(bad, result.missing, "s", "frames missing");
        let mut loss = runner.row("loss", "%", vec![result.loss * 100.0]);
        for row in [&mut bad, &mut loss] {
            note(row, &format!("{} fps/dir for {} s", self.rate, result.seconds));
        }
        Ok(Report { rows: vec![bad, loss], ended: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(second: u64, sent: u64, lost: u64) -> Sample {
        Sample { at: Duration::from_secs(second), sent: [sent, 0], lost: [lost, 0], ..Sample::default() }
    }

    #[test]
    fn losses_belong_to_the_second_in_which_the_frame_was_sent() {
        let samples = [sample(1, 100, 0), sample(2, 100, 3), sample(3, 100, 0), sample(4, 0, 0)];
        assert_eq!(missing(&samples, 3), [(1.0, 0), (2.0, 3), (3.0, 3)]);
    }

    #[test]
    fn losses_of_frames_without_numbers_are_told_at_the_end() {
        let samples = [sample(1, 100, 0), sample(2, 100, 0)];
        assert_eq!(missing(&samples, 5), [(1.0, 0), (2.0, 5)]);
        assert_eq!(missing(&[], 5), []);
    }

    #[test]
    fn a_soak_holds_95_percent() {
        assert_eq!(Soak::below(1_000_001, Duration::from_secs(1)).rate, 950_000);
        assert_eq!(Soak::below(200, Duration::from_secs(1)).rate, 190);
    }
}
