//! The tests by name, and how each is made for a case.

use std::time::Duration;

use shoal_lab_measure::{
    BackToBack, Broadcast, BurstGap, DelayVariation, ForwardingRate, FrameLoss, Latency, LatencyUnderLoad,
    LoadTest, MlrSearch, Mrr, NdrBench, Recovery, Soak, Steps, Test, Throughput, TrialProcedure, nearest,
};

use crate::cases::Case;

/// A test that can be run by name.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// As users write it.
    pub name: &'static str,
    /// What it answers.
    pub about: &'static str,
    /// It is measured at the throughput, or a part of it, which is found first unless a rate is given.
    pub needs_rate: bool,
}

/// All tests, in the order in which one would read about them.
pub const ENTRIES: [Entry; 28] = [
    entry("throughput", "highest rate without loss (RFC 2544 26.1)", false),
    entry("loss", "loss at each offered rate (RFC 2544 26.3)", false),
    entry("latency", "typical and worst delay (RFC 8219 7.2)", true),
    entry("pdv", "variation of the delay (RFC 8219 7.3)", true),
    entry("special-throughput", "highest rate at which no frame is later than 10 ms (RFC 8219 7.3)", false),
    entry("back-to-back", "longest burst without loss, and the buffer behind it (RFC 9004)", true),
    entry("burst-gap", "smallest gap between bursts without loss (RFC 2544 21)", false),
    entry("recovery", "time until loss ends after an overload (RFC 2544 26.5)", true),
    entry("reset", "time without forwarding when the device restarts (RFC 6201)", true),
    entry("ndr", "highest rate without loss, as T-Rex's ndr_bench looks for it", false),
    entry("pdr", "highest rate with 0.1 % loss, as T-Rex's ndr_bench looks for it", false),
    entry("mlrsearch", "NDR and PDR with few trials (RFC 9971)", false),
    entry("mrr", "what arrives at the highest load: ten trials of a second", false),
    entry("soak", "bad seconds in a long run at 95 % of the throughput", true),
    entry("loadtest", "T-Rex's ramp: the highest and the last good rate", false),
    entry("thesis", "a heavy stream, and the delay of a light one beside it", true),
    entry("nat-setup-rate", "connections a second that a NAT makes (RFC 9693 4.4)", false),
    entry("nat-throughput", "throughput over connections that exist (RFC 9693 4.5)", false),
    entry("nat-teardown", "connections a second that a NAT forgets (RFC 9693 4.6)", false),
    entry("nat-capacity", "connections that a NAT holds (RFC 9693 4.7)", false),
    entry("forwarding-rate", "the most that arrives at any load, and that load (RFC 2889 5.6)", false),
    entry("address-capacity", "addresses that a bridge remembers (RFC 2889 5.7)", false),
    entry("address-learning-rate", "addresses a second that a bridge learns (RFC 2889 5.8)", false),
    entry("broadcast", "throughput and delay of broadcast frames through a bridge (RFC 2889 5.10)", false),
    entry("gates", "is every frame right, of all sizes and both families", false),
    entry("replay", "clocks and instructions a packet, by node, in one process: no ports, no root", false),
    entry(
        "convergence",
        "time until packets to all prefixes of a table get through, with FRR and BIRD",
        false,
    ),
    entry("revisions", "what arrives at the highest load, in turns with another build (--base)", false),
];

const fn entry(name: &'static str, about: &'static str, needs_rate: bool) -> Entry {
    Entry { name, about, needs_rate }
}

/// The test of this name.
///
/// # Errors
///
/// There is none; the text names the nearest.
pub fn find(name: &str) -> Result<Entry, String> {
    ENTRIES.into_iter().find(|e| e.name == name).ok_or_else(|| {
        let near = nearest(name, ENTRIES.map(|e| e.name));
        format!("no test is called {name}; the nearest is {near} (shoal-lab list tests)")
    })
}

/// What is known when a test is made.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    /// The rate that the test is to be run at, in frames a second and direction.
    pub rate: u64,
    /// The throughput that it is a part of.
    pub throughput: u64,
    /// The highest rate worth trying.
    pub most: u64,
    /// Upper end of searches, if the user set one.
    pub ceiling: Option<u64>,
}

