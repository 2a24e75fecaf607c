//! Sets of tests by name.

use crate::args::Common;
use crate::bases::Base;
use crate::cases::{Case, CaseError, Defaults, expand};
use crate::replay::Replay;
use crate::revisions;

/// A set of tests.
#[derive(Clone, Copy, Debug)]
pub struct Suite {
    /// As users write it.
    pub name: &'static str,
    /// What it is for.
    pub about: &'static str,
}

/// All of them.
pub const SUITES: [Suite; 6] = [
    Suite { name: "quick", about: "every device that is there: gates, throughput, delay" },
    Suite {
        name: "ci",
        about: "under five minutes: gates, clocks a packet, what arrives at the highest load; against a base",
    },
    Suite {
        name: "paper",
        about: "IPv4 with 64 and IPv6 with 84 bytes, both directions, random ports: router against kernel",
    },
    Suite { name: "blog", about: "T-Rex's eight load tests" },
    Suite {
        name: "thesis",
        about: "a heavy and a latency stream; 64, 889 and 1518 bytes, one and both directions",
    },
    Suite { name: "nat", about: "source NAT: one way, making, using and ending connections (RFC 9693)" },
];

/// The suite that guards against regressions: it compares with a base, and its figures are kept as the machine's history.
pub const GUARD: &str = "ci";

/// The cases of a suite. What the command line says goes before what the suite would take.
///
/// # Errors
///
/// An unknown suite, or words that make no sense.
pub fn cases(name: &str, common: &Common) -> Result<Vec<Case>, CaseError> {
    let routers = ["shoal", "linux-route"];
    let quick = ["shoal", "testpmd-mac", "linux-route"];
    // What the device does is the user's, but in suites that are about one thing.
    let forwarding = Some(common.forwarding.as_str()).filter(|f| !f.is_empty()).unwrap_or("route");
    let asked = Defaults { forwarding, ..Defaults::default() };
    let mut all = Vec::new();
    let mut add = |test: &str, common: &Common, defaults: Defaults<'_>| -> Result<(), CaseError> {
        all.extend(expand(test, common, &defaults)?);
        Ok(())
    };
    match name {
        "quick" => {
            add("gates", common, Defaults { duts: &quick, ..asked.clone() })?;
            add("throughput", common, Defaults { duts: &quick, ..asked.clone() })?;
            add("latency", common, Defaults { duts: &quick, percents: &[50], ..asked.clone() })?;
        }
        "ci" => {
            add("gates", common, asked.clone())?;
            add("mrr", common, Defaults { ip: &["4", "6"], sizes: &["84"], ..asked.clone() })?;
            // Lengths and repetitions that were typed are those of trials.
            if common.dut.is_empty() || common.dut.iter().any(|dut| dut == "shoal") {
                let replayed = Common { ip: common.ip.clone(), ..Common::default() };
                all.push(Replay::new(&replayed, &[])?.case(None));
            }
        }
        "paper" => {
            // The paper's frames carry 18 bytes each: 64 with IPv4, 84 with IPv6.
            let ip4 = Common { ip: vec!["4".into()], ..common.clone() };
            let ip6 = Common { ip: vec!["6".into()], ..common.clone() };
            let wanted = |family| common.ip.is_empty() || common.ip.iter().any(|ip| ip == family);
            for test in ["throughput", "latency"] {
                let percents: &[u8] = if test == "latency" { &[10, 50, 90] } else { &[] };
                let defaults = Defaults { duts: &routers, percents, ..asked.clone() };
                if wanted("4") {
                    add(test, &ip4, Defaults { sizes: &["64"], ..defaults.clone() })?;
                }
                if wanted("6") {
                    add(test, &ip6, Defaults { sizes: &["84"], ..defaults })?;
                }
            }
        }
        "blog" => {
            let sizes = ["var2-1514b", "var2-imix", "var2-64b", "64b"];
            for direction in ["fwd", "bi"] {
                if common.direction.as_deref().is_none_or(|d| d == direction) {
                    add("loadtest", common, Defaults { sizes: &sizes, direction, ..asked.clone() })?;
                }
            }
        }
        "thesis" => {
            for direction in ["fwd", "bi"] {
                if common.direction.as_deref().is_none_or(|d| d == direction) {
                    let sizes = ["64", "889", "1518"];
                    add(
                        "thesis",
                        common,
                        Defaults { duts: &routers, sizes: &sizes, direction, ..asked.clone() },
                    )?;
                }
            }
        }
        "nat" => {
            let duts = ["shoal", "linux-nft", "linux-iptables"];
            let defaults = Defaults {
                duts: &duts,
                forwarding: "snat",
                direction: "fwd",
                flows: &[4000],
                ..Defaults::default()
            };
            for test in ["throughput", "nat-setup-rate", "nat-throughput", "nat-teardown"] {
                add(test, common, defaults.clone())?;
            }
        }
        _ => {
            let names = SUITES.map(|s| s.name);
            let hint = format!(
                "there are {}; the nearest is {}",
                names.join(", "),
                shoal_lab_measure::nearest(name, names)
            );
            return Err(CaseError::Word { what: "suite", value: name.into(), hint });
        }
    }
    // Devices outermost, so that each is started as seldom as possible.
    let mut order: Vec<String> = Vec::new();
    for case in &all {
        if !order.contains(&case.dut) {
            order.push(case.dut.clone());
        }
    }
    all.sort_by_key(|case| order.iter().position(|d| *d == case.dut));
    Ok(all)
}

