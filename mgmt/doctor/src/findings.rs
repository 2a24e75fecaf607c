//! What the machine lacks or has, what it would buy, and what to type.
//!
//! A figure stands here only if it was measured, with its source.

use std::fmt::Write;

use serde::Serialize;

use crate::cores;
use crate::machine::{Iommu, Machine, Module};
use crate::ports::{Kind, Ports};
use crate::root::Root;
use crate::tune::{self, State};

/// How good it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Verdict {
    /// Without it the router does not work, or hardly.
    Missing,
    /// It works, and could do better.
    Better,
    Fine,
    /// It could not be read.
    Unknown,
}

/// One thing that matters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    pub name: &'static str,
    pub verdict: Verdict,
    pub value: String,
    /// What it buys, or what it costs not to have it.
    pub worth: Option<&'static str>,
    /// Who measured the figure in `worth`.
    pub source: Option<&'static str>,
    /// What to type into a shell.
    pub command: Option<String>,
}

impl Finding {
    fn new(name: &'static str, verdict: Verdict, value: impl Into<String>) -> Self {
        Self { name, verdict, value: value.into(), worth: None, source: None, command: None }
    }

    fn worth(self, worth: &'static str) -> Self {
        Self { worth: Some(worth), ..self }
    }

    fn source(self, source: &'static str) -> Self {
        Self { source: Some(source), ..self }
    }

    fn command(self, command: impl Into<String>) -> Self {
        Self { command: Some(command.into()), ..self }
    }
}

use Verdict::{Better, Fine, Missing, Unknown};

const VPP_HERE: &str = "FD.io VPP 26.06, measured on a 2.25 GHz AMD Milan guest";

/// What matters, the gravest first.
pub(crate) fn all(root: &Root, machine: &Machine, ports: &Ports) -> Vec<Finding> {
    let mut found = vec![kernel(machine)];
    found.extend(capabilities(machine));
    found.extend(container(machine));
    found.push(tun(machine));
    found.push(memory(machine));
    found.push(hugepages(machine, root));
    found.extend(transparent(machine));
    found.extend(memlock(machine));
    found.extend(cores_of(machine));
    found.push(isolation(machine));
    found.extend(governor(machine));
    found.extend(numa(machine, ports));
    found.push(iommu(machine));
    found.push(vfio(machine));
    found.push(vhost(machine));
    found.sort_by_key(|f| f.verdict);
    found
}

fn kernel(machine: &Machine) -> Finding {
    let kernel = &machine.kernel;
    let Some(release) = &kernel.release else {
        return Finding::new("kernel", Unknown, "its release cannot be read: is /proc mounted?");
    };
    let mut has = Vec::new();
    has.extend(kernel.xdp_sockets.map(|there| if there { "AF_XDP" } else { "no AF_XDP" }));
    has.extend(kernel.bpf_jit.map(|jit| if jit > 0 { "BPF JIT" } else { "BPF JIT off" }));
    has.extend(kernel.memfd.map(|there| if there { "memfd" } else { "no memfd" }));
    has.extend(
        kernel.unprivileged_bpf_disabled.map(|off| if off > 0 { "BPF for root" } else { "BPF for all" }),
    );
    let value = format!("Linux {release}: {}", has.join(", "));
    if kernel.memfd == Some(false) {
        return Finding::new("kernel", Missing, value).worth("the stats segment needs memfd, Linux 3.17");
    }
    if kernel.xdp_sockets == Some(false) {
        let worth = "AF_XDP: 17.6 million packets a second through one queue with zero-copy; AF_PACKET passes the kernel twice";
        return Finding::new("kernel", Better, value)
            .worth(worth)
            .source("atoonk/packetio: EPYC 9275F, ConnectX-6 Dx, two cores");
    }
    if kernel.bpf_jit == Some(0) {
        return Finding::new("kernel", Better, value)
            .worth("AF_XDP's program runs compiled instead of interpreted")
            .command("sysctl -w net.core.bpf_jit_enable=1");
    }
    Finding::new("kernel", Fine, value)
}

/// Number, name, what the router does with it, whether nothing goes without it.
const CAPABILITIES: [(u32, &str, bool); 5] = [
    (12, "CAP_NET_ADMIN", true),
    (13, "CAP_NET_RAW", true),
    (14, "CAP_IPC_LOCK", false),
    (21, "CAP_SYS_ADMIN", false),
    (39, "CAP_BPF", false),
];

