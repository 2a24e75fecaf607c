//! In-process replay: prepared vectors through the router's graph, by `shoal-lab-graph`. No ports, no root, no device.
//!
//! The program runs several times, and where there is a base in turns with the base's; of each scenario the least counts.
//! Against the base, 5 % more instructions or 5 % more clocks by the ruler's alarm.

mod program;

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use shoal_lab_measure as measure;
use shoal_lab_measure::in_process::{self, Clocks, Signal};
use shoal_lab_measure::{Estimate, Revision};
use shoal_lab_plan::{Described, SummaryRow};
use shoal_lab_report::{Bench, Check, CheckOutcome, DeviceRecord, Folder};

use crate::args::Common;
use crate::cases::{Case, CaseError, Direction};
use crate::exit::Exit;
use crate::under_way::{Stop, UnderWay};
use crate::view::View;
use program::{Call, Instructions, ReplayError};

pub use program::{PROGRAM, find};

/// What is replayed, and how often. Part of a case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Replay {
    /// Scenarios of the program, the ruler among them.
    pub scenarios: Vec<String>,
    /// How often the program runs, for each build.
    pub runs: u32,
    /// How long it measures each scenario.
    pub duration: Duration,
}

/// The test's name, and its wire's.
pub const TEST: &str = "replay";
/// What stands where other results have a wire.
pub const TRANSPORT: &str = "in-process";

/// The hand-written loop that the others are told as ratios to.
const RULER: &str = "ruler-fused";
/// What is replayed if nothing is named.
const SCENARIOS: [&str; 5] = [RULER, "ip4-1", "ip4-1-nodes", "ip6-1", "ip6-1-nodes"];
/// How much more than the base's alarms (lab.md 4.7.2).
const LIMIT: f64 = 0.05;

/// What the program may measure a scenario for, in seconds.
const SECONDS: std::ops::RangeInclusive<f64> = 0.05..=3600.0;

impl Replay {
    /// Of what was typed; `scenarios` may be empty.
    ///
    /// # Errors
    ///
    /// Words that mean something to devices and nothing to a replay.
    pub fn new(common: &Common, scenarios: &[String]) -> Result<Self, CaseError> {
        let odd = |given: &[String], fits: &dyn Fn(&str) -> bool| given.iter().find(|w| !fits(w)).cloned();
        let one = |given: &Option<String>| given.iter().cloned().collect::<Vec<_>>();
        let workers: Vec<String> = common.workers.iter().map(ToString::to_string).collect();
        for (what, value, hint) in [
            ("--dut", odd(&common.dut, &|w| w == "shoal"), "only shoal can be replayed"),
            ("--transport", odd(&one(&common.transport), &|w| w == TRANSPORT), "a replay has no wire"),
            ("--size", odd(&common.size, &|w| w == "64"), "a replay has frames of 64 bytes, with IPv6 of 68"),
            ("--workers", odd(&workers, &|w| w == "1"), "a replay has one"),
            ("--direction", odd(&one(&common.direction), &|w| w == "fwd"), "a replay has only fwd"),
            ("--ip", odd(&common.ip, &|w| ["4", "6"].contains(&w)), "4, 6, or 4,6"),
        ] {
            if let Some(value) = value {
                return Err(CaseError::Word { what, value, hint: hint.into() });
            }
        }
        let (runs, duration) = match common.preset.as_deref() {
            Some("strict") => (20, Duration::from_secs(2)),
            Some("normal") => (10, Duration::from_secs(1)),
            _ => (5, Duration::from_millis(500)),
        };
        let duration = common.duration.unwrap_or(duration);
        if !SECONDS.contains(&duration.as_secs_f64()) {
            let value = format!("{} s", duration.as_secs_f64());
            return Err(CaseError::Word {
                what: "--duration",
                value,
                hint: "50ms to 1h for each scenario".into(),
            });
        }
        Ok(Replay {
            scenarios: chosen(scenarios, &common.ip),
            runs: common.runs.unwrap_or(runs).max(1),
            duration,
        })
    }

    /// The case of it, against the program of another build if there is one.
    pub fn case(self, base: Option<PathBuf>) -> Case {
        Case {
            transport: Some(TRANSPORT.into()),
            direction: Direction::Forward,
            replay: Some(self),
            base,
            ..Case::plain(TEST, "shoal")
        }
    }

    /// How long it takes: tables are filled before each scenario, and valgrind counts instructions in the first run of each build.
    pub fn estimate(&self, builds: u32) -> Estimate {
        let count = self.scenarios.len() as u32;
        let run = START + (self.duration + FILL) * count;
        Estimate { trials: u64::from(self.runs * builds), time: (run * self.runs + COUNT * count) * builds }
    }

