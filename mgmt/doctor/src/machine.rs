//! What the machine is: kernel, cores, memory, IOMMU, limits and capabilities. Read, not judged.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};

use crate::cores;
use crate::drivers::Version;
use crate::root::{Root, plain};

/// Bytes of `modules.dep`; Debian's has 700,000.
const MODULES: usize = 8 << 20;
/// Nodes and policies that are looked at.
const MOST: usize = 1024;

/// The kernel and what it was built with.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Kernel {
    pub release: Option<String>,
    #[serde(skip)]
    pub version: Option<Version>,
    /// AF_XDP sockets; None if nothing tells.
    pub xdp_sockets: Option<bool>,
    /// `net.core.bpf_jit_enable`: 0 is off.
    pub bpf_jit: Option<u32>,
    /// `kernel.unprivileged_bpf_disabled`.
    pub unprivileged_bpf_disabled: Option<u32>,
    /// `memfd_create`, for the stats segment and memif.
    pub memfd: Option<bool>,
}

/// Processors.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Cores {
    #[serde(serialize_with = "as_list")]
    pub online: BTreeSet<u32>,
    /// Those this process may use.
    #[serde(serialize_with = "as_list")]
    pub allowed: BTreeSet<u32>,
    #[serde(serialize_with = "as_list")]
    pub isolated: BTreeSet<u32>,
    #[serde(serialize_with = "as_list")]
    pub nohz_full: BTreeSet<u32>,
    /// Threads that share a core, as lists.
    pub siblings: Vec<String>,
    /// How many policies have each governor.
    pub governors: BTreeMap<String, usize>,
    /// Inside a virtual machine.
    pub virtual_machine: bool,
}

/// One NUMA node.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Node {
    pub id: u32,
    pub cores: String,
    pub free_2m: Option<u64>,
}

/// Huge pages of one size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Huge {
    pub total: u64,
    pub free: u64,
}

/// Memory, in bytes.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Memory {
    pub total: Option<u64>,
    pub available: Option<u64>,
    /// What the tightest control group allows.
    pub limit: Option<u64>,
    pub huge_2m: Option<Huge>,
    pub huge_1g: Option<Huge>,
    /// Transparent huge pages: `always`, `madvise` or `never`.
    pub transparent: Option<String>,
}

/// Why there is or is no IOMMU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Iommu {
    On,
    /// The firmware tells of one, the kernel does not use it.
    NotUsed,
    /// The firmware tells of none: it is switched off there, or missing.
    Off,
    /// No PCI, or nothing can be read.
    Unknown,
}

/// A module of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Module {
    Loaded,
    Available,
    Missing,
}

/// What this process may do.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Process {
    pub uid: Option<u32>,
    /// `CapEff`.
    pub capabilities: Option<u64>,
    /// Its root is a user's own: capabilities hold inside only.
    pub user_namespace: bool,
    /// `RLIMIT_MEMLOCK` in bytes; u64::MAX is no limit.
    pub memlock: Option<u64>,
    /// Processors' time that the control group allows, in hundredths of a processor.
    pub cpu_quota: Option<u64>,
    /// What tells that this is a container.
    pub container: Option<String>,
}

/// All of it.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Machine {
    pub kernel: Kernel,
    pub cores: Cores,
    pub nodes: Vec<Node>,
    pub memory: Memory,
    pub iommu: Iommu,
    pub vfio_pci: Module,
    pub vhost_net: bool,
    /// `/dev/net/tun`.
    pub tun: bool,
    pub process: Process,
    /// A router runs here already.
    pub router: bool,
}

fn as_list<S: Serializer>(list: &BTreeSet<u32>, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&cores::show(list))
}

impl Machine {
    pub fn read(root: &Root) -> Self {
        let kernel = kernel(root);
        let groups = Groups::read(root);
        Self {
            cores: cores_of(root),
            nodes: nodes(root),
            memory: memory(root, &groups),
            iommu: iommu(root),
            vfio_pci: module(root, kernel.release.as_deref(), "vfio-pci"),
            vhost_net: root.exists("dev/vhost-net"),
            tun: root.exists("dev/net/tun"),
            process: process(root, &groups),
            router: root.exists("run/shoal/cli.sock"),
            kernel,
        }
    }

    /// Whether this process has a capability, by its number; None if nothing tells.
    pub fn may(&self, capability: u32) -> Option<bool> {
        self.process.capabilities.map(|all| all >> capability & 1 == 1)
    }
}

fn version(release: &str) -> Option<Version> {
    let (major, rest) = release.split_once('.')?;
    let minor: String = rest.chars().take_while(char::is_ascii_digit).collect();
    Some((major.parse().ok()?, minor.parse().ok()?))
}