fn capabilities(machine: &Machine) -> Option<Finding> {
    machine.process.capabilities?;
    let lacking = |needed: bool| {
        let lacking = CAPABILITIES.iter().filter(|c| c.2 == needed && machine.may(c.0) == Some(false));
        lacking.map(|c| c.1).collect::<Vec<_>>()
    };
    let (needed, useful) = (lacking(true), lacking(false));
    let container = machine.process.container.is_some();
    let root = machine.process.uid == Some(0);
    let add = |names: &[&str]| {
        let caps: Vec<_> =
            names.iter().map(|n| format!("--cap-add {}", n.trim_start_matches("CAP_"))).collect();
        format!("docker run {} ...", caps.join(" "))
    };
    if !needed.is_empty() {
        let finding =
            Finding::new("capabilities", Missing, format!("this process has no {}", needed.join(", no ")))
                .worth("NET_RAW opens interfaces of the kernel, NET_ADMIN makes TAPs and sets MTU and link");
        return Some(if container || root {
            finding.command(add(&needed))
        } else {
            finding.command("sudo shoal ...")
        });
    }
    if machine.process.user_namespace {
        let value = "those of a user namespace: enough for AF_PACKET and TAP in networks of its own";
        return Some(
            Finding::new("capabilities", Fine, value).worth("AF_XDP and tuning need root of the machine"),
        );
    }
    if useful.is_empty() {
        return Some(Finding::new("capabilities", Fine, "all that the router uses"));
    }
    // Before Linux 5.8 there is no CAP_BPF; CAP_SYS_ADMIN covers it ever since.
    let only_bpf = useful == ["CAP_BPF"] || (useful == ["CAP_SYS_ADMIN"] && machine.may(39) == Some(true));
    if only_bpf {
        return Some(Finding::new("capabilities", Fine, "enough for all drivers"));
    }
    let finding =
        Finding::new("capabilities", Better, format!("this process has no {}", useful.join(", no "))).worth(
            "IPC_LOCK pins packet memory for AF_XDP, BPF loads its program, SYS_ADMIN enters namespaces",
        );
    Some(if container { finding.command(add(&useful)) } else { finding })
}

fn container(machine: &Machine) -> Option<Finding> {
    let kind = machine.process.container.as_ref()?;
    let memory = machine.memory.limit.map(|bytes| format!("memory {}", size(bytes)));
    let cpu = machine.process.cpu_quota.map(|q| format!("{}.{:02} processors", q / 100, q % 100));
    let limits: Vec<_> = memory.into_iter().chain(cpu).collect();
    let limits = if limits.is_empty() { "no limits".to_owned() } else { limits.join(", ") };
    Some(
        Finding::new("container", Fine, format!("{kind}: {limits}"))
            .worth("pages, governor and modules are the host's: run `shoal tune` there"),
    )
}

fn tun(machine: &Machine) -> Finding {
    if machine.tun {
        return Finding::new("tap", Fine, "/dev/net/tun is there");
    }
    let finding =
        Finding::new("tap", Better, "no /dev/net/tun").worth("`create tap` and Linux pairs need it");
    if machine.process.container.is_some() {
        finding.command("docker run --device /dev/net/tun ...")
    } else {
        finding.command("modprobe tun")
    }
}

fn memory(machine: &Machine) -> Finding {
    let memory = &machine.memory;
    let Some(available) = memory.available else {
        return Finding::new("memory", Unknown, "/proc/meminfo cannot be read");
    };
    let free = memory.limit.map_or(available, |limit| limit.min(available));
    let of = memory.total.map(|total| format!(" of {}", size(total))).unwrap_or_default();
    let limit = memory.limit.map(|l| format!(", {} for this control group", size(l))).unwrap_or_default();
    let value = format!("{} free{of}{limit}", size(available));
    let verdict = if free < 256 << 20 { Better } else { Fine };
    Finding::new("memory", verdict, value)
        .worth("a million IPv4 routes take 88 MB, the packet buffers 39 MB to begin with")
        .source("this router, see the change log")
}