    /// When a run of the program is ended: windows may all have to be measured three times, and each take four times as long.
    fn limit(&self) -> Duration {
        Duration::from_mins(2) + (self.duration * 12 + COUNT * 6) * self.scenarios.len() as u32
    }
}

/// What the program takes before its first scenario.
const START: Duration = Duration::from_millis(400);
/// What it takes before each.
const FILL: Duration = Duration::from_millis(150);
/// What counting a scenario's instructions takes by valgrind.
const COUNT: Duration = Duration::from_secs(5);

/// The named ones, or the usual ones of the IP versions asked for. The ruler is always among them, and first.
fn chosen(named: &[String], ip: &[String]) -> Vec<String> {
    let usual = SCENARIOS.iter().map(|s| (*s).to_owned());
    let mut all: Vec<String> = if named.is_empty() {
        usual.filter(|s| ip.is_empty() || s == RULER || ip.contains(&family(s).to_owned())).collect()
    } else {
        named.to_vec()
    };
    all.retain(|s| s != RULER);
    all.insert(0, RULER.into());
    all
}

/// `4` or `6`, by a scenario's name.
fn family(scenario: &str) -> &'static str {
    if scenario.starts_with("ip6") { "6" } else { "4" }
}

/// All runs of one build.
struct Side {
    program: PathBuf,
    build: Revision,
    runs: Vec<Bench>,
}

/// Replays into the folder: rows, checks against the base, `bench.json`, each run's own results in `replay/`.
///
/// # Errors
///
/// The program is missing, fails or writes rubbish; or someone wanted it to end.
pub fn run(under: &mut UnderWay<'_>, case: &Case, folder: &mut Folder, view: &mut View) -> Result<(), Stop> {
    let Some(replay) = &case.replay else {
        return Err(Stop {
            words: "replay: the case says nothing of what to replay".into(),
            exit: Exit::Usage,
        });
    };
    let program = find(&under.campaign.settings.dut.replay).map_err(|why| skip(under, &why))?;
    let mut change = Side { program, build: Revision::Change, runs: Vec::new() };
    let mut base = case.base.clone().map(|program| Side { program, build: Revision::Base, runs: Vec::new() });
    let mut ended = None;
    for which in in_process::turns(replay.runs) {
        let side = match (which, &mut base) {
            (Revision::Base, Some(base)) => base,
            (Revision::Base, None) => continue,
            (Revision::Change, _) => &mut change,
        };
        match once(replay, side, folder, view) {
            Ok(bench) => side.runs.push(bench),
            // The change's own figures are worth having without the base's.
            Err(error) if which == Revision::Base && !matches!(error, ReplayError::Interrupted) => {
                base = None;
                view.note(&format!("replay: {error}"));
                let outcome = CheckOutcome::Error(error.to_string());
                under.checks.push(check("the base", outcome));
                under.worsen(Exit::Device);
            }
            Err(error) => {
                let exit =
                    if matches!(error, ReplayError::Interrupted) { Exit::Interrupted } else { Exit::Device };
                ended = Some(Stop { words: format!("replay: {error}"), exit });
                break;
            }
        }
    }
    let Some(least) = Bench::least(&change.runs) else {
        return Err(
            ended.unwrap_or(Stop { words: "replay: nothing was replayed".into(), exit: Exit::Device })
        );
    };
    note_program(under, &change, &least);
    folder.bench(&least).map_err(|e| Stop { words: e.to_string(), exit: Exit::Usage })?;
    for scenario in &replay.scenarios {
        let told = row_case(scenario, &change);
        let own = clocks(&change, scenario)?;
        under.rows.extend(in_process::rows(&told, TEST, &own));
        let before = base.as_ref().filter(|b| !b.runs.is_empty()).map(|b| clocks(b, scenario)).transpose()?;
        if let Some(before) = before {
            under.rows.extend(ratio_rows(&told, &before, &own));
            // The ruler is no feature: what it takes is the measure.
            if scenario != RULER {
                under.checks.push(check(scenario, judged(&before, &own)));
            }
        }
    }
    under.settle();
    ended.map_or(Ok(()), Err)
}

