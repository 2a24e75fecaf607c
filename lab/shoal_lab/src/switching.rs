//! Devices that bridge: RFC 2889's tests of the address table, for two ports, and which devices can have which test.

use shoal_lab_dut as dut;
use shoal_lab_frame as frame;
use shoal_lab_measure::{Learning, LearningTraffic, MeasureError, Report, Runner};
use shoal_lab_plan::{Device, Ports, Rate, Scenario, Side, Stream};

use crate::cases::{Case, CaseError, Direction};
use crate::catalogue::Known;
use crate::settings::Settings;
use crate::test_bed::flush;
use crate::traffic;

/// The most addresses that are tried for a table's size, if the command line does not say how many.
const MOST: u64 = 65_536;
/// Addresses that every table holds.
const SAFE: u64 = 4_000;
/// A rate at which every bridge learns, in frames a second.
const SLOW: u64 = 10_000;
/// The highest learning rate that is tried.
const FASTEST: u64 = 2_000_000;

/// Whether a test of this name is one of a bridge's.
pub fn is_switching(test: &str) -> bool {
    is_learning(test) || test == "broadcast"
}

/// Whether it is one of the address table's, which need the device itself.
pub fn is_learning(test: &str) -> bool {
    matches!(test, "address-capacity" | "address-learning-rate")
}

/// Whether nothing in it is sent fast enough for the tester to be the limit.
pub fn is_slow(test: &str) -> bool {
    test == "address-capacity"
}

/// How frames get through where the command line asks for `asked`: routing is its default, and no bridge routes.
pub fn forwarding(asked: &str) -> &str {
    if asked == "route" { "bridge" } else { asked }
}

/// The cases, if their devices can have these tests.
///
/// # Errors
///
/// A device that does not bridge, or learns nothing, with those that do; what an address table has nothing to do with.
pub fn checked(cases: Vec<Case>) -> Result<Vec<Case>, CaseError> {
    for case in cases.iter().filter(|c| is_switching(&c.test)) {
        check(case)?;
    }
    Ok(cases)
}

fn check(case: &Case) -> Result<(), CaseError> {
    let learning = is_learning(&case.test);
    let wrong = |what: &'static str, value: &str, hint: String| {
        Err(CaseError::Word { what, value: value.to_owned(), hint })
    };
    let goes: &[&str] = if learning { &["bridge"] } else { &["bridge", "cross-connect"] };
    if !goes.contains(&case.forwarding.as_str()) {
        return wrong(
            "--forwarding",
            &case.forwarding,
            format!("{} is for {}", case.test, goes.join(" or ")),
        );
    }
    if learning && case.direction != Direction::Forward {
        let hint = format!("{} teaches and asks on the left: fwd", case.test);
        return wrong("--direction", case.direction.name(), hint);
    }
    let most = u64::from(frame::MOST_ADDRESSES);
    if let Some(addresses) = case.flows.filter(|n| learning && !(1..=most).contains(n)) {
        let hint =
            format!("1 to {most} addresses can be taught; the nearest is {}", addresses.clamp(1, most));
        return wrong("--flows", &addresses.to_string(), hint);
    }
    // An unknown name is reported when the device is wanted.
    let Some(device) = dut::KNOWN.iter().find(|k| k.name == case.dut) else { return Ok(()) };
    let able = |known: &dut::Known| {
        known.forwardings.contains(&case.forwarding.as_str()) && (known.learns || !learning)
    };
    if able(device) {
        return Ok(());
    }
    let does = if learning { "learns addresses".to_owned() } else { format!("does {}", case.forwarding) };
    let others: Vec<&str> = dut::KNOWN.iter().filter(|k| able(k)).map(|k| k.name).collect();
    wrong("--dut", &case.dut, format!("not a device that {does}: these are {}", others.join(", ")))
}

/// The test of a case, one of the address table's.
pub fn learning(case: &Case, known: Known) -> Learning {
    let addresses = |or: u64| u32::try_from(case.flows.unwrap_or(or)).unwrap_or(frame::MOST_ADDRESSES);
    if case.test == "address-capacity" {
        return Learning::Capacity { most: addresses(MOST), rate: case.rate.unwrap_or(SLOW).max(1) };
    }
    let most = known.ceiling.unwrap_or(known.most).min(FASTEST);
    Learning::Rate { addresses: addresses(SAFE), most }
}

