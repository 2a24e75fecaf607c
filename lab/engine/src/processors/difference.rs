//! What happened between two looks: who used the processors that tester and device run on, and how long these waited.
//!
//! The kernel has no account of "a waited for b". What others took from tester and device is at most what others used, and at
//! most what was waited for; both are known, and the smaller counts ([`CoreUse::taken`]).
//!
//! What others used is known in three ways, none of which is enough:
//!
//! - The processes' own times, exact to a few ticks. Those of other containers are not seen.
//! - A processor's busy time less that of the tester's and the device's threads. It has soft interrupts in it that the kernel
//!   charges to no process, or to the process in which they came.
//! - The same less all interrupts, which takes some away twice.
//!
//! So: the first, but no less than the third and no more than the second.

use std::collections::BTreeMap;
use std::time::Duration;

use shoal_lab_plan::{CoreUse, OtherProcess, Processors};

use super::files::{Stat, Ticks};
use super::look::{Look, TICK, Thread, Whose, carries_packets};

/// What the kernel's ticks leave unknown of a processor: one at each end.
const UNKNOWN: u64 = 2 * TICK;
/// Processes that are kept: more than are named in a sentence.
const KEPT: usize = 10;
/// Processes that used less of a processor are not named.
const WORTH_NAMING: f64 = 0.005;

impl Look {
    /// What happened since `before`.
    pub fn since(&self, before: &Look, whose: &Whose) -> Processors {
        let window = self.at.duration_since(before.at);
        let nanoseconds = (window.as_nanos() as u64).max(1);
        let threads: Vec<Thread> =
            self.threads.iter().map(|(key, now)| gone_by(now, before.threads.get(key))).collect();
        let mut others = self.others(before, nanoseconds);
        let used: f64 = others.iter().map(|o| o.share).sum::<f64>() * nanoseconds as f64;
        let unknown = |left: u64| left.saturating_sub(UNKNOWN);
        // All processors together: threads that moved from one to another are counted once there.
        let ran: u64 = threads.iter().map(|t| t.ran).sum();
        let busy: u64 = self.processors.keys().map(|core| self.busy(before, *core, nanoseconds)).sum();
        let anywhere = unknown(busy.saturating_sub(ran));
        let cores = whose.cores.iter().filter(|core| self.processors.contains_key(core)).map(|&core| {
            let here = threads.iter().filter(|t| t.core == core);
            let ran: u64 = here.clone().map(|t| t.ran).sum();
            let (busy, interrupts) = (self.busy(before, core, nanoseconds), self.interrupts(before, core));
            let most = unknown(busy.saturating_sub(ran.max(interrupts))).min(anywhere);
            let least = unknown(busy.saturating_sub(ran + interrupts)).min(most);
            let used = unknown(used as u64).clamp(least, most);
            let waiting = here.filter(|t| t.counts).max_by_key(|t| t.waited);
            CoreUse {
                core,
                others: share(used, nanoseconds),
                // Where nothing of the tester's and the device's ran, nothing waited.
                waited: waiting
                    .map_or(Some(0), |t| t.waited)
                    .map(|waited| share(waited, nanoseconds).min(1.0)),
                thread: waiting.map_or_else(String::new, |t| t.name.clone()),
            }
        });
        let cores = cores.collect();
        others.retain(|o| o.share >= WORTH_NAMING);
        others.truncate(KEPT);
        let pressure = self.pressure.zip(before.pressure).map(|(now, then)| {
            let waited = Duration::from_micros(now.saturating_sub(then));
            waited.as_secs_f64() / window.as_secs_f64().max(1e-9)
        });
        let preempted = threads.iter().filter(|t| t.counts).map(|t| t.preempted).sum();
        Processors { window, cores, others, preempted, pressure }
    }

    /// Nanoseconds in which a processor had work of this system.
    fn busy(&self, before: &Look, core: usize, window: u64) -> u64 {
        let (now, then) = (self.ticks(core), before.ticks(core));
        let spared = now.idle.saturating_sub(then.idle) + now.stolen.saturating_sub(then.stolen);
        window.saturating_sub(spared * TICK)
    }

    fn interrupts(&self, before: &Look, core: usize) -> u64 {
        self.ticks(core).interrupts.saturating_sub(before.ticks(core).interrupts) * TICK
    }

    fn ticks(&self, core: usize) -> Ticks {
        self.processors.get(&core).copied().unwrap_or_default()
    }

    /// The other processes by what they used, most first. What a process used that has ended meanwhile is in its parent's
    /// account of children, with all that it had used before.
    fn others(&self, before: &Look, window: u64) -> Vec<OtherProcess> {
        let is_other = |p: &Stat| !self.own.contains(&p.id) && !before.own.contains(&p.id);
        let same = |p: &Stat, of: &BTreeMap<u32, Stat>| of.get(&p.id).is_some_and(|q| q.started == p.started);
        let total = |p: &Stat| p.own + p.children;
        let mut inherited: BTreeMap<u32, u64> = BTreeMap::new();
        for ended in before.processes.values().filter(|p| !same(p, &self.processes)) {
            let mut heir = ended.parent;
            // Its own parent may have ended, too.
            while let Some(parent) = before.processes.get(&heir).filter(|p| !same(p, &self.processes)) {
                heir = parent.parent;
            }
            *inherited.entry(heir).or_default() += total(ended);
        }
        let mut others: Vec<OtherProcess> = self
            .processes
            .values()
            .filter(|p| is_other(p) && !carries_packets(&p.name))
            .map(|p| {
                let then = before.processes.get(&p.id).filter(|q| q.started == p.started).map_or(0, total);
                let known = then + inherited.get(&p.id).copied().unwrap_or(0);
                let used = total(p).saturating_sub(known) * TICK;
                OtherProcess { pid: p.id, name: p.name.clone(), share: share(used, window) }
            })
            .filter(|o| o.share > 0.0)
            .collect();
        others.sort_by(|a, b| b.share.total_cmp(&a.share));
        others
    }
}

/// What a thread did since an earlier look; since its start if there was none.
fn gone_by(now: &Thread, then: Option<&Thread>) -> Thread {
    let since = |now: u64, then: Option<u64>| now.saturating_sub(then.unwrap_or(0));
    Thread {
        ran: since(now.ran, then.map(|t| t.ran)),
        waited: now.waited.map(|waited| since(waited, then.and_then(|t| t.waited))),
        preempted: since(now.preempted, then.map(|t| t.preempted)),
        ..now.clone()
    }
}

fn share(part: u64, whole: u64) -> f64 {
    (part as f64 / whole.max(1) as f64).min(1_000.0)
}