/// The test of a case; none for those that need the device itself (`reset`, tables), two of them (`revisions`), no single traffic
/// (`gates`) or no tester (`replay`), routing daemons (`convergence`).
pub fn make(case: &Case, conduct: &TrialProcedure, known: Known) -> Option<Box<dyn Test>> {
    let quick = conduct.duration < Duration::from_mins(1);
    Some(match case.test.as_str() {
        "throughput" => Box::new(Throughput { most: known.ceiling, ..Throughput::default() }),
        "special-throughput" => Box::new(Throughput {
            most: known.ceiling,
            frame_timeout: Some(Duration::from_millis(10)),
            ..Throughput::default()
        }),
        "loss" => Box::new(FrameLoss { steps: Steps::default(), most: known.ceiling }),
        "forwarding-rate" => Box::new(ForwardingRate { most: known.ceiling }),
        "broadcast" => Box::new(Broadcast { most: known.ceiling }),
        "latency" => Box::new(Latency::of(conduct, known.rate)),
        "pdv" => Box::new(DelayVariation { rate: known.rate, duration: conduct.duration }),
        "back-to-back" => Box::new(BackToBack {
            repetitions: if quick { conduct.runs } else { 50 },
            ..BackToBack::rfc9004(known.most, known.throughput as f64)
        }),
        "burst-gap" => Box::new(BurstGap::rfc2544(known.most)),
        "recovery" => Box::new(Recovery {
            overload: conduct.duration,
            after: conduct.duration,
            ..Recovery::rfc2544(known.throughput, known.most)
        }),
        "ndr" => Box::new(ndr_bench(0.0, conduct, known)),
        "pdr" => Box::new(ndr_bench(0.1, conduct, known)),
        "mlrsearch" => Box::new(MlrSearch { max: known.ceiling, ..MlrSearch::default() }),
        "mrr" => Box::new(Mrr {
            rate: known.ceiling,
            trials: conduct.runs,
            duration: conduct.duration.min(Duration::from_secs(1)),
        }),
        "soak" => Box::new(Soak { rate: known.rate * 95 / 100, duration: conduct.duration * 10 }),
        "loadtest" => Box::new(load_test(quick, conduct, known)),
        "thesis" => Box::new(LatencyUnderLoad {
            duration: conduct.duration,
            repetitions: conduct.runs,
            ..LatencyUnderLoad::at(known.rate)
        }),
        _ => return None,
    })
}

fn ndr_bench(pdr: f64, conduct: &TrialProcedure, known: Known) -> NdrBench {
    NdrBench {
        pdr,
        duration: conduct.duration.min(Duration::from_secs(20)),
        first: conduct.duration.min(Duration::from_secs(20)),
        settle: conduct.rest,
        most: known.ceiling,
        ..NdrBench::default()
    }
}

/// The published runs' eight minutes, or as much of them as ten trials take.
fn load_test(quick: bool, conduct: &TrialProcedure, known: Known) -> LoadTest {
    let whole = LoadTest { target: known.ceiling, ..LoadTest::default() };
    if !quick {
        return whole;
    }
    LoadTest { warm_up: conduct.duration, ramp: conduct.duration * 8, hold: conduct.duration, ..whole }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::{Defaults, expand};
    use crate::{nat, switching};

    #[test]
    fn each_test_can_be_made_under_its_own_name() {
        let known = Known { rate: 1_000, throughput: 1_000, most: 10_000, ceiling: None };
        let conduct = TrialProcedure::default();
        for entry in ENTRIES {
            let cases = expand(entry.name, &crate::args::Common::default(), &Defaults::default()).unwrap();
            let made = make(&cases[0], &conduct, known);
            assert_eq!(
                made.is_none(),
                ["reset", "gates", "replay", "revisions", "convergence"].contains(&entry.name)
                    || nat::is_nat(entry.name)
                    || switching::is_learning(entry.name),
                "{}",
                entry.name
            );
            if let Some(test) = made {
                assert!(test.estimate(&conduct, known.most).trials > 0, "{}", entry.name);
            }
        }
    }

    #[test]
    fn a_wrong_name_is_answered_with_the_nearest() {
        assert!(find("throughputt").unwrap_err().contains("the nearest is throughput"));
        assert_eq!(find("pdv").unwrap().name, "pdv");
    }
}
