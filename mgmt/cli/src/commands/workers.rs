//! `show workers`: how much each thread has to do, and how evenly it is shared.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde::Serialize;
use shoal_graph::clock::{Time, tsc, tsc_hz};
use shoal_graph::thread::Load;
use shoal_graph::{Graph, NodeIndex, NodeKind};
use shoal_interface::cli::column::{left, line, number};
use shoal_module::cli::{Args, CliError, Command, Output};
use shoal_module::{Control, InitError};

pub(super) const SHOW: Command =
    Command::new("show workers", "Show the load of threads and receive queues, and how evenly it is shared", show)
        .examples(&["show workers"])
        .doc(
            "Of the last full second. `Queues/s` are packets a thread took from its own receive queues, `Handed/s` those \
             that other threads handed to it. `Clocks` are per packet and of everything the thread did in rounds that \
             had packets. `Imbalance` is the busiest of the workers compared with their mean: 1.00 is even, and as many \
             as there are workers means that one does it all.",
        );

/// How often a look is taken.
const PERIOD: Duration = Duration::from_secs(1);

/// What all threads and queues had done at one moment.
#[derive(Default)]
struct Look {
    at: Time,
    /// The time-stamp counter then.
    clocks: u64,
    threads: BTreeMap<usize, OneLook>,
    /// Packets, by the queue's number.
    queues: BTreeMap<u32, u64>,
}

#[derive(Clone, Copy, Default)]
struct OneLook {
    load: Load,
    vectors: u64,
    calls: u64,
}

impl Look {
    fn new(graph: &Graph) -> Self {
        let inside = |kind| matches!(kind, NodeKind::Internal | NodeKind::Superpath);
        let nodes: Vec<NodeIndex> = {
            let mut all = Vec::new();
            graph.each_node(|index, _, kind| all.extend(inside(kind).then_some(index)));
            all
        };
        let c = graph.graph_counters();
        let of = |thread: usize, load| {
            let sum = |counter: &shoal_graph::counter::Simple| {
                nodes.iter().map(|n| counter.get(thread, n.number() as usize)).sum()
            };
            OneLook { load, vectors: sum(&c.vectors), calls: sum(&c.calls) }
        };
        Look {
            at: graph.clock().now(),
            clocks: tsc(),
            threads: graph.threads().iter().map(|t| (t.index, of(t.index, t.load()))).collect(),
            queues: graph.queues().into_iter().map(|q| (q.id.0, q.count.get().1)).collect(),
        }
    }
}

/// The last two looks.
#[derive(Default)]
pub struct Loads(RefCell<(Look, Look)>);

impl Loads {
    fn look(&self, graph: &Graph) {
        let mut looks = self.0.borrow_mut();
        looks.0 = std::mem::replace(&mut looks.1, Look::new(graph));
    }
}

/// Starts to look once a second.
pub(super) fn start(control: &Rc<Control>) -> Result<(), InitError> {
    let (graph, loads, processes) = (control.graph()?, control.get::<Loads>()?, control.processes()?);
    let sleeper = processes.as_ref().clone();
    processes.spawn("worker-loads", async move {
        loop {
            sleeper.sleep(PERIOD).await;
            loads.look(&graph);
        }
    });
    Ok(())
}

#[derive(Serialize, Default)]
struct OneThread {
    thread: usize,
    name: String,
    lcore: Option<u32>,
    busy_percent: f64,
    queue_packets_per_second: f64,
    handed_packets_per_second: f64,
    clocks_per_packet: f64,
    vectors_per_call: f64,
    loops_per_second: f64,
}

#[derive(Serialize)]
struct OneQueue {
    interface: String,
    queue: u32,
    thread: usize,
    name: String,
    mode: String,
    packets_per_second: f64,
    /// Of what all queues brought.
    share_percent: f64,
}

#[derive(Serialize, PartialEq, Debug)]
struct Imbalance {
    /// The busiest worker's time with packets in hand, compared with the mean of all.
    busy: f64,
    /// The same of packets.
    packets: f64,
}

#[derive(Serialize)]
struct Workers {
    seconds: f64,
    threads: Vec<OneThread>,
    queues: Vec<OneQueue>,
    /// Of the workers; without any, or when nothing was done, there is none.
    imbalance: Option<Imbalance>,
}

