//! What the commands do.

use std::path::{Path, PathBuf};
use std::time::Duration;

use shoal_lab_measure::{Promise, Time as _, TrialProcedure, WallTime, WhenDisturbed};
use shoal_lab_plan::Trust;
use shoal_lab_report as report;
use shoal_lab_report::{Check, CheckOutcome, Results, Statistics, junit};
use shoal_lab_siitperf::Program;

use crate::args::{Cli, Command, Common, ConfigCommand, Run, Selftest, Siitperf, Suite};
use crate::bases::{self, Base};
use crate::campaign::{Campaign, Ended, GUESS, pin, write_page};
use crate::cases::{BEARABLE, Case, CaseError, Defaults, Frames, budget, conduct, expand};
use crate::catalogue;
use crate::convergence;
use crate::doctor;
use crate::dry_run;
use crate::energy;
use crate::exit::Exit;
use crate::interrupt::Interrupt;
use crate::list;
use crate::nat;
use crate::profile::Profile;
use crate::replay::{self, Replay};
use crate::revisions;
use crate::selftest;
use crate::settings::{Loaded, Settings};
use crate::siitperf;
use crate::suites;
use crate::switching;
use crate::test_bed::{StandError, cores};
use crate::view::{View, short};

/// Does what was typed.
pub fn run(cli: Cli) -> Exit {
    let loaded = match Loaded::new(cli.config.as_deref()) {
        Ok(loaded) => loaded,
        Err(error) => return usage(&error),
    };
    let interrupt = match Interrupt::install() {
        Ok(interrupt) => interrupt,
        Err(error) => return usage(&error),
    };
    shoal_lab_engine::dpdk_settings(loaded.settings.tester.dpdk());
    let lab = Lab { settings: loaded.settings.clone(), results: cli.results, json: cli.json, interrupt };
    match cli.command {
        None => lab.demonstration(),
        Some(Command::Doctor) => lab.doctor(),
        Some(Command::Selftest(wanted)) => lab.selftest(&wanted),
        Some(Command::List { what }) => {
            say_as_is!("{}", list::list(what, &lab.settings, lab.json));
            Exit::Done
        }
        Some(Command::Run(run)) => lab.run(&run),
        Some(Command::Suite(suite)) => lab.suite(&suite),
        Some(Command::Report { results, output }) => page(&results, output),
        Some(Command::Compare { a, b }) => compare(&a, &b, lab.json),
        Some(Command::Show { results }) => show(&results, lab.json),
        Some(Command::Resume { results }) => lab.resume(&results),
        Some(Command::Config { command: ConfigCommand::Show { origin } }) => {
            say_as_is!("{}", loaded.show(origin));
            Exit::Done
        }
        Some(Command::SiitperfTp(args)) => lab.siitperf(Program::Tp, &args),
        Some(Command::SiitperfLat(args)) => lab.siitperf(Program::Lat, &args),
        Some(Command::SiitperfPdv(args)) => lab.siitperf(Program::Pdv, &args),
    }
}

/// What all commands share.
struct Lab {
    settings: Settings,
    results: PathBuf,
    json: bool,
    interrupt: Interrupt,
}

impl Lab {
    fn doctor(&self) -> Exit {
        let mut findings = doctor::machine(Path::new("/"));
        let (cores, conduct) = (cores(&self.settings, 1), &self.settings);
        let refuses = conduct.test.when_disturbed == WhenDisturbed::Refuse;
        findings.push(doctor::others(cores, conduct.tester.most_taken, refuses));
        findings.push(doctor::dpdk(shoal_lab_engine::dpdk_plugin()));
        findings.extend(list::devices(&self.settings));
        if self.json {
            say!("{}", serde_json::to_string_pretty(&findings).unwrap_or_default());
        } else {
            say_as_is!("{}", doctor::text(&findings));
            say!("\nverdict: {}", doctor::verdict(&findings));
            say!("next: shoal-lab selftest, or shoal-lab alone for a demonstration");
        }
        if findings.iter().any(|f| f.state == doctor::State::Refuses) { Exit::Untrusted } else { Exit::Done }
    }