/// One run of the program.
fn once(replay: &Replay, side: &Side, folder: &Folder, view: &mut View) -> Result<Bench, ReplayError> {
    let number = side.runs.len() + 1;
    let name = if side.build == Revision::Base { "base" } else { "change" };
    let call = Call {
        program: &side.program,
        build: side.build,
        scenarios: &replay.scenarios,
        duration: replay.duration,
        // They hardly change from run to run.
        instructions: if number == 1 { Instructions::Counted } else { Instructions::LeftOut },
        json: folder.path().join("replay").join(format!("{name}-{number}.json")),
        limit: replay.limit(),
    };
    let of = format!("{name} {number} of {}", replay.runs);
    let bench = call.run(&mut |line| {
        if let Some(line) = line {
            view.doing(&format!("{of}: {line}"));
        }
        view.progress(None)
    })?;
    let told: Vec<String> =
        bench.scenarios.iter().map(|s| format!("{} {:.1}", s.name, s.clocks_min)).collect();
    view.doing(&format!("{of}: clocks a packet: {}", told.join(", ")));
    Ok(bench)
}

/// What several runs say of a scenario.
fn clocks(side: &Side, scenario: &str) -> Result<Clocks, Stop> {
    let replays: Vec<in_process::Replay> = side
        .runs
        .iter()
        .filter_map(|run| {
            let found = run.find(scenario)?;
            let ruler = run.find(RULER).filter(|_| scenario != RULER);
            Some(in_process::Replay {
                clocks: found.clocks_min,
                nodes: found.nodes.clone().into_iter().collect(),
                instructions: found.instructions,
                ruler: ruler.map(|r| r.clocks_min),
                disturbed: found.disturbed || ruler.is_some_and(|r| r.disturbed),
            })
        })
        .collect();
    Clocks::of(&replays).map_err(|error| Stop {
        words: format!("{}: {scenario}: {error}", side.program.display()),
        exit: Exit::Device,
    })
}

fn row_case(scenario: &str, side: &Side) -> measure::Case {
    let ip = family(scenario);
    measure::Case {
        dut: "shoal".into(),
        version: side.runs.first().map(|r| r.revision().to_owned()).unwrap_or_default(),
        transport: TRANSPORT.into(),
        workers: 1,
        scenario: "route".into(),
        ip: ip.into(),
        // 60 and 64 bytes, and the FCS.
        frame: if ip == "6" { "68" } else { "64" }.into(),
        direction: "fwd".into(),
        variant: scenario.into(),
        shared_core: false,
    }
}

fn ratio_rows(told: &measure::Case, base: &Clocks, change: &Clocks) -> Vec<SummaryRow> {
    let clocks = in_process::clocks_ratio(base, change).map(|r| ("clocks, change by base", r));
    let instructions =
        in_process::instructions_ratio(base, change).map(|r| ("instructions, change by base", r));
    [clocks, instructions]
        .into_iter()
        .flatten()
        .map(|(metric, ratio)| told.row(TEST, metric, "ratio", vec![ratio]))
        .collect()
}

fn check(name: &str, outcome: CheckOutcome) -> Check {
    Check { suite: TEST.into(), name: name.into(), outcome, seconds: 0.0 }
}

/// In words: how much more than the base, and by which nodes.
fn judged(base: &Clocks, change: &Clocks) -> CheckOutcome {
    let alarms = in_process::alarms(base, change, LIMIT);
    if alarms.is_empty() {
        let ratio = |r: Option<f64>| r.map_or_else(|| "not counted".to_owned(), |r| format!("{r:.3}"));
        return CheckOutcome::Passed(format!(
            "{}; by the base's: clocks {}, instructions {}",
            in_process::spoken(change),
            ratio(in_process::clocks_ratio(base, change)),
            ratio(in_process::instructions_ratio(base, change)),
        ));
    }
    let mut words: Vec<String> = alarms
        .iter()
        .map(|alarm| match (alarm.signal, alarm.interval) {
            (Signal::Instructions, _) => format!("{:.3} of the base's instructions", alarm.ratio),
            (Signal::Clocks, Some(i)) => format!(
                "{:.3} of the base's clocks, 95 % between {:.3} and {:.3}",
                alarm.ratio, i.low, i.high
            ),
            (Signal::Clocks, None) => format!("{:.3} of the base's clocks", alarm.ratio),
        })
        .collect();
    if base.disturbed || change.disturbed {
        words.push("the machine was disturbed all the time".into());
    }
    let nodes: Vec<String> = in_process::slower(base, change, LIMIT)
        .into_iter()
        .map(|(node, ratio)| format!("{node} {ratio:.2}"))
        .chain(in_process::unknown(base, change).into_iter().map(|(node, _)| format!("{node} is new")))
        .collect();
    if !nodes.is_empty() {
        words.push(format!("nodes: {}", nodes.join(", ")));
    }
    let words = words.join("; ");
    if alarms.iter().any(|a| a.certain) {
        CheckOutcome::Failed(words)
    } else {
        CheckOutcome::Passed(format!("warning: {words}"))
    }
}

