//! How a rate grows with the device's workers (lab.md 1.12).

use serde::Serialize;
use shoal_lab_plan::{SummaryRow, Trust};

use crate::case::{Case, mark, note, with_curve};
use crate::statistics::{mean, median};

/// The rates of a number of workers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WorkerRates {
    /// Workers.
    pub workers: u16,
    /// Each run's rate, frames a second and direction.
    pub rates: Vec<f64>,
    /// A worker shares its processor with the tester: not a measurement.
    pub shared_core: bool,
}

/// What a number of workers gains.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ScalingPoint {
    /// Workers.
    pub workers: u16,
    /// The median rate.
    pub rate: f64,
    /// `P(n) / P(1) / n`: 1 is perfect. None if one worker was not measured.
    pub relative: Option<f64>,
    /// `P(n) / P(n/2)`: 2 is perfect. None if half as many were not measured.
    pub rel_half: Option<f64>,
    /// It is no measurement: see [`WorkerRates::shared_core`].
    pub shared_core: bool,
}

/// Reads the rates.
pub fn scaling(measured: &[WorkerRates]) -> Vec<ScalingPoint> {
    let rate = |workers: u16| {
        let found = measured.iter().find(|m| m.workers == workers)?;
        median(&found.rates).filter(|r| *r > 0.0)
    };
    let point = |m: &WorkerRates| {
        let own = median(&m.rates)?;
        let half = if m.workers.is_multiple_of(2) { rate(m.workers / 2) } else { None };
        Some(ScalingPoint {
            workers: m.workers,
            rate: own,
            relative: rate(1).map(|one| own / one / f64::from(m.workers.max(1))),
            rel_half: half.map(|half| own / half),
            shared_core: m.shared_core,
        })
    };
    let mut points: Vec<ScalingPoint> = measured.iter().filter_map(point).collect();
    points.sort_by_key(|p| p.workers);
    points
}

/// The fewest workers that were measured to reach `rate`.
pub fn workers_for(points: &[ScalingPoint], rate: f64) -> Option<u16> {
    points.iter().filter(|p| p.rate >= rate && !p.shared_core).map(|p| p.workers).min()
}

/// How uneven queues or workers are loaded: the largest by the mean; 1 is even. None if nothing was forwarded.
pub fn queue_balance(frames: &[u64]) -> Option<f64> {
    let each: Vec<f64> = frames.iter().map(|f| *f as f64).collect();
    let middle = mean(&each)?;
    (middle > 0.0).then(|| each.iter().copied().fold(0.0, f64::max) / middle)
}

/// The summary's rows: for each number of workers its rate, S(n) and rel_half; the first has the curve.
pub fn scaling_rows(case: &Case, measured: &[WorkerRates]) -> Vec<SummaryRow> {
    let points = scaling(measured);
    let mut rows = Vec::new();
    for point in &points {
        let own = Case { workers: point.workers, ..case.clone() };
        let mut add = |metric: &str, unit: &str, values: Vec<f64>| {
            let mut row = own.row("scaling", metric, unit, values);
            if point.shared_core {
                mark(&mut row, Trust::SharedCore);
                note(&mut row, "not a measurement");
            }
            rows.push(row);
        };
        let rates = measured.iter().find(|m| m.workers == point.workers).map(|m| m.rates.clone());
        add("throughput", "fps/dir", rates.unwrap_or_default());
        add("rate per worker", "fps/dir", vec![point.rate / f64::from(point.workers.max(1))]);
        if let Some(relative) = point.relative {
            add("S(n)", "ratio", vec![relative]);
        }
        if let Some(rel_half) = point.rel_half {
            add("rel_half", "ratio", vec![rel_half]);
        }
    }
    if let Some(first) = rows.first_mut() {
        let curve = points.iter().map(|p| (f64::from(p.workers), p.rate)).collect();
        *first = with_curve(first.clone(), curve, "workers", "fps/dir");
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rates(workers: u16, rate: f64) -> WorkerRates {
        WorkerRates { workers, rates: vec![rate; 3], shared_core: workers == 12 }
    }

    #[test]
    fn scale_up_is_the_papers() {
        let points = scaling(&[rates(4, 3.2e6), rates(1, 1e6), rates(2, 1.8e6), rates(6, 4.2e6)]);
        let numbers: Vec<(u16, Option<f64>, Option<f64>)> =
            points.iter().map(|p| (p.workers, p.relative, p.rel_half)).collect();
        assert_eq!(numbers[0], (1, Some(1.0), None));
        assert_eq!(numbers[1], (2, Some(0.9), Some(1.8)));
        assert_eq!(numbers[2], (4, Some(0.8), Some(3.2e6 / 1.8e6)));
        assert_eq!(numbers[3], (6, Some(4.2e6 / 1e6 / 6.0), None));
    }

    #[test]
    fn without_one_worker_there_is_no_scale_up() {
        assert_eq!(scaling(&[rates(2, 1e6)])[0].relative, None);
        assert!(scaling(&[]).is_empty());
    }

    #[test]
    fn workers_that_share_the_testers_processor_are_not_counted() {
        let points = scaling(&[rates(1, 1e6), rates(12, 1e7)]);
        assert_eq!(workers_for(&points, 5e6), None);
        let rows = scaling_rows(&Case::default(), &[rates(1, 1e6), rates(12, 1e7)]);
        assert!(rows.iter().filter(|r| r.workers == 12).all(|r| r.note == "not a measurement"));
    }

    #[test]
    fn the_blogs_queues_were_uneven_by_two_fifths() {
        let balance = queue_balance(&[7_300_000, 4_100_000, 4_100_000]).unwrap();
        assert!((balance - 1.412_9).abs() < 1e-4, "{balance}");
        assert_eq!(queue_balance(&[0, 0]), None);
    }
}
