//! Facts about the machine, without which a figure says little.

use std::fs;

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};
use shoal_graph::clock::tsc_hz;

use crate::Result;
use crate::control_loop::Pace;
use crate::memory::{LineCost, line_costs};

/// What ran the benchmark.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Machine {
    pub processor: String,
    pub processors: usize,
    /// The one that was used.
    pub cpu: usize,
    /// Ticks of the time-stamp counter per second: figures are in these clocks.
    pub tsc_hz: f64,
    /// What the code was compiled for.
    pub target: String,
    /// The source's revision, when `make bench` told it.
    pub revision: Option<String>,
    /// Free hugepages at the beginning. Without any, buffers lie in transparent ones, where the kernel has some to give.
    #[serde(default)]
    pub hugepages: u64,
    /// What a cache line costs, by the size of the memory it is in.
    #[serde(default)]
    pub memory: Vec<LineCost>,
    /// Load averages of one minute at the beginning and at the end.
    pub load_before: f64,
    pub load_after: f64,
    /// Share of the time that the hypervisor took from all processors meanwhile.
    pub steal: f64,
    /// The control loop at its best.
    pub control: Pace,
}

impl Machine {
    pub fn new(cpu: usize, processors: usize) -> Self {
        Machine {
            processor: processor(),
            processors,
            cpu,
            tsc_hz: tsc_hz(),
            target: target(),
            revision: std::env::var("SHOAL_REVISION").ok().filter(|r| !r.is_empty()),
            hugepages: free_hugepages(&fs::read_to_string("/proc/meminfo").unwrap_or_default()),
            load_before: load(),
            memory: line_costs(),
            ..Machine::default()
        }
    }
}

fn target() -> String {
    let level = if cfg!(target_feature = "avx512f") {
        "-v4 or more"
    } else if cfg!(target_feature = "avx2") {
        "-v3"
    } else {
        ""
    };
    format!("{}{level}", std::env::consts::ARCH)
}

fn processor() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = info.lines().find_map(|l| l.strip_prefix("model name")?.split_once(':'));
    name.map_or("unknown".into(), |(_, name)| name.trim().to_owned())
}

fn free_hugepages(meminfo: &str) -> u64 {
    let free = meminfo.lines().find_map(|l| l.strip_prefix("HugePages_Free:"));
    free.and_then(|n| n.trim().parse().ok()).unwrap_or_default()
}

/// The load average of one minute.
pub fn load() -> f64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().and_then(|n| n.parse().ok()).unwrap_or_default()
}

/// Ticks that the hypervisor took, of one processor or of all.
pub fn steal(cpu: Option<usize>) -> u64 {
    let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
    steal_in(&stat, cpu)
}

fn steal_in(stat: &str, cpu: Option<usize>) -> u64 {
    let name = cpu.map_or("cpu".to_owned(), |n| format!("cpu{n}"));
    let line = stat.lines().find(|l| l.split(' ').next() == Some(&name));
    line.and_then(|l| l.split_whitespace().nth(8)?.parse().ok()).unwrap_or_default()
}

/// Processors this process may run on.
pub fn cpus() -> Vec<usize> {
    let set = sched_getaffinity(Pid::from_raw(0)).unwrap_or_default();
    (0..CpuSet::count()).filter(|n| set.is_set(*n).unwrap_or(false)).collect()
}

/// Keeps this thread on one processor, the last one if none is named; tells which, and of how many.
pub fn pin(cpu: Option<usize>) -> Result<(usize, usize)> {
    let all = cpus();
    let cpu = cpu.or(all.last().copied()).ok_or("no processor to run on")?;
    if !all.contains(&cpu) {
        return Err(format!("no processor {cpu}, there are: {all:?}").into());
    }
    let mut set = CpuSet::new();
    set.set(cpu)?;
    sched_setaffinity(Pid::from_raw(0), &set)?;
    Ok((cpu, all.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str =
        "cpu  1 2 3 4 5 6 7 88 9 10\ncpu0 1 0 0 0 0 0 0 8 0 0\ncpu1 1 0 0 0 0 0 0 80 0 0\nintr 5\n";

    #[test]
    fn free_hugepages_are_read_or_none() {
        let text =
            "MemFree: 12 kB\nHugePages_Total:      64\nHugePages_Free:       62\nHugePages_Rsvd:        0\n";
        assert_eq!(free_hugepages(text), 62);
        assert_eq!(free_hugepages("MemFree: 12 kB\n"), 0);
    }

    #[test]
    fn stolen_time_is_read_of_one_processor_and_of_all() {
        assert_eq!((steal_in(STAT, None), steal_in(STAT, Some(0)), steal_in(STAT, Some(1))), (88, 8, 80));
        assert_eq!(steal_in(STAT, Some(9)), 0);
    }

    #[test]
    fn a_processor_that_is_not_there_is_refused() {
        assert!(pin(Some(100_000)).is_err());
    }
}
