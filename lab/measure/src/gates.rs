//! Gates: at a low rate everything must be right, whatever the speed (lab.md 4.7.1). They never flake for speed.

use std::time::Duration;

use serde::Serialize;
use shoal_lab_plan::{Side, SummaryRow};

use crate::{Estimate, MeasureError, Offer, Runner, Shown, Traffic, TrialProcedure, TrialSpec};

/// One gate: some traffic that must come through unharmed. A size and family each.
pub struct Gate {
    /// For people: `ip4 64 B bi`.
    pub name: String,
    /// What is sent.
    pub traffic: Box<dyn Traffic>,
}

/// All of them.
pub struct Gates {
    /// In order.
    pub gates: Vec<Gate>,
    /// Frames a second and direction: low.
    pub rate: u64,
    /// How long each is sent.
    pub duration: Duration,
}

/// What a gate showed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GateResult {
    /// Its name.
    pub name: String,
    /// Frames that were sent and checked whole.
    pub frames: u64,
    /// What is wrong: `3 lost`, `1 corrupt`. Empty: passed.
    pub wrong: Vec<String>,
}

impl GateResult {
    /// Nothing is wrong.
    pub fn passed(&self) -> bool {
        self.wrong.is_empty()
    }
}

impl Gates {
    /// A thousand frames a second for half a second each.
    pub fn of(gates: Vec<Gate>) -> Gates {
        Gates { gates, rate: 1_000, duration: Duration::from_millis(500) }
    }

    /// How long it will take.
    pub fn estimate(&self, conduct: &TrialProcedure) -> Estimate {
        Estimate::of(conduct, self.gates.len() as u64, self.duration)
    }

    /// Goes through all, also if one fails. Every received frame is looked at whole.
    ///
    /// # Errors
    ///
    /// If a trial cannot be run; a device that answers nothing fails its gates instead.
    pub fn run(&self, runner: &mut Runner<'_>) -> Result<Vec<GateResult>, MeasureError> {
        let mut results = Vec::new();
        for (gate, run) in self.gates.iter().zip(1..) {
            runner.begin("gates", run, self.gates.len() as u32);
            let streams = gate.traffic.streams(&Offer::steady(self.rate))?;
            let shot = TrialSpec {
                verify_all: true,
                any_speed: true,
                ..TrialSpec::new(streams, self.rate as f64, self.duration)
            };
            let shown = runner.trial(&shot)?;
            results.push(judged(&gate.name, &shown));
        }
        Ok(results)
    }

    /// The summary's rows: for each gate the number of things wrong, 0 if passed.
    pub fn rows(&self, runner: &Runner<'_>, results: &[GateResult]) -> Vec<SummaryRow> {
        results
            .iter()
            .map(|result| {
                let mut row = runner.case.row("gates", "wrong", "kinds", vec![result.wrong.len() as f64]);
                row.variant.clone_from(&result.name);
                row.note = result.wrong.join("; ");
                row
            })
            .collect()
    }
}

fn judged(name: &str, shown: &Shown) -> GateResult {
    let outcome = &shown.outcome;
    let sides = Side::BOTH.map(|side| outcome.direction(side));
    let sum = |number: fn(&shoal_lab_plan::Counts) -> u64| sides.iter().map(number).sum::<u64>();
    let ports = |number: fn(&shoal_lab_plan::Tally) -> u64| outcome.ports.iter().map(number).sum::<u64>();
    let frames = sum(|c| c.sent);
    let kinds = [
        (sum(|c| c.requested) - frames.min(sum(|c| c.requested)), "not sent"),
        (sum(shoal_lab_plan::Counts::lost), "lost"),
        (sum(|c| c.duplicates), "duplicated"),
        (sum(|c| c.corrupt), "corrupt"),
        (sum(|c| c.stray), "where, or as, they should not be"),
        (ports(|p| p.stale), "of an earlier trial"),
        (ports(|p| p.lost_receiving), "lost by the tester"),
    ];
    let mut wrong: Vec<String> =
        kinds.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
    if frames == 0 {
        wrong.push("nothing was sent".into());
    }
    if wrong.is_empty() && shown.is_tester_limit() {
        wrong.push("the tester could not keep even this rate".into());
    }
    GateResult { name: name.into(), frames, wrong }
}
