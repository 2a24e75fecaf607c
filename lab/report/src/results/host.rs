//! The machine, as far as it changes figures.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde::{Deserialize, Serialize};

/// The machine. Texts that the kernel does not give are empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Host {
    /// Of what makes figures comparable: processor, count, microcode, kernel, command line, governor, clock source.
    pub fingerprint: String,
    /// Release and version.
    pub kernel: String,
    /// The processor's name.
    pub processor: String,
    /// Processors that are on line.
    pub processors: u32,
    /// Nominal clock, if the processor's name or its TSC tell it.
    pub clock_ghz: Option<f64>,
    /// Its flags.
    pub flags: Vec<String>,
    /// Its microcode's revision.
    pub microcode: String,
    /// Frequency governor.
    pub governor: String,
    /// `tsc`.
    pub clocksource: String,
    /// Each vulnerability and what is done about it.
    pub mitigations: BTreeMap<String, String>,
    /// The kernel's command line.
    pub cmdline: String,
    /// Processors kept free by `isolcpus`.
    pub isolated: String,
    /// Processors without a timer tick.
    pub nohz_full: String,
    /// Each NUMA node's processors.
    pub numa: BTreeMap<String, String>,
    /// `on`, `off`, `notsupported`.
    pub smt: String,
    /// Siblings of each processor.
    pub siblings: BTreeMap<String, String>,
    /// Huge pages of each size: count and free.
    pub hugepages: BTreeMap<String, String>,
    /// Memory in KiB.
    pub memory_kib: u64,
    /// Whether a hypervisor is below.
    pub is_virtual: bool,
    /// Processes that wanted to run, mean of 1, 5 and 15 minutes.
    pub load: Vec<f64>,
    /// Share of the time since start that the hypervisor took.
    pub steal: Option<f64>,
    /// Versions of packages.
    pub packages: BTreeMap<String, String>,
}

impl Host {
    /// Reads the machine that this runs on. `packages` are names of Debian packages whose versions matter.
    pub fn read(packages: &[&str]) -> Self {
        let mut host = Self::read_at(Path::new("/"));
        host.packages = package_versions(packages);
        host
    }

    /// Reads `/proc` and `/sys` under `root`.
    pub fn read_at(root: &Path) -> Self {
        let text =
            |path: &str| fs::read_to_string(root.join(path)).map(|t| t.trim().to_owned()).unwrap_or_default();
        let cpuinfo = text("proc/cpuinfo");
        let of_cpu = |key: &str| {
            cpuinfo
                .lines()
                .filter_map(|l| l.split_once(':'))
                .find(|(k, _)| k.trim() == key)
                .map(|(_, v)| v.trim().to_owned())
                .unwrap_or_default()
        };
        let processor = of_cpu("model name");
        let flags: Vec<String> = of_cpu("flags").split_whitespace().map(str::to_owned).collect();
        let mut host = Host {
            kernel: format!("{} {}", text("proc/sys/kernel/osrelease"), text("proc/sys/kernel/version")),
            processors: cpuinfo.lines().filter(|l| l.starts_with("processor")).count() as u32,
            clock_ghz: clock(&processor, &of_cpu("cpu MHz")),
            processor,
            is_virtual: flags.iter().any(|f| f == "hypervisor"),
            flags,
            microcode: of_cpu("microcode"),
            governor: text("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
            clocksource: text("sys/devices/system/clocksource/clocksource0/current_clocksource"),
            mitigations: each(&root.join("sys/devices/system/cpu/vulnerabilities"), "", ""),
            cmdline: text("proc/cmdline"),
            isolated: text("sys/devices/system/cpu/isolated"),
            nohz_full: text("sys/devices/system/cpu/nohz_full"),
            numa: each(&root.join("sys/devices/system/node"), "node", "cpulist"),
            smt: text("sys/devices/system/cpu/smt/control"),
            siblings: each(&root.join("sys/devices/system/cpu"), "cpu", "topology/thread_siblings_list"),
            hugepages: hugepages(root),
            memory_kib: memory(&text("proc/meminfo")),
            load: text("proc/loadavg").split_whitespace().take(3).filter_map(|n| n.parse().ok()).collect(),
            steal: steal(&text("proc/stat")),
            ..Host::default()
        };
        host.fingerprint = host.hash();
        host
    }

    /// FNV-1a over what makes figures comparable; load and steal are not among it.
    fn hash(&self) -> String {
        let parts = [
            self.processor.as_str(),
            &self.processors.to_string(),
            &self.microcode,
            &self.kernel,
            &self.cmdline,
            &self.governor,
            &self.clocksource,
            &self.smt,
        ];
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for byte in parts.join("\n").bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        format!("{hash:016x}")
    }
}

/// `@ 2.60GHz` of the name is the nominal clock; else what it runs at now.
fn clock(name: &str, mhz: &str) -> Option<f64> {
    let named =
        name.split('@').nth(1).and_then(|c| c.trim().strip_suffix("GHz")).and_then(|c| c.parse().ok());
    named.or_else(|| mhz.parse::<f64>().ok().map(|mhz| (mhz / 10.0).round() / 100.0))
}

/// Names in `folder` that begin with `prefix` and a digit (or all, without prefix) and the text of `file` below each.
fn each(folder: &Path, prefix: &str, file: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let numbered = name.strip_prefix(prefix).is_some_and(|n| n.starts_with(|c: char| c.is_ascii_digit()));
        if !prefix.is_empty() && !numbered {
            continue;
        }
        let path = if file.is_empty() { entry.path() } else { entry.path().join(file) };
        if let Ok(text) = fs::read_to_string(path) {
            found.insert(name, text.trim().to_owned());
        }
    }
    found
}

