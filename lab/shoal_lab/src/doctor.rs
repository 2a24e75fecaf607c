//! What can run here, what limits it, and how to mend that. Changes nothing.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use shoal_lab_engine::{DpdkError, DpdkPlugin, Look, Whose};
use shoal_lab_plan::Processors;

/// How good something is for measuring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// As it should be.
    Fine,
    /// Works, and figures suffer.
    Limits,
    /// Does not work.
    Missing,
    /// No figure would be told now.
    Refuses,
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Of what: `clock`, `device shoal`.
    pub what: String,
    /// How good it is.
    pub state: State,
    /// What was found.
    pub detail: String,
    /// What to do about it, if anything can be done.
    pub next: Option<String>,
}

impl Finding {
    fn new(what: &str, state: State, detail: impl Into<String>, next: Option<&str>) -> Self {
        Finding { what: what.into(), state, detail: detail.into(), next: next.map(Into::into) }
    }
}

/// The machine, below `root` (`/`, or a made-up tree in tests).
pub fn machine(root: &Path) -> Vec<Finding> {
    let read = |path: &str| std::fs::read_to_string(root.join(path)).unwrap_or_default();
    vec![
        processors(&read("proc/cpuinfo"), &read("proc/cmdline")),
        clock(
            &read("proc/cpuinfo"),
            &read("sys/devices/system/clocksource/clocksource0/current_clocksource"),
        ),
        stolen(&read("proc/stat")),
        governor(&read("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")),
        hugepages(&read("proc/meminfo")),
        privilege(&read("proc/self/status")),
        meter(root),
    ]
}

/// How long is looked for others.
const LOOKED: Duration = Duration::from_secs(1);

/// Whether others have these processors now, who, and whether a measurement would be refused for it.
pub fn others(cores: Vec<usize>, most: f64, refuses: bool) -> Finding {
    let whose = Whose::mine(cores);
    let before = Look::take(&whose);
    std::thread::sleep(LOOKED);
    let found = Look::take(&whose).since(&before, &whose);
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    busy(&found, &load, most, refuses)
}

fn busy(found: &Processors, load: &str, most: f64, refuses: bool) -> Finding {
    let load: Vec<&str> = load.split_whitespace().take(3).collect();
    let load = if load.is_empty() { "load unknown".into() } else { format!("load {}", load.join(" ")) };
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    let used: Vec<String> =
        found.cores.iter().map(|c| format!("{} of processor {}", percent(c.others), c.core)).collect();
    let detail = format!("{load}; in a second others used {}", used.join(", "));
    // A device that polls waits for all that others use.
    if found.cores.iter().all(|c| c.others <= most) {
        return Finding::new("other work", State::Fine, detail, None);
    }
    let detail = format!("{detail}: {}", found.named());
    let state = if refuses { State::Refuses } else { State::Limits };
    let next = "end it or wait until it is done; --when-disturbed mark takes figures all the same";
    Finding::new("other work", state, detail, Some(next))
}

/// Whether figures would be told now, in a sentence.
pub fn verdict(findings: &[Finding]) -> String {
    let against: Vec<&str> =
        findings.iter().filter(|f| f.state == State::Refuses).map(|f| f.what.as_str()).collect();
    if against.is_empty() {
        "can measure now".into()
    } else {
        format!("would refuse to measure now: {}", against.join(", "))
    }
}

/// DPDK's plugin, by which the tester has ports of DPDK's.
pub fn dpdk(found: Result<DpdkPlugin, DpdkError>) -> Finding {
    let what = "ports dpdk";
    match found {
        Ok(DpdkPlugin { file, version }) => {
            Finding::new(what, State::Fine, format!("plugin {version}: {}", file.display()), None)
        }
        Err(error) => {
            let next = "make dpdk (needs libdpdk-dev); nothing else of the lab needs it";
            Finding::new(what, State::Missing, error.to_string(), Some(next))
        }
    }
}

/// A device, with the reason if it cannot be measured.
pub fn device(name: &str, available: Result<(), String>) -> Finding {
    let what = format!("device {name}");
    match available {
        Ok(()) => Finding::new(&what, State::Fine, "can be measured", None),
        Err(reason) => Finding::new(&what, State::Missing, reason, None),
    }
}

