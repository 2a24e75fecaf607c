//! The load test: a rate that rises from hardly anything to all there is (T-Rex's loadtester; lab.md 1.9), and its flood
//! variant, a constant overload.

use std::time::Duration;

use serde::Serialize;
use shoal_lab_plan::{Layer, Link, Pace, Rate, Sample, Side, Stamps, Step, SummaryRow};

use crate::case::{note, with_curve};
use crate::{
    Estimate, MeasureError, NO_MATTER, Offer, Repeated, Report, Runner, Test, Traffic, TrialProcedure,
    TrialSpec, repeat,
};

/// The test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoadTest {
    /// Frames a second and direction of the warm-up.
    pub warm_up_rate: u64,
    /// Its length.
    pub warm_up: Duration,
    /// The rate at the ramp's end; none: what the tester reaches or the link carries.
    pub target: Option<u64>,
    /// The ramp's length.
    pub ramp: Duration,
    /// How long the target is held.
    pub hold: Duration,
    /// No ramp: the target is offered all the time, and what arrives is counted.
    pub flood: bool,
}

impl Default for LoadTest {
    /// 1,000 frames a second for 30 s, up to all there is in 420 s, held for 30 s: the eight minutes of the published runs.
    fn default() -> Self {
        LoadTest {
            warm_up_rate: 1_000,
            warm_up: Duration::from_secs(30),
            target: None,
            ramp: Duration::from_mins(7),
            hold: Duration::from_secs(30),
            flood: false,
        }
    }
}

/// The rate follows the ramp in pieces of this length.
const PIECE: Duration = Duration::from_millis(100);
/// Loss beyond this is where "ok" ends: 0.1 %.
const OK_LOSS: f64 = 0.001;

/// A second of it, over all directions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Second {
    /// Its end, since the start.
    pub at: f64,
    /// Frames a second sent,
    pub sent: f64,
    /// and received.
    pub received: f64,
    /// The received as a share of the links at layer 1, in percent.
    pub line_rate: f64,
}

/// One run. Rates are over all directions together, as the published tables have them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LoadRun {
    /// The highest received rate of a second, frames a second.
    pub max_rate: f64,
    /// The highest received share of the links, in percent.
    pub max_line_rate: f64,
    /// The received rate at the first second whose loss exceeds 0.1 % and never recovers; the highest if there is none.
    pub ok_rate: f64,
    /// Each second.
    pub seconds: Vec<Second>,
}

impl LoadTest {
    fn length(&self) -> Duration {
        self.warm_up + self.ramp + self.hold
    }

    /// The offered rate over time, up to `target`.
    pub fn offer(&self, target: u64) -> Offer {
        if self.flood {
            return Offer::steady(target);
        }
        let pieces = (self.ramp.as_millis() / PIECE.as_millis()).max(1) as u64;
        let rise = target.saturating_sub(self.warm_up_rate);
        let mut steps =
            vec![Step { at: Duration::ZERO, rate: Rate::per_second(self.warm_up_rate.min(target)) }];
        steps.extend((1..=pieces).map(|i| {
            let risen = (u128::from(rise) * u128::from(i) / u128::from(pieces)) as u64;
            let at = self.warm_up + PIECE.mul_f64((i - 1) as f64);
            Step { at, rate: Rate::per_second(self.warm_up_rate.min(target) + risen) }
        }));
        Offer { pace: Pace::Steps { steps }, stamps: Stamps::None }
    }

    /// Measures.
    ///
    /// # Errors
    ///
    /// If no run came to its end.
    pub fn measure(
        &self,
        runner: &mut Runner<'_>,
        traffic: &dyn Traffic,
    ) -> Result<Repeated<LoadRun>, MeasureError> {
        repeat(runner, self.name(), runner.conduct.runs, |r| self.once(r, traffic))
    }

    fn once(&self, runner: &mut Runner<'_>, traffic: &dyn Traffic) -> Result<LoadRun, MeasureError> {
        let target = self.target.unwrap_or_else(|| runner.most_rate(traffic.size()));
        let streams = traffic.streams(&self.offer(target))?;
        let shot = TrialSpec {
            sample_every: Some(Duration::from_secs(1)),
            own_loss: NO_MATTER,
            ..TrialSpec::new(streams, target as f64, self.length()).overloaded()
        };
        let shown = runner.trial(&shot)?;
        runner.expect_answer(traffic, &shown)?;
        Ok(evaluate(&shown.outcome.samples, runner.facts().link, traffic.sides().len()))
    }

    /// The summary's rows of a result: the blog's three figures, with the ramp as the first one's curve.
    pub fn rows(&self, runner: &Runner<'_>, runs: &Repeated<LoadRun>) -> Vec<SummaryRow> {
        let first = runs.values.first();
        let ramp = first.map(|r| r.seconds.iter().map(|s| (s.sent, s.received)).collect());
        let time = first.map(|r| r.seconds.iter().map(|s| (s.at, s.received)).collect());
        let max = runner.row("max_pps", "fps total", runs.map(|r| r.max_rate));
        let line = runner.row("max_lr", "%", runs.map(|r| r.max_line_rate));
        let ok = runner.row("ok_pps", "fps total", runs.map(|r| r.ok_rate));
        let mut rows = vec![
            with_curve(max, time.unwrap_or_default(), "s", "received fps total"),
            with_curve(ok, ramp.unwrap_or_default(), "offered fps total", "received fps total"),
            line,
        ];
        for row in &mut rows {
            if self.flood {
                note(row, "flood");
            }
            if runner.facts().link.is_virtual {
                note(row, "the line rate is that of a virtual link");
            }
        }
        rows
    }
}

