//! Two builds of the router against each other: what arrives at the highest load, in turns, on one machine in one session.

use std::path::Path;
use std::time::Duration;

use shoal_lab_measure as measure;
use shoal_lab_measure::{
    Comparison, ComparisonResult, Estimate, Judgement, MeasureError, Mrr, MrrTrial, Revision, Runner,
    Traffic, TrialProcedure, WallTime,
};
use shoal_lab_plan::{SummaryRow, TrialLine, Trust};
use shoal_lab_report::{Check, CheckOutcome, Folder};

use crate::cases::Case;
use crate::exit::Exit;
use crate::journal::Kept;
use crate::test_bed::{StandError, TestBed, dut_settings, scenario};
use crate::traffic::CaseTraffic;
use crate::under_way::{Stop, UnderWay, refused};
use crate::view::View;

/// The test's name.
pub const TEST: &str = "revisions";

/// What starting a device takes, and making sure that it forwards.
const START: Duration = Duration::from_millis(1_500);

/// Shows trials and keeps none.
pub struct Shown<'a>(pub &'a mut View);

impl measure::Journal for Shown<'_> {
    fn trial(&mut self, line: &TrialLine) -> std::io::Result<()> {
        self.0.trial(line);
        Ok(())
    }

    fn progress(&mut self, now: &measure::Progress<'_>) -> bool {
        self.0.progress(now.so_far)
    }

    fn remark(&mut self, text: &str) {
        self.0.note(text);
    }
}

/// How long it takes: each trial has a device of its own.
pub fn estimate(conduct: &TrialProcedure) -> Estimate {
    let trials = Comparison::default().estimate(conduct);
    Estimate { time: trials.time + START * trials.trials as u32, ..trials }
}

/// What one trial was.
struct Turn {
    trial: MrrTrial,
    told: measure::Case,
    /// What others took of it, where it counts all the same.
    taken: f64,
}

/// Compares the router of the settings with the case's base: rows, and a check that fails if it surely is slower.
///
/// # Errors
///
/// If one of them cannot be measured, or someone wanted it to end; what was measured until then is kept.
pub fn run(under: &mut UnderWay<'_>, case: &Case, folder: &mut Folder, view: &mut View) -> Result<(), Stop> {
    let Some(base) = &case.base else {
        let words = format!("{TEST}: needs another build to compare with: --base PROGRAM");
        return Err(Stop { words, exit: Exit::Usage });
    };
    if case.dut != "shoal" {
        let words = format!("{TEST}: {} has no other build here; only shoal has", case.dut);
        return Err(Stop { words, exit: Exit::Usage });
    }
    let comparison = Comparison::default();
    let (mut stopped, mut refusal) = (None, None);
    let mut turns: Vec<(Revision, Turn)> = Vec::new();
    let measured = comparison.measure(&mut |which| {
        let at = turns.len() as u32 + 1;
        one(under, case, (which, base), (at, comparison.rounds * 4), folder, view)
            .map(|turn| {
                let received = turn.trial.received;
                turns.push((which, turn));
                received
            })
            .map_err(|error| {
                stopped = Some(match &error {
                    StandError::Traffic(error) => Stop::of(case, error),
                    other => Stop::of_stand(case, other),
                });
                let words = error.to_string();
                if let StandError::Traffic(error) = error
                    && error.is_refusal()
                {
                    refusal = Some(error);
                }
                MeasureError::Untrusted(words)
            })
    });
    let result = match measured {
        Ok(result) => result,
        Err(error) => {
            if let Some(refusal) = refusal {
                let told = measure::Case {
                    dut: case.dut.clone(),
                    transport: case.transport.clone().unwrap_or_default(),
                    workers: case.workers,
                    scenario: case.forwarding.clone(),
                    ip: case.ip.name().into(),
                    frame: case.frames.name(),
                    direction: case.direction.name().into(),
                    ..measure::Case::default()
                };
                under.rows.push(refused(&told, TEST, &refusal));
            }
            return Err(stopped.unwrap_or_else(|| Stop::of(case, &error)));
        }
    };
    let bound = turns.iter().any(|(_, turn)| turn.trial.tester_limit);
    let of = |which| {
        turns.iter().find(|(w, _)| *w == which).map(|(_, turn)| turn.told.clone()).unwrap_or_default()
    };
    let (old, new) = (of(Revision::Base), of(Revision::Change));
    under.record.notes.push(format!("{TEST}: in turns with {} ({})", base.display(), old.version));
    let mut rows = rows(&comparison, &result, &old, &new, bound);
    let taken = turns.iter().map(|(_, turn)| turn.taken).fold(0.0, f64::max);
    for row in rows.iter_mut().filter(|_| taken > 0.0) {
        measure::mark(row, Trust::Disturbed);
        measure::note(row, &format!("others took up to {:.0} % of a processor during trials", taken * 100.0));
    }
    under.rows.extend(rows);
    under.checks.push(judged(case, &result, bound));
    under.settle();
    stopped.map_or(Ok(()), Err)
}