fn ratio(a: f64, b: f64) -> f64 {
    if b > 0.0 { a / b } else { 0.0 }
}

/// The largest compared with the mean; `None` of nothing.
fn imbalance(values: impl Iterator<Item = f64> + Clone) -> Option<f64> {
    let (sum, count) = values.clone().fold((0.0, 0.0), |(sum, n), v| (sum + v, n + 1.0));
    (sum > 0.0).then(|| values.fold(0.0, f64::max) * count / sum)
}

fn workers(graph: &Graph, (old, new): (&Look, &Look)) -> Workers {
    let seconds = new.at.since(old.at).as_secs_f64();
    let clocks = new.clocks.wrapping_sub(old.clocks) as f64;
    let each = |n: u64| ratio(n as f64, seconds);
    let threads = graph.threads().into_iter().map(|t| {
        let now = new.threads.get(&t.index).copied().unwrap_or_default();
        // A worker that took the number of another begins at zero.
        let then =
            old.threads.get(&t.index).copied().filter(|o| o.load.loops <= now.load.loops).unwrap_or_default();
        let load = now.load.since(then.load);
        let cpu = t.cpu.load(Ordering::Relaxed);
        OneThread {
            thread: t.index,
            name: t.name.clone(),
            lcore: (cpu != u32::MAX).then_some(cpu),
            busy_percent: (ratio(load.busy as f64, clocks) * 100.0).min(100.0),
            queue_packets_per_second: each(load.packets.saturating_sub(load.handed)),
            handed_packets_per_second: each(load.handed),
            clocks_per_packet: ratio(load.busy as f64, load.packets as f64),
            vectors_per_call: ratio(
                now.vectors.saturating_sub(then.vectors) as f64,
                now.calls.saturating_sub(then.calls) as f64,
            ),
            loops_per_second: each(load.loops),
        }
    });
    let threads: Vec<OneThread> = threads.collect();
    let name = |n| threads.iter().find(|t| t.thread == n).map(|t| t.name.clone()).unwrap_or_default();
    let mut queues: Vec<OneQueue> = graph
        .queues()
        .into_iter()
        .map(|q| {
            let packets = |look: &Look| look.queues.get(&q.id.0).copied().unwrap_or_default();
            OneQueue {
                thread: q.thread,
                name: name(q.thread),
                mode: q.mode.to_string(),
                queue: q.queue,
                interface: q.interface.clone(),
                packets_per_second: each(packets(new).saturating_sub(packets(old))),
                share_percent: 0.0,
            }
        })
        .collect();
    let all: f64 = queues.iter().map(|q| q.packets_per_second).sum();
    for queue in &mut queues {
        queue.share_percent = ratio(queue.packets_per_second, all) * 100.0;
    }
    let mine = threads.iter().filter(|t| t.thread != 0);
    let busy = imbalance(mine.clone().map(|t| t.busy_percent));
    let packets = imbalance(mine.map(|t| t.queue_packets_per_second + t.handed_packets_per_second));
    let imbalance = busy.zip(packets).map(|(busy, packets)| Imbalance { busy, packets });
    Workers { seconds, threads, queues, imbalance }
}

fn show(control: &Control, _: &Args) -> Result<Output, CliError> {
    let (graph, loads) = (control.graph()?, control.get::<Loads>()?);
    let looks = loads.0.borrow();
    Ok(Output::view(workers(&graph, (&looks.0, &looks.1))))
}