/// The program is not there: told in the record, as of any device, and as a check that was skipped.
fn skip(under: &mut UnderWay<'_>, why: &str) -> Stop {
    under.record.devices.push(DeviceRecord {
        name: PROGRAM.into(),
        skipped: Some(why.to_owned()),
        transport: TRANSPORT.into(),
        ..DeviceRecord::default()
    });
    under.checks.push(check(PROGRAM, CheckOutcome::Skipped(why.to_owned())));
    Stop { words: format!("{TEST}: skipped: {why}"), exit: Exit::Nothing }
}

fn note_program(under: &mut UnderWay<'_>, side: &Side, bench: &Bench) {
    let instructions = format!("instructions by: {}", bench.instructions_by);
    under.record.devices.push(DeviceRecord {
        name: PROGRAM.into(),
        transport: TRANSPORT.into(),
        described: Described {
            version: format!("{PROGRAM} {}", bench.revision()).trim().to_owned(),
            commands: vec![side.program.display().to_string()],
            files: Vec::new(),
            notes: vec![instructions],
        },
        ..DeviceRecord::default()
    });
}

/// What a dry run says of it.
pub fn dry_run(case: &Case, set: &std::path::Path) -> String {
    let Some(replay) = &case.replay else { return String::new() };
    let mut text = match find(set) {
        Ok(program) => format!("  {}\n", program.display()),
        Err(why) => format!("  skipped: {why}\n"),
    };
    if let Some(base) = &case.base {
        let _ = writeln!(text, "  in turns with {}", base.display());
    }
    text + &format!(
        "  {} runs, {} ms of each: {}\n",
        replay.runs,
        replay.duration.as_millis(),
        replay.scenarios.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ruler_is_always_there_and_first() {
        let named = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>();
        assert_eq!(chosen(&[], &[]), SCENARIOS);
        assert_eq!(chosen(&named(&["ip4-1m"]), &[]), [RULER, "ip4-1m"]);
        assert_eq!(chosen(&named(&["ip4-1m", RULER]), &[]), [RULER, "ip4-1m"]);
        assert_eq!(chosen(&[], &named(&["6"])), [RULER, "ip6-1", "ip6-1-nodes"]);
    }

    #[test]
    fn what_a_replay_does_not_have_is_refused() {
        let refused = |common: Common| Replay::new(&common, &[]).unwrap_err().to_string();
        let word = |w: &str| vec![w.to_owned()];
        assert!(refused(Common { size: word("1518"), ..Common::default() }).contains("64 bytes"));
        assert!(refused(Common { dut: word("linux-route"), ..Common::default() }).contains("only shoal"));
        assert!(refused(Common { workers: vec![2], ..Common::default() }).contains("--workers 2"));
        let short = Common { duration: Some(Duration::from_millis(1)), ..Common::default() };
        assert!(refused(short).contains("50ms to 1h"));
        let common = Common { runs: Some(3), preset: Some("strict".into()), ..Common::default() };
        let replay = Replay::new(&common, &[]).unwrap();
        assert_eq!((replay.runs, replay.duration), (3, Duration::from_secs(2)));
    }

    #[test]
    fn a_base_doubles_the_time() {
        let replay = Replay::new(&Common::default(), &[]).unwrap();
        assert_eq!(replay.estimate(2).time, replay.estimate(1).time * 2);
        assert!(replay.limit() > replay.estimate(1).time);
    }

    #[test]
    fn more_instructions_fail_with_the_node_that_takes_longer() {
        let side = |clocks: f64, instructions: f64| {
            let text = format!(
                r#"{{"scenarios":[
                {{"name":"ruler-fused","clocks_min":20,"clocks_median":20,"nodes":{{"fused":20}}}},
                {{"name":"ip4-1","clocks_min":{clocks},"clocks_median":{clocks},"instructions":{instructions},
                  "nodes":{{"ip4-superpath":{clocks}}}}}]}}"#
            );
            let run: Bench = serde_json::from_str(&text).unwrap();
            Side { program: "x".into(), build: Revision::Change, runs: vec![run; 5] }
        };
        let of = |clocks_now, instructions| super::clocks(&side(clocks_now, instructions), "ip4-1").unwrap();
        let outcome = judged(&of(30.0, 100.0), &of(33.0, 110.0));
        let CheckOutcome::Failed(words) = outcome else { panic!("{outcome:?}") };
        assert!(words.contains("1.100 of the base's instructions"), "{words}");
        assert!(words.contains("ip4-superpath 1.10"), "{words}");
        let outcome = judged(&of(30.0, 100.0), &of(30.2, 101.0));
        assert!(matches!(&outcome, CheckOutcome::Passed(words) if words.contains("1.010")), "{outcome:?}");
    }
}