fn kernel(root: &Root) -> Kernel {
    let release = root.word("proc/sys/kernel/osrelease");
    let version = release.as_deref().and_then(version);
    // The sockets' protocols are listed for everybody; the build's configuration often is not there.
    let protocols = root.text("proc/net/protocols");
    let listed = protocols.map(|p| p.lines().any(|line| line.split_whitespace().next() == Some("XDP")));
    Kernel {
        xdp_sockets: match (listed, version) {
            (Some(listed), _) => Some(listed),
            (None, Some(version)) if version < (4, 18) => Some(false),
            _ => None,
        },
        memfd: version.map(|v| v >= (3, 17)),
        release,
        version,
        bpf_jit: root.number("proc/sys/net/core/bpf_jit_enable"),
        unprivileged_bpf_disabled: root.number("proc/sys/kernel/unprivileged_bpf_disabled"),
    }
}

fn cores_of(root: &Root) -> Cores {
    let cpus = Path::new("sys/devices/system/cpu");
    let list = |file: &str| cores::read(&root.text(cpus.join(file)).unwrap_or_default());
    let online = list("online");
    let status = root.text("proc/self/status").unwrap_or_default();
    let allowed = status.lines().find_map(|l| l.strip_prefix("Cpus_allowed_list:")).map(cores::read);
    let siblings = online.iter().filter_map(|cpu| {
        let threads = root.text(cpus.join(format!("cpu{cpu}/topology/thread_siblings_list")))?;
        let threads = cores::read(&threads);
        // Each group once, by its first thread.
        (threads.len() > 1 && threads.first() == Some(cpu)).then(|| cores::show(&threads))
    });
    let siblings = siblings.collect();
    let mut governors = BTreeMap::new();
    for policy in policies(root) {
        if let Some(governor) = root.word(policy.join("scaling_governor")) {
            *governors.entry(governor).or_insert(0) += 1;
        }
    }
    let cpuinfo = root.text("proc/cpuinfo").unwrap_or_default();
    let flags = cpuinfo.lines().find(|line| line.starts_with("flags")).unwrap_or_default();
    Cores {
        allowed: allowed.unwrap_or_else(|| online.clone()),
        isolated: list("isolated"),
        nohz_full: list("nohz_full"),
        siblings,
        governors,
        virtual_machine: flags.split_whitespace().any(|flag| flag == "hypervisor"),
        online,
    }
}

/// Folders of the processors' frequency policies.
pub(crate) fn policies(root: &Root) -> Vec<PathBuf> {
    let dir = Path::new("sys/devices/system/cpu/cpufreq");
    let names = root.names(dir);
    let policy = |name: &str| name.strip_prefix("policy").is_some_and(|n| n.parse::<u32>().is_ok());
    names.iter().filter_map(|n| n.to_str()).filter(|n| policy(n)).take(MOST).map(|n| dir.join(n)).collect()
}

fn nodes(root: &Root) -> Vec<Node> {
    let dir = Path::new("sys/devices/system/node");
    let online = cores::read(&root.text(dir.join("online")).unwrap_or_default());
    let node = |id: u32| Node {
        id,
        cores: cores::show(&cores::read(
            &root.text(dir.join(format!("node{id}/cpulist"))).unwrap_or_default(),
        )),
        free_2m: root.number(dir.join(format!("node{id}/hugepages/hugepages-2048kB/free_hugepages"))),
    };
    online.into_iter().take(MOST).map(node).collect()
}