    /// Doctor, then every device that is there, in about a minute.
    fn demonstration(&self) -> Exit {
        self.doctor();
        let duts: Vec<String> = list::devices(&self.settings)
            .into_iter()
            .filter(|f| f.state == doctor::State::Fine && f.detail.contains("route"))
            .filter_map(|f| f.what.strip_prefix("device ").map(ToOwned::to_owned))
            .filter(|name| name != "wire")
            .collect();
        if duts.is_empty() {
            eprintln!("no device can be measured here: see above");
            return Exit::Nothing;
        }
        let common = Common { dut: duts, yes: true, name: Some("demonstration".into()), ..Common::default() };
        let mut cases = Vec::new();
        for (test, percents) in [("throughput", &[][..]), ("latency", &[50][..])] {
            match expand(test, &common, &Defaults { percents, ..Defaults::default() }) {
                Ok(more) => cases.extend(more),
                Err(error) => return usage(&error),
            }
        }
        let duts = common.dut.clone();
        cases.sort_by_key(|case| duts.iter().position(|d| *d == case.dut));
        let conduct = TrialProcedure {
            duration: Duration::from_millis(300),
            runs: 3,
            precision: shoal_lab_measure::Precision::Relative(0.03),
            timeout: Duration::from_millis(50),
            start_delay: Duration::from_millis(20),
            rest: Duration::from_millis(20),
            tolerance: 1.0 + BEARABLE / 0.3,
            ..shoal_lab_measure::Preset::Quick.conduct()
        };
        self.measure(&common, cases, conduct, "demonstration")
    }

    fn run(&self, run: &Run) -> Exit {
        if run.test == "stl" {
            return self.profile(run);
        }
        let entry = match catalogue::find(&run.test) {
            Ok(entry) => entry,
            Err(error) => return usage(&error),
        };
        if entry.name == convergence::TEST {
            return self.convergence(run);
        }
        if convergence::is_asked(&run.tables) {
            return usage(&"--routes4, --routes6, --daemon and --phase are for convergence");
        }
        if entry.name == replay::TEST {
            return self.replay(run);
        }
        let base = match bases::find(&run.bases) {
            Ok(base) => base,
            Err(error) => return usage(&error),
        };
        let compares = entry.name == revisions::TEST;
        if compares != base.router.is_some() || (!compares && base.replay.is_some()) {
            let words = "revisions needs another build of the router (--base), replay takes one of its own program \
                         (--base-replay), and no other test compares builds";
            return usage(&words);
        }
        let eight = ["var2-1514b", "var2-imix", "var2-64b", "64b"];
        let sizes: &[&str] = if entry.name == "loadtest" { &eight } else { &["64"] };
        let asked = run.common.forwarding.as_str();
        let (duts, forwarding, direction): (&[&str], &str, &str) = if nat::is_nat(entry.name) {
            (&["linux-nft"], "snat", "fwd")
        } else if switching::is_switching(entry.name) {
            (&["linux-bridge"], switching::forwarding(asked), "fwd")
        } else {
            (&["shoal"], asked, "bi")
        };
        let defaults = Defaults {
            duts,
            forwarding,
            direction,
            sizes,
            flows: &run.flows,
            routes: &run.routes,
            rate: run.rate,
            percents: &run.percent,
            ..Defaults::default()
        };
        if !run.percent.is_empty() && !entry.needs_rate {
            return usage(&format!(
                "--percent: {} is not measured at a rate; latency, pdv, thesis and soak are",
                entry.name
            ));
        }
        match expand(entry.name, &run.common, &defaults)
            .and_then(switching::checked)
            .and_then(|c| Ok((c, conduct(&run.common, &self.settings)?)))
        {
            Ok((mut cases, conduct)) => {
                for case in &mut cases {
                    case.base.clone_from(&base.router);
                }
                self.measure(&run.common, cases, conduct, entry.name)
            }
            Err(error) => usage(&error),
        }
    }