/// Compares with another build what can be: the replay, and the router at the highest load, with the first such traffic.
pub fn against(cases: &mut Vec<Case>, base: &Base) {
    for case in cases.iter_mut().filter(|c| c.replay.is_some()) {
        case.base.clone_from(&base.replay);
    }
    let first = cases.iter().find(|c| c.test == "mrr" && c.dut == "shoal").cloned();
    if let (Some(case), Some(router)) = (first, &base.router) {
        cases.push(Case { test: revisions::TEST.into(), base: Some(router.clone()), ..case });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_suite_has_cases_and_starts_no_device_twice() {
        for suite in SUITES {
            let cases = cases(suite.name, &Common::default()).unwrap();
            assert!(!cases.is_empty(), "{}", suite.name);
            let mut duts: Vec<&str> = cases.iter().map(|c| c.dut.as_str()).collect();
            duts.dedup();
            let mut once = duts.clone();
            once.sort_unstable();
            once.dedup();
            assert_eq!(once.len(), duts.len(), "{}: {duts:?}", suite.name);
        }
    }

    #[test]
    fn the_eight_load_tests_are_eight() {
        assert_eq!(cases("blog", &Common::default()).unwrap().len(), 8);
    }

    #[test]
    fn a_suite_does_what_forwarding_asks_for() {
        for (suite, is_open) in
            [("quick", true), ("paper", true), ("blog", true), ("thesis", true), ("nat", false)]
        {
            let common = Common { forwarding: "bridge".into(), ..Common::default() };
            let all = cases(suite, &common).unwrap();
            assert!(all.iter().all(|case| (case.forwarding == "bridge") == is_open), "{suite}");
        }
    }

    #[test]
    fn an_unknown_suite_names_the_nearest() {
        assert!(
            cases("papper", &Common::default()).unwrap_err().to_string().contains("the nearest is paper")
        );
    }
    #[test]
    fn the_guard_compares_what_the_base_has() {
        let all = |base: &Base| {
            let mut cases = cases(GUARD, &Common::default()).unwrap();
            against(&mut cases, base);
            let compared = |c: &Case| c.base.is_some();
            let named = |c: &Case| (c.test.clone(), compared(c));
            cases.iter().map(named).collect::<Vec<_>>()
        };
        let tests = |of: &[(&str, bool)]| of.iter().map(|(t, b)| ((*t).to_owned(), *b)).collect::<Vec<_>>();
        let alone = [("gates", false), ("mrr", false), ("mrr", false), ("replay", false)];
        assert_eq!(all(&Base::default()), tests(&alone));
        let both = Base { router: Some("old/shoal".into()), replay: Some("old/shoal-lab-graph".into()) };
        let compared =
            [("gates", false), ("mrr", false), ("mrr", false), ("replay", true), ("revisions", true)];
        assert_eq!(all(&both), tests(&compared));
    }

    #[test]
    fn a_guard_of_the_kernel_replays_nothing() {
        let common = Common { dut: vec!["linux-route".into()], ..Common::default() };
        assert!(cases(GUARD, &common).unwrap().iter().all(|c| c.replay.is_none()));
    }
}
