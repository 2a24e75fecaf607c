//! Is every frame right: of all sizes and both families, at a rate that every device carries.

use shoal_lab_measure::{Estimate, Gate, Gates, MeasureError, Report, Runner, TrialProcedure};
use shoal_lab_plan::{Ports, Scenario};
use shoal_lab_report::{Check, CheckOutcome};

use crate::cases::{Case, Frames, Ip};
use crate::settings::Settings;
use crate::traffic::CaseTraffic;

/// RFC 2544's sizes, and the smallest that both families have.
const SIZES: [u32; 8] = [64, 84, 128, 256, 512, 1024, 1280, 1518];

/// The sizes that a family is sent with: an IPv6 frame of 64 bytes does not hold the headers and the tag.
fn sizes(ip: Ip) -> impl Iterator<Item = u32> {
    SIZES.into_iter().filter(move |size| ip == Ip::Four || *size >= 84)
}

/// How long they take.
pub fn estimate(conduct: &TrialProcedure) -> Estimate {
    let gates = [Ip::Four, Ip::Six].into_iter().flat_map(sizes).count();
    Estimate::of(conduct, gates as u64, Gates::of(Vec::new()).duration)
}

/// Sends through all gates.
///
/// # Errors
///
/// If a trial cannot be run. A wrong frame is no error but a check that fails.
pub fn run(
    runner: &mut Runner<'_>,
    case: &Case,
    scenario: &Scenario,
    ports: Option<&Ports>,
    settings: &Settings,
) -> Result<(Report, Vec<Check>), MeasureError> {
    let mut gates = Vec::new();
    for ip in [Ip::Four, Ip::Six] {
        for size in sizes(ip) {
            let name = format!("ip{} {size} B {}", ip.name(), case.direction.name());
            let case = Case { ip, frames: Frames::Size(size), ..case.clone() };
            let traffic = CaseTraffic::new(&case, scenario, ports, settings, runner.conduct.duration)?;
            gates.push(Gate { name, traffic: Box::new(traffic) });
        }
    }
    let gates = Gates::of(gates);
    // They ask whether frames are right, not whether they are in time.
    let tolerance = std::mem::replace(&mut runner.conduct.tolerance, 100.0);
    let results = gates.run(runner);
    runner.conduct.tolerance = tolerance;
    let results = results?;
    let rows = gates.rows(runner, &results);
    let checks = results
        .into_iter()
        .map(|result| Check {
            suite: format!("gates {}", case.dut),
            outcome: if result.passed() {
                CheckOutcome::Passed(format!("{} frames", result.frames))
            } else {
                CheckOutcome::Failed(result.wrong.join("; "))
            },
            name: result.name,
            seconds: gates.duration.as_secs_f64(),
        })
        .collect();
    Ok((Report { rows, ended: None }, checks))
}
