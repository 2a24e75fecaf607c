//! Soak: a rate somewhat below the highest is held for long, and the seconds with losses are counted.

use std::time::Duration;

use serde::Serialize;
use shoal_lab_plan::Sample;

use crate::case::{note, with_curve};
use crate::{Conduct, Estimate, MeasureError, Offer, Report, Runner, Shot, Test, Traffic};

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
    /// Seconds that miss frames: frames sent in the second or just before it and never made up for.
    pub bad: u64,
    /// The share of frames lost, 0 to 1.
    pub loss: f64,
    /// Each second's end and the frames missing by then.
    pub missing: Vec<(f64, f64)>,
}

/// The lowest number of frames ever missing after each sample: what is only under way at a sample's end arrives in the next
/// one and is not lost. A second is bad when this number rises in it.
fn missing_for_good(samples: &[Sample], lost: u64) -> Vec<(f64, u64)> {
    let mut under_way = Vec::with_capacity(samples.len());
    let (mut sent, mut received) = (0_u64, 0_u64);
    for sample in samples {
        sent += sample.sent.iter().sum::<u64>();
        received += sample.received.iter().sum::<u64>();
        under_way.push((sample.at.as_secs_f64(), sent.saturating_sub(received)));
    }
    let mut lowest = lost;
    for (_, missing) in under_way.iter_mut().rev() {
        lowest = lowest.min(*missing);
        *missing = lowest;
    }
    under_way
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
        let second = Duration::from_secs(1);
        let shot = Shot {
            sample_every: Some(second),
            ..Shot::new(streams, self.rate as f64, self.duration).overloaded()
        };
        let shown = runner.trial(&shot)?;
        runner.expect_answer(traffic, &shown)?;
        let lost: u64 = shoal_lab_plan::Side::BOTH.iter().map(|s| shown.outcome.direction(*s).lost()).sum();
        let missing = missing_for_good(&shown.outcome.samples, lost);
        let mut before = 0;
        let mut bad = 0;
        for (_, now) in &missing {
            bad += u64::from(*now > before);
            before = *now;
        }
        // What is lost after the last sample belongs to the last second.
        bad += u64::from(lost > before);
        Ok(SoakResult {
            seconds: self.duration.as_secs(),
            bad,
            loss: shown.outcome.loss(),
            missing: missing.into_iter().map(|(at, n)| (at, n as f64)).collect(),
        })
    }
}

impl Test for Soak {
    fn name(&self) -> &'static str {
        "soak"
    }

    fn estimate(&self, conduct: &Conduct, _most: u64) -> Estimate {
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

    fn sample(second: u64, sent: u64, received: u64) -> Sample {
        Sample { at: Duration::from_secs(second), sent: [sent, 0], received: [received, 0], bytes: [0, 0] }
    }

    #[test]
    fn frames_under_way_at_a_seconds_end_are_not_missing() {
        let samples = [sample(1, 100, 98), sample(2, 100, 102), sample(3, 100, 99)];
        let missing = missing_for_good(&samples, 0);
        assert!(missing.iter().all(|(_, n)| *n == 0), "{missing:?}");
    }

    #[test]
    fn a_frame_that_never_comes_is_missing_from_its_second_on() {
        let samples = [sample(1, 100, 98), sample(2, 100, 100), sample(3, 100, 101)];
        let missing: Vec<u64> = missing_for_good(&samples, 1).iter().map(|(_, n)| *n).collect();
        assert_eq!(missing, [1, 1, 1]);
    }

    #[test]
    fn a_soak_holds_95_percent() {
        assert_eq!(Soak::below(1_000_001, Duration::from_secs(1)).rate, 950_000);
        assert_eq!(Soak::below(200, Duration::from_secs(1)).rate, 190);
    }
}
