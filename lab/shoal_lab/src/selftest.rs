//! What the tester itself can do: its ports joined, without a device.

use shoal_lab_engine::MachineClock;
use shoal_lab_measure as measure;
use shoal_lab_measure::{Estimate, Journal, Promise, Runner, Traffic, TrialProcedure, WallTime};
use shoal_lab_report as report;

use crate::cases::{BEARABLE, Case};
use crate::settings::Settings;
use crate::test_bed::{StandError, TestBed};
use crate::traffic::CaseTraffic;

/// What a tester on a virtual wire is never asked for: more than any reaches.
const MOST: u64 = 40_000_000;

/// Short trials and two percent: it says where the tester ends, no more.
fn short(conduct: &TrialProcedure) -> TrialProcedure {
    TrialProcedure {
        runs: 1,
        duration: conduct.duration.min(std::time::Duration::from_secs(1)),
        precision: measure::Precision::Relative(0.02),
        loss_verification: 2,
        tolerance: conduct.tolerance.max(1.0 + BEARABLE / conduct.duration.as_secs_f64().min(1.0)),
        ..conduct.clone()
    }
}

/// How long it will take, if the tester reaches `most`.
pub fn estimate(conduct: &TrialProcedure, most: u64) -> Estimate {
    measure::SelfTest::estimate(&short(conduct), most)
}

/// Over what it is measured.
pub struct Over<'a> {
    /// The wire.
    pub transport: &'a str,
    /// Settings.
    pub settings: &'a Settings,
    /// The processor's clock.
    pub clock: &'a MachineClock,
}

/// The tester alone, as it is told.
pub fn told(case: &Case, transport: &str) -> measure::Case {
    measure::Case {
        dut: "loopback".into(),
        transport: transport.into(),
        workers: 1,
        scenario: "wire".into(),
        ip: case.ip.name().into(),
        frame: case.frames.name(),
        direction: case.direction.name().into(),
        ..measure::Case::default()
    }
}

/// Measures over joined ports, with the frames of `case`, somewhat above `ceiling` at most.
///
/// # Errors
///
/// If the ports cannot be joined, or a trial cannot be run, or others had the processors, or the promised time is over.
pub fn measure(
    case: &Case,
    over: Over<'_>,
    conduct: &TrialProcedure,
    ceiling: Option<u64>,
    promise: Option<Promise>,
    journal: &mut dyn Journal,
) -> Result<(measure::SelfTest, report::SelfTest), StandError> {
    let Over { transport, settings, clock } = over;
    let mut stand = TestBed::joined(case, transport, settings, clock)?;
    let traffic = CaseTraffic::new(case, &stand.scenario, None, settings, conduct.duration)?;
    stand.ready(&traffic, "the tester")?;
    let told = told(case, transport);
    let link = settings.link.link();
    let conduct = short(conduct);
    let mut time = WallTime;
    let mut runner = Runner::new(stand.tester.as_mut(), journal, &mut time, told, conduct)?;
    runner.promise = promise;
    // Somewhat more than what will be asked for, so that it is known to be within reach.
    let wanted = ceiling.map(|rate| rate.saturating_add(rate / 10 + 1));
    let most = wanted.unwrap_or_else(|| link.most_frames(traffic.size())).min(MOST);
    let found = measure::SelfTest::measure(&mut runner, &traffic, most)?;
    let taken = runner.marks().taken;
    if taken > 0.0 {
        let percent = taken * 100.0;
        runner.remark(&format!(
            "disturbed: others took up to {percent:.0} % of the tester's processor, which may reach more"
        ));
    }
    let record = report::SelfTest {
        transport: transport.into(),
        link,
        ip: case.ip.name().into(),
        frame: case.frames.name(),
        most: found.rate as f64,
        floor_us: Some(found.floor),
        floor_p999_us: Some(found.floor_p999),
        longest_stall_us: Some(found.longest_stall),
        clock_ppm: None,
    };
    Ok((found, record))
}