    /// A TRex profile, as it is.
    fn profile(&self, run: &Run) -> Exit {
        let Some(path) = run.profile.clone() else {
            return usage(&"run stl needs a profile: a file, or one of `shoal-lab list profiles'");
        };
        let profile = Profile {
            path,
            tunables: run.tunables.clone().unwrap_or_default(),
            port_rate: run.port_rate.clone(),
        };
        let cases = expand("stl", &run.common, &Defaults::default()).map(|mut cases| {
            for case in &mut cases {
                case.profile = Some(profile.clone());
            }
            cases
        });
        match cases.and_then(|c| Ok((c, conduct(&run.common, &self.settings)?))) {
            Ok((cases, conduct)) => self.measure(&run.common, cases, conduct, "stl"),
            Err(error) => usage(&error),
        }
    }

    /// Vectors through the router's graph, in one process.
    fn replay(&self, run: &Run) -> Exit {
        let base = match bases::find(&run.bases) {
            Ok(base) => base,
            Err(error) => return usage(&error),
        };
        if run.bases.base.is_some() && base.replay.is_none() {
            return usage(&"--base has no shoal-lab-graph beside it; name one with --base-replay");
        }
        let case = Replay::new(&run.common, &run.scenario).map(|replay| replay.case(base.replay));
        match case.and_then(|c| Ok((c, conduct(&run.common, &self.settings)?))) {
            Ok((case, conduct)) => self.measure(&run.common, vec![case], conduct, replay::TEST),
            Err(error) => usage(&error),
        }
    }

    /// Routing daemons, tables and frames to them.
    fn convergence(&self, run: &Run) -> Exit {
        match convergence::cases(run).and_then(|c| Ok((c, conduct(&run.common, &self.settings)?))) {
            Ok((cases, conduct)) => self.measure(&run.common, cases, conduct, convergence::TEST),
            Err(error) => usage(&error),
        }
    }

    fn suite(&self, suite: &Suite) -> Exit {
        let mut common = suite.common.clone();
        if suite.which == suites::GUARD && common.preset.is_none() {
            common.preset = Some("ci".into());
        }
        let cases = suites::cases(&suite.which, &common);
        let (mut cases, conduct) = match cases.and_then(|c| Ok((c, conduct(&common, &self.settings)?))) {
            Ok(both) => both,
            Err(error) => return usage(&error),
        };
        let base = match bases::find(&suite.bases) {
            Ok(base) => base,
            Err(error) => return usage(&error),
        };
        if base != Base::default() && suite.which != suites::GUARD {
            return usage(&format!("suite {} compares no builds; {} does", suite.which, suites::GUARD));
        }
        suites::against(&mut cases, &base);
        self.measure(&common, cases, conduct, &suite.which)
    }

    fn measure(&self, common: &Common, cases: Vec<Case>, conduct: TrialProcedure, name: &str) -> Exit {
        let mut settings = self.settings.clone();
        if let Some(form) = &common.frame {
            settings.traffic.frame.clone_from(form);
            if let Err(error) = settings.check() {
                return usage(&error);
            }
        }
        if let Some(source) = &common.energy {
            settings.energy.source.clone_from(source);
        }
        if let Some(program) = &common.replay {
            settings.dut.replay.clone_from(program);
        }
        if let Err(error) = energy::source(&settings.energy.source) {
            return usage(&error);
        }
        let campaign = Campaign {
            name: common.name.clone().unwrap_or_else(|| name.into()),
            command: std::env::args().collect(),
            cases,
            conduct,
            preset: common.preset.clone().unwrap_or_else(|| settings.test.preset.clone()),
            ceiling: common.max,
            assertions: common.assertions.clone(),
            keeps_history: name == suites::GUARD,
            settings,
        };
        let estimate = campaign.estimate(GUESS);
        if common.dry_run {
            dry_run::print(&campaign, estimate);
            return Exit::Done;
        }
        if let Some(budget) = budget(common, &campaign.settings)
            && let Err(error) = estimate.within(budget)
        {
            return usage(&error);
        }
        let mut view = View::new(common.plain, self.json, self.interrupt.clone(), estimate);
        view.promise(campaign.cases.len());
        let ended = campaign.run(&self.results, &mut view);
        view.close();
        self.finish(ended, common.junit.as_deref())
    }