/// As text for people.
pub fn text(findings: &[Finding]) -> String {
    let mut text = String::new();
    let width = findings.iter().map(|f| f.what.len()).max().unwrap_or_default();
    for finding in findings {
        let state = match finding.state {
            State::Fine => "fine",
            State::Limits => "limits",
            State::Missing => "missing",
            State::Refuses => "refuses",
        };
        let _ = writeln!(text, "  {state:<8} {:<width$}  {}", finding.what, finding.detail);
        if let Some(next) = &finding.next {
            let _ = writeln!(text, "  {:8} {:width$}  next: {next}", "", "");
        }
    }
    text
}

fn processors(cpuinfo: &str, cmdline: &str) -> Finding {
    let count = cpuinfo.lines().filter(|l| l.starts_with("processor")).count();
    let isolated =
        cmdline.split_whitespace().any(|w| w.starts_with("isolcpus=") || w.starts_with("nohz_full="));
    match (count, isolated) {
        (0 | 1, _) => Finding::new(
            "processors",
            State::Limits,
            "1: tester and device share it, so no rate is a measurement",
            Some("use a machine with two processors or more"),
        ),
        (2..=3, _) => Finding::new(
            "processors",
            State::Limits,
            format!("{count}: one for the tester, one for one worker; figures compare, they do not impress"),
            None,
        ),
        (_, false) => Finding::new(
            "processors",
            State::Limits,
            format!("{count}, none isolated: the kernel may put other work beside the tester"),
            Some("boot with isolcpus= and nohz_full= for the tester's and the device's processors"),
        ),
        (_, true) => Finding::new("processors", State::Fine, format!("{count}, some isolated"), None),
    }
}

fn clock(cpuinfo: &str, source: &str) -> Finding {
    let has =
        |flag| cpuinfo.lines().any(|l| l.starts_with("flags") && l.split_whitespace().any(|f| f == flag));
    let source = source.trim();
    if has("constant_tsc") && has("nonstop_tsc") {
        Finding::new(
            "clock",
            State::Fine,
            format!("the processor's, constant and never stopping; kernel: {source}"),
            None,
        )
    } else {
        Finding::new(
            "clock",
            State::Limits,
            format!("the kernel's ({source}): each look at it costs a call"),
            None,
        )
    }
}

fn stolen(stat: &str) -> Finding {
    let ticks: Vec<u64> = stat
        .lines()
        .find_map(|l| l.strip_prefix("cpu "))
        .map(|l| l.split_whitespace().filter_map(|t| t.parse().ok()).collect())
        .unwrap_or_default();
    let all: u64 = ticks.iter().take(8).sum();
    let stolen = ticks.get(7).copied().unwrap_or_default();
    let share = if all == 0 { 0.0 } else { stolen as f64 * 100.0 / all as f64 };
    let detail = format!("{share:.2} % of all time since the start was taken by the hypervisor");
    let state = if share > 1.0 { State::Limits } else { State::Fine };
    Finding::new("stolen time", state, detail, None)
}

fn governor(governor: &str) -> Finding {
    match governor.trim() {
        "" => Finding::new("frequency", State::Fine, "not in this system's hands", None),
        "performance" => Finding::new("frequency", State::Fine, "governor performance", None),
        other => Finding::new(
            "frequency",
            State::Limits,
            format!("governor {other}: the pace of processors changes while measuring"),
            Some("cpupower frequency-set -g performance"),
        ),
    }
}

fn hugepages(meminfo: &str) -> Finding {
    let free = meminfo
        .lines()
        .find_map(|l| l.strip_prefix("HugePages_Free:")?.trim().parse::<u64>().ok())
        .unwrap_or(0);
    if free > 0 {
        Finding::new("hugepages", State::Fine, format!("{free} free"), None)
    } else {
        let next = Some("sysctl vm.nr_hugepages=256");
        Finding::new(
            "hugepages",
            State::Limits,
            "none reserved; devices use ordinary or transparent ones",
            next,
        )
    }
}

fn privilege(status: &str) -> Finding {
    const CAP_NET_ADMIN: u32 = 12;
    const CAP_SYS_ADMIN: u32 = 21;
    let effective = status
        .lines()
        .find_map(|l| u64::from_str_radix(l.strip_prefix("CapEff:")?.trim(), 16).ok())
        .unwrap_or_default();
    let has = |capability| effective >> capability & 1 == 1;
    if has(CAP_NET_ADMIN) && has(CAP_SYS_ADMIN) {
        Finding::new("privilege", State::Fine, "may make namespaces and interfaces", None)
    } else {
        let next = Some("run it as root; memif between processes of one user works without");
        Finding::new("privilege", State::Missing, "may not make namespaces and interfaces", next)
    }
}

