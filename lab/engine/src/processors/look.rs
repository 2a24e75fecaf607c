//! All that the kernel tells of processors at one moment.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::files::{Stat, Ticks, preempted, pressure, processors, schedstat, stat};

/// Whose threads are the tester's and the device's, and where they run.
#[derive(Clone, Debug)]
pub struct Whose {
    /// Where the kernel tells of processes: `/proc`.
    pub root: PathBuf,
    /// The tester's process. What it has started, and what that has started, belongs to the tester or to the device.
    pub process: u32,
    /// The tester's thread. Other threads of its process show and keep results and may wait.
    pub thread: u32,
    /// The processors that tester and device run on. Others may be used by others.
    pub cores: Vec<usize>,
}

impl Whose {
    /// This process's, with this thread as the tester's.
    pub fn mine(cores: Vec<usize>) -> Whose {
        let process = std::process::id();
        // `PID/task/TID`.
        let thread = fs::read_link("/proc/thread-self")
            .ok()
            .and_then(|path| path.file_name()?.to_str()?.parse().ok())
            .unwrap_or(process);
        Whose { root: "/proc".into(), process, thread, cores }
    }
}

/// A thread of the tester's, of the device's, or of the kernel's that carries packets for them.
#[derive(Clone, Debug)]
pub(super) struct Thread {
    pub(super) name: String,
    pub(super) core: usize,
    /// Nanoseconds on a processor.
    pub(super) ran: u64,
    /// Nanoseconds of waiting for one; none where the kernel does not say.
    pub(super) waited: Option<u64>,
    pub(super) preempted: u64,
    /// Whether its waiting matters.
    pub(super) counts: bool,
}

/// All that the kernel tells at one moment.
#[derive(Clone, Debug)]
pub struct Look {
    pub(super) at: Instant,
    pub(super) processors: BTreeMap<usize, Ticks>,
    /// All processes, by id.
    pub(super) processes: BTreeMap<u32, Stat>,
    /// Those of the tester and the device.
    pub(super) own: BTreeSet<u32>,
    /// By thread id, and when it was started.
    pub(super) threads: BTreeMap<(u32, u64), Thread>,
    pub(super) pressure: Option<u64>,
}

/// Nanoseconds of one tick. Linux shows 100 a second (USER_HZ) whatever its own clock is.
pub(super) const TICK: u64 = 10_000_000;

impl Look {
    /// Whether the tester's process was seen: in a container whose `/proc` is another's it is not.
    pub fn knows(&self, whose: &Whose) -> bool {
        self.processes.contains_key(&whose.process)
    }

    /// Looks. What cannot be read is left out: a process may end at any moment.
    pub fn take(whose: &Whose) -> Look {
        let text = |path: &str| fs::read_to_string(whose.root.join(path)).unwrap_or_default();
        let (at, told, pressure) = (Instant::now(), text("stat"), pressure(&text("pressure/cpu")));
        let processes: BTreeMap<u32, Stat> = numbered(&whose.root)
            .filter_map(|id| Some((id, read(&whose.root.join(id.to_string()))?)))
            .collect();
        let own = descendants(&processes, whose.process);
        let mut threads = BTreeMap::new();
        for &process in &own {
            let tasks = whose.root.join(process.to_string()).join("task");
            for id in numbered(&tasks) {
                let counts = process != whose.process || id == whose.thread;
                threads.extend(thread(&tasks.join(id.to_string()), counts));
            }
        }
        // What a device of the kernel's forwards is forwarded by these, if it is more than interrupts can do.
        for kernel in processes.values().filter(|p| carries_packets(&p.name) && !own.contains(&p.id)) {
            threads.extend(thread(&whose.root.join(kernel.id.to_string()), true));
        }
        Look { at, processors: processors(&told).into_iter().collect(), processes, own, threads, pressure }
    }
}

/// A thread of the kernel's that works on packets.
pub(super) fn carries_packets(name: &str) -> bool {
    name.starts_with("ksoftirqd/") || name.starts_with("napi/")
}

fn numbered(folder: &Path) -> impl Iterator<Item = u32> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn read(folder: &Path) -> Option<Stat> {
    stat(&fs::read_to_string(folder.join("stat")).ok()?)
}

fn thread(folder: &Path, counts: bool) -> Option<((u32, u64), Thread)> {
    let stat = read(folder)?;
    let text = |name: &str| fs::read_to_string(folder.join(name)).unwrap_or_default();
    let account = schedstat(&text("schedstat"));
    let thread = Thread {
        name: format!("{} ({})", stat.name, stat.id),
        core: stat.core,
        ran: account.map_or(stat.own * TICK, |(ran, _)| ran),
        waited: account.map(|(_, waited)| waited),
        preempted: preempted(&text("status")).unwrap_or(0),
        counts,
    };
    Some(((stat.id, stat.started), thread))
}

/// `process` and all that it has started, and they.
fn descendants(processes: &BTreeMap<u32, Stat>, process: u32) -> BTreeSet<u32> {
    let mut own = BTreeSet::from([process]);
    loop {
        let before = own.len();
        let children = processes.values().filter(|p| own.contains(&p.parent)).map(|p| p.id);
        let children: Vec<u32> = children.collect();
        own.extend(children);
        if own.len() == before {
            return own;
        }
    }
}
