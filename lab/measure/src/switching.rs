//! Learning bridges with two ports: the part of RFC 2889 that two ports allow.
//!
//! Here are the tests of the address table (5.7 and 5.8). The maximum forwarding rate (5.6) is
//! [`ForwardingRate`](crate::ForwardingRate), broadcast forwarding (5.10) [`Broadcast`](crate::Broadcast); throughput and loss
//! are the ordinary tests. Errored frames (5.9) cannot be sent on virtual ports, and meshes (5.1 to 5.5) need more ports.

use std::time::Duration;

use serde::Serialize;
use shoal_lab_plan::{DeviceError, Outcome, Side, SummaryRow, Trust, Verdict};

use crate::case::{mark, note};
use crate::search::bisect;
use crate::{
    Answer, Bound, Estimate, Found, LearningTraffic, MeasureError, Precision, Repeated, Runner,
    TrialProcedure, TrialSpec, repeat,
};

/// What is searched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Learning {
    /// Address caching capacity (RFC 2889 5.7): the most addresses that are all known afterwards, learnt at `rate`.
    Capacity {
        /// The most that are tried.
        most: u32,
        /// Frames a second while learning and asking: a slow one, at which nothing is lost.
        rate: u64,
    },
    /// Address learning rate (RFC 2889 5.8): the fastest at which `addresses`, which surely fit, are all learnt.
    Rate {
        /// How many.
        addresses: u32,
        /// The highest rate that is tried.
        most: u64,
    },
}

/// Frames a second of the question whether addresses are known that were learnt fast.
const ASKING: u64 = 10_000;

/// A bridge that does not learn at this rate is taken to learn nothing: slower searches would take hours.
const SLOWEST: u64 = 1_000;

/// What was heard of a bridge that was taught and asked.
enum Heard {
    /// Whether it knows all, or the tester could not teach as fast.
    Answer(Answer),
    /// Something was in the way: it says nothing of the bridge.
    Nothing(String),
}

