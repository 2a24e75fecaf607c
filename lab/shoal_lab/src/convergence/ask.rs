//! What was typed, made into cases.

use std::time::Duration;

use shoal_lab_dut::{Daemon, Forwarder};
use shoal_lab_measure::convergence::Phase;
use shoal_lab_measure::nearest;

use super::{TEST, Wanted};
use crate::args::{Run, Tables};
use crate::cases::{Case, CaseError, Direction, Ip};

/// Where frames are sent and received.
pub(super) const TRANSPORT: &str = "af-packet";
/// Prefixes that frames go to, if nothing is asked for.
const SAMPLE: u64 = 4_000;
/// Frames a second.
const RATE: u64 = 20_000;
/// What lab/routes makes.
const MOST: [usize; 2] = [10_000_000, 1_000_000];
/// How long a phase may take.
const LIMIT: Duration = Duration::from_mins(3);
/// What is taken if no table is asked for.
const TABLE: [u64; 2] = [10_000, 2_000];

/// Whether something was asked for that only this test has.
pub fn is_asked(tables: &Tables) -> bool {
    *tables != Tables::default()
}

/// Cases of what was typed: each forwarder with each way that routes come by, where both go together.
///
/// # Errors
///
/// Words that make no sense, with those that would.
pub fn cases(run: &Run) -> Result<Vec<Case>, CaseError> {
    refuse(run)?;
    let (tables, common) = (&run.tables, &run.common);
    let routes = |value: Option<u64>, n: usize, what: &'static str| {
        let (default, most) = (TABLE.get(n).copied().unwrap_or(0), MOST.get(n).copied().unwrap_or(0));
        let value = value.unwrap_or(default);
        usize::try_from(value)
            .ok()
            .filter(|value| *value <= most)
            .ok_or_else(|| word(what, &value.to_string(), format!("0 to {most} prefixes")))
    };
    // Who asks for one family only gets no other.
    let one = tables.routes4.is_some() != tables.routes6.is_some();
    let or = |value: Option<u64>| if one { value.or(Some(0)) } else { value };
    let routes4 = routes(or(tables.routes4), 0, "--routes4")?;
    let routes6 = routes(or(tables.routes6), 1, "--routes6")?;
    if routes4 + routes6 == 0 {
        return Err(word("--routes4", "0", "without any prefix there is nothing to announce".into()));
    }
    let sample = run.flows.first().copied().unwrap_or(SAMPLE);
    let rate = run.rate.unwrap_or(RATE);
    for (what, value, range) in [("--flows", sample, 1..=10_000_000), ("--rate", rate, 100..=1_000_000)] {
        if !range.contains(&value) {
            let hint = format!("{} to {}", range.start(), range.end());
            return Err(word(what, &value.to_string(), hint));
        }
    }
    let forwarders = named(
        "--dut",
        &common.dut,
        &Forwarder::ALL.map(|f| (f.name(), f)),
        &[Forwarder::Shoal, Forwarder::LinuxRoute],
    )?;
    let daemons = named(
        "--daemon",
        &tables.daemon,
        &Daemon::ALL.map(|d| (d.name(), d)),
        &[Daemon::Frr, Daemon::FrrFpm, Daemon::Bird],
    )?;
    let phases = named("--phase", &tables.phase, &Phase::ALL.map(|p| (p.name(), p)), &Phase::ALL)?;
    // In their own order, and never without the first.
    let phases: Vec<Phase> =
        Phase::ALL.into_iter().filter(|p| *p == Phase::Announce || phases.contains(p)).collect();
    let limit = common.duration.unwrap_or(LIMIT);
    if !(1.0..=3600.0).contains(&limit.as_secs_f64()) {
        return Err(word(
            "--duration",
            &format!("{} s", limit.as_secs_f64()),
            "1s to 1h for each phase".into(),
        ));
    }
    let (mut all, mut last) = (Vec::new(), String::new());
    for forwarder in forwarders {
        for &daemon in &daemons {
            if let Err(why) = daemon.fits(forwarder) {
                last = why;
                continue;
            }
            let wanted = Wanted {
                daemon,
                routes4,
                routes6,
                sample: usize::try_from(sample).unwrap_or(usize::MAX),
                rate,
                // Only a daemon chooses between two next hops.
                phases: phases
                    .iter()
                    .copied()
                    .filter(|p| *p != Phase::Failure || daemon.speaks_bgp())
                    .collect(),
                limit,
                runs: common.runs.unwrap_or(1).max(1),
            };
            all.push(case(forwarder, wanted));
        }
    }
    if all.is_empty() { Err(word("--daemon", &tables.daemon.join(","), last)) } else { Ok(all) }
}

fn word(what: &'static str, value: &str, hint: String) -> CaseError {
    CaseError::Word { what, value: value.into(), hint }
}

/// What other tests understand and this one does not.
fn refuse(run: &Run) -> Result<(), CaseError> {
    let common = &run.common;
    let some = |given: &Option<String>| given.clone().into_iter().collect::<Vec<_>>();
    let words = |given: &[u64]| given.iter().map(ToString::to_string).collect::<Vec<_>>();
    let workers: Vec<String> = common.workers.iter().map(ToString::to_string).collect();
    let percents: Vec<String> = run.percent.iter().map(ToString::to_string).collect();
    let base = run.bases.base.iter().chain(&run.bases.base_replay).map(|p| p.display().to_string());
    let more = words(run.flows.get(1..).unwrap_or_default());
    for (what, given, fits, hint) in [
        ("--transport", some(&common.transport), TRANSPORT, "routes come over veth, and frames by af-packet"),
        ("--size", common.size.clone(), "64", "frames have 64 bytes, with IPv6 84"),
        ("--direction", some(&common.direction), "fwd", "frames go from the sender to the peer: fwd"),
        ("--workers", workers, "1", "the device has one worker"),
        ("--ip", common.ip.clone(), "", "--routes4 and --routes6 say how much of each there is"),
        ("--routes", words(&run.routes), "", "the table is --routes4 and --routes6"),
        ("--flows", more, "", "one number of prefixes that frames go to"),
        ("--percent", percents, "", "it is not measured at a share of a rate"),
        ("--base", base.collect(), "", "it compares no builds"),
        ("--forwarding", vec![common.forwarding.clone()], "route", "routes are for route"),
    ] {
        if let Some(value) = given.iter().find(|value| value.as_str() != fits) {
            return Err(word(what, value, hint.into()));
        }
    }
    Ok(())
}

