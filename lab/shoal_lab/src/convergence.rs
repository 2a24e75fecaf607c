//! Convergence: a peer announces a table to a routing daemon; how long until packets to all of its prefixes get through?
//!
//! For each forwarder and each way by which routes come ([`Daemon`]) a bed of its own is made. The lab itself is the peer: it announces
//! messages that were made before and takes next to no processor time. Then the next hop of half of all packets fails, and at the end the
//! table is withdrawn.

mod ask;
mod feed;
mod kernel;
mod watch;

use std::fmt::Write as _;
use std::net::IpAddr;
use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use shoal_lab_dut as dut;
use shoal_lab_dut::{Daemon, Forwarder, RoutingBed};
use shoal_lab_engine::{Look, Probes, Whose};
use shoal_lab_measure as measure;
use shoal_lab_measure::convergence::{Beside, Phase, TEST as NAME, converged, rows};
use shoal_lab_measure::{Estimate, MeasureError, TrialProcedure, WhenDisturbed};
use shoal_lab_plan::{Described, Observation, Processors, SummaryRow, Trust};
use shoal_lab_report::DeviceRecord;
use shoal_lab_routes::sample::sample;

use crate::campaign;
use crate::cases::Case;
use crate::exit::Exit;
use crate::test_bed::dut_settings;
use crate::under_way::{self, Stop, UnderWay};
use crate::view::View;
use ask::TRANSPORT;
pub use ask::{cases, is_asked};
use feed::Table;
use watch::Seen;

/// The test's name.
pub const TEST: &str = NAME;
/// What is measured. Part of a case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Wanted {
    /// Where routes come from.
    pub daemon: Daemon,
    /// IPv4 prefixes.
    pub routes4: usize,
    /// IPv6 prefixes.
    pub routes6: usize,
    /// Prefixes that frames go to.
    pub sample: usize,
    /// Frames a second.
    pub rate: u64,
    /// What happens, in order.
    pub phases: Vec<Phase>,
    /// How long a phase may take.
    pub limit: Duration,
    /// How often everything is done.
    pub runs: u32,
}

/// Why a run ended without its result.
pub struct Trouble {
    words: String,
    exit: Exit,
}

impl Trouble {
    fn device(words: String) -> Self {
        Trouble { words, exit: Exit::Device }
    }

    fn tester(words: String) -> Self {
        Trouble { words, exit: Exit::Tester }
    }
}

impl Wanted {
    /// How long it takes, if everything is as slow as FRR on two processors.
    pub fn estimate(&self) -> Estimate {
        let routes = (self.routes4 + self.routes6) as f64;
        let each = 3.0 + routes / 40_000.0;
        let run = 4.0 + each * self.phases.len() as f64;
        Estimate { trials: u64::from(self.runs), time: Duration::from_secs_f64(run * f64::from(self.runs)) }
    }

    /// What tells it apart from others.
    pub fn variant(&self) -> String {
        format!("{}, {}+{} routes", self.daemon.name(), self.routes4, self.routes6)
    }

    fn ip(&self) -> &'static str {
        match (self.routes4, self.routes6) {
            (0, _) => "6",
            (_, 0) => "4",
            _ => "4+6",
        }
    }
}

/// What would be done.
pub fn dry_run(case: &Case, settings: &crate::settings::Settings) -> String {
    let Some(wanted) = &case.convergence else { return String::new() };
    let phases: Vec<&str> = wanted.phases.iter().map(|p| p.name()).collect();
    let mut text = format!(
        "  {} IPv4 and {} IPv6 prefixes; {}; {} frames a second to {} of them; {} run(s)\n",
        wanted.routes4,
        wanted.routes6,
        phases.join(", "),
        wanted.rate,
        wanted.sample.min(wanted.routes4 + wanted.routes6),
        wanted.runs
    );
    if let Err(why) = forwarder(case).and_then(|f| wanted.daemon.available(f, &dut_settings(settings))) {
        let _ = writeln!(text, "  skipped: {why}");
    }
    text
}

fn forwarder(case: &Case) -> Result<Forwarder, String> {
    let known = Forwarder::ALL.into_iter().find(|f| f.name() == case.dut);
    known.ok_or_else(|| format!("{}: convergence does not know it", case.dut))
}

