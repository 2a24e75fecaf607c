//! Two builds of the router against each other: what arrives at the highest load, in turns, on one machine in one session.

use std::path::Path;
use std::time::Duration;

use shoal_lab_engine::MachineClock;
use shoal_lab_measure as measure;
use shoal_lab_measure::{
    Comparison, ComparisonResult, Conduct, Judgement, MeasureError, Revision, Runner, Traffic, WallTime,
};
use shoal_lab_plan::{DeviceError, TrialLine};
use shoal_lab_report::{Check, CheckOutcome};

use crate::cases::Case;
use crate::settings::Settings;
use crate::stand::{Stand, StandError, scenario};
use crate::traffic::CaseTraffic;
use crate::view::View;

/// Shows trials and keeps none: the two rates are the record.
pub struct Shown<'a>(pub &'a mut View);

impl measure::Journal for Shown<'_> {
    fn trial(&mut self, line: &TrialLine) -> std::io::Result<()> {
        self.0.trial(line);
        Ok(())
    }

    fn progress(&mut self, now: &measure::Progress<'_>) -> bool {
        self.0.progress(now.so_far)
    }
}

/// Compares the router of the settings with `base`.
///
/// # Errors
///
/// If one of them cannot be measured at all.
pub fn compare(
    case: &Case,
    base: &Path,
    conduct: &Conduct,
    settings: &Settings,
    view: &mut View,
) -> Result<(ComparisonResult, Check), MeasureError> {
    let clock = MachineClock::calibrated();
    let mut rate = |revision: Revision| {
        let mut settings = settings.clone();
        if revision == Revision::Base {
            base.clone_into(&mut settings.dut.shoal);
        }
        one(case, conduct, &settings, &clock, view).map_err(|error| match error {
            StandError::Traffic(error) => error,
            StandError::Device(error) => error.into(),
            other => DeviceError::Start { device: case.dut.clone(), reason: other.to_string() }.into(),
        })
    };
    let result = Comparison::default().measure(&mut rate)?;
    let words = format!(
        "{:.3} of the base's rate, 95 % between {:.3} and {:.3}, p {:.3}",
        result.ratio, result.interval.low, result.interval.high, result.p
    );
    let outcome = match result.judgement {
        Judgement::Slower => CheckOutcome::Failed(words),
        Judgement::Fine => CheckOutcome::Passed(words),
        Judgement::Warning => CheckOutcome::Passed(format!("warning: {words}")),
    };
    let check = Check { suite: "revisions".into(), name: case.frames.name(), outcome, seconds: 0.0 };
    Ok((result, check))
}

/// What one build forwards at the highest load, for a second.
fn one(
    case: &Case,
    conduct: &Conduct,
    settings: &Settings,
    clock: &MachineClock,
    view: &mut View,
) -> Result<f64, StandError> {
    let mut stand = Stand::open(case, scenario(case, settings), settings, clock)?;
    let traffic = CaseTraffic::new(case, &stand.scenario, stand.ports.as_ref(), settings, conduct.duration)?;
    stand.ready(&traffic, &case.dut)?;
    let told = measure::Case {
        dut: case.dut.clone(),
        transport: stand.transport.clone(),
        ..measure::Case::default()
    };
    let (mut journal, mut time) = (Shown(view), WallTime);
    let mut runner = Runner::new(stand.tester.as_mut(), &mut journal, &mut time, told, conduct.clone())?;
    let most = runner.most_rate(traffic.size());
    runner.begin("revisions", 1, 1);
    Ok(measure::mrr::once(&mut runner, &traffic, most, Duration::from_secs(1))?.received)
}
