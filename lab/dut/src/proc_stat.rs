//! What the kernel tells of processes and processors in `/proc`: who a process is, and whose time was spent.

use std::fs;

/// Microseconds of one tick of `/proc`. Linux shows 100 a second (USER_HZ) whatever its own clock is.
const TICK: u64 = 10_000;

/// When a process was started, in ticks since boot: with its id it names a process, which an id alone does not, because
/// ids are used again. `None`: there is no such process.
pub(crate) fn started(pid: u32) -> Option<u64> {
    // proc(5): the 22nd field.
    field(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?, 22)
}

/// Whether a process runs; one that has ended and is not yet waited for does not.
pub(crate) fn runs(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| after_name(&stat).is_some_and(|s| !s.starts_with('Z')))
}

/// CPU time of all threads of a process, user and system, in microseconds.
pub(crate) fn process_time(pid: u32) -> Option<u64> {
    time_of(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// CPU time of a process's first thread.
pub(crate) fn main_thread_time(pid: u32) -> Option<u64> {
    time_of(&fs::read_to_string(format!("/proc/{pid}/task/{pid}/stat")).ok()?)
}

/// Time that these processors have spent in soft interrupts, in microseconds: a kernel's forwarding.
pub(crate) fn softirq_time(cores: &[usize]) -> Option<u64> {
    softirq_of(&fs::read_to_string("/proc/stat").ok()?, cores)
}

fn time_of(stat: &str) -> Option<u64> {
    Some((field(stat, 14)? + field(stat, 15)?) * TICK)
}

/// The name is the second field, in parentheses, and may have blanks and parentheses in it.
fn after_name(stat: &str) -> Option<&str> {
    stat.rsplit_once(')').map(|(_, rest)| rest.trim_start())
}

/// The nth field of a `stat`, counted from 1 as proc(5) does.
fn field(stat: &str, n: usize) -> Option<u64> {
    after_name(stat)?.split_whitespace().nth(n.checked_sub(3)?)?.parse().ok()
}

fn softirq_of(stat: &str, cores: &[usize]) -> Option<u64> {
    let mut ticks = 0;
    for core in cores {
        let name = format!("cpu{core}");
        let line = stat.lines().find(|l| l.split_whitespace().next() == Some(&name))?;
        // user nice system idle iowait irq softirq
        ticks += line.split_whitespace().nth(7)?.parse::<u64>().ok()?;
    }
    Some(ticks * TICK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_found_behind_a_name_with_blanks_and_parentheses() {
        let stat = "77 (a) b (c) S 1 77 77 0 -1 0 0 0 0 0 150 25 0 0 20 0 3 0 4711 0 0";
        assert_eq!(time_of(stat), Some(1_750_000));
        assert_eq!(field(stat, 22), Some(4711));
        assert_eq!(time_of("77"), None);
    }

    #[test]
    fn softirq_time_is_summed_over_the_cores_that_were_asked_for() {
        let stat =
            "cpu  9 9 9 9 9 9 9 9\ncpu0 1 2 3 4 5 6 70 8\ncpu1 1 2 3 4 5 6 5 8\ncpu10 0 0 0 0 0 0 1 0\n";
        assert_eq!(softirq_of(stat, &[0, 1]), Some(750_000));
        assert_eq!(softirq_of(stat, &[1]), Some(50_000));
        assert_eq!(softirq_of(stat, &[2]), None);
    }

    #[test]
    fn this_process_runs_and_none_has_an_impossible_id() {
        assert!(runs(std::process::id()));
        assert!(started(std::process::id()).is_some_and(|ticks| ticks > 0));
        assert!(!runs(u32::MAX) && started(u32::MAX).is_none() && process_time(u32::MAX).is_none());
    }
}
