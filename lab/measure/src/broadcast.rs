//! Broadcast frames: their throughput, and their latency at it (RFC 2889 5.10). That all frames are broadcasts is the
//! traffic's doing.

use crate::{Estimate, Latency, MeasureError, Report, Runner, Test, Throughput, Traffic, TrialProcedure};

/// The test.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Broadcast {
    /// The upper end, frames a second and direction; none: what the tester reaches or the link carries.
    pub most: Option<u64>,
}

impl Broadcast {
    fn throughput(self) -> Throughput {
        Throughput { most: self.most, ..Throughput::default() }
    }
}

impl Test for Broadcast {
    fn name(&self) -> &'static str {
        "broadcast"
    }

    fn estimate(&self, conduct: &TrialProcedure, most: u64) -> Estimate {
        self.throughput().estimate(conduct, most) + Latency::of(conduct, most).estimate(conduct, most)
    }

    fn run(&self, runner: &mut Runner<'_>, traffic: &dyn Traffic) -> Result<Report, MeasureError> {
        let throughput = self.throughput();
        let found = throughput.measure_as(self.name(), runner, traffic)?;
        let mut report = Report { rows: throughput.rows(runner, &found), ended: None };
        for row in &mut report.rows {
            // So that it is not taken for the throughput of ordinary frames.
            "broadcast throughput".clone_into(&mut row.metric);
        }
        let rate = found.median() as u64;
        report.ended = found.runs.ended;
        if report.ended.is_none() && rate > 0 {
            let latency = Latency::of(&runner.conduct, rate);
            match latency.measure_as("broadcast latency", runner, traffic) {
                Ok(delays) => {
                    report.rows.extend(latency.rows(runner, &delays));
                    report.ended = delays.runs.ended;
                }
                Err(error) => report.ended = Some(error),
            }
        }
        for row in &mut report.rows {
            self.name().clone_into(&mut row.test);
        }
        Ok(report)
    }
}
