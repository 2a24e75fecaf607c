//! `ip4-2workers`: do two workers on two processors move twice what one moves alone?
//!
//! Two streams, each on a worker of its own with a processor of its own, come in by the same interface, are looked up
//! in the same table and leave by the same interface. In each round every worker runs alone and both run together, in
//! an order that turns from round to round, and
//!
//! ```text
//! S(2) = rate of both together / (rate of the one alone + rate of the other alone)
//! ```
//!
//! so that a machine that changes its pace between rounds moves all three. The rate is told by the clock on the wall,
//! and by the time the kernel gave to the threads, which other processes of the machine cannot take away.

use std::fmt::Write;
use std::fs;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use shoal_graph::{Graph, NodeIndex};
use shoal_module::Control;
use shoal_pg::Pg;

use crate::Result;
use crate::router;
use crate::scenario::{Ip, PathKind, Routes, Scenario};
use crate::statistics::summary;

/// The scenario's name.
pub const NAME: &str = "ip4-2workers";

/// How long a stream runs before it is measured.
const WARM: Duration = Duration::from_millis(20);
/// How long it is measured.
const WINDOW: Duration = Duration::from_millis(200);
/// Fewest rounds.
const FEWEST: usize = 7;
/// A round counts when no thread had less than this share of its time.
const QUIET: f64 = 0.9;
/// So many times the rounds wanted are made at most, to find as many quiet ones.
const PATIENCE: usize = 2;

const LOAD: Scenario = Scenario {
    name: NAME,
    about: "1 destination, superpath, two workers compared with one alone",
    way: PathKind::Superpath,
    ip: Ip::V4,
    routes: Routes::Same(1),
    frame: 256,
};

/// What many rounds say of one ratio.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Scale {
    pub median: f64,
    /// The best and the worst round.
    pub most: f64,
    pub least: f64,
    /// From the 10th to the 90th percentile, as a share of the median.
    pub spread: f64,
}

/// The scenario's result.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Scaling {
    pub name: String,
    pub cpus: [usize; 2],
    /// Whether the processors are threads of one core: then S(2) says how much of a core they share.
    pub one_core: bool,
    /// Rounds that count, and those that do not because other processes ran.
    pub rounds: usize,
    pub left_out: usize,
    /// Whether too few rounds were quiet, so that all count.
    pub disturbed: bool,
    /// By the clock on the wall.
    pub wall: Scale,
    /// By the time the kernel gave to the threads.
    pub cpu: Scale,
    /// Packets per second and processor, alone and with the other, at the median, by the threads' time.
    pub alone: f64,
    pub together: f64,
    /// Share of the measured time that other processes took from the two threads.
    pub taken: f64,
}

/// One thread in one window.
#[derive(Clone, Copy, Default)]
struct Run {
    packets: f64,
    wall: f64,
    cpu: f64,
}

struct Bed {
    control: Rc<Control>,
    graph: Rc<Graph>,
    path: NodeIndex,
}

const STREAMS: [&str; 2] = ["first", "second"];

impl Bed {
    fn new(cpus: [usize; 2]) -> Result<Self> {
        let (control, graph) = router::start()?;
        for cpu in cpus {
            graph.add_worker(Some(cpu))?;
        }
        let [_, output] = router::interfaces(&control, &LOAD)?;
        router::routes(&control, output, 1)?;
        router::settle(&control)?;
        let pg = control.get::<Pg>()?;
        for (worker, name) in STREAMS.iter().enumerate() {
            let head = format!("{name} worker {worker}");
            let stream = pg.parse_stream(&router::stream4(&head, LOAD.frame, 1))?;
            pg.add_stream(stream)?;
        }
        let path = graph.node("ip4-superpath")?;
        let lwps = graph.threads().iter().map(|t| t.lwp.load(Ordering::Relaxed)).collect::<Vec<_>>();
        if lwps.contains(&0) {
            sleep(WARM);
        }
        Ok(Bed { control, graph, path })
    }

    /// Packets that a worker has forwarded, and the seconds the kernel gave to it.
    fn look(&self, worker: usize) -> (u64, f64) {
        let packets = self.graph.graph_counters().vectors.get(worker + 1, self.path.number() as usize);
        let thread = self.graph.threads().into_iter().find(|t| t.index == worker + 1);
        let lwp = thread.map_or(0, |t| t.lwp.load(Ordering::Relaxed));
        (packets, seconds_on_cpu(lwp))
    }

