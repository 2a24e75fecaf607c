//! A campaign: cases one after the other, each with its device and its test, into one results folder.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use shoal_lab_engine::MachineClock;
use shoal_lab_measure as measure;
use shoal_lab_measure::{Estimate, Promise, Time as _, TrialProcedure, WallTime};
use shoal_lab_plan::{SummaryRow, TrialLine};
use shoal_lab_report as report;
use shoal_lab_report::{Check, Folder, Host, Page, Record, Results};

use crate::cases::Case;
use crate::catalogue::{self, Known};
use crate::exit::Exit;
use crate::gates;
use crate::history;
use crate::revisions;
use crate::selftest;
use crate::settings::Settings;
use crate::switching;
use crate::test_bed::tester_core;
use crate::under_way::{UnderWay, idle};
use crate::view::View;

/// All that a campaign is, so that an interrupted one can go on.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Campaign {
    /// What the folder is called, after the date.
    pub name: String,
    /// Program and arguments, as they were typed.
    pub command: Vec<String>,
    /// In order.
    pub cases: Vec<Case>,
    /// How trials are run.
    pub conduct: TrialProcedure,
    /// The preset's name.
    pub preset: String,
    /// The upper end of searches, in frames a second and direction; none: the self-test's.
    pub ceiling: Option<u64>,
    /// What must hold at the end.
    pub assertions: Vec<String>,
    /// Whether its figures are added to the history of this machine.
    #[serde(default)]
    pub keeps_history: bool,
    /// Settings.
    pub settings: Settings,
}

/// The file in the results folder that holds the campaign.
const FILE: &str = "campaign.json";

/// Packages whose versions belong into the record.
const PACKAGES: [&str; 5] = ["dpdk", "openvswitch-switch", "nftables", "iptables", "iproute2"];

/// Starting a device and making sure that it forwards.
const START: Estimate = Estimate { trials: 1, time: Duration::from_secs(2) };

/// What a device takes for each further route.
const ROUTE: Duration = Duration::from_micros(20);

/// What the tester is taken to reach when a time is estimated before it was tried.
pub const GUESS: u64 = 4_000_000;

/// What came of a campaign.
pub struct Ended {
    /// The results folder.
    pub folder: PathBuf,
    /// How it ended.
    pub exit: Exit,
    /// All rows.
    pub rows: Vec<SummaryRow>,
    /// What was asserted, and the gates.
    pub checks: Vec<Check>,
}

impl Campaign {
    /// How long it will take, if nothing is disturbed and the tester reaches `most`.
    pub fn estimate(&self, most: u64) -> Estimate {
        self.estimates(most).into_iter().fold(Estimate::default(), |sum, one| sum + one)
    }

    /// The same of each case.
    fn estimates(&self, most: u64) -> Vec<Estimate> {
        let mut self_tested = Vec::new();
        self.cases.iter().map(|case| self.estimate_of(case, most, &mut self_tested)).collect()
    }

    /// Of one case. `self_tested` are the wires and frames that the tester has been measured with before.
    fn estimate_of<'c>(
        &'c self,
        case: &'c Case,
        most: u64,
        self_tested: &mut Vec<(&'c String, &'c str, String, &'c str)>,
    ) -> Estimate {
        let conduct = &self.conduct;
        if let Some(wanted) = &case.convergence {
            return wanted.estimate();
        }
        if let Some(replay) = &case.replay {
            return replay.estimate(1 + u32::from(case.base.is_some()));
        }
        match case.test.as_str() {
            revisions::TEST => return revisions::estimate(conduct),
            "gates" => return gates::estimate(conduct) + START,
            _ => {}
        }
        let mut whole = Estimate { time: START.time + ROUTE * case.routes, ..START };
        if self.settings.energy.source != "none" {
            whole.time += idle(conduct);
        }
        // The tester alone, once over each wire with the same frames.
        let wire = case.transport.as_ref().unwrap_or(&case.dut);
        let like = (wire, case.ip.name(), case.frames.name(), case.direction.name());
        if case.profile.is_none() && !self_tested.contains(&like) {
            whole = whole + selftest::estimate(conduct, most);
            self_tested.push(like);
        }
        let most = self.ceiling.unwrap_or(most);
        let rate = case.rate.unwrap_or(most / 2).max(1);
        let known = Known { rate, throughput: rate, most, ceiling: self.ceiling };
        let entry = catalogue::find(&case.test);
        if entry.is_ok_and(|e| e.needs_rate) && case.rate.is_none() {
            let once = TrialProcedure { runs: 1, ..conduct.clone() };
            whole = whole + measure::Test::estimate(&measure::Throughput::default(), &once, most);
        }
        whole
            + match catalogue::make(case, conduct, known) {
                Some(test) => test.estimate(conduct, most),
                None if switching::is_learning(&case.test) => {
                    switching::learning(case, known).estimate(conduct)
                }
                None => Estimate::of(conduct, 28, conduct.duration),
            }
    }

    /// Reads the campaign of a results folder.
    ///
    /// # Errors
    ///
    /// If there is none.
    pub fn read(folder: &Path) -> Result<Self, String> {
        let file = folder.join(FILE);
        let text = fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
        serde_json::from_str(&text).map_err(|e| format!("{}: {e}", file.display()))
    }