fn hugepages(machine: &Machine, root: &Root) -> Finding {
    let Some(huge) = machine.memory.huge_2m else {
        return Finding::new("hugepages", Unknown, "this kernel has no 2 MB pages")
            .worth("transparent huge pages or 4 kB pages are used: all works, large tables are slower");
    };
    let giant = machine.memory.huge_1g.filter(|h| h.total > 0);
    let giant = giant.map(|h| format!("; {} of {} of 1 GB (not used)", h.free, h.total)).unwrap_or_default();
    let nodes: Vec<_> =
        machine.nodes.iter().filter_map(|n| Some(format!("node {}: {}", n.id, n.free_2m?))).collect();
    let nodes = if nodes.len() > 1 { format!(" ({})", nodes.join(", ")) } else { String::new() };
    let value = format!("{} of {} pages of 2 MB are free{nodes}{giant}", huge.free, huge.total);
    if huge.free >= tune::PAGES {
        return Finding::new("hugepages", Fine, value);
    }
    let finding = Finding::new("hugepages", Better, value)
        .worth("fewer misses of the page tables' cache: a lookup among a million routes took 143 clocks instead of 234")
        .source(VPP_HERE);
    match tune::state_of(root, machine, tune::Name::Hugepages) {
        State::Available { .. } => finding.command("sudo shoal tune apply hugepages"),
        _ => finding,
    }
}

fn transparent(machine: &Machine) -> Option<Finding> {
    let mode = machine.memory.transparent.as_ref()?;
    Some(if mode == "never" {
        Finding::new("thp", Better, "transparent huge pages: never")
            .worth(
                "tables of routes ask for them, and for huge pages only so: see hugepages for what they buy",
            )
            .command("sudo shoal tune apply thp")
    } else {
        Finding::new("thp", Fine, format!("transparent huge pages: {mode}"))
    })
}

fn memlock(machine: &Machine) -> Option<Finding> {
    let limit = machine.process.memlock?;
    // CAP_IPC_LOCK lifts the limit.
    if limit >= 256 << 20 || machine.may(14) == Some(true) {
        return None;
    }
    Some(
        Finding::new("memlock", Better, format!("this process may lock {}", size(limit)))
            .worth("AF_XDP locks its packet memory; the service has LimitMEMLOCK=infinity")
            .command("ulimit -l unlimited"),
    )
}

fn cores_of(machine: &Machine) -> Option<Finding> {
    let cores = &machine.cores;
    if cores.online.is_empty() {
        return Some(Finding::new("cores", Unknown, "/sys/devices/system/cpu cannot be read"));
    }
    let mut value = format!("{} online ({})", cores.online.len(), cores::show(&cores.online));
    if cores.allowed != cores.online {
        let _ = write!(value, ", this process may use {}", cores::show(&cores.allowed));
    }
    if !cores.siblings.is_empty() {
        let shown: Vec<_> = cores.siblings.iter().take(4).map(String::as_str).collect();
        let more = if cores.siblings.len() > 4 { " ..." } else { "" };
        let _ = write!(value, "; threads of one core: {}{more}", shown.join(" "));
        return Some(Finding::new("cores", Fine, value).worth(
            "two busy threads share one core's speed: give a worker a core and leave its other thread idle",
        ));
    }
    if cores.online.len() == 1 {
        return Some(
            Finding::new("cores", Fine, value).worth("one core is enough: main thread and packets share it"),
        );
    }
    Some(Finding::new("cores", Fine, value))
}

fn isolation(machine: &Machine) -> Finding {
    let cores = &machine.cores;
    let value = match (cores.isolated.is_empty(), cores.nohz_full.is_empty()) {
        (true, true) => "no isolated cores, no core without ticks".to_owned(),
        (false, true) => format!("isolated: {}; none without ticks", cores::show(&cores.isolated)),
        (true, false) => format!("none isolated; without ticks: {}", cores::show(&cores.nohz_full)),
        (false, false) => {
            format!(
                "isolated: {}; without ticks: {}",
                cores::show(&cores.isolated),
                cores::show(&cores.nohz_full)
            )
        }
    };
    if !cores.isolated.is_empty() {
        let example = format!("shoal cpu {{ corelist-workers {} }}", cores::show(&cores.isolated));
        return Finding::new("isolation", Fine, value).command(example);
    }
    if cores.online.len() < 3 || machine.process.container.is_some() {
        return Finding::new("isolation", Fine, value)
            .worth("nothing to isolate here: the host needs a core too");
    }
    let workers: std::collections::BTreeSet<u32> = cores.online.iter().skip(1).copied().collect();
    let list = cores::show(&workers);
    Finding::new("isolation", Better, value)
        .worth("steadier latency under load, no figure of ours; needs a reboot: kernel command line")
        .command(format!("isolcpus={list} nohz_full={list} rcu_nocbs={list}"))
}