    /// Runs these workers' streams at once.
    fn measure(&self, workers: &[usize]) -> Result<[Run; 2]> {
        let pg = self.control.get::<Pg>()?;
        let names = || workers.iter().filter_map(|w| STREAMS.get(*w));
        names().try_for_each(|name| pg.enable(name))?;
        sleep(WARM);
        let (begin, before) = (Instant::now(), [self.look(0), self.look(1)]);
        sleep(WINDOW);
        let after = [self.look(0), self.look(1)];
        let wall = begin.elapsed().as_secs_f64();
        names().try_for_each(|name| pg.disable(name))?;
        // No thread is in the middle of a round any more.
        self.graph.barrier(Duration::from_secs(10))?;
        let mut runs = [Run::default(); 2];
        for (run, ((p0, c0), (p1, c1))) in runs.iter_mut().zip(before.into_iter().zip(after)) {
            *run = Run { packets: p1.wrapping_sub(p0) as f64, wall, cpu: c1 - c0 };
        }
        Ok(runs)
    }

    /// Every packet that was made was sent, and no buffer is missing.
    fn verify(&self) -> Result<()> {
        let c = self.graph.graph_counters();
        let sum = |counter: &shoal_graph::counter::Combined| {
            (0..counter.len()).map(|i| counter.sum(i).0).sum::<u64>()
        };
        let (made, sent, used) = (sum(&c.rx), sum(&c.tx), self.graph.pool().stats().used);
        if made == 0 || made != sent || used != 0 {
            return Err(
                format!("{made} packets were made, {sent} sent, {used} buffers are still in use").into()
            );
        }
        Ok(())
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        // The process ends next.
        let _ = self.graph.stop_workers();
    }
}

/// The time the kernel gave to a thread of this process.
fn seconds_on_cpu(lwp: i32) -> f64 {
    let text = fs::read_to_string(format!("/proc/self/task/{lwp}/schedstat")).unwrap_or_default();
    text.split_whitespace().next().and_then(|ns| ns.parse::<f64>().ok()).unwrap_or_default() / 1e9
}

/// Whether two processors are threads of one core.
fn one_core([a, b]: [usize; 2]) -> bool {
    let of = |cpu: usize, what: &str| {
        fs::read_to_string(format!("/sys/devices/system/cpu/cpu{cpu}/topology/{what}")).unwrap_or_default()
    };
    let core = |cpu| (of(cpu, "physical_package_id"), of(cpu, "core_id"));
    !of(a, "core_id").is_empty() && core(a) == core(b)
}

/// What one round says: the ratio by the wall's clock and by the threads' time.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Round {
    wall: f64,
    cpu: f64,
    alone: f64,
    together: f64,
    /// The least share of its time that any of the threads had.
    had: f64,
}

fn round(first: Run, second: Run, both: [Run; 2]) -> Option<Round> {
    let rate = |of: fn(&Run) -> f64, run: &Run| run.packets / of(run);
    let ratio = |of: fn(&Run) -> f64| {
        let alone = rate(of, &first) + rate(of, &second);
        both.iter().map(|run| rate(of, run)).sum::<f64>() / alone
    };
    let (wall, cpu) = (ratio(|r| r.wall), ratio(|r| r.cpu));
    let alone = rate(|r| r.cpu, &first).midpoint(rate(|r| r.cpu, &second));
    let together = both.iter().map(|r| r.packets / r.cpu).sum::<f64>() / 2.0;
    let share = |r: &Run, least: f64| least.min(r.cpu / r.wall);
    let had = [&first, &second].into_iter().chain(&both).fold(1.0, |least, r| share(r, least));
    let round = Round { wall, cpu, alone, together, had };
    [wall, cpu, alone, together].iter().all(|n| n.is_finite()).then_some(round)
}

fn scale(values: impl Iterator<Item = f64> + Clone) -> Scale {
    let all = summary(values.clone()).unwrap_or_default();
    Scale { median: all.median, least: all.min, most: values.fold(0.0, f64::max), spread: all.spread }
}