impl fmt::Display for Workers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.seconds <= 0.0 {
            return writeln!(f, "no full second yet");
        }
        writeln!(f, "over {:.1} s, {:.2} GHz clocks", self.seconds, tsc_hz() / 1e9)?;
        let heads = ["Busy %", "Queues/s", "Handed/s", "Clocks", "Vectors/Call"].map(|head| number(head, 14));
        f.write_str(&line(&[vec![left("Thread", 14), left("lcore", 7)], heads.to_vec()].concat()))?;
        for t in &self.threads {
            let lcore = t.lcore.map(|n| n.to_string()).unwrap_or_default();
            f.write_str(&line(&[
                left(&t.name, 14),
                left(&lcore, 7),
                number(format_args!("{:.1}", t.busy_percent), 14),
                number(format_args!("{:.0}", t.queue_packets_per_second), 14),
                number(format_args!("{:.0}", t.handed_packets_per_second), 14),
                number(format_args!("{:.1}", t.clocks_per_packet), 14),
                number(format_args!("{:.2}", t.vectors_per_call), 14),
            ]))?;
        }
        if let Some(Imbalance { busy, packets }) = self.imbalance {
            writeln!(f, "Imbalance of workers, most to mean: {busy:.2} by time, {packets:.2} by packets")?;
        }
        if self.queues.is_empty() {
            return writeln!(f, "no receive queues");
        }
        f.write_str(&line(&[
            left("Queue", 30),
            left("Thread", 14),
            left("Mode", 11),
            number("Packets/s", 14),
            number("Share %", 10),
        ]))?;
        self.queues.iter().try_for_each(|q| {
            f.write_str(&line(&[
                left(format_args!("{} queue {}", q.interface, q.queue), 30),
                left(&q.name, 14),
                left(&q.mode, 11),
                number(format_args!("{:.0}", q.packets_per_second), 14),
                number(format_args!("{:.1}", q.share_percent), 10),
            ]))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Router;
    use super::*;

    #[test]
    fn imbalance_is_the_largest_compared_with_the_mean() {
        let of = |values: &[f64]| imbalance(values.iter().copied());
        assert_eq!((of(&[]), of(&[0.0, 0.0])), (None, None));
        assert_eq!(
            (of(&[5.0, 5.0]), of(&[9.0, 0.0, 0.0]), of(&[3.0, 1.0])),
            (Some(1.0), Some(3.0), Some(1.5))
        );
    }

    #[test]
    fn the_last_second_is_shown_by_thread_and_queue() {
        let router = Router::new();
        start(&router.control).unwrap();
        router.pass(0);
        assert_eq!(router.run("show workers"), "no full second yet\n");
        router.pass(1);
        let queue = router.source(40, 0);
        while router.graph().round().worked {}
        router.pass(1);
        let json = router.json("show workers");
        let (main, from) = (&json["threads"][0], &json["queues"][0]);
        assert_eq!(
            (main["name"].as_str(), main["queue_packets_per_second"].as_f64()),
            (Some("vpp_main"), Some(40.0))
        );
        assert_eq!(
            (from["packets_per_second"].as_f64(), from["share_percent"].as_f64()),
            (Some(40.0), Some(100.0))
        );
        assert!(main["clocks_per_packet"].as_f64().unwrap() > 0.0);
        assert_eq!(json["imbalance"], serde_json::Value::Null, "no workers");
        let text = router.run("sh workers");
        assert!(text.contains("vpp_main") && text.contains("local0 queue 0"), "{text}");
        router.graph().remove_queue(queue).unwrap();
        router.pass(2);
        assert!(router.run("show workers").ends_with("no receive queues\n"));
        assert_eq!(router.json("show workers")["threads"][0]["queue_packets_per_second"], 0.0);
    }

    #[test]
    fn one_worker_of_two_that_does_all_is_an_imbalance_of_two() {
        let router = Router::with_clock(shoal_graph::Clock::manual());
        start(&router.control).unwrap();
        router.run("create worker");
        router.run("create worker");
        router.pass(0);
        router.pass(1);
        let queue = router.source(500, 2);
        let brought = || router.graph().queues().first().map_or(0, |q| q.count.get().1);
        let deadline = std::time::Instant::now() + Duration::from_secs(30);
        while brought() < 500 {
            assert!(std::time::Instant::now() < deadline);
            std::thread::yield_now();
        }
        // The round that brought the last one is over.
        router.graph().barrier(std::time::Duration::from_secs(10)).unwrap();
        router.pass(1);
        let json = router.json("show workers");
        assert_eq!(json["imbalance"]["packets"].as_f64(), Some(2.0), "{json}");
        assert_eq!(json["queues"][0]["name"], "vpp_wk_1");
        router.graph().remove_queue(queue).unwrap();
        router.graph().stop_workers().unwrap();
    }
}