fn governor(machine: &Machine) -> Option<Finding> {
    let governors = &machine.cores.governors;
    if governors.is_empty() {
        return None;
    }
    let shown: Vec<_> = governors.iter().map(|(name, count)| format!("{name} ({count})")).collect();
    let value = format!("governor: {}", shown.join(", "));
    if governors.keys().all(|name| name == "performance") {
        return Some(Finding::new("governor", Fine, value));
    }
    Some(
        Finding::new("governor", Better, value)
            .worth("packets follow the clock: 3.2 instead of 1.2 GHz forwarded nearly 2.5 times as many; costs power")
            .source("published measurements of FD.io VPP on a Xeon E5-2620")
            .command("sudo shoal tune apply governor"),
    )
}

fn numa(machine: &Machine, ports: &Ports) -> Option<Finding> {
    if machine.nodes.len() < 2 {
        return None;
    }
    let nodes: Vec<_> =
        machine.nodes.iter().take(8).map(|n| format!("{}: cores {}", n.id, n.cores)).collect();
    let on = |p: &crate::ports::Port| Some(format!("{} on node {}", p.name, p.numa_node?));
    let cards: Vec<_> =
        ports.listed.iter().filter(|p| p.kind == Kind::Physical).filter_map(on).take(8).collect();
    let cards = if cards.is_empty() { String::new() } else { format!("; {}", cards.join(", ")) };
    Some(
        Finding::new("numa", Fine, format!("nodes {}{cards}", nodes.join("; ")))
            .worth("put a port's worker on the port's node: on the other one 3.4 million packets a second were left of 4.18")
            .source("published measurements of FD.io VPP on a Xeon E5-2620"),
    )
}

fn iommu(machine: &Machine) -> Finding {
    let worth = "only vfio-pci (DPDK) needs it; AF_PACKET, AF_XDP, TAP do not";
    match machine.iommu {
        Iommu::On => Finding::new("iommu", Fine, "on, with groups"),
        Iommu::NotUsed => Finding::new("iommu", Better, "there, and the kernel does not use it")
            .worth(worth)
            .command("intel_iommu=on iommu=pt"),
        Iommu::Off if machine.cores.virtual_machine => {
            Finding::new("iommu", Fine, "none in this virtual machine").worth(worth)
        }
        Iommu::Off => {
            Finding::new("iommu", Better, "off: switch VT-d or AMD-Vi on in the firmware").worth(worth)
        }
        Iommu::Unknown => Finding::new("iommu", Unknown, "nothing tells").worth(worth),
    }
}

fn vfio(machine: &Machine) -> Finding {
    let worth = "takes whole NICs away from the kernel, for DPDK";
    match machine.vfio_pci {
        Module::Loaded => Finding::new("vfio", Fine, "vfio-pci is loaded"),
        Module::Available if machine.iommu == Iommu::On => {
            Finding::new("vfio", Better, "vfio-pci is not loaded")
                .worth(worth)
                .command("sudo shoal tune apply vfio")
        }
        Module::Available => {
            Finding::new("vfio", Fine, "vfio-pci is not loaded; it waits for the IOMMU").worth(worth)
        }
        Module::Missing => Finding::new("vfio", Fine, "this kernel has no vfio-pci").worth(worth),
    }
}

fn vhost(machine: &Machine) -> Finding {
    let value = if machine.vhost_net { "/dev/vhost-net is there" } else { "no /dev/vhost-net" };
    Finding::new("vhost-net", Fine, value)
        .worth("moves frames of TAPs by rings in memory, without a system call for each")
}

/// Bytes for people.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "kB")];
    match UNITS.iter().find(|(unit, _)| bytes >= *unit) {
        Some((unit, name)) if bytes < 10 * unit => {
            format!("{}.{} {name}", bytes / unit, bytes % unit * 10 / unit)
        }
        Some((unit, name)) => format!("{} {name}", bytes / unit),
        None => format!("{bytes} bytes"),
    }
}
