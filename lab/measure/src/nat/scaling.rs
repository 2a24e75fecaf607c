//! Scaling over the number of connections (RFC 9693 4.8): setup rate, and throughput over what exists.

use std::time::Duration;

use serde::Serialize;
use shoal_lab_plan::SummaryRow;

use super::{Established, Sessions, Setup};
use crate::case::with_curve;
use crate::{MeasureError, Runner, Search, StatefulTraffic};

/// The test.
#[derive(Clone, Debug, PartialEq)]
pub struct StateScaling {
    /// Numbers of connections, rising: steps of four or ten.
    pub tuples: Vec<u64>,
    /// The setup rate's search, without its number of connections.
    pub setup: Setup,
    /// The highest rate over existing connections, frames a second and direction; none: throughput is not measured.
    pub most: Option<u64>,
    /// Silence between making connections and using them.
    pub pause: Duration,
}

/// What a number of connections allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct StateScalingPoint {
    /// Connections.
    pub tuples: u64,
    /// New ones a second.
    pub setup: u64,
    /// Throughput over them, frames a second and direction.
    pub throughput: Option<u64>,
}

impl StateScaling {
    /// Measures; once for each number.
    ///
    /// # Errors
    ///
    /// If a number cannot be measured.
    pub fn measure(
        &self,
        runner: &mut Runner<'_>,
        traffic: &dyn StatefulTraffic,
        device: &mut dyn Sessions,
    ) -> Result<Vec<StateScalingPoint>, MeasureError> {
        let mut points = Vec::new();
        for (index, &tuples) in self.tuples.iter().enumerate() {
            runner.begin("nat-scaling", index as u32 + 1, self.tuples.len() as u32);
            let setup = Setup { tuples, ..self.setup };
            let rate = setup.once(runner, traffic, device)?.rate;
            let throughput = match self.most {
                Some(most) if rate > 0 => {
                    // Half of the highest is a safe rate.
                    let over =
                        Established::make(runner, traffic, device, tuples, (rate / 2).max(1), self.pause)?;
                    runner.begin("nat-scaling", index as u32 + 1, self.tuples.len() as u32);
                    Some(Search::new(&runner.conduct, most).run(runner, &over)?.value)
                }
                _ => None,
            };
            points.push(StateScalingPoint { tuples, setup: rate, throughput });
        }
        Ok(points)
    }

    /// The summary's rows of a result.
    pub fn rows(&self, runner: &Runner<'_>, points: &[StateScalingPoint]) -> Vec<SummaryRow> {
        let setup: Vec<(f64, f64)> = points.iter().map(|p| (p.tuples as f64, p.setup as f64)).collect();
        let over: Vec<(f64, f64)> =
            points.iter().filter_map(|p| p.throughput.map(|t| (p.tuples as f64, t as f64))).collect();
        let row = |metric: &str, unit: &str, curve: Vec<(f64, f64)>| {
            let values = curve.iter().map(|(_, y)| *y).collect();
            with_curve(runner.row(metric, unit, values), curve, "connections", unit)
        };
        let mut rows = vec![row("connection setup rate", "connections/s", setup)];
        if !over.is_empty() {
            rows.push(row("throughput over connections", "fps/dir", over));
        }
        rows
    }
}