    fn resume(&self, folder: &Path) -> Exit {
        let campaign = match Campaign::read(folder) {
            Ok(campaign) => campaign,
            Err(error) => return usage(&error),
        };
        let mut view = View::new(false, self.json, self.interrupt.clone(), campaign.estimate(GUESS));
        view.promise(campaign.cases.len());
        let ended = campaign.resume(folder, &mut view);
        view.close();
        self.finish(ended, None)
    }

    fn finish(&self, ended: Result<Ended, report::ReportError>, junit_file: Option<&Path>) -> Exit {
        let ended = match ended {
            Ok(ended) => ended,
            Err(error) => return usage(&error),
        };
        if !self.json {
            print_rows(&ended.rows);
            print_checks(&ended.checks);
        }
        if let Some(file) = junit_file {
            let written = junit("shoal-lab", &ended.checks).and_then(|text| report::write_whole(file, &text));
            if let Err(error) = written {
                return usage(&error);
            }
        }
        let page = ended.folder.join("report.html");
        if self.json {
            let told = serde_json::json!({ "end": {
                "folder": ended.folder, "report": page, "exit": ended.exit as u8, "rows": ended.rows, "checks": ended.checks,
            }});
            say!("{told}");
        } else {
            say!("\nresults: {}\nreport:  {}", ended.folder.display(), page.display());
        }
        ended.exit
    }

    fn selftest(&self, wanted: &Selftest) -> Exit {
        let clock = shoal_lab_engine::MachineClock::calibrated();
        let quick = shoal_lab_measure::Preset::Quick.conduct();
        let conduct = TrialProcedure {
            duration: wanted.duration,
            rest: Duration::from_millis(20),
            most_taken: self.settings.tester.most_taken,
            when_disturbed: wanted.when_disturbed.unwrap_or(self.settings.test.when_disturbed),
            ..quick
        };
        if let Err(error) = conduct.checked() {
            return usage(&error);
        }
        let results = wanted.transport.len() * wanted.size.len();
        let estimate = selftest::estimate(&conduct, GUESS).times(results as u32);
        let mut view = View::new(true, self.json, self.interrupt.clone(), estimate);
        view.promise(results);
        let promised = estimate.promise();
        let promise = Promise { until: WallTime.passed() + promised, promised };
        pin(&self.settings);
        let (mut worst, mut number) = (Exit::Done, 0);
        for transport in &wanted.transport {
            for &size in &wanted.size {
                let case = Case {
                    transport: Some(transport.clone()),
                    frames: Frames::Size(size),
                    ..Case::plain("selftest", "wire")
                };
                number += 1;
                view.case("selftest", &format!("{transport}, {size} B"), number, results);
                let mut journal = revisions::Shown(&mut view);
                let over = selftest::Over { transport, settings: &self.settings, clock: &clock };
                match selftest::measure(&case, over, &conduct, None, Some(promise), &mut journal) {
                    Ok((found, _)) => say!(
                        "{transport}, {size} B: {}fps/dir without loss; delay {:.1} us, 99.9th percentile {:.1} us; \
                         {} stalls, the longest {:.0} us",
                        short(found.rate as f64),
                        found.floor,
                        found.floor_p999,
                        found.stalls,
                        found.longest_stall
                    ),
                    Err(error) => {
                        eprintln!("{transport}: {error}");
                        let refused = matches!(&error, StandError::Traffic(e) if e.is_refusal());
                        worst = worst.max(if refused { Exit::Untrusted } else { Exit::Tester });
                    }
                }
            }
        }
        worst
    }

    fn siitperf(&self, program: Program, args: &Siitperf) -> Exit {
        siitperf::siitperf(program, &args.arguments, &self.settings, &self.interrupt)
    }
}