/// Reads the seconds of a ramp.
pub fn evaluate(samples: &[Sample], link: Link, ports: usize) -> LoadRun {
    let mut before = 0.0;
    // While late frames are waited for nothing is sent and nothing can be lost: these are no seconds of the ramp.
    let sending = samples.iter().rposition(|s| s.sent != [0, 0]).map_or(0, |last| last + 1);
    let seconds: Vec<Second> = samples
        .iter()
        .take(sending)
        .filter_map(|sample| {
            let at = sample.at.as_secs_f64();
            let length = at - before;
            before = at;
            (length > 0.0).then(|| second(sample, length, link, ports))
        })
        .collect();
    let max = |number: fn(&Second) -> f64| seconds.iter().map(number).fold(0.0, f64::max);
    let lossy = |s: &&Second| s.sent > 0.0 && (s.sent - s.received) / s.sent > OK_LOSS;
    let clean_tail = seconds.iter().rposition(|s| !lossy(&s)).map_or(0, |last| last + 1);
    let max_rate = max(|s| s.received);
    let ok_rate = seconds.get(clean_tail).map_or(max_rate, |s| s.received);
    LoadRun { max_rate, max_line_rate: max(|s| s.line_rate), ok_rate, seconds }
}

fn second(sample: &Sample, length: f64, link: Link, ports: usize) -> Second {
    let sum = |pair: [u64; 2]| Side::BOTH.iter().filter_map(|s| pair.get(s.index())).sum::<u64>() as f64;
    let (sent, received) = (sum(sample.sent) / length, sum(sample.received) / length);
    let layer2 = sum(sample.bytes) * 8.0 / length;
    let layer1 = layer2 + Link::bits(Layer::L1, received, 0);
    let whole = link.bits_per_second as f64 * ports.max(1) as f64;
    Second { at: sample.at.as_secs_f64(), sent, received, line_rate: 100.0 * layer1 / whole }
}

impl Test for LoadTest {
    fn name(&self) -> &'static str {
        "loadtest"
    }

    fn estimate(&self, conduct: &TrialProcedure, _most: u64) -> Estimate {
        Estimate::of(conduct, 1, self.length()).times(conduct.runs)
    }

    fn run(&self, runner: &mut Runner<'_>, traffic: &dyn Traffic) -> Result<Report, MeasureError> {
        let runs = self.measure(runner, traffic)?;
        let rows = self.rows(runner, &runs);
        Ok(Report { rows, ended: runs.ended })
    }
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "these figures are exact")]
mod tests {
    use super::*;

    fn sample(at: u64, sent: u64, received: u64) -> Sample {
        let at = Duration::from_secs(at);
        Sample {
            at,
            sent: [sent, 0],
            received: [received, 0],
            bytes: [received * 64, 0],
            ..Sample::default()
        }
    }

    #[test]
    fn ok_ends_where_loss_begins_for_good_and_not_at_a_hiccup() {
        let samples = [
            sample(1, 1_000, 1_000),
            sample(2, 2_000, 1_500),
            sample(3, 3_000, 3_000),
            sample(4, 4_000, 3_900),
            sample(5, 5_000, 4_100),
            sample(6, 6_000, 4_000),
        ];
        let run = evaluate(&samples, Link::default(), 1);
        assert_eq!((run.ok_rate, run.max_rate), (3_900.0, 4_100.0));
        let clean = evaluate(&samples[..1], Link::default(), 1);
        assert_eq!(clean.ok_rate, 1_000.0);
    }

    #[test]
    fn seconds_after_the_last_frame_was_sent_do_not_make_it_ok() {
        let samples = [sample(1, 1_000, 1_000), sample(2, 3_000, 2_000), sample(3, 4_000, 2_400)];
        let drained = [samples.as_slice(), &[sample(4, 0, 3), sample(5, 0, 0)]].concat();
        let run = evaluate(&drained, Link::default(), 1);
        assert_eq!((run.ok_rate, run.max_rate, run.seconds.len()), (2_000.0, 2_400.0, 3));
    }

    #[test]
    fn a_full_link_is_100_percent_at_layer_1() {
        let run = evaluate(&[sample(1, 14_880_952, 14_880_952)], Link::default(), 1);
        assert!((run.max_line_rate - 100.0).abs() < 1e-4, "{}", run.max_line_rate);
    }

    #[test]
    fn the_ramp_is_linear_and_ends_at_its_target() {
        let Pace::Steps { steps } = LoadTest::default().offer(4_201_000).pace else { panic!() };
        assert_eq!(steps.len(), 4_201);
        assert_eq!(steps[0].rate, Rate::per_second(1_000));
        assert_eq!(steps[2_100].rate, Rate::per_second(2_101_000));
        assert_eq!(steps[4_200].rate, Rate::per_second(4_201_000));
        assert_eq!(steps[1].at, Duration::from_secs(30));
        assert!(steps.windows(2).all(|w| w[0].at <= w[1].at && w[0].rate.frames <= w[1].rate.frames));
    }
}