/// Measures on two of these processors.
pub fn measure(cpus: &[usize], seconds: f64) -> Result<Scaling> {
    let [.., a, b] = *cpus else {
        return Err(format!("{NAME} needs two processors, there is {}", cpus.len()).into());
    };
    let cpus = [a, b];
    let bed = Bed::new(cpus)?;
    let wanted = FEWEST.max((seconds / (3.0 * (WINDOW + WARM).as_secs_f64())).round() as usize);
    let (mut rounds, mut asked, mut had) = (Vec::new(), 0.0, 0.0);
    let quiet = |rounds: &[Round]| rounds.iter().filter(|r| r.had >= QUIET).count();
    for at in 0..wanted * PATIENCE {
        if quiet(&rounds) >= wanted {
            break;
        }
        let mut runs: [[Run; 2]; 3] = Default::default();
        for step in 0..3 {
            let turn = (at + step) % 3;
            let workers: &[usize] = [&[0][..], &[1], &[0, 1]].get(turn).copied().unwrap_or_default();
            if let Some(place) = runs.get_mut(turn) {
                *place = bed.measure(workers)?;
            }
        }
        let [[first, _], [_, second], both] = runs;
        for run in [first, second].iter().chain(&both) {
            asked += run.wall;
            had += run.cpu;
        }
        rounds.extend(round(first, second, both));
    }
    bed.verify()?;
    let (all, disturbed) = (rounds.len(), quiet(&rounds) < 3);
    if !disturbed {
        rounds.retain(|r| r.had >= QUIET);
    }
    let of = |f: fn(&Round) -> f64| summary(rounds.iter().map(f)).unwrap_or_default().median;
    Ok(Scaling {
        name: NAME.into(),
        cpus,
        one_core: one_core(cpus),
        rounds: rounds.len(),
        left_out: all - rounds.len(),
        disturbed,
        wall: scale(rounds.iter().map(|r| r.wall)),
        cpu: scale(rounds.iter().map(|r| r.cpu)),
        alone: of(|r| r.alone),
        together: of(|r| r.together),
        taken: (1.0 - had / asked).max(0.0),
    })
}

/// What is printed of it.
pub fn report(scaling: &Scaling) -> String {
    let Scaling { name, cpus: [a, b], rounds, left_out, wall, cpu, alone, together, taken, .. } = scaling;
    let mut text = format!("{name}: {}{}\n", LOAD.about, if scaling.disturbed { ", DISTURBED" } else { "" });
    let mut line = |what: &str, Scale { median, least, most, spread }: &Scale| {
        let _ = writeln!(
            text,
            "  S(2) by {what:<14} {median:.3} in the median of {rounds} rounds, {least:.3} to {most:.3}, spread {:.1}%",
            spread * 100.0
        );
    };
    line("time on the wall", wall);
    line("threads' time", cpu);
    let _ = writeln!(
        text,
        "  {:.2} million packets per second and processor alone, {:.2} with the other; generation included",
        alone / 1e6,
        together / 1e6
    );
    let _ = writeln!(
        text,
        "  processors {a} and {b}; other processes had {:.1}% of the time, {left_out} rounds are left out for it",
        taken * 100.0
    );
    if scaling.one_core {
        text.push_str("  both are threads of one core: S(2) cannot be near 1 here\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_that_do_not_disturb_each_other_scale_by_one() {
        let run = |packets, cpu| Run { packets, wall: 2.0, cpu };
        let even = round(run(100.0, 2.0), run(300.0, 2.0), [run(100.0, 2.0), run(300.0, 2.0)]).unwrap();
        assert_eq!((even.wall, even.cpu, even.alone), (1.0, 1.0, 100.0));
        // The kernel took half of the second thread's time: only the wall's clock shows it.
        let taken = round(run(100.0, 2.0), run(300.0, 2.0), [run(100.0, 2.0), run(150.0, 1.0)]).unwrap();
        assert!(taken.wall < 0.7 && (taken.cpu - 1.0).abs() < 1e-9, "{taken:?}");
        assert_eq!((even.had, taken.had), (1.0, 0.5));
        assert_eq!(round(run(1.0, 0.0), run(1.0, 0.0), [run(1.0, 1.0), run(1.0, 1.0)]), None);
    }

    #[test]
    fn one_processor_is_not_enough() {
        assert!(measure(&[3], 1.0).unwrap_err().to_string().contains("needs two processors"));
    }

    #[test]
    fn both_workers_forward_and_nothing_is_lost() {
        let cpus = crate::machine::cpus();
        if cpus.len() < 2 {
            eprintln!("SKIP both_workers_forward_and_nothing_is_lost: one processor");
            return;
        }
        let bed = Bed::new([cpus[0], cpus[1]]).unwrap();
        // On a machine that does something else a worker may get no processor for as long as one measurement takes.
        let begun = std::time::Instant::now();
        let until = |workers: &[usize], wanted: [bool; 2]| {
            while bed.measure(workers).unwrap().map(|run| run.packets > 0.0) != wanted {
                assert!(begun.elapsed() < std::time::Duration::from_mins(1), "{workers:?} do not forward");
            }
        };
        until(&[0, 1], [true, true]);
        until(&[1], [false, true]);
        bed.verify().unwrap();
    }
}