fn memory(root: &Root, groups: &Groups) -> Memory {
    let meminfo = root.text("proc/meminfo").unwrap_or_default();
    let field = |name: &str| {
        let line = meminfo.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        line.trim().trim_end_matches("kB").trim().parse::<u64>().ok()?.checked_mul(1024)
    };
    let huge = |size: &str| {
        let dir = Path::new("sys/kernel/mm/hugepages").join(format!("hugepages-{size}kB"));
        let total = root.number(dir.join("nr_hugepages"))?;
        Some(Huge { total, free: root.number(dir.join("free_hugepages")).unwrap_or(0) })
    };
    Memory {
        total: field("MemTotal"),
        available: field("MemAvailable").or_else(|| field("MemFree")),
        limit: groups.memory,
        huge_2m: huge("2048"),
        huge_1g: huge("1048576"),
        transparent: chosen(&root.text("sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default()),
    }
}

/// The word in brackets: `always [madvise] never`.
pub(crate) fn chosen(text: &str) -> Option<String> {
    let word = text.split_whitespace().find_map(|w| w.strip_prefix('[')?.strip_suffix(']'))?;
    Some(plain(word.as_bytes()))
}

fn iommu(root: &Root) -> Iommu {
    let tables = Path::new("sys/firmware/acpi/tables");
    if !root.names("sys/kernel/iommu_groups").is_empty() {
        Iommu::On
    } else if root.exists(tables.join("DMAR")) || root.exists(tables.join("IVRS")) {
        Iommu::NotUsed
    } else if root.is_folder("sys/bus/pci/devices") {
        Iommu::Off
    } else {
        Iommu::Unknown
    }
}

/// Whether a module is loaded, part of the kernel, or to be found.
pub(crate) fn module(root: &Root, release: Option<&str>, name: &str) -> Module {
    if root.is_folder(Path::new("sys/module").join(name.replace('-', "_"))) {
        return Module::Loaded;
    }
    let Some(release) = release else { return Module::Missing };
    let modules = Path::new("lib/modules").join(release);
    let lists = |file: &str| {
        let text = root.long_text(modules.join(file), MODULES).unwrap_or_default();
        let is_it = |path: &str| {
            let file = path.rsplit('/').next().unwrap_or_default();
            let found = file.split_once(".ko").map_or(file, |(name, _)| name);
            found.replace('_', "-") == name.replace('_', "-")
        };
        text.lines().any(|line| is_it(line.split(':').next().unwrap_or_default()))
    };
    if lists("modules.builtin") {
        Module::Loaded
    } else if lists("modules.dep") {
        Module::Available
    } else {
        Module::Missing
    }
}

/// The limits of the control groups this process is in.
struct Groups {
    memory: Option<u64>,
    cpu: Option<u64>,
}

impl Groups {
    fn read(root: &Root) -> Self {
        let (mut memory, mut cpu) = (None, None);
        let text = root.text("proc/self/cgroup").unwrap_or_default();
        let least = |found: &mut Option<u64>, value: Option<u64>| {
            *found = [*found, value].into_iter().flatten().min();
        };
        for line in text.lines().take(64) {
            let mut parts = line.splitn(3, ':').skip(1);
            let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
            let has = |name: &str| controllers.split(',').any(|c| c == name);
            let path = Path::new(path.trim_start_matches('/'));
            for group in path.ancestors().take(64) {
                if controllers.is_empty() {
                    let dir = Path::new("sys/fs/cgroup").join(group);
                    least(&mut memory, root.number(dir.join("memory.max")));
                    let quota = root.text(dir.join("cpu.max")).unwrap_or_default();
                    let mut words = quota.split_whitespace().map(str::parse::<u64>);
                    if let (Some(Ok(quota)), Some(Ok(period))) = (words.next(), words.next()) {
                        least(&mut cpu, share(quota, period));
                    }
                } else if has("memory") {
                    let dir = Path::new("sys/fs/cgroup/memory").join(group);
                    // Version 1 says "no limit" by a number near the largest.
                    let limit = root.number(dir.join("memory.limit_in_bytes"));
                    least(&mut memory, limit.filter(|&bytes: &u64| bytes < 1 << 60));
                } else if has("cpu") {
                    let dir = Path::new("sys/fs/cgroup/cpu").join(group);
                    let quota = root.number(dir.join("cpu.cfs_quota_us"));
                    let period = root.number(dir.join("cpu.cfs_period_us"));
                    least(&mut cpu, quota.zip(period).and_then(|(quota, period)| share(quota, period)));
                }
            }
        }
        Self { memory, cpu }
    }
}

fn share(quota: u64, period: u64) -> Option<u64> {
    quota.checked_mul(100)?.checked_div(period)
}

fn process(root: &Root, groups: &Groups) -> Process {
    let status = root.text("proc/self/status").unwrap_or_default();
    let field = |name: &str| status.lines().find_map(|line| Some(line.strip_prefix(name)?.trim()));
    let limits = root.text("proc/self/limits").unwrap_or_default();
    let memlock = limits.lines().find_map(|line| line.strip_prefix("Max locked memory"));
    let soft = memlock.and_then(|line| line.split_whitespace().next());
    let marks =
        [(".dockerenv", "docker"), ("run/.containerenv", "podman"), ("run/systemd/container", "systemd")];
    let mark = marks.iter().find(|(file, _)| root.exists(file)).map(|(_, name)| (*name).to_owned());
    Process {
        uid: field("Uid:").and_then(|line| line.split_whitespace().nth(1)?.parse().ok()),
        capabilities: field("CapEff:").and_then(|hex| u64::from_str_radix(hex, 16).ok()),
        // The whole range of numbers is mapped to itself, or it is not the machine's own.
        user_namespace: root
            .text("proc/self/uid_map")
            .is_some_and(|map| !map.is_empty() && map.split_whitespace().ne(["0", "0", "4294967295"])),
        memlock: soft.and_then(|s| if s == "unlimited" { Some(u64::MAX) } else { s.parse().ok() }),
        cpu_quota: groups.cpu,
        container: mark,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_however_they_go_on() {
        assert_eq!(version("6.12.9-amd64"), Some((6, 12)));
        assert_eq!(version("6.1-rc3"), Some((6, 1)));
        assert_eq!(version("six"), None);
        assert_eq!(version("6."), None);
    }
}
