//! Frame loss rate: the share of frames lost over the offered load (RFC 2544 26.3).

use serde::Serialize;
use shoal_lab_plan::{Side, SummaryRow};

use crate::case::with_curve;
use crate::{
    Estimate, MeasureError, Offer, Repeated, Report, Runner, Test, Traffic, TrialProcedure, TrialSpec, repeat,
};

/// Which rates are offered.
#[derive(Clone, Debug, PartialEq, Default)]
pub enum Steps {
    /// RFC 2544 26.3: from 100 % of the highest rate down in steps of 10 %, until two in a row lose nothing.
    #[default]
    Rfc,
    /// From the first rate to the second, included, by the third (siitperf's form).
    Range(u64, u64, u64),
    /// These, in frames a second and direction.
    Listed(Vec<u64>),
}

/// The test.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FrameLoss {
    /// Which rates are offered.
    pub steps: Steps,
    /// What 100 % is; none: what the tester reaches or the link carries.
    pub most: Option<u64>,
}

/// A rate and what was lost.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LossPoint {
    /// Frames a second and direction that were due.
    pub offered: u64,
    /// Frames a second and direction that arrived.
    pub received: f64,
    /// `100 * (sent - received) / sent`, of what was sent on the left, on the right, and of all.
    pub loss: [f64; 3],
    /// The tester could not send as fast.
    pub tester_limit: bool,
}

/// Its result: each run's points, in the order they were measured.
#[derive(Debug)]
pub struct FrameLossResult {
    /// Each run's.
    pub runs: Repeated<Vec<LossPoint>>,
}

impl FrameLossResult {
    /// Each offered rate with the median of what arrived and of the loss in percent; rates rising.
    pub fn curve(&self) -> Vec<(u64, f64, f64)> {
        let points: Vec<&LossPoint> = self.runs.values.iter().flatten().collect();
        let mut rates: Vec<u64> = points.iter().map(|p| p.offered).collect();
        rates.sort_unstable();
        rates.dedup();
        let middle = |rate: u64, number: fn(&LossPoint) -> f64| {
            let numbers: Vec<f64> = points.iter().filter(|p| p.offered == rate).map(|p| number(p)).collect();
            crate::statistics::median(&numbers).unwrap_or(0.0)
        };
        rates.into_iter().map(|r| (r, middle(r, |p| p.received), middle(r, |p| p.loss[2]))).collect()
    }

    /// The rate that was offered when the most arrived, and how much that was: RFC 2889's maximum forwarding rate. Beyond
    /// it a livelock shows.
    pub fn peak(&self) -> Option<(u64, f64)> {
        self.curve().into_iter().map(|(r, got, _)| (r, got)).max_by(|a, b| a.1.total_cmp(&b.1))
    }
}

impl FrameLoss {
    fn rates(&self, most: u64) -> Vec<u64> {
        match &self.steps {
            Steps::Rfc => (1..=10).rev().map(|tenth| (most * tenth / 10).max(1)).collect(),
            Steps::Range(first, last, step) => {
                let step = (*step).max(1);
                let count = first.abs_diff(*last) / step;
                let at = |i: u64| if first <= last { first + i * step } else { first - i * step };
                (0..=count).map(at).collect()
            }
            Steps::Listed(rates) => rates.clone(),
        }
    }

    /// Measures.
    ///
    /// # Errors
    ///
    /// If no run came to its end, or a rate is 0.
    pub fn measure(
        &self,
        runner: &mut Runner<'_>,
        traffic: &dyn Traffic,
    ) -> Result<FrameLossResult, MeasureError> {
        self.measure_as(self.name(), runner, traffic)
    }

    /// The same under another test's name.
    ///
    /// # Errors
    ///
    /// As [`measure`](Self::measure).
    pub fn measure_as(
        &self,
        name: &str,
        runner: &mut Runner<'_>,
        traffic: &dyn Traffic,
    ) -> Result<FrameLossResult, MeasureError> {
        let rates = self.rates(self.most.unwrap_or_else(|| runner.most_rate(traffic.size())));
        if rates.is_empty() || rates.contains(&0) {
            return Err(MeasureError::Setting {
                what: "rates",
                value: format!("{rates:?}"),
                nearest: "at least one, and each at least 1 fps".into(),
            });
        }
        let runs = repeat(runner, name, runner.conduct.runs, |r| self.sweep(r, traffic, &rates))?;
        Ok(FrameLossResult { runs })
    }

    fn sweep(
        &self,
        runner: &mut Runner<'_>,
        traffic: &dyn Traffic,
        rates: &[u64],
    ) -> Result<Vec<LossPoint>, MeasureError> {
        let mut points: Vec<LossPoint> = Vec::new();
        for &rate in rates {
            let streams = traffic.streams(&Offer::steady(rate))?;
            let shown =
                runner.trial(&TrialSpec::new(streams, rate as f64, runner.conduct.duration).overloaded())?;
            runner.expect_answer(traffic, &shown)?;
            let side = |side: Side| 100.0 * shown.loss_from(side);
            points.push(LossPoint {
                offered: rate,
                received: shown.received_rate(),
                loss: [side(Side::Left), side(Side::Right), 100.0 * shown.loss()],
                tester_limit: shown.is_tester_limit(),
            });
            // RFC 2544 26.3: "until there are two successive trials in which no frames are lost".
            let clean = points.iter().rev().take_while(|p| p.loss[2] == 0.0).count();
            if self.steps == Steps::Rfc && clean >= 2 {
                break;
            }
        }
        Ok(points)
    }

    /// The summary's rows of a result: the highest receive rate, and the loss with its curve.
    pub fn rows(&self, runner: &Runner<'_>, result: &FrameLossResult) -> Vec<SummaryRow> {
        let curve = result.curve();
        let peaks: Vec<f64> = result
            .runs
            .values
            .iter()
            .map(|points| points.iter().map(|p| p.received).fold(0.0, f64::max))
            .collect();
        let losses = result
            .runs
            .values
            .iter()
            .filter_map(|points| points.iter().max_by_key(|p| p.offered).map(|p| p.loss[2]));
        let received: Vec<(f64, f64)> = curve.iter().map(|(r, got, _)| (*r as f64, *got)).collect();
        let lost: Vec<(f64, f64)> = curve.iter().map(|(r, _, loss)| (*r as f64, *loss)).collect();
        let mut highest = runner.row("loss", "%", losses.collect());
        let mut peak = runner.rate_row("receive rate", peaks);
        if result.runs.values.iter().flatten().any(|p| p.tester_limit) {
            for row in [&mut highest, &mut peak] {
                crate::case::mark(row, shoal_lab_plan::Trust::TesterBound);
            }
        }
        vec![
            with_curve(highest, lost, "offered fps/dir", "loss %"),
            with_curve(peak, received, "offered fps/dir", "received fps/dir"),
        ]
    }
}

impl Test for FrameLoss {
    fn name(&self) -> &'static str {
        "loss"
    }

    fn estimate(&self, conduct: &TrialProcedure, most: u64) -> Estimate {
        let steps = self.rates(self.most.unwrap_or(most)).len() as u64;
        Estimate::of(conduct, steps, conduct.duration).times(conduct.runs)
    }

    fn run(&self, runner: &mut Runner<'_>, traffic: &dyn Traffic) -> Result<Report, MeasureError> {
        let result = self.measure(runner, traffic)?;
        let rows = self.rows(runner, &result);
        Ok(Report { rows, ended: result.runs.ended })
    }
}