/// Measures a case.
///
/// # Errors
///
/// Something of it is not there or fails, or someone wants it to end.
pub fn run(under: &mut UnderWay<'_>, case: &Case, view: &mut View) -> Result<(), Stop> {
    let stop = |words: String, exit| Stop { words: format!("{TEST} {}: {words}", case.dut), exit };
    let Some(wanted) = &case.convergence else {
        return Err(stop("the case says nothing of the table".into(), Exit::Usage));
    };
    let forwarder = forwarder(case).map_err(|why| stop(why, Exit::Usage))?;
    let settings = dut_settings(&under.campaign.settings);
    let name = format!("{} with {}", case.dut, wanted.daemon.name());
    if let Err(why) = wanted.daemon.available(forwarder, &settings) {
        let transport = TRANSPORT.into();
        under.record.devices.push(DeviceRecord {
            name: name.clone(),
            skipped: Some(why.clone()),
            transport,
            ..DeviceRecord::default()
        });
        return Err(Stop { words: format!("{name}: skipped: {why}"), exit: Exit::Nothing });
    }
    // Everything shares all processors here; the threads that feed and watch would crowd the tester's otherwise.
    campaign::unpin();
    let table = Table::new(wanted.routes4, wanted.routes6, under.campaign.settings.traffic.seed);
    let targets = sample(&table.four, &table.six, wanted.sample, table.seed);
    let bench = Bench { case, wanted, forwarder, settings, conduct: &under.campaign.conduct, table, targets };
    let (mut all, mut described) = (Vec::new(), None);
    let ended = bench.runs(&mut all, &mut described, view);
    campaign::pin(&under.campaign.settings);
    if let Some(described) = described {
        under.record.devices.push(DeviceRecord {
            name,
            transport: TRANSPORT.into(),
            described,
            ..DeviceRecord::default()
        });
    }
    if !all.is_empty() {
        under.settle();
    }
    under.rows.extend(all);
    ended.map_err(|trouble| stop(trouble.words, trouble.exit))
}

/// What all runs of a case share.
struct Bench<'a> {
    case: &'a Case,
    wanted: &'a Wanted,
    forwarder: Forwarder,
    settings: dut::Settings,
    conduct: &'a TrialProcedure,
    table: Table,
    targets: Vec<IpAddr>,
}

impl Bench<'_> {
    /// All runs: their rows, and how the bed was made, also where they end early.
    fn runs(
        &self,
        all: &mut Vec<SummaryRow>,
        described: &mut Option<Described>,
        view: &mut View,
    ) -> Result<(), Trouble> {
        for number in 1..=self.wanted.runs {
            if self.wanted.runs > 1 {
                view.doing(&format!("run {number} of {}", self.wanted.runs));
            }
            let mut tries = 0;
            loop {
                tries += 1;
                let (mut rows, told, processors, cut_short) = self.once(described, view)?;
                let taken = processors.as_ref().map_or(0.0, Processors::taken);
                let rule = self.conduct.when_disturbed;
                let mut refused = None;
                if let Some(processors) = processors.filter(|_| taken > self.conduct.most_taken) {
                    let words = processors.words();
                    if rule != WhenDisturbed::Mark && tries <= self.conduct.retries {
                        view.note(&format!("disturbed, and tried again: {words}"));
                        continue;
                    }
                    for row in &mut rows {
                        measure::mark(row, Trust::Disturbed);
                    }
                    if let Some(row) = rows.first_mut() {
                        measure::note(row, &format!("disturbed: {words}"));
                    }
                    if rule == WhenDisturbed::Refuse {
                        refused = Some(MeasureError::Refused { tries, processors: Box::new(processors) });
                    }
                }
                if let Some(error) = refused {
                    all.push(under_way::refused(&told, TEST, &error));
                    return Err(Trouble { words: error.to_string(), exit: Exit::Untrusted });
                }
                merge(all, rows);
                if let Some(phase) = cut_short {
                    let limit = self.wanted.limit.as_secs();
                    return Err(Trouble::device(format!("{} is not over after {limit} s", phase.name())));
                }
                break;
            }
        }
        Ok(())
    }

    /// One run on a bed of its own: rows, who had the processors, and the phase that was not over in time.
    #[expect(clippy::type_complexity, reason = "four answers for one caller")]
    fn once(
        &self,
        described: &mut Option<Described>,
        view: &mut View,
    ) -> Result<(Vec<SummaryRow>, measure::Case, Option<Processors>, Option<Phase>), Trouble> {
        let started = RoutingBed::start(self.forwarder, self.wanted.daemon, &self.settings);
        let mut bed = started.map_err(|error| Trouble::device(error.to_string()))?;
        let told = told(self.case, self.wanted, bed.describe().version);
        let (source4, source6) = bed.source();
        let probes = Probes {
            targets: self.targets.clone(),
            macs: bed.sends().2,
            source4,
            source6,
            rate: self.wanted.rate as f64,
        };
        let whose = Whose::mine((0..thread::available_parallelism().map_or(1, usize::from)).collect());
        let before = Look::take(&whose);
        let found = if self.forwarder == Forwarder::None {
            watch::alone(self.wanted, &self.table, &mut bed, view).map(|seen| (None, seen))
        } else {
            watch::watch(self.wanted, &self.table, &probes, &mut bed, view)
                .map(|(observed, seen)| (Some(observed), seen))
        };
        let processors = before.knows(&whose).then(|| Look::take(&whose).since(&before, &whose));
        *described = Some(bed.describe());
        let (observed, seen) = found?;
        let cut_short = seen.iter().find(|s| s.cut_short).map(|s| s.phase);
        let rows =
            seen.iter().flat_map(|seen| of_phase(&told, self.wanted, &probes, observed.as_ref(), seen));
        Ok((rows.collect(), told, processors, cut_short))
    }
}

