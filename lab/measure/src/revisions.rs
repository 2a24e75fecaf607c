//! Two revisions against each other on a noisy machine: interleaved MRR (lab.md 4.7).
//!
//! A machine's speed drifts over minutes by more than a change is worth. Trials of both revisions therefore alternate, A B B A,
//! so that a steady drift meets both alike, and are compared within one session only.

use serde::Serialize;
use shoal_lab_plan::SummaryRow;

use crate::case::{Case, note};
use crate::statistics::{Interval, mann_whitney, median, ratio_interval};
use crate::{Estimate, MeasureError, TrialProcedure, mrr::Mrr};

/// Which of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Revision {
    /// A: what it is compared with.
    Base,
    /// B: the change.
    Change,
}

/// The comparison.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    /// How often A B B A is gone through.
    pub rounds: u32,
    /// It fails only if the whole interval of the ratio is below this.
    pub limit: f64,
}

impl Default for Comparison {
    /// Five rounds, 0.93.
    fn default() -> Self {
        Comparison { rounds: 5, limit: 0.93 }
    }
}

/// What a comparison says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Judgement {
    /// Nothing worse was seen.
    Fine,
    /// The change is probably slower, but not surely by as much as the limit; or it looks slower than the limit, and the
    /// interval is too wide to be sure of anything.
    Warning,
    /// It surely is.
    Slower,
}

/// Its result.
#[derive(Debug, Serialize)]
pub struct ComparisonResult {
    /// The base's rates, in order.
    pub base: Vec<f64>,
    /// The change's.
    pub change: Vec<f64>,
    /// The median of the change by that of the base.
    pub ratio: f64,
    /// Where it lies with 95 % confidence.
    pub interval: Interval,
    /// Mann-Whitney's p that both are the same.
    pub p: f64,
    /// What follows.
    pub judgement: Judgement,
    /// Why it ended early, if it did.
    #[serde(skip)]
    pub ended: Option<MeasureError>,
}

impl Comparison {
    /// How long it will take: MRR trials of 1 s, without the change of devices.
    pub fn estimate(&self, conduct: &TrialProcedure) -> Estimate {
        Estimate::of(conduct, u64::from(self.rounds) * 4, Mrr::default().duration)
    }

    /// Measures. `rate` gives the maximum receive rate of a trial of either revision (see [`mrr::once`](crate::mrr::once)),
    /// as a ratio to the self-test's if that is known, which cancels more of the drift.
    ///
    /// # Errors
    ///
    /// If not even one round could be measured; what came before an interruption is kept and judged otherwise.
    pub fn measure(
        &self,
        rate: &mut dyn FnMut(Revision) -> Result<f64, MeasureError>,
    ) -> Result<ComparisonResult, MeasureError> {
        use Revision::{Base, Change};
        let (mut base, mut change, mut ended) = (Vec::new(), Vec::new(), None);
        for which in (0..self.rounds.max(1)).flat_map(|_| [Base, Change, Change, Base]) {
            match rate(which) {
                Ok(value) => match which {
                    Base => base.push(value),
                    Change => change.push(value),
                },
                Err(error) => {
                    ended = Some(error);
                    break;
                }
            }
        }
        if let Some(error) = ended.take_if(|_| base.is_empty() || change.is_empty()) {
            return Err(error);
        }
        self.judge(base, change, ended)
    }

    fn judge(
        &self,
        base: Vec<f64>,
        change: Vec<f64>,
        ended: Option<MeasureError>,
    ) -> Result<ComparisonResult, MeasureError> {
        let none = || MeasureError::Untrusted("the base forwarded nothing".into());
        let interval = ratio_interval(&change, &base).ok_or_else(none)?;
        let ratio = median(&change).ok_or_else(none)? / median(&base).ok_or_else(none)?;
        let judgement = self.judgement(ratio, interval);
        let p = mann_whitney(&change, &base).unwrap_or(1.0);
        Ok(ComparisonResult { base, change, ratio, interval, p, judgement, ended })
    }

    /// Slower only if the whole interval is below the limit (lab.md 4.7.3); a warning if it is below 1, or the ratio itself is
    /// below the limit.
    pub fn judgement(&self, ratio: f64, interval: Interval) -> Judgement {
        if interval.is_below(self.limit) {
            Judgement::Slower
        } else if interval.is_below(1.0) || ratio < self.limit {
            Judgement::Warning
        } else {
            Judgement::Fine
        }
    }

