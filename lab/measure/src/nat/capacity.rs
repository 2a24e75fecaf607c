//! Connection tracking table capacity (RFC 9693 4.7): the number of connections beyond which making more becomes much slower,
//! or fails.

use serde::Serialize;
use shoal_lab_plan::SummaryRow;

use super::{Sessions, Setup};
use crate::case::note;
use crate::search::bisect;
use crate::{
    Answer, Estimate, MeasureError, Precision, Repeated, Runner, StatefulTraffic, TrialProcedure, repeat,
};

/// The test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Capacity {
    /// A number of connections that the table surely holds (C0).
    pub safe: u64,
    /// The most that are tried: there are so many four-tuples.
    pub most: u64,
    /// The highest setup rate that is tried.
    pub most_rate: u64,
    /// How close setup rates are measured (RFC 9693's e).
    pub rate_error: u64,
    /// The table ends between C/2 and C if `R(C) < beta * R(C/2)`.
    pub beta: f64,
    /// A number is too high if its setup rate is below `gamma` times the safe one's.
    pub gamma: f64,
    /// How close the capacity is found (E).
    pub error: u64,
}

impl Capacity {
    /// The usual: C0 a million, beta 0.2, gamma 0.4, E 1, e 100,000.
    pub const fn usual(most: u64, most_rate: u64) -> Capacity {
        Capacity { safe: 1_000_000, most, most_rate, rate_error: 100_000, beta: 0.2, gamma: 0.4, error: 1 }
    }
}

/// One run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CapacityFound {
    /// Connections.
    pub capacity: u64,
    /// The table is larger than what was tried.
    pub at_least: bool,
    /// Connections and setup rate of each doubling.
    pub rates: Vec<(u64, u64)>,
}

impl Capacity {
    /// How long it will take: the doublings to twice the safe number, and the search.
    pub fn estimate(&self, conduct: &TrialProcedure) -> Estimate {
        let rate = (self.most_rate / 2).max(1);
        let doublings = u64::from((self.most / self.safe.max(1)).max(1).ilog2()) + 1;
        let search = u64::from(Precision::Absolute(self.rate_error).trials(self.most_rate));
        let halvings = u64::from(Precision::Absolute(self.error).trials(self.most / 2));
        let filling = Setup::filling(self.most / 2, rate) + conduct.settle;
        Estimate::of(conduct, doublings * search + halvings, filling).times(conduct.runs)
    }

    /// Measures.
    ///
    /// # Errors
    ///
    /// If no run came to its end, or not even the safe number could be made.
    pub fn measure(
        &self,
        runner: &mut Runner<'_>,
        traffic: &dyn StatefulTraffic,
        device: &mut dyn Sessions,
    ) -> Result<Repeated<CapacityFound>, MeasureError> {
        if self.safe == 0 || self.safe > self.most {
            return Err(MeasureError::Setting {
                what: "safe number of connections",
                value: self.safe.to_string(),
                nearest: format!("1 to {}", self.most),
            });
        }
        repeat(runner, "nat-capacity", runner.conduct.runs, |r| self.once(r, traffic, device))
    }

    fn rate_of(
        &self,
        runner: &mut Runner<'_>,
        traffic: &dyn StatefulTraffic,
        device: &mut dyn Sessions,
        tuples: u64,
        most: u64,
    ) -> Result<u64, MeasureError> {
        let precision = Precision::Absolute(self.rate_error);
        let setup = Setup { tuples, most, precision, check: None };
        Ok(setup.once(runner, traffic, device)?.rate)
    }

    fn once(
        &self,
        runner: &mut Runner<'_>,
        traffic: &dyn StatefulTraffic,
        device: &mut dyn Sessions,
    ) -> Result<CapacityFound, MeasureError> {
        let safe_rate = self.rate_of(runner, traffic, device, self.safe, self.most_rate)?;
        if safe_rate == 0 {
            return Err(MeasureError::Setting {
                what: "safe number of connections",
                value: self.safe.to_string(),
                nearest: "not even these can be made; take fewer, or a smaller rate error".into(),
            });
        }
        let mut rates = vec![(self.safe, safe_rate)];
        let (mut held, mut rate) = (self.safe, safe_rate);
        let too_many = loop {
            if held >= self.most {
                return Ok(CapacityFound { capacity: held, at_least: true, rates });
            }
            let next = held.saturating_mul(2).min(self.most);
            let next_rate = self.rate_of(runner, traffic, device, next, self.most_rate)?;
            rates.push((next, next_rate));
            if (next_rate as f64) < self.beta * rate as f64 {
                break next;
            }
            (held, rate) = (next, next_rate);
        };
        // "R(C) < gamma * Rs" is just what a single filling at gamma * Rs tells: no search is needed for it.
        let asked = ((self.gamma * safe_rate as f64) as u64).max(1);
        let found = bisect(held, too_many, Precision::Absolute(self.error), |tuples, _| {
            let shown = Setup::fill(runner, traffic, device, tuples, asked)?;
            let holds = Setup::is_filled(&shown, tuples);
            Ok::<_, MeasureError>(if holds { Answer::Pass } else { Answer::Fail })
        })?;
        Ok(CapacityFound { capacity: found.value, at_least: false, rates })
    }

    /// The summary's row of a result; its curve is setup rate over connections.
    pub fn row(&self, runner: &Runner<'_>, runs: &Repeated<CapacityFound>) -> SummaryRow {
        let row = runner.row("connection capacity", "entries", runs.map(|r| r.capacity as f64));
        let curve =
            runs.values.first().map(|r| r.rates.iter().map(|(c, r)| (*c as f64, *r as f64)).collect());
        let mut row = crate::case::with_curve(row, curve.unwrap_or_default(), "connections", "connections/s");
        if runs.values.iter().any(|r| r.at_least) {
            crate::case::mark(&mut row, shoal_lab_plan::Trust::Ceiling);
            note(&mut row, "at least (no more four-tuples were tried)");
        }
        row
    }
}
