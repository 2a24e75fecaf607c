//! Stateful devices: RFC 9693's tests over a source NAT from left to right.

use shoal_lab_frame as frame;
use shoal_lab_measure::nat::{Capacity, Established, Setup, Teardown};
use shoal_lab_measure::{MeasureError, Offer, Report, Runner, StatefulTraffic, Test as _, Throughput};
use shoal_lab_plan::{Device, Order, Ports, Rate, Scenario, Side, Stream};

use crate::cases::Case;
use crate::catalogue::Known;
use crate::settings::Settings;
use crate::test_bed::flush;
use crate::traffic;

/// Connections, if the command line does not say how many.
const TUPLES: u64 = 4_000;
/// A rate at which every NAT makes connections, in frames a second.
const SAFE: u64 = 10_000;
/// The highest setup rate that is tried.
const MOST_SETUP: u64 = 2_000_000;

/// Whether a test of this name is one of these.
pub fn is_nat(test: &str) -> bool {
    test.starts_with("nat-")
}

/// Runs one of them.
///
/// # Errors
///
/// If there is no result at all.
pub fn run(
    runner: &mut Runner<'_>,
    case: &Case,
    (scenario, ports): (&Scenario, Option<&Ports>),
    settings: &Settings,
    device: &mut Option<Box<dyn Device>>,
    known: Known,
) -> Result<Report, MeasureError> {
    let tuples = case.flows.unwrap_or(TUPLES);
    let traffic = Stateful::new(case, scenario, ports, settings, tuples)?;
    let mut forget = || flush(device, "forget its sessions");
    let most = known.most.min(MOST_SETUP);
    match case.test.as_str() {
        "nat-setup-rate" => {
            let setup = Setup { tuples, most, precision: runner.conduct.precision, check: Some(0.5) };
            let runs = setup.measure(runner, &traffic, &mut forget)?;
            Ok(Report { rows: vec![setup.row(runner, &runs)], ended: runs.ended })
        }
        "nat-teardown" => {
            let teardown = Teardown { tuples, rate: SAFE.min(most) };
            let runs = teardown.measure(runner, &traffic, &mut forget)?;
            Ok(Report { rows: vec![teardown.row(runner, &runs)], ended: runs.ended })
        }
        "nat-capacity" => {
            let capacity = Capacity {
                safe: tuples,
                error: (tuples / 100).max(1),
                rate_error: (most / 20).max(1),
                ..Capacity::usual(traffic.inner.tuples(), most)
            };
            let runs = capacity.measure(runner, &traffic, &mut forget)?;
            Ok(Report { rows: vec![capacity.row(runner, &runs)], ended: runs.ended })
        }
        _ => {
            let pause = runner.conduct.settle;
            let over = Established::make(runner, &traffic, &mut forget, tuples, SAFE.min(most), pause)?;
            let throughput = Throughput { most: known.ceiling, ..Throughput::default() };
            runner.begin("nat-throughput", 1, runner.conduct.runs);
            let mut report = throughput.run(runner, &over)?;
            for row in &mut report.rows {
                row.test = "nat-throughput".into();
                row.direction = "bi".into();
            }
            Ok(report)
        }
    }
}

/// Initiator on the left, inside; responder on the right.
struct Stateful {
    inner: frame::StatefulTraffic,
    size: u32,
}

impl Stateful {
    fn new(
        case: &Case,
        scenario: &Scenario,
        ports: Option<&Ports>,
        settings: &Settings,
        tuples: u64,
    ) -> Result<Self, MeasureError> {
        // The capacity's search goes far beyond the first number of connections.
        let most = if case.test == "nat-capacity" { tuples.saturating_mul(1024) } else { tuples };
        let case = Case { flows: Some(most), ..case.clone() };
        let traffic = traffic::rfc2544(&case, scenario, ports, settings)?;
        let size = traffic.size4;
        Ok(Stateful { inner: frame::StatefulTraffic { traffic, initiator: Side::Left }, size })
    }
}

fn words(error: frame::FrameError) -> MeasureError {
    MeasureError::Traffic(error.to_string())
}

impl StatefulTraffic for Stateful {
    fn fill(&self, tuples: u64, rate: u64) -> Result<Vec<Stream>, MeasureError> {
        let stream = self.inner.preliminary(tuples, Rate::per_second(rate), Order::Permutation);
        Ok(vec![stream.map_err(words)?])
    }

    fn check(&self, tuples: u64, rate: u64) -> Result<Vec<Stream>, MeasureError> {
        Ok(vec![self.inner.validation(tuples, Rate::per_second(rate)).map_err(words)?])
    }

    fn over(&self, tuples: u64, offer: &Offer) -> Result<Vec<Stream>, MeasureError> {
        let one = Rate::per_second(1);
        let mut streams = vec![
            self.inner.again(tuples, one, Order::Rising).map_err(words)?,
            self.inner.answers(one, Order::Random).map_err(words)?,
        ];
        for stream in &mut streams {
            stream.pace = offer.share(1, 1);
            stream.stamps = offer.stamps;
        }
        Ok(streams)
    }

    fn size(&self) -> u32 {
        self.size
    }
}
