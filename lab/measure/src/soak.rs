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
    /// Each second's end and the frames missing for good by then.
    pub missing: Vec<(f64, f64)>,
}

/// The end of each second in which frames were sent, and how many were missing for good by then, of `lost` in all.
///
/// Samples tell what was sent and what came, so a frame that is only under way looks like a lost one. What comes in a later
/// second was not lost: hence the lowest number from each sample on. And a device always has some frames under way: as many as
/// are left at the end without the lost ones. If their number changes from second to second, smaller losses than this change
/// are told of together with later ones. A frame of each of the `streams` is due just at a second's end, but none at the last's.
fn missing_for_good(samples: &[Sample], lost: u64, streams: usize) -> Vec<(f64, u64)> {
    let sending = samples.iter().rposition(|s| s.sent != [0, 0]).map_or(0, |last| last + 1);
    let (mut sent, mut received) = (0_u64, 0_u64);
    let open: Vec<(f64, u64)> = samples
        .iter()
        .take(sending)
        .map(|sample| {
            sent += sample.sent.iter().sum::<u64>();
            received += sample.received.iter().sum::<u64>();
            (sample.at.as_secs_f64(), sent.saturating_sub(received))
        })
        .collect();
    let mut lowest = u64::MAX;
    let mut later: Vec<u64> = open
        .iter()
        .rev()
        .map(|(_, open)| {
            lowest = lowest.min(*open);
            lowest
        })
        .collect();
    later.reverse();
    let mut changes: Vec<u64> = open.iter().zip(&later).map(|((_, open), later)| open - later).collect();
    changes.sort_unstable();
    let change = changes.get(changes.len() / 2).copied().unwrap_or(0);
    let slack = change + streams as u64;
    let at_end = later.last().map_or(0, |last| last.saturating_sub(lost));
    // The first second tells how many are under way, unless more were lost in it.
    let under_way = later.first().copied().filter(|first| *first <= at_end + slack).unwrap_or(at_end);
    let mut told = 0;
    let mut missing: Vec<(f64, u64)> = Vec::with_capacity(open.len());
    for ((at, _), later) in open.iter().zip(&later) {
        let now = later.saturating_sub(under_way).min(lost);
        if now > told + change {
            told = now;
        }
        missing.push((*at, told));
    }
    // What was under way at the end and never came belongs to the last second.
    if let Some((_, last)) = missing.last_mut()
        && (told == 0 || lost > told + slack)
    {
        *last = lost;
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
        let made = traffic.streams(&Offer::steady(self.rate))?;
        let second = Duration::from_secs(1);
        let (streams, made) = (made.len(), made);
        let shot = Shot {
            sample_every: Some(second),
            ..Shot::new(made, self.rate as f64, self.duration).overloaded()
        };
        let shown = runner.trial(&shot)?;
        runner.expect_answer(traffic, &shown)?;
        let lost: u64 = shoal_lab_plan::Side::BOTH.iter().map(|s| shown.outcome.direction(*s).lost()).sum();
        let missing = missing_for_good(&shown.outcome.samples, lost, streams);
        let mut before = 0;
        let mut bad = 0;
        for (_, now) in &missing {
            bad += u64::from(*now > before);
            before = *now;
        }
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
        let missing = missing_for_good(&samples, 0, 1);
        assert!(missing.iter().all(|(_, n)| *n == 0), "{missing:?}");
    }

    fn missing(samples: &[Sample], lost: u64) -> Vec<u64> {
        missing_for_good(samples, lost, 1).iter().map(|(_, n)| *n).collect()
    }

    #[test]
    fn a_frame_that_never_comes_is_missing_from_its_second_on() {
        let samples = [sample(1, 100, 98), sample(2, 100, 99), sample(3, 100, 100), sample(4, 0, 2)];
        assert_eq!(missing(&samples, 1), [0, 1, 1]);
    }

    #[test]
    fn as_many_frames_under_way_as_are_lost_hide_no_second() {
        let samples = [
            sample(1, 100, 70),
            sample(2, 100, 95),
            sample(3, 100, 100),
            sample(4, 100, 90),
            sample(5, 0, 30),
        ];
        assert_eq!(missing(&samples, 15), [0, 5, 5, 15]);
    }

    #[test]
    fn a_number_under_way_that_changes_is_no_loss() {
        // 20 to 23 are under way; 40 are lost in the fourth second.
        let under_way = [21, 23, 20, 61, 63, 60, 62, 61];
        let mut before = 0;
        let samples: Vec<Sample> = (1..)
            .zip(under_way)
            .map(|(second, open)| {
                let received = 100 + before - open;
                before = open;
                sample(second, 100, received)
            })
            .collect();
        let missing = missing(&samples, 40);
        assert_eq!((missing[2], missing[3] > 35), (0, true));
        assert_eq!(missing.windows(2).filter(|w| w[1] > w[0]).count(), 1);
    }

    #[test]
    fn a_soak_holds_95_percent() {
        assert_eq!(Soak::below(1_000_001, Duration::from_secs(1)).rate, 950_000);
        assert_eq!(Soak::below(200, Duration::from_secs(1)).rate, 190);
    }
}
