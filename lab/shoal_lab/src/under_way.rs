//! A campaign while it runs: which device stands, what is known so far, and how it will end.

use std::collections::BTreeMap;
use std::time::Duration;

use shoal_lab_energy as energy;
use shoal_lab_engine::MachineClock;
use shoal_lab_measure as measure;
use shoal_lab_measure::scaling::{WorkerRates, scaling_rows};
use shoal_lab_measure::{Assertion, MeasureError, Promise, Runner, Test as _, Traffic, WallTime};
use shoal_lab_plan::{DeviceError, SummaryRow, TrialLine, Trust};
use shoal_lab_report::{Check, CheckOutcome, DeviceRecord, Folder, Record};

use crate::campaign::Campaign;
use crate::cases::Case;
use crate::catalogue::{self, Known};
use crate::convergence;
use crate::energy::{self as meter, Running};
use crate::exit::Exit;
use crate::gates;
use crate::journal::Kept;
use crate::nat;
use crate::profile;
use crate::replay;
use crate::resets;
use crate::revisions;
use crate::selftest;
use crate::switching;
use crate::test_bed::{StandError, TestBed, dut_settings, scenario};
use crate::traffic::CaseTraffic;
use crate::view::View;

/// Why a case ended without its result.
#[derive(Debug)]
pub struct Stop {
    pub(crate) words: String,
    pub(crate) exit: Exit,
}

impl Stop {
    pub(crate) fn of(case: &Case, error: &MeasureError) -> Stop {
        let exit = match error {
            MeasureError::Interrupted => Exit::Interrupted,
            MeasureError::Silent { .. } | MeasureError::Device(_) => Exit::Device,
            MeasureError::Tester(_) => Exit::Tester,
            MeasureError::Untrusted(_)
            | MeasureError::Refused { .. }
            | MeasureError::Stolen { .. }
            | MeasureError::OverTime { .. } => Exit::Untrusted,
            _ => Exit::Usage,
        };
        Stop { words: format!("{} {}: {error}", case.test, case.dut), exit }
    }

    pub(crate) fn of_stand(case: &Case, error: &StandError) -> Stop {
        let exit = match error {
            StandError::Skipped(_) | StandError::Device(DeviceError::Unavailable(_)) => Exit::Nothing,
            StandError::Traffic(error) => return Stop::of(case, error),
            StandError::Unknown(_) => Exit::Usage,
            StandError::Device(_) => Exit::Device,
            StandError::Engine(_) | StandError::Tester(_) => Exit::Tester,
        };
        Stop { words: format!("{}: {error}", case.dut), exit }
    }
}

/// The least and the most time that a meter is given to see a device at rest.
const IDLE: (Duration, Duration) = (Duration::from_secs(2), Duration::from_mins(1));

/// How long a meter sees a device at rest.
pub fn idle(conduct: &measure::TrialProcedure) -> Duration {
    conduct.duration.clamp(IDLE.0, IDLE.1)
}

/// A row that says that there is no figure, and why.
pub fn refused(told: &measure::Case, test: &str, error: &MeasureError) -> SummaryRow {
    let mut row = told.row(test, "refused", "", Vec::new());
    measure::mark(&mut row, Trust::Refused);
    row.note = error.to_string();
    row
}

/// What tells apart cases that share a self-test or a throughput.
type Like = (String, String, String, String, u16, String);

/// A campaign while it runs.
pub struct UnderWay<'c> {
    pub(crate) campaign: &'c Campaign,
    pub(crate) clock: MachineClock,
    pub(crate) record: Record,
    pub(crate) recorded: Vec<TrialLine>,
    pub(crate) rows: Vec<SummaryRow>,
    pub(crate) checks: Vec<Check>,
    pub(crate) worst: Exit,
    /// The self-test's rate by wire, IP, frames and direction.
    pub(crate) ceilings: BTreeMap<(String, String, String, String), u64>,
    /// Throughputs found in this campaign.
    pub(crate) throughputs: BTreeMap<Like, u64>,
    pub(crate) stand: Option<TestBed>,
    /// When the case has to be over.
    pub(crate) promise: Option<Promise>,
}