fn told(case: &Case, wanted: &Wanted, version: String) -> measure::Case {
    measure::Case {
        dut: case.dut.clone(),
        version,
        transport: TRANSPORT.into(),
        workers: 1,
        scenario: "route".into(),
        ip: wanted.ip().into(),
        frame: "64".into(),
        direction: "fwd".into(),
        variant: wanted.variant(),
        shared_core: true,
    }
}

/// Rows of a phase, with the marks of how it was measured.
fn of_phase(
    told: &measure::Case,
    wanted: &Wanted,
    probes: &Probes,
    observed: Option<&Observation>,
    seen: &Seen,
) -> Vec<SummaryRow> {
    let beside = Beside {
        kernel: seen.kernel,
        taken: seen.taken,
        device: seen.spent.device,
        main_thread: seen.spent.main_thread,
        daemon: seen.spent.daemon,
        prefixes: wanted.routes4 + wanted.routes6,
        turn: probes.targets.len() as f64 / probes.rate,
        cut_short: seen.cut_short.then_some(wanted.limit),
    };
    let mut found = match observed {
        Some(observed) => {
            rows(told, seen.phase, &converged(observed, seen.phase, seen.event, seen.until), &beside)
        }
        None => measure::convergence::alone(told, seen.phase, seen.until, &beside),
    };
    for row in &mut found {
        measure::mark(row, Trust::VirtualLink);
        measure::mark(row, Trust::SharedCore);
    }
    found
}

/// Adds a further run's values to those of earlier ones; the first run's curve stays.
fn merge(all: &mut Vec<SummaryRow>, more: Vec<SummaryRow>) {
    for row in more {
        match all.iter_mut().find(|known| known.metric == row.metric) {
            Some(known) => {
                known.values.extend(row.values);
                for words in row.note.split("; ").filter(|words| !words.is_empty()) {
                    measure::note(known, words);
                }
            }
            None => all.push(row),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_further_run_adds_values_and_remarks() {
        let told = measure::Case::default();
        let row = |value, note: &str| SummaryRow {
            note: note.into(),
            ..told.row(TEST, "last lost packet", "s", vec![value])
        };
        let mut all = vec![row(1.0, "a")];
        merge(&mut all, vec![row(2.0, "a; b"), told.row(TEST, "other", "s", vec![3.0])]);
        assert_eq!((all.len(), &all[0].values, all[0].note.as_str()), (2, &vec![1.0, 2.0], "a; b"));
    }
}