impl Learning {
    /// As users write it.
    pub const fn name(self) -> &'static str {
        match self {
            Learning::Capacity { .. } => "address-capacity",
            Learning::Rate { .. } => "address-learning-rate",
        }
    }

    fn most(self) -> u64 {
        match self {
            Learning::Capacity { most, .. } => u64::from(most),
            Learning::Rate { most, .. } => most,
        }
    }

    /// Tables are counted to the entry.
    fn precision(self, conduct: &TrialProcedure) -> Precision {
        match self {
            Learning::Capacity { .. } => Precision::Absolute(1),
            Learning::Rate { .. } => conduct.precision,
        }
    }

    /// How long it will take, if the result is in the middle of what is tried.
    pub fn estimate(self, conduct: &TrialProcedure) -> Estimate {
        let trials = 2 * (u64::from(self.precision(conduct).trials(self.most())) + 2);
        let (addresses, rate) = match self {
            Learning::Capacity { most, rate } => (u64::from(most) / 2, rate),
            Learning::Rate { addresses, .. } => (u64::from(addresses), ASKING),
        };
        // Of each two trials one is followed by the wait.
        Estimate::of(conduct, trials, time(addresses, rate) + conduct.settle / 2).times(conduct.runs)
    }

    /// Measures. `forget` empties the device's table.
    ///
    /// # Errors
    ///
    /// If no run came to its end.
    pub fn measure(
        self,
        runner: &mut Runner<'_>,
        traffic: &dyn LearningTraffic,
        forget: &mut dyn FnMut() -> Result<(), DeviceError>,
    ) -> Result<Repeated<Found>, MeasureError> {
        repeat(runner, self.name(), runner.conduct.runs, |runner| self.once(runner, traffic, forget))
    }

    /// The ends first: many tables hold all that is tried, and then one step tells it instead of twenty.
    fn once(
        self,
        runner: &mut Runner<'_>,
        traffic: &dyn LearningTraffic,
        forget: &mut dyn FnMut() -> Result<(), DeviceError>,
    ) -> Result<Found, MeasureError> {
        let most = self.most();
        let bound = match self.is_known(runner, traffic, forget, most, (0, most))? {
            Answer::Pass => {
                return Ok(Found { value: most, above: most + 1, last: most, bound: Bound::Ceiling });
            }
            Answer::Fail => Bound::Device,
            Answer::Limit => Bound::Tester,
        };
        let low = match self {
            Learning::Capacity { .. } => 0,
            Learning::Rate { .. } => SLOWEST.min(most.saturating_sub(1)),
        };
        if low > 0 && self.is_known(runner, traffic, forget, low, (0, most))? != Answer::Pass {
            return Ok(Found { value: 0, above: low, last: low, bound: Bound::Device });
        }
        let precision = self.precision(&runner.conduct);
        let found = bisect(low, most, precision, |value, bracket| {
            self.is_known(runner, traffic, forget, value, bracket)
        })?;
        Ok(Found { bound: if found.bound == Bound::Ceiling { bound } else { found.bound }, ..found })
    }

    /// One step: an empty table is filled, and asked for all of it. Again, if that says nothing.
    fn is_known(
        self,
        runner: &mut Runner<'_>,
        traffic: &dyn LearningTraffic,
        forget: &mut dyn FnMut() -> Result<(), DeviceError>,
        value: u64,
        bracket: (u64, u64),
    ) -> Result<Answer, MeasureError> {
        let mut tries = 0;
        loop {
            forget()?;
            tries += 1;
            match (self.hear(runner, traffic, value, bracket)?, self) {
                (Heard::Answer(answer), _) => return Ok(answer),
                (Heard::Nothing(_), _) if tries <= runner.conduct.retries => {}
                // At a high rate it is the rate's fault.
                (Heard::Nothing(_), Learning::Rate { .. }) => return Ok(Answer::Fail),
                (Heard::Nothing(why), Learning::Capacity { rate, .. }) => {
                    return Err(MeasureError::Untrusted(format!(
                        "with {value} addresses at {rate} fps {why}"
                    )));
                }
            }
        }
    }

    /// Learns, waits, and asks: no frame to a learnt address may be flooded.
    fn hear(
        self,
        runner: &mut Runner<'_>,
        traffic: &dyn LearningTraffic,
        value: u64,
        bracket: (u64, u64),
    ) -> Result<Heard, MeasureError> {
        let (addresses, rate, asking) = match self {
            Learning::Capacity { rate, .. } => (value as u32, rate, rate),
            Learning::Rate { addresses, .. } => (addresses, value, ASKING),
        };
        let teaching = TrialSpec {
            // Brackets are told as rates; a table's are of addresses.
            bracket: matches!(self, Learning::Rate { .. }).then_some(bracket),
            stateful: true,
            // What a table holds is no matter of speed, if all that teaches came through.
            any_speed: matches!(self, Learning::Capacity { .. }),
            ..TrialSpec::new(traffic.learn(addresses, rate)?, rate as f64, time(u64::from(addresses), rate))
                .overloaded()
        };
        let taught = runner.trial(&teaching)?;
        match self {
            Learning::Rate { .. } if taught.is_tester_limit() => return Ok(Heard::Answer(Answer::Limit)),
            Learning::Rate { .. } if taught.is_doubtful() => {
                return Ok(Heard::Nothing("learning was disturbed".into()));
            }
            // How late the tester was is no matter here, but what did not get through may not have been seen either.
            Learning::Capacity { .. } if !came(&taught.outcome) => {
                return Ok(Heard::Nothing("not all frames that teach came through".into()));
            }
            _ => {}
        }
        runner.wait(runner.conduct.settle)?;
        let asking = TrialSpec {
            stateful: true,
            any_speed: true,
            ..TrialSpec::new(
                traffic.ask(addresses, asking)?,
                asking as f64,
                time(u64::from(addresses), asking),
            )
            .overloaded()
        };
        let asked = runner.trial(&asking)?;
        let flooded: u64 =
            asked.outcome.streams.iter().filter(|s| !s.expected).map(|s| s.counts.received).sum();
        Ok(match asked.verdict {
            _ if flooded > 0 => Heard::Answer(Answer::Fail),
            // What the tester lost may have been floods.
            Verdict::Invalid(why) => Heard::Nothing(why),
            // A dead device floods nothing either.
            _ if !came(&asked.outcome) => {
                Heard::Nothing("not all frames to an unknown address came through".into())
            }
            _ => Heard::Answer(Answer::Pass),
        })
    }

    const fn nothing(self) -> &'static str {
        match self {
            Learning::Capacity { .. } => "it learnt nothing",
            Learning::Rate { .. } => "not even at 1000 fps was all learnt",
        }
    }

    /// The summary's row of a result.
    pub fn row(self, runner: &Runner<'_>, runs: &Repeated<Found>) -> SummaryRow {
        let values = runs.map(|f| f.value as f64);
        let mut row = match self {
            Learning::Capacity { rate, .. } => {
                let mut row = runner.row("address capacity", "addresses", values);
                note(&mut row, &format!("learnt at {rate} fps"));
                row
            }
            Learning::Rate { addresses, .. } => {
                let mut row = runner.rate_row("address learning rate", values);
                note(&mut row, &format!("{addresses} addresses"));
                row
            }
        };
        for found in &runs.values {
            match found.bound {
                Bound::Device if found.value == 0 => note(&mut row, self.nothing()),
                Bound::Device => {}
                Bound::Tester => {
                    mark(&mut row, Trust::TesterBound);
                    note(&mut row, "at least (tester limit)");
                }
                Bound::Ceiling => {
                    mark(&mut row, Trust::Ceiling);
                    note(&mut row, "at least (no more was tried)");
                }
            }
        }
        note(&mut row, "floods seen at the second port, as there is no third");
        row
    }
}

/// Whether all frames arrived that were expected to.
fn came(outcome: &Outcome) -> bool {
    Side::BOTH.into_iter().all(|side| {
        let counts = outcome.direction(side);
        counts.received >= counts.requested
    })
}

fn time(frames: u64, rate: u64) -> Duration {
    Duration::from_micros((frames as f64 * 1e6 / rate.max(1) as f64).ceil().max(1.0) as u64)
}