fn hugepages(root: &Path) -> BTreeMap<String, String> {
    let folder = root.join("sys/kernel/mm/hugepages");
    let count = each(&folder, "hugepages-", "nr_hugepages");
    let all: Vec<_> = fs::read_dir(&folder).into_iter().flatten().flatten().collect();
    let mut found = count;
    for entry in all {
        let name = entry.file_name().to_string_lossy().into_owned();
        let number =
            |file: &str| fs::read_to_string(entry.path().join(file)).unwrap_or_default().trim().to_owned();
        found.insert(name, format!("{}, {} free", number("nr_hugepages"), number("free_hugepages")));
    }
    found
}

fn memory(meminfo: &str) -> u64 {
    let line = meminfo.lines().find_map(|l| l.strip_prefix("MemTotal:"));
    line.and_then(|l| l.split_whitespace().next()).and_then(|n| n.parse().ok()).unwrap_or(0)
}

/// The eighth number of `/proc/stat`'s first line as a share of the first eight.
fn steal(stat: &str) -> Option<f64> {
    let numbers: Vec<f64> = stat
        .lines()
        .next()?
        .strip_prefix("cpu ")?
        .split_whitespace()
        .filter_map(|n| n.parse().ok())
        .collect();
    let total: f64 = numbers.iter().take(8).sum();
    (total > 0.0).then_some(())?;
    numbers.get(7).map(|stolen| stolen / total)
}

fn package_versions(names: &[&str]) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for name in names {
        let asked = Command::new("dpkg-query").args(["-W", "-f", "${Version}", "--", name]).output();
        if let Ok(output) = asked
            && output.status.success()
        {
            found.insert((*name).to_owned(), String::from_utf8_lossy(&output.stdout).trim().to_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(folder: &Path, microcode: &str) -> Host {
        let write = |path: &str, text: &str| {
            let path = folder.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let cpu = format!(
            "processor\t: 0\nmodel name\t: Xeon E5-2660 v3 @ 2.60GHz\nmicrocode\t: {microcode}\n\
             flags\t: fpu avx2 hypervisor\n\nprocessor\t: 1\nmodel name\t: Xeon E5-2660 v3 @ 2.60GHz\n"
        );
        write("proc/cpuinfo", &cpu);
        write("proc/stat", "cpu  50 0 30 10 0 0 0 10 0 0\ncpu0 1 2 3\n");
        write("proc/meminfo", "MemTotal:  1024 kB\n");
        write("proc/loadavg", "0.50 0.25 0.10 1/100 4242\n");
        write("sys/devices/system/cpu/vulnerabilities/meltdown", "Mitigation: PTI\n");
        write("sys/devices/system/node/node0/cpulist", "0-1\n");
        write("sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "512\n");
        write("sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "500\n");
        Host::read_at(folder)
    }

    #[test]
    fn facts_are_read_from_where_the_kernel_has_them() {
        let folder = tempfile::tempdir().unwrap();
        let host = machine(folder.path(), "0x42");
        assert_eq!((host.processors, host.clock_ghz, host.is_virtual), (2, Some(2.6), true));
        assert_eq!((host.steal, host.memory_kib, host.load.len()), (Some(0.1), 1024, 3));
        assert_eq!(host.mitigations["meltdown"], "Mitigation: PTI");
        assert_eq!(host.numa["node0"], "0-1");
        assert_eq!(host.hugepages["hugepages-2048kB"], "512, 500 free");
    }

    #[test]
    fn the_fingerprint_changes_with_what_changes_figures_only() {
        let (a, b) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let first = machine(a.path(), "0x42").fingerprint;
        fs::write(a.path().join("proc/loadavg"), "9 9 9 1/1 1\n").unwrap();
        assert_eq!(Host::read_at(a.path()).fingerprint, first);
        assert_ne!(machine(b.path(), "0x43").fingerprint, first);
    }

    #[test]
    fn a_machine_without_proc_has_empty_facts() {
        let folder = tempfile::tempdir().unwrap();
        let host = Host::read_at(folder.path());
        assert_eq!((host.processors, host.steal, host.processor.as_str()), (0, None, ""));
    }

    #[test]
    fn this_machine_has_a_processor() {
        let host = Host::read(&["no-such-package-anywhere"]);
        assert!(host.processors > 0 && host.kernel.len() > 3, "{host:?}");
        assert!(host.packages.is_empty());
    }
}