fn meter(root: &Path) -> Finding {
    let folder: PathBuf = root.join("sys/class/powercap");
    let rapl = std::fs::read_dir(folder).is_ok_and(|mut entries| {
        entries.any(|e| e.is_ok_and(|e| e.file_name().to_string_lossy().contains("rapl")))
    });
    if rapl {
        Finding::new("energy", State::Fine, "the processor's own meter: --energy rapl", None)
    } else {
        let next = Some("--energy command:PROGRAM or snmp-raritan:HOST/OUTLET, if there is a meter");
        Finding::new(
            "energy",
            State::Limits,
            "no meter: CPU time is told instead, and never called energy",
            next,
        )
    }
}

#[cfg(test)]
mod tests {
    use shoal_lab_plan::{CoreUse, OtherProcess};

    use super::*;

    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = root.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        root
    }

    fn state(findings: &[Finding], what: &str) -> State {
        findings.iter().find(|f| f.what == what).unwrap().state
    }

    #[test]
    fn a_good_machine_is_fine() {
        let flags = "flags\t: fpu constant_tsc nonstop_tsc\n";
        let cpuinfo = format!("processor\t: 0\n{flags}").repeat(8);
        let root = tree(&[
            ("proc/cpuinfo", &cpuinfo),
            ("proc/cmdline", "quiet isolcpus=2-7"),
            ("proc/stat", "cpu  10 0 10 80 0 0 0 0 0 0\n"),
            ("proc/meminfo", "HugePages_Free:     512\n"),
            ("proc/self/status", "CapEff:\t000001ffffffffff\n"),
            ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n"),
            ("sys/class/powercap/intel-rapl:0/energy_uj", "1"),
        ]);
        let findings = machine(root.path());
        assert!(findings.iter().all(|f| f.state == State::Fine), "{findings:#?}");
    }

    #[test]
    fn what_limits_is_told_with_what_to_do() {
        let root = tree(&[
            ("proc/cpuinfo", "processor\t: 0\nprocessor\t: 1\nflags\t: fpu\n"),
            ("proc/stat", "cpu  10 0 10 70 0 0 0 10 0 0\n"),
            ("proc/self/status", "CapEff:\t0000000000000000\n"),
            ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n"),
        ]);
        let findings = machine(root.path());
        for what in ["processors", "clock", "stolen time", "frequency", "hugepages", "energy"] {
            assert_eq!(state(&findings, what), State::Limits, "{what}");
        }
        assert_eq!(state(&findings, "privilege"), State::Missing);
        let text = text(&findings);
        assert!(text.contains("next: cpupower frequency-set -g performance"), "{text}");
    }

    #[test]
    fn a_missing_plugin_is_told_with_how_to_build_it() {
        let missing = dpdk(Err(DpdkError::Missing { looked: vec!["/x/dpdk_plugin.so".into()] }));
        assert_eq!(missing.state, State::Missing);
        let text = text(&[missing]);
        assert!(text.contains("/x/dpdk_plugin.so") && text.contains("next: make dpdk"), "{text}");
        let there = dpdk(Ok(DpdkPlugin { file: "/x/dpdk_plugin.so".into(), version: "1".into() }));
        assert_eq!((there.state, there.detail.as_str()), (State::Fine, "plugin 1: /x/dpdk_plugin.so"));
    }

    #[test]
    fn others_at_work_are_named_and_no_figure_would_be_told() {
        let core = |core, others| CoreUse { core, others, ..CoreUse::default() };
        let spin = OtherProcess { pid: 7, name: "spin".into(), share: 1.9 };
        let found = Processors {
            cores: vec![core(0, 0.97), core(1, 0.01)],
            others: vec![spin],
            ..Processors::default()
        };
        let finding = busy(&found, "5.70 4.20 3.10 6/99 4711\n", 0.02, true);
        assert_eq!(finding.state, State::Refuses);
        assert_eq!(
            finding.detail,
            "load 5.70 4.20 3.10; in a second others used 97 % of processor 0, 1 % of processor 1: spin (7) 190 %"
        );
        assert_eq!(verdict(&[finding]), "would refuse to measure now: other work");
        assert_eq!(busy(&found, "", 0.02, false).state, State::Limits);
        assert_eq!(busy(&found, "x", 0.98, true).state, State::Fine);
        assert_eq!(verdict(&[busy(&Processors::default(), "", 0.02, true)]), "can measure now");
    }

    #[test]
    fn an_empty_tree_is_no_reason_to_fail() {
        let root = tree(&[]);
        assert_eq!(machine(root.path()).len(), 7);
    }
}