    /// Measures into a new folder below `results`.
    ///
    /// # Errors
    ///
    /// If the folder cannot be written.
    pub fn run(&self, results: &Path, view: &mut View) -> Result<Ended, report::ReportError> {
        let record = Record {
            name: self.name.clone(),
            began: now(),
            command: self.command.clone(),
            commit: option_env!("SHOAL_REVISION").unwrap_or_default().to_owned(),
            preset: self.preset.clone(),
            seeds: BTreeMap::from([("traffic".to_owned(), self.settings.traffic.seed)]),
            host: Host::read(&PACKAGES),
            ..Record::default()
        };
        let folder = Folder::create(results, &record)?;
        let text = serde_json::to_string_pretty(self).unwrap_or_default();
        report::write_whole(&folder.path().join(FILE), &text)?;
        self.go(folder, record, Vec::new(), view)
    }

    /// Goes on in a folder that an interrupted campaign left.
    ///
    /// # Errors
    ///
    /// If the folder cannot be read or written.
    pub fn resume(&self, path: &Path, view: &mut View) -> Result<Ended, report::ReportError> {
        let earlier = Results::read(path)?;
        let mut record = earlier.record;
        (record.ended, record.devices, record.self_tests) = (None, Vec::new(), Vec::new());
        self.go(Folder::open(path)?, record, earlier.trials, view)
    }

    fn go(
        &self,
        mut folder: Folder,
        record: Record,
        recorded: Vec<TrialLine>,
        view: &mut View,
    ) -> Result<Ended, report::ReportError> {
        let (began, mut until_here) = (WallTime.passed(), Estimate::default());
        pin(&self.settings);
        let mut under_way = UnderWay {
            campaign: self,
            clock: MachineClock::calibrated(),
            record,
            recorded,
            rows: Vec::new(),
            checks: Vec::new(),
            worst: Exit::Nothing,
            ceilings: BTreeMap::new(),
            throughputs: BTreeMap::new(),
            stand: None,
            promise: None,
        };
        let of = self.cases.len();
        for ((case, estimate), number) in self.cases.iter().zip(self.estimates(GUESS)).zip(1..) {
            // What earlier cases did not need, later ones may.
            until_here = until_here + estimate;
            let promised = until_here.promise();
            under_way.promise = Some(Promise { until: began + promised, promised });
            let what = match (&case.replay, &case.convergence) {
                (Some(_), _) => format!("{}, in one process", case.dut),
                (None, Some(wanted)) => format!("{}, {}", case.dut, wanted.variant()),
                (None, None) => format!(
                    "{}, ip{} {} {}",
                    case.dut,
                    case.ip.name(),
                    case.frames.name(),
                    case.direction.name()
                ),
            };
            view.case(&case.test, &what, number, of);
            let ended = under_way.case(case, &mut folder, view);
            folder.summary(&under_way.record, &under_way.rows)?;
            folder.record(&under_way.record)?;
            if let Err(stop) = ended {
                view.note(&stop.words);
                under_way.worsen(stop.exit);
                if stop.exit == Exit::Interrupted {
                    break;
                }
            }
        }
        under_way.leave();
        under_way.scaling();
        under_way.assertions();
        under_way.record.ended = (under_way.worst != Exit::Interrupted).then(now);
        folder.record(&under_way.record)?;
        folder.summary(&under_way.record, &under_way.rows)?;
        let path = folder.path().to_owned();
        if let (true, Exit::Done | Exit::Failed | Exit::Untrusted, Some(results)) =
            (self.keeps_history, under_way.worst, path.parent())
        {
            history::append(results, &under_way.record, &under_way.rows)?;
        }
        write_page(std::slice::from_ref(&path), &path.join("report.html"))?;
        let exit = under_way.verdict();
        Ok(Ended { folder: path, exit, rows: under_way.rows, checks: under_way.checks })
    }
}

/// Makes the page of these folders.
///
/// # Errors
///
/// If they cannot be read, or the page not be written.
pub fn write_page(folders: &[PathBuf], page: &Path) -> Result<(), report::ReportError> {
    let results = folders.iter().map(|f| Results::read(f)).collect::<Result<Vec<_>, _>>()?;
    // `make bench` leaves its figures there. They are shown where no folder has any of its own.
    let bench = report::Bench::read(Path::new("target/bench.json")).ok();
    let history = history::of(&results)?;
    let html = Page { results, bench, history, made: now() }.html()?;
    report::write_whole(page, &html)
}

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |d| d.as_secs_f64())
}

/// The tester's thread stays on its processor and goes before others; where that cannot be, it runs as the kernel has it.
pub fn pin(settings: &Settings) {
    use nix::sched::{CpuSet, sched_setaffinity};
    use nix::unistd::Pid;
    let mut set = CpuSet::new();
    if set.set(tester_core(settings)).is_ok() {
        let _ = sched_setaffinity(Pid::from_raw(0), &set);
    }
    let _ = rustix::process::setpriority_process(None, -20);
}

/// The same thread, and those that it starts from now on, may use all processors again.
pub fn unpin() {
    use nix::sched::{CpuSet, sched_setaffinity};
    use nix::unistd::Pid;
    let mut set = CpuSet::new();
    for core in 0..CpuSet::count() {
        let _ = set.set(core);
    }
    let _ = sched_setaffinity(Pid::from_raw(0), &set);
}