    /// The summary's row: the ratio and its interval.
    pub fn row(&self, case: &Case, result: &ComparisonResult) -> SummaryRow {
        let mut row = case.row("revisions", "MRR ratio", "ratio", vec![result.ratio]);
        let Interval { low, high } = result.interval;
        note(&mut row, &format!("95 % between {low:.3} and {high:.3}"));
        note(&mut row, &format!("p {:.3}", result.p));
        note(
            &mut row,
            match result.judgement {
                Judgement::Fine => "fine",
                Judgement::Warning => "warning: probably slower",
                Judgement::Slower => "slower",
            },
        );
        row
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine that becomes slower by a hundredth with each trial, and noisy by some more.
    fn drifting(factor: f64) -> ComparisonResult {
        let mut random = fastrand::Rng::with_seed(3);
        let mut speed = 1e6;
        let mut order = Vec::new();
        let result = Comparison::default().measure(&mut |which| {
            order.push(which);
            speed *= 0.99;
            let own = if which == Revision::Change { factor } else { 1.0 };
            Ok(speed * own * (1.0 + 0.01 * (random.f64() - 0.5)))
        });
        use Revision::{Base, Change};
        assert_eq!(order.len(), 20);
        assert_eq!(order[..4], [Base, Change, Change, Base]);
        result.unwrap()
    }

    #[test]
    fn a_drift_of_a_fifth_is_no_regression() {
        let result = drifting(1.0);
        assert_eq!(result.judgement, Judgement::Fine, "{result:?}");
        assert!((result.ratio - 1.0).abs() < 0.02, "{}", result.ratio);
    }

    #[test]
    fn a_loss_of_a_third_is_seen_through_the_drift() {
        let result = drifting(0.66);
        assert_eq!(result.judgement, Judgement::Slower, "{result:?}");
    }

    #[test]
    fn only_an_interval_that_is_wholly_below_the_limit_fails() {
        let judged = |ratio, low, high| Comparison::default().judgement(ratio, Interval { low, high });
        assert_eq!(judged(0.90, 0.88, 0.929), Judgement::Slower);
        assert_eq!(judged(0.90, 0.88, 0.93), Judgement::Warning);
        assert_eq!(judged(0.97, 0.95, 0.99), Judgement::Warning);
        assert_eq!(judged(0.85, 0.60, 1.05), Judgement::Warning, "noise hides what looks like a loss");
        assert_eq!(judged(0.99, 0.96, 1.01), Judgement::Fine);
        assert_eq!(judged(1.20, 1.10, 1.30), Judgement::Fine);
    }

    #[test]
    fn fixed_rates_give_the_same_judgement_on_any_machine() {
        let judge = |change: [f64; 6]| {
            let base = vec![100.0, 101.0, 99.0, 100.0, 102.0, 98.0];
            Comparison::default().judge(base, change.into(), None).unwrap()
        };
        assert_eq!(judge([80.0, 81.0, 79.0, 80.0, 82.0, 78.0]).judgement, Judgement::Slower);
        assert_eq!(judge([95.0, 96.0, 94.0, 95.0, 94.5, 95.5]).judgement, Judgement::Warning);
        assert_eq!(judge([100.0, 101.5, 98.5, 100.5, 99.5, 102.0]).judgement, Judgement::Fine);
    }

    #[test]
    fn an_interruption_keeps_what_was_measured() {
        let mut left = 6;
        let result = Comparison::default().measure(&mut |_| {
            left -= 1;
            if left == 0 { Err(MeasureError::Interrupted) } else { Ok(1e6) }
        });
        let result = result.unwrap();
        assert_eq!((result.base.len(), result.change.len()), (3, 2));
        assert!(matches!(result.ended, Some(MeasureError::Interrupted)));
        assert!(Comparison::default().measure(&mut |_| Err(MeasureError::Interrupted)).is_err());
    }

    #[test]
    fn a_base_that_forwards_nothing_is_an_error() {
        assert!(Comparison::default().measure(&mut |_| Ok(0.0)).is_err());
    }
}