fn print_rows(rows: &[shoal_lab_plan::SummaryRow]) {
    let width = |of: fn(&shoal_lab_plan::SummaryRow) -> &str, least: usize| {
        rows.iter().map(|row| of(row).len()).max().unwrap_or_default().clamp(least, 40)
    };
    let (variants, metrics) = (width(|r| &r.variant, 10), width(|r| &r.metric, 18));
    say!(
        "\n{:<14} {:<10} {:<12} {:<4} {:<variants$} {:<metrics$} {:>20} {:>9}  ",
        "device",
        "wire",
        "frames",
        "way",
        "variant",
        "metric",
        "median",
        "spread"
    );
    for row in rows.iter().filter(|r| r.test != "gates") {
        if row.trust.contains(&Trust::Refused) {
            say!(
                "{:<14} {:<10} {:<12} {:<4} {:<variants$} {:<metrics$} {:>20} {:>9}  {}",
                row.dut,
                row.transport.replace("af-packet", "packet"),
                format!("ip{} {}", row.ip, row.frame),
                row.direction,
                row.variant,
                row.test,
                "refused",
                "",
                "others had the processors: see above"
            );
            continue;
        }
        let stats = Statistics::of(&row.values);
        let (Some(median), Some(min), Some(max)) = (stats.median, stats.min, stats.max) else { continue };
        let spread = if median > 0.0 && row.values.len() > 1 {
            format!("{:.1} %", 100.0 * (max - min) / median)
        } else {
            String::new()
        };
        say!(
            "{:<14} {:<10} {:<12} {:<4} {:<variants$} {:<metrics$} {:>20} {spread:>9}  {}",
            row.dut,
            row.transport.replace("af-packet", "packet"),
            format!("ip{} {}", row.ip, row.frame),
            row.direction,
            row.variant,
            row.metric,
            in_unit(median, &row.unit),
            row.note
        );
    }
}

/// Three digits, times in the unit that fits.
fn in_unit(value: f64, unit: &str) -> String {
    match unit {
        "us" if value >= 1e6 => format!("{}s", short(value / 1e6)),
        "us" if value >= 1e3 => format!("{}ms", short(value / 1e3)),
        // Tables are counted to the entry.
        "addresses" | "entries" => format!("{value:.0} {unit}"),
        _ => format!("{}{unit}", short(value)),
    }
}

fn print_checks(checks: &[Check]) {
    for check in checks {
        let (word, text) = match &check.outcome {
            CheckOutcome::Passed(text) => ("ok", text),
            CheckOutcome::Failed(text) => ("FAIL", text),
            CheckOutcome::Skipped(text) => ("SKIP", text),
            CheckOutcome::Error(text) => ("ERROR", text),
        };
        say!("{word} {}: {}: {text}", check.suite, check.name);
    }
}

fn page(results: &[PathBuf], output: Option<PathBuf>) -> Exit {
    let output = output.or_else(|| results.first().map(|f| f.join("report.html")));
    let Some(output) = output else { return Exit::Usage };
    match write_page(results, &output) {
        Ok(()) => {
            say!("report: {}", output.display());
            Exit::Done
        }
        Err(error) => usage(&error),
    }
}

fn show(folder: &Path, json: bool) -> Exit {
    match Results::read(folder) {
        Ok(results) if json => {
            say!("{}", serde_json::json!({ "record": results.record, "rows": results.rows }));
            Exit::Done
        }
        Ok(results) => {
            say!("{}: {}", results.record.name, results.record.command.join(" "));
            print_rows(&results.rows);
            for warning in &results.warnings {
                say!("{warning}");
            }
            Exit::Done
        }
        Err(error) => usage(&error),
    }
}

fn compare(a: &Path, b: &Path, json: bool) -> Exit {
    let (a, b) = match (Results::read(a), Results::read(b)) {
        (Ok(a), Ok(b)) => (a, b),
        (Err(error), _) | (_, Err(error)) => return usage(&error),
    };
    let comparison = report::compare(&a, &b);
    if json {
        say!("{}", serde_json::to_string_pretty(&comparison).unwrap_or_default());
    } else {
        say_as_is!("{}", comparison.text());
    }
    Exit::Done
}

fn usage(error: &dyn std::fmt::Display) -> Exit {
    eprintln!("shoal-lab: {error}");
    Exit::Usage
}

impl From<CaseError> for String {
    fn from(error: CaseError) -> Self {
        error.to_string()
    }
}
