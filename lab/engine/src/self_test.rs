//! What the tester itself can do: its ports joined, without a device.
//!
//! No device can be found faster than the tester is, so a campaign begins with this. The rate that is found is the search's
//! upper end and the tester's limit; the delays are what a device's are compared with, never what is taken off them.

use std::time::Duration;

use shoal_lab_plan::{
    Delays, Lateness, Pace, Rate, Stall, Stamps, Stream, Tester, TesterError, Trial, Verdict, Verify, Watch,
};

/// How long a virtual machine may hold the last frame up without the rate being called too high.
const BEARABLE: f64 = 0.001;

/// How the tester is tried.
#[derive(Clone, Debug)]
pub struct SelfTest {
    /// What will be sent in the campaign; paces and stamps are set here.
    pub streams: Vec<Stream>,
    /// Of each trial.
    pub duration: Duration,
    /// How long frames are waited for.
    pub timeout: Duration,
    /// Frames a second of each stream that are not exceeded.
    pub most: u64,
    /// The search ends when it is as near as this share.
    pub error: f64,
    /// Frames handed to a port at once, at most.
    pub burst: u32,
    /// How often a trial that was held up from outside is tried again.
    pub retries: u32,
    /// The first trial's id; each takes the next.
    pub first_id: u16,
}

impl SelfTest {
    /// Trials of a quarter of a second, to one percent, in bursts of 32.
    pub fn quick(streams: Vec<Stream>) -> Self {
        SelfTest {
            streams,
            duration: Duration::from_millis(250),
            timeout: Duration::from_millis(100),
            most: 20_000_000,
            error: 0.01,
            burst: 32,
            retries: 2,
            first_id: 1,
        }
    }
}

/// What the tester can do.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ceiling {
    /// Frames a second of each stream that were sent in time and received without loss.
    pub rate: u64,
    /// The search ended at its upper end: the tester can do more.
    pub is_more: bool,
    /// Delays of all frames of each stream at a tenth of that: what a wire adds.
    pub floor: Vec<Delays>,
    /// How late frames were sent in that trial.
    pub lateness: Lateness,
    /// The longest stalls of it.
    pub stalls: Vec<Stall>,
    /// How many there were.
    pub stall_count: u64,
    /// Trials that were run.
    pub trials: u32,
}

/// Finds the ceiling of a tester whose ports are joined. Each of its trials also checks the clock: one that runs off ends the
/// test.
///
/// # Errors
///
/// As of a trial.
pub fn self_test(
    tester: &mut dyn Tester,
    test: &SelfTest,
    watch: &mut dyn Watch,
) -> Result<Ceiling, TesterError> {
    let mut search = Search { tester, test, trials: 0 };
    // As fast as it goes: an upper end that is near.
    let most = test.most.max(1);
    let (passed, possible) = search.tries(most, watch)?;
    let (mut low, mut high) = if passed { (most, most) } else { (0, most.min(possible + possible / 4 + 1)) };
    while high - low > ((high as f64 * test.error) as u64).max(1) {
        let rate = low + (high - low) / 2;
        if search.tries(rate, watch)?.0 { low = rate } else { high = rate }
    }
    let trial = search.trial((low / 10).max(1), Stamps::All);
    let outcome = search.tester.run(&trial, watch)?;
    Ok(Ceiling {
        rate: low,
        is_more: low == most,
        floor: outcome.streams.into_iter().filter_map(|stream| stream.delays).collect(),
        lateness: outcome.lateness,
        stalls: outcome.stalls,
        stall_count: outcome.stall_count,
        trials: search.trials,
    })
}

struct Search<'a> {
    tester: &'a mut dyn Tester,
    test: &'a SelfTest,
    trials: u32,
}

impl Search<'_> {
    fn trial(&mut self, rate: u64, stamps: Stamps) -> Trial {
        let id = self.test.first_id.wrapping_add(self.trials as u16);
        self.trials += 1;
        let mut streams = self.test.streams.clone();
        for stream in &mut streams {
            stream.pace = Pace::Steady { rate: Rate::per_second(rate), after: Duration::ZERO };
            stream.stamps = stamps;
        }
        let mut trial = Trial::new(id, streams, self.test.duration);
        trial.timeout = self.test.timeout;
        trial.start_delay = Duration::from_millis(20);
        trial.burst = self.test.burst;
        trial.verify = Verify::Some;
        trial.tolerance = 1.0 + BEARABLE / self.test.duration.as_secs_f64().max(BEARABLE);
        trial
    }

    /// Whether a rate passes, and the rate that was really sent by each stream.
    fn tries(&mut self, rate: u64, watch: &mut dyn Watch) -> Result<(bool, u64), TesterError> {
        let mut possible = 0;
        for _ in 0..=self.test.retries {
            let trial = self.trial(rate, Stamps::None);
            let ring = self.tester.facts().smallest_ring;
            let outcome = self.tester.run(&trial, watch)?;
            let sent = outcome.streams.iter().map(|stream| stream.counts.sent).max().unwrap_or(0);
            possible = (sent as f64 / outcome.took.as_secs_f64().max(1e-6)) as u64;
            match Verdict::of(&trial, &outcome, ring) {
                Verdict::Disturbed(_) => {}
                verdict => return Ok((verdict.passed(), possible)),
            }
        }
        Ok((false, possible))
    }
}