/// Runs it.
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
    let traffic = Addresses::new(case, scenario, ports, settings)?;
    let mut forget = || flush(device, "forget its addresses");
    let test = learning(case, known);
    let runs = test.measure(runner, &traffic, &mut forget)?;
    Ok(Report { rows: vec![test.row(runner, &runs)], ended: runs.ended })
}

/// What one of them sends, for looking at: a frame a second that teaches, and that asks.
///
/// # Errors
///
/// Frames that cannot be.
pub fn streams(case: &Case, scenario: &Scenario, settings: &Settings) -> Result<Vec<Stream>, MeasureError> {
    let traffic = Addresses::new(case, scenario, None, settings)?;
    let mut all = traffic.learn(1, 1)?;
    all.extend(traffic.ask(1, 1)?);
    Ok(all)
}

/// Addresses that are all on the left.
struct Addresses(frame::LearningTraffic);

impl Addresses {
    fn new(
        case: &Case,
        scenario: &Scenario,
        ports: Option<&Ports>,
        settings: &Settings,
    ) -> Result<Self, MeasureError> {
        // The number is of addresses here, and not of ports.
        let case = Case { flows: None, ..case.clone() };
        let mut traffic = traffic::rfc2544(&case, scenario, ports, settings)?;
        // A flood must be told from a frame that was late.
        traffic.form = frame::Form::Own;
        Ok(Addresses(frame::LearningTraffic { traffic, at: Side::Left }))
    }
}

fn words(error: frame::FrameError) -> MeasureError {
    MeasureError::Traffic(error.to_string())
}

impl LearningTraffic for Addresses {
    fn learn(&self, addresses: u32, rate: u64) -> Result<Vec<Stream>, MeasureError> {
        Ok(vec![self.0.learn(addresses, Rate::per_second(rate)).map_err(words)?])
    }

    fn ask(&self, addresses: u32, rate: u64) -> Result<Vec<Stream>, MeasureError> {
        self.0.ask(addresses, Rate::per_second(rate)).map_err(words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Common;
    use crate::cases::{Defaults, expand};

    fn refused(test: &str, dut: &str, direction: &'static str, forwarding: &'static str) -> String {
        let common = Common { dut: vec![dut.into()], ..Common::default() };
        let defaults =
            Defaults { forwarding: super::forwarding(forwarding), direction, ..Defaults::default() };
        let cases = expand(test, &common, &defaults).unwrap();
        checked(cases).map_or_else(|error| error.to_string(), |_| String::new())
    }

    #[test]
    fn devices_that_do_not_bridge_are_refused_with_those_that_do() {
        for dut in ["linux-route", "testpmd-io"] {
            let why = refused("address-capacity", dut, "fwd", "route");
            assert!(why.starts_with(&format!("--dut {dut}: ")) && why.contains("linux-bridge, ovs"), "{why}");
        }
        for (dut, forwarding) in
            [("testpmd-io", "cross-connect"), ("linux-bridge", "route"), ("ovs", "bridge")]
        {
            assert_eq!(refused("broadcast", dut, "fwd", forwarding), "", "{dut}");
        }
        let why = refused("broadcast", "linux-route", "fwd", "route");
        assert!(why.contains("does bridge: these are shoal, linux-bridge, testpmd-io"), "{why}");
        assert!(refused("broadcast", "linux-nft", "fwd", "snat").starts_with("--forwarding snat"));
        assert_eq!(refused("throughput", "shoal", "bi", "route"), "");
    }

    #[test]
    fn what_an_address_table_has_nothing_to_do_with_is_refused() {
        assert!(refused("address-capacity", "ovs", "bi", "route").contains("on the left: fwd"));
        assert!(refused("address-learning-rate", "ovs", "fwd", "cross-connect").contains("is for bridge"));
        assert_eq!(refused("address-learning-rate", "ovs", "fwd", "route"), "");
    }
}
