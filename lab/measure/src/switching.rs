//! Learning bridges with two ports: the part of RFC 2889 that two ports allow.
//!
//! Throughput and loss (5.1) are the ordinary tests; the maximum forwarding rate (5.2) is
//! [`FrameLossResult::peak`](crate::FrameLossResult::peak); broadcast forwarding (5.10) is throughput and latency with
//! broadcast traffic. Errored frames (5.9) cannot be sent on virtual ports, and meshes need more ports.

use serde::Serialize;
use shoal_lab_plan::{DeviceError, SummaryRow};

use crate::case::{mark, note};
use crate::search::bisect;
use crate::{
    Answer, Bound, Conduct, Estimate, Found, LearningTraffic, MeasureError, Precision, Repeated, Runner,
    Shot, repeat,
};
use std::time::Duration;

/// What is searched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Learning {
    /// Address caching capacity (RFC 2889 5.7): the most addresses that are all known afterwards, learnt at `rate`.
    Capacity {
        /// The most that are tried.
        most: u32,
        /// Frames a second while learning, a slow one.
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

/// Frames a second of the question whether addresses are known.
const ASKING: u64 = 10_000;

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

    /// How long it will take.
    pub fn estimate(self, conduct: &Conduct) -> Estimate {
        let trials = 2 * u64::from(Precision::Absolute(1).trials(self.most()));
        let (addresses, rate) = match self {
            Learning::Capacity { most, rate } => (u64::from(most) / 2, rate),
            Learning::Rate { addresses, most } => (u64::from(addresses), most / 2),
        };
        Estimate::of(conduct, trials, time(addresses, rate) + conduct.settle).times(conduct.runs)
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
        repeat(runner, self.name(), runner.conduct.runs, |runner| {
            bisect(0, self.most() + 1, Precision::Absolute(1), |value, bracket| {
                let (addresses, rate) = match self {
                    Learning::Capacity { rate, .. } => (value as u32, rate),
                    Learning::Rate { addresses, .. } => (addresses, value),
                };
                let mut tries = 0;
                loop {
                    forget()?;
                    tries += 1;
                    match ask(runner, traffic, addresses, rate, bracket)? {
                        Some(answer) => return Ok(answer),
                        None if tries > runner.conduct.retries => return Ok(Answer::Fail),
                        None => {}
                    }
                }
            })
        })
    }

    /// The summary's row of a result.
    pub fn row(self, runner: &Runner<'_>, runs: &Repeated<Found>) -> SummaryRow {
        let (metric, unit) = match self {
            Learning::Capacity { .. } => ("address capacity", "addresses"),
            Learning::Rate { .. } => ("address learning rate", "fps/dir"),
        };
        let mut row = runner.row(metric, unit, runs.map(|f| f.value as f64));
        if runs.values.iter().any(|f| f.bound == Bound::Ceiling) {
            mark(&mut row, shoal_lab_plan::Trust::Ceiling);
            note(&mut row, "at least (no more was tried)");
        }
        note(&mut row, "floods seen at the second port, as there is no third");
        row
    }
}

/// Learns, waits, and asks: no frame to a learnt address may be flooded. `None`: learning was disturbed and says nothing.
fn ask(
    runner: &mut Runner<'_>,
    traffic: &dyn LearningTraffic,
    addresses: u32,
    rate: u64,
    bracket: (u64, u64),
) -> Result<Option<Answer>, MeasureError> {
    let teaching = Shot {
        bracket: Some(bracket),
        stateful: true,
        ..Shot::new(traffic.learn(addresses, rate)?, rate as f64, time(u64::from(addresses), rate))
            .overloaded()
    };
    let taught = runner.trial(&teaching)?;
    if taught.is_tester_limit() {
        return Ok(Some(Answer::Limit));
    }
    if taught.is_doubtful() {
        return Ok(None);
    }
    runner.wait(runner.conduct.settle)?;
    let streams = traffic.ask(addresses, ASKING)?;
    let asking = Shot {
        stateful: true,
        ..Shot::new(streams, ASKING as f64, time(u64::from(addresses), ASKING)).overloaded()
    };
    let asked = runner.trial(&asking)?;
    let flooded: u64 = asked.outcome.streams.iter().filter(|s| !s.expected).map(|s| s.counts.received).sum();
    Ok(Some(if flooded == 0 { Answer::Pass } else { Answer::Fail }))
}

fn time(frames: u64, rate: u64) -> Duration {
    Duration::from_micros((frames as f64 * 1e6 / rate.max(1) as f64).ceil().max(1.0) as u64)
}
