//! Sweeps: the same test at several points of something, flows or routes say (RFC 8219 10's overload scalability).

use serde::Serialize;
use shoal_lab_plan::SummaryRow;

use crate::case::{Case, with_curve};
use crate::statistics::median;
use crate::{MeasureError, Report, Runner};

/// A sweep.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Sweep {
    /// What changes: `flows`, `routes`.
    pub over: &'static str,
    /// Its values.
    pub points: Vec<u64>,
}

impl Sweep {
    /// 1, 10, 100, ... up to and with `most`.
    pub fn decades(over: &'static str, most: u64) -> Sweep {
        let mut points: Vec<u64> =
            (0..20).map_while(|i| 10_u64.checked_pow(i)).take_while(|p| *p < most).collect();
        points.push(most);
        Sweep { over, points }
    }

    /// Runs `test` at each point; each is told the point and the runner, whose case has the variant `flows=1000`. The rows of
    /// all points are kept, and one more for each metric with its medians as a curve. An error ends the sweep and keeps what
    /// there is.
    ///
    /// # Errors
    ///
    /// If not even the first point could be measured.
    pub fn run(
        &self,
        runner: &mut Runner<'_>,
        test: &mut dyn FnMut(u64, &mut Runner<'_>) -> Result<Report, MeasureError>,
    ) -> Result<Report, MeasureError> {
        let original = runner.case.clone();
        let self_test = runner.self_test;
        let mut all = Report::default();
        let mut measured: Vec<(u64, Vec<SummaryRow>)> = Vec::new();
        for &point in &self.points {
            let variant = join(&original.variant, &format!("{}={point}", self.over));
            runner.change(Case { variant, ..original.clone() }, self_test);
            match test(point, runner) {
                Ok(mut report) => {
                    all.rows.append(&mut report.rows.clone());
                    measured.push((point, std::mem::take(&mut report.rows)));
                    all.ended = report.ended;
                }
                Err(error) if measured.is_empty() => {
                    runner.change(original, self_test);
                    return Err(error);
                }
                Err(error) => all.ended = Some(error),
            }
            if all.ended.is_some() {
                break;
            }
        }
        let variant = join(&original.variant, &format!("over {}", self.over));
        all.rows.extend(self.curves(&variant, &measured));
        runner.change(original, self_test);
        Ok(all)
    }

    fn curves(&self, variant: &str, measured: &[(u64, Vec<SummaryRow>)]) -> Vec<SummaryRow> {
        let Some((_, first)) = measured.first() else { return Vec::new() };
        let curve = |model: &SummaryRow| {
            let at = |(point, rows): &(u64, Vec<SummaryRow>)| {
                let row = rows.iter().find(|r| r.metric == model.metric)?;
                Some((*point as f64, median(&row.values)?))
            };
            let points: Vec<(f64, f64)> = measured.iter().filter_map(at).collect();
            let mut row = model.clone();
            row.variant = variant.to_string();
            row.values = points.iter().map(|(_, y)| *y).collect();
            let unit = row.unit.clone();
            with_curve(row, points, self.over, &unit)
        };
        first.iter().map(curve).collect()
    }
}

fn join(a: &str, b: &str) -> String {
    if a.is_empty() { b.into() } else { format!("{a}, {b}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decades_end_at_the_most() {
        assert_eq!(Sweep::decades("flows", 1_000).points, [1, 10, 100, 1_000]);
        assert_eq!(Sweep::decades("flows", 65_536).points, [1, 10, 100, 1_000, 10_000, 65_536]);
        assert_eq!(Sweep::decades("flows", 1).points, [1]);
    }
}