fn rows(
    comparison: &Comparison,
    result: &ComparisonResult,
    old: &measure::Case,
    new: &measure::Case,
    bound: bool,
) -> Vec<SummaryRow> {
    let rate =
        |told: &measure::Case, values: &[f64]| told.row(TEST, "MRR in turns", "fps/dir", values.to_vec());
    let without = measure::Case { variant: String::new(), ..new.clone() };
    let mut rows = vec![comparison.row(&without, result), rate(old, &result.base), rate(new, &result.change)];
    for row in &mut rows {
        for trust in [Trust::VirtualLink, Trust::ShortTrials, Trust::FewRuns] {
            measure::mark(row, trust);
        }
        if new.shared_core {
            measure::mark(row, Trust::SharedCore);
        }
        if bound {
            measure::mark(row, Trust::TesterBound);
        }
    }
    rows
}

fn judged(case: &Case, result: &ComparisonResult, bound: bool) -> Check {
    // Two builds of which neither was loaded fully look alike.
    let bound = if bound { "; the tester could not offer more, so a difference may be hidden" } else { "" };
    let words = format!(
        "{:.3} of the base's rate, 95 % between {:.3} and {:.3}, p {:.3}{bound}",
        result.ratio, result.interval.low, result.interval.high, result.p
    );
    let outcome = match result.judgement {
        Judgement::Slower => CheckOutcome::Failed(words),
        Judgement::Fine => CheckOutcome::Passed(words),
        Judgement::Warning => CheckOutcome::Passed(format!("warning: {words}")),
    };
    let name = format!("ip{} {} {}", case.ip.name(), case.frames.name(), case.direction.name());
    Check { suite: TEST.into(), name, outcome, seconds: 0.0 }
}

/// What one build forwards at the highest load, for a second. It is started for that and taken away again.
fn one(
    under: &UnderWay<'_>,
    case: &Case,
    (which, base): (Revision, &Path),
    (at, of): (u32, u32),
    folder: &mut Folder,
    view: &mut View,
) -> Result<Turn, StandError> {
    if view.interrupted() {
        return Err(StandError::Traffic(MeasureError::Interrupted));
    }
    let mut settings = under.campaign.settings.clone();
    if which == Revision::Base {
        base.clone_into(&mut settings.dut.shoal);
    }
    let conduct = &under.campaign.conduct;
    let mut stand = TestBed::open(case, scenario(case, &settings), &settings, &under.clock)?;
    let traffic = CaseTraffic::new(case, &stand.scenario, stand.ports.as_ref(), &settings, conduct.duration)?;
    stand.ready(&traffic, &case.dut)?;
    let told = measure::Case {
        dut: case.dut.clone(),
        version: stand.device.as_ref().map(|d| d.describe().version).unwrap_or_default(),
        transport: stand.transport.clone(),
        workers: case.workers,
        scenario: case.forwarding.clone(),
        ip: case.ip.name().into(),
        frame: case.frames.name(),
        direction: case.direction.name().into(),
        variant: if which == Revision::Base { "base" } else { "change" }.into(),
        shared_core: dut_settings(&settings).cores.shares(case.workers),
    };
    let (mut kept, mut time) = (Kept::new(folder, view, &told.transport), WallTime);
    let mut runner = Runner::new(stand.tester.as_mut(), &mut kept, &mut time, told.clone(), conduct.clone())?;
    runner.promise = under.promise;
    let most = under.campaign.ceiling.unwrap_or_else(|| runner.most_rate(traffic.size()));
    runner.begin(TEST, at, of);
    let duration = conduct.duration.min(Mrr::default().duration);
    let trial = measure::mrr::once(&mut runner, &traffic, most, duration)?;
    let taken = runner.marks().taken;
    Ok(Turn { trial, told, taken })
}