/// Things by their names; the default where none is given.
fn named<T: Copy>(
    what: &'static str,
    given: &[String],
    known: &[(&'static str, T)],
    default: &[T],
) -> Result<Vec<T>, CaseError> {
    if given.is_empty() {
        return Ok(default.to_vec());
    }
    let find = |name: &String| {
        known.iter().find(|(known, _)| known == name).map(|(_, thing)| *thing).ok_or_else(|| {
            let names: Vec<&str> = known.iter().map(|k| k.0).collect();
            word(
                what,
                name,
                format!("these are {}; the nearest is {}", names.join(", "), nearest(name, names.clone())),
            )
        })
    };
    given.iter().map(find).collect()
}

fn case(forwarder: Forwarder, wanted: Wanted) -> Case {
    Case {
        transport: Some(TRANSPORT.into()),
        ip: if wanted.routes4 > 0 { Ip::Four } else { Ip::Six },
        direction: Direction::Forward,
        convergence: Some(wanted),
        ..Case::plain(TEST, forwarder.name())
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::args::{Cli, Command};

    fn typed(words: &str) -> Result<Vec<Case>, String> {
        let line = format!("shoal-lab run convergence {words}");
        let Ok(Cli { command: Some(Command::Run(run)), .. }) = Cli::try_parse_from(line.split_whitespace())
        else {
            return Err("not understood".into());
        };
        cases(&run).map_err(|e| e.to_string())
    }

    fn wanted(case: &Case) -> &Wanted {
        case.convergence.as_ref().unwrap()
    }

    #[test]
    fn each_forwarder_goes_with_each_daemon_that_fits_it() {
        let all = typed("").unwrap();
        let names: Vec<String> =
            all.iter().map(|c| format!("{} {}", c.dut, wanted(c).daemon.name())).collect();
        assert_eq!(
            names,
            ["shoal frr", "shoal frr-fpm", "shoal bird", "linux-route frr", "linux-route bird"]
        );
        assert!(all.iter().all(|c| wanted(c).routes4 == 10_000 && wanted(c).routes6 == 2_000));
        assert!(all.iter().all(|c| wanted(c).phases == Phase::ALL));
        let alone = typed("--dut none --daemon frr,fpm,bird").unwrap();
        assert_eq!(alone.len(), 2);
    }

    #[test]
    fn one_family_is_asked_for_by_its_number_alone() {
        let all = typed("--routes4 1M --daemon bird --dut shoal").unwrap();
        assert_eq!(
            (wanted(&all[0]).routes4, wanted(&all[0]).routes6, wanted(&all[0]).ip()),
            (1_000_000, 0, "4")
        );
        let all = typed("--routes6 20k --daemon bird --dut shoal").unwrap();
        assert_eq!((wanted(&all[0]).routes4, wanted(&all[0]).ip()), (0, "6"));
    }

    #[test]
    fn phases_stand_in_their_order_and_routes_without_a_daemon_have_one_next_hop() {
        let all = typed("--phase withdraw,failure --daemon bird,netlink --dut shoal").unwrap();
        assert_eq!(wanted(&all[0]).phases, [Phase::Announce, Phase::Failure, Phase::Withdraw]);
        assert_eq!(wanted(&all[1]).phases, [Phase::Announce, Phase::Withdraw]);
    }

    #[test]
    fn words_that_make_no_sense_are_answered_with_those_that_do() {
        for (words, answer) in [
            ("--daemon quagga", "frr, frr-fpm, bird, netlink, fpm; the nearest is"),
            ("--dut ovs", "shoal, linux-route, none; the nearest is"),
            ("--phase announc", "the nearest is announce"),
            ("--routes4 0", "nothing to announce"),
            ("--routes4 0 --routes6 0", "nothing to announce"),
            ("--routes4 20M", "0 to 10000000"),
            ("--routes6 2M", "0 to 1000000"),
            ("--daemon fpm --dut linux-route", "nothing else here speaks FPM"),
            ("--daemon netlink --dut none", "no daemon that could be alone"),
            ("--transport memif", "by af-packet"),
            ("--size 1518", "64 bytes"),
            ("--ip 4", "--routes4"),
            ("--routes 5", "--routes4 and --routes6"),
            ("--workers 2", "one worker"),
            ("--direction bi", "fwd"),
            ("--forwarding bridge", "route"),
            ("--percent 50", "share of a rate"),
            ("--base /bin/sh", "compares no builds"),
            ("--flows 0", "1 to 10000000"),
            ("--flows 5,6", "one number"),
            ("--rate 5", "100 to 1000000"),
            ("--duration 500ms", "1s to 1h"),
        ] {
            let why = typed(words).unwrap_err();
            assert!(why.contains(answer), "{words}: {why}");
        }
    }

    #[test]
    fn small_tables_take_a_minute() {
        let all = typed("").unwrap();
        let whole: f64 = all.iter().map(|c| wanted(c).estimate().time.as_secs_f64()).sum();
        assert!(whole < 90.0, "{whole}");
    }
}