impl UnderWay<'_> {
    pub(crate) fn worsen(&mut self, exit: Exit) {
        // That something was measured outweighs that something else was skipped; otherwise the graver counts.
        self.worst = match (self.worst, exit) {
            (worst, Exit::Nothing) => worst,
            (Exit::Nothing, new) => new,
            (worst, new) => worst.max(new),
        };
    }

    /// Something was measured; what failed of it until now counts.
    pub(crate) fn settle(&mut self) {
        self.worsen(Exit::Done);
        if self.checks.iter().any(|c| matches!(c.outcome, CheckOutcome::Failed(_))) {
            self.worsen(Exit::Failed);
        }
    }

    /// How it ended. A gate that failed is told also where figures are not to be trusted: it does not depend on speed.
    pub(crate) fn verdict(&self) -> Exit {
        let gate = |c: &Check| c.suite.starts_with("gates") && matches!(c.outcome, CheckOutcome::Failed(_));
        match self.worst {
            Exit::Untrusted if self.checks.iter().any(gate) => Exit::Failed,
            worst => worst,
        }
    }

    pub(crate) fn case(&mut self, case: &Case, folder: &mut Folder, view: &mut View) -> Result<(), Stop> {
        if view.interrupted() {
            return Err(Stop { words: "interrupted".into(), exit: Exit::Interrupted });
        }
        match case.test.as_str() {
            replay::TEST => {
                // A device that polls would take a processor from it.
                self.leave();
                return replay::run(self, case, folder, view);
            }
            convergence::TEST => {
                self.leave();
                return convergence::run(self, case, view);
            }
            revisions::TEST => {
                self.leave();
                return revisions::run(self, case, folder, view);
            }
            _ => self.change_stand(case)?,
        }
        let Some(mut stand) = self.stand.take() else {
            return Err(Stop { words: format!("{}: no device", case.dut), exit: Exit::Device });
        };
        let done = self.on_stand(case, &mut stand, folder, view);
        self.note_device(case, &mut stand);
        self.stand = Some(stand);
        done
    }

    /// Keeps the device if it is set up as this case needs it; else another is started.
    fn change_stand(&mut self, case: &Case) -> Result<(), Stop> {
        let settings = &self.campaign.settings;
        // Made once: a profile's routes take a Python process.
        let wanted = scenario(case, settings);
        let same = self.stand.as_ref().is_some_and(|s| {
            s.device.as_ref().is_some_and(|d| d.name() == case.dut)
                && s.scenario == wanted
                && case.transport.as_ref().is_none_or(|t| *t == s.transport)
        });
        if same {
            return Ok(());
        }
        self.leave();
        match TestBed::open(case, wanted, settings, &self.clock) {
            Ok(stand) => {
                self.stand = Some(stand);
                Ok(())
            }
            Err(error) => {
                let skipped = DeviceRecord {
                    name: case.dut.clone(),
                    skipped: Some(error.to_string().trim_start_matches("skipped: ").to_owned()),
                    ..DeviceRecord::default()
                };
                if !self.record.devices.iter().any(|d| d.name == case.dut) {
                    self.record.devices.push(skipped);
                }
                Err(Stop::of_stand(case, &error))
            }
        }
    }

    /// Takes the device away.
    pub(crate) fn leave(&mut self) {
        self.stand = None;
    }

    fn note_device(&mut self, case: &Case, stand: &mut TestBed) {
        let Some(device) = &mut stand.device else { return };
        let counters = device.counters().unwrap_or_default();
        let described = device.describe();
        match self.record.devices.iter_mut().find(|d| d.name == case.dut && d.transport == stand.transport) {
            Some(known) => (known.counters_after, known.described) = (counters, described),
            None => self.record.devices.push(DeviceRecord {
                name: case.dut.clone(),
                skipped: None,
                transport: stand.transport.clone(),
                described,
                counters_before: Vec::new(),
                counters_after: counters,
            }),
        }
    }

    fn on_stand(
        &mut self,
        case: &Case,
        stand: &mut TestBed,
        folder: &mut Folder,
        view: &mut View,
    ) -> Result<(), Stop> {
        let campaign = self.campaign;
        let traffic = CaseTraffic::new(
            case,
            &stand.scenario,
            stand.ports.as_ref(),
            &campaign.settings,
            campaign.conduct.duration,
        )
        .map_err(|e| Stop::of(case, &e))?;
        // A profile has its own rates, gates and tables a low one: nothing is searched for that the tester could bound.
        let self_test = match case.profile {
            Some(_) => None,
            None if case.test == "gates" || switching::is_slow(&case.test) => None,
            None => Some(self.ceiling(case, &stand.transport, folder, view)?),
        };
        stand.ready(&traffic, &case.dut).map_err(|e| Stop::of_stand(case, &e))?;
        let version = stand.device.as_ref().map(|d| d.describe().version).unwrap_or_default();
        let cores = dut_settings(&campaign.settings).cores;
        let told = measure::Case {
            dut: case.dut.clone(),
            version,
            transport: stand.transport.clone(),
            workers: case.workers,
            scenario: case.forwarding.clone(),
            ip: case.ip.name().into(),
            frame: case.frames.name(),
            direction: case.direction.name().into(),
            variant: case.variant(),
            shared_core: cores.shares(case.workers),
        };
        // A meter that does not answer is told once and costs no measurement.
        let rest = idle(&campaign.conduct);
        let meter = meter::source(&campaign.settings.energy.source)
            .and_then(|source| Running::start(&source, rest).map_err(|e| e.to_string()));
        let meter = match meter {
            Ok(meter) => Some(meter),
            Err(error) => {
                view.note(&error);
                None
            }
        };
        let cpu = stand.device.as_mut().and_then(|d| d.cpu_time());
        let mut kept = Kept::new(folder, view, &told.transport);
        kept.start_delay = campaign.conduct.start_delay;
        let mut time = WallTime;
        let TestBed { tester, device, scenario, ports, .. } = stand;
        let mut runner =
            Runner::new(tester.as_mut(), &mut kept, &mut time, told.clone(), campaign.conduct.clone())
                .map_err(|e| Stop::of(case, &e))?;
        (runner.self_test, runner.promise) = (self_test, self.promise);
        runner.resume(self.recorded.iter().filter(|line| line.dut == case.dut).cloned().collect());
        let most = runner.most_rate(traffic.size());
        let known = match self.known(case, &mut runner, &traffic, most) {
            Ok(known) => known,
            Err(error) => {
                drop(runner);
                return Err(self.without(case, &told, &error));
            }
        };
        let measured = match (catalogue::make(case, &campaign.conduct, known), case.test.as_str()) {
            (Some(test), _) => test.run(&mut runner, &traffic),
            (None, "stl") => profile::AsIs.run(&mut runner, &traffic),
            (None, test) if nat::is_nat(test) => {
                nat::run(&mut runner, case, (scenario, ports.as_ref()), &campaign.settings, device, known)
            }
            (None, test) if switching::is_learning(test) => switching::run(
                &mut runner,
                case,
                (scenario, ports.as_ref()),
                &campaign.settings,
                device,
                known,
            ),
            (None, "reset") => resets::run(&mut runner, &traffic, device, known.rate),
            (None, _) => {
                let gates = gates::run(&mut runner, case, scenario, ports.as_ref(), &campaign.settings);
                gates.map(|(report, checks)| {
                    self.checks.extend(checks);
                    report
                })
            }
        };
        drop(runner);
        let Kept { delivered, bytes, windows, .. } = kept;
        let mut report = match measured {
            Ok(report) => report,
            Err(error) => return Err(self.without(case, &told, &error)),
        };
        let cpu =
            cpu.zip(device.as_mut().and_then(|d| d.cpu_time())).map(|(from, to)| to.saturating_sub(from));
        report.rows.extend(cpu.and_then(|used| cpu_row(&told, &case.test, used, delivered)));
        report
            .rows
            .extend(meter.into_iter().flat_map(|m| m.rows(&told, &case.test, &windows, delivered, bytes)));
        if case.test == "mrr" {
            let shares: Vec<SummaryRow> =
                report.rows.iter().filter_map(|r| of_self_test(r, self_test)).collect();
            report.rows.extend(shares);
        }
        self.settle();
        if report.rows.iter().any(|r| r.trust.contains(&Trust::Invalid)) {
            self.worsen(Exit::Untrusted);
        }
        self.rows.extend(report.rows);
        match report.ended {
            Some(error) => Err(Stop::of(case, &error)),
            None => Ok(()),
        }
    }

    /// A case that gave no result: if it was refused, the results say so in place of figures.
    fn without(&mut self, case: &Case, told: &measure::Case, error: &MeasureError) -> Stop {
        if error.is_refusal() {
            self.rows.push(refused(told, &case.test, error));
        }
        Stop::of(case, error)
    }

    /// The rate that a test is run at: what was asked for, or a part of the throughput, which is found now if it is not known.
    fn known(
        &mut self,
        case: &Case,
        runner: &mut Runner<'_>,
        traffic: &CaseTraffic,
        most: u64,
    ) -> Result<Known, MeasureError> {
        let ceiling = self.campaign.ceiling;
        let needs = catalogue::find(&case.test).is_ok_and(|e| e.needs_rate);
        let throughput = match (case.rate, needs) {
            (Some(rate), _) => rate,
            (None, false) => most,
            (None, true) => self.throughput(case, runner, traffic)?,
        };
        let rate = case.percent.map_or(throughput, |p| throughput * u64::from(p) / 100).max(1);
        Ok(Known { rate, throughput, most, ceiling })
    }

    fn throughput(
        &mut self,
        case: &Case,
        runner: &mut Runner<'_>,
        traffic: &CaseTraffic,
    ) -> Result<u64, MeasureError> {
        let like = (
            case.dut.clone(),
            case.ip.name().to_owned(),
            case.frames.name(),
            case.direction.name().to_owned(),
            case.workers,
            format!("{:?} {} {}", case.flows, case.routes, runner.case.transport),
        );
        if let Some(known) = self.throughputs.get(&like) {
            return Ok(*known);
        }
        let conduct = runner.conduct.clone();
        runner.conduct.runs = 1;
        let found = measure::Throughput { most: self.campaign.ceiling, ..measure::Throughput::default() }
            .measure_as("throughput for the rate", runner, traffic);
        runner.conduct = conduct;
        let rate = found?.median() as u64;
        if rate == 0 {
            return Err(MeasureError::Untrusted(
                "no rate was found at which nothing is lost; give one with --rate".into(),
            ));
        }
        runner.remark(&format!(
            "{}: measured at or relative to {rate} fps/dir, the throughput found first",
            case.test
        ));
        self.throughputs.insert(like, rate);
        Ok(rate)
    }

    /// What the tester reaches over this wire with these frames, without a device.
    fn ceiling(
        &mut self,
        case: &Case,
        transport: &str,
        folder: &mut Folder,
        view: &mut View,
    ) -> Result<u64, Stop> {
        let like = (
            transport.to_owned(),
            case.ip.name().to_owned(),
            case.frames.name(),
            case.direction.name().to_owned(),
        );
        if let Some(known) = self.ceilings.get(&like) {
            return Ok(*known);
        }
        let (mut kept, asked) = (Kept::new(folder, view, transport), self.campaign.ceiling);
        let campaign = self.campaign;
        let over = selftest::Over { transport, settings: &campaign.settings, clock: &self.clock };
        let measured = selftest::measure(case, over, &campaign.conduct, asked, self.promise, &mut kept);
        let (found, measured) = measured.map_err(|error| match error {
            StandError::Traffic(MeasureError::Interrupted) => {
                Stop { words: "interrupted".into(), exit: Exit::Interrupted }
            }
            StandError::Traffic(error @ (MeasureError::OverTime { .. } | MeasureError::Untrusted(_))) => {
                Stop { words: format!("self-test over {transport}: {error}"), exit: Exit::Untrusted }
            }
            StandError::Traffic(error) if error.is_refusal() => {
                // Without it nothing is known of how far the tester can be trusted, so the case has no figure either.
                let told = measure::Case { transport: transport.into(), ..selftest::told(case, transport) };
                let told = measure::Case { dut: case.dut.clone(), scenario: case.forwarding.clone(), ..told };
                self.rows.push(refused(&told, &case.test, &error));
                Stop {
                    words: format!("{} {}: self-test over {transport}: {error}", case.test, case.dut),
                    exit: Exit::Untrusted,
                }
            }
            other => Stop { words: format!("self-test over {transport}: {other}"), exit: Exit::Tester },
        })?;
        view.note(&format!(
            "self-test over {transport}: {} fps/dir, delay {:.1} us",
            found.rate, found.floor
        ));
        self.record.self_tests.push(measured);
        self.ceilings.insert(like, found.rate);
        Ok(found.rate)
    }

    /// What more workers gave, where throughput was measured with several numbers of them.
    pub(crate) fn scaling(&mut self) {
        let like = |row: &SummaryRow| {
            let SummaryRow { dut, transport, ip, frame, direction, variant, .. } = row;
            [dut, transport, ip, frame, direction, variant].map(Clone::clone)
        };
        let mut groups: BTreeMap<[String; 6], Vec<&SummaryRow>> = BTreeMap::new();
        for row in self.rows.iter().filter(|r| r.test == "throughput" && r.metric == "throughput") {
            groups.entry(like(row)).or_default().push(row);
        }
        let mut more = Vec::new();
        for rows in groups.values().filter(|rows| rows.len() > 1) {
            let measured: Vec<WorkerRates> = rows
                .iter()
                .map(|row| WorkerRates {
                    workers: row.workers,
                    rates: row.values.clone(),
                    shared_core: row.trust.contains(&Trust::SharedCore),
                })
                .collect();
            let Some(first) = rows.first() else { continue };
            let case = measure::Case {
                dut: first.dut.clone(),
                version: first.version.clone(),
                transport: first.transport.clone(),
                workers: first.workers,
                scenario: first.scenario.clone(),
                ip: first.ip.clone(),
                frame: first.frame.clone(),
                direction: first.direction.clone(),
                variant: first.variant.clone(),
                shared_core: false,
            };
            more.extend(scaling_rows(&case, &measured));
        }
        self.rows.extend(more);
    }

    pub(crate) fn assertions(&mut self) {
        for text in &self.campaign.assertions {
            let outcome = match Assertion::parse(text).and_then(|a| a.check(&self.rows)) {
                Err(error) => CheckOutcome::Error(error.to_string()),
                Ok(checked) => {
                    let failed: Vec<String> =
                        checked.iter().filter(|c| !c.holds).map(ToString::to_string).collect();
                    let held: Vec<String> = checked.iter().map(ToString::to_string).collect();
                    if failed.is_empty() {
                        CheckOutcome::Passed(held.join("; "))
                    } else {
                        CheckOutcome::Failed(failed.join("; "))
                    }
                }
            };
            if !matches!(outcome, CheckOutcome::Passed(_)) {
                self.worsen(Exit::Failed);
            }
            self.checks.push(Check { suite: "assertions".into(), name: text.clone(), outcome, seconds: 0.0 });
        }
    }
}

/// A rate as a share of what the tester reached alone over this wire, which cancels much of the host's drift (lab.md 4.7.4).
fn of_self_test(row: &SummaryRow, self_test: Option<u64>) -> Option<SummaryRow> {
    let alone = self_test.filter(|rate| *rate > 0 && row.unit == "fps/dir")? as f64;
    Some(SummaryRow {
        metric: format!("{} by the self-test", row.metric),
        unit: "ratio".into(),
        values: row.values.iter().map(|rate| rate / alone).collect(),
        curve: Vec::new(),
        axes: None,
        note: format!("the tester alone: {alone:.0} fps/dir"),
        ..row.clone()
    })
}

/// The device's processor time for each million frames that it delivered. It is no energy and never called so.
fn cpu_row(case: &measure::Case, test: &str, microseconds: u64, delivered: u64) -> Option<SummaryRow> {
    let (metric, unit) = energy::metric::CPU_SECONDS;
    let seconds = energy::cpu_seconds_per_million(microseconds, delivered)?;
    let mut row = case.row(test, metric, unit, vec![seconds]);
    row.note = "of all trials of the test together, waits included".into();
    Some(row)
}
