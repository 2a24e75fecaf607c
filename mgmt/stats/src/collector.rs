//! The figures that are not counted packet by packet: heartbeat, rates, memory; taken every update interval.

use std::io;
use std::sync::atomic::Ordering;
use std::time::UNIX_EPOCH;

use shoal_graph::clock::{Time, tsc_hz};
use shoal_graph::counter::{Counters, Number, Simple};
use shoal_graph::{Graph, MAX_THREADS, NodeKind};

/// What a thread had done at the last round.
#[derive(Clone, Copy, Default)]
struct Seen {
    calls: u64,
    vectors: u64,
    loops: u64,
}

/// Memory as VPP lists a heap.
struct Heap(Simple);

impl Heap {
    /// Columns that have a name of their own, by their index.
    const NAMED: [(&'static str, usize); 3] = [("total", 0), ("used", 1), ("free", 2)];
    /// total, used, free, used by mmap, allocated ever, free chunks, releasable.
    const COLUMNS: usize = 7;

    fn new(counters: &Counters, name: &str) -> io::Result<Self> {
        let path = format!("/mem/{name}");
        let heap = counters.simple(&path, Self::COLUMNS)?;
        heap.ensure(Self::COLUMNS);
        for (column, index) in Self::NAMED {
            counters.symlink(&format!("{path}/{column}"), &path, index);
        }
        Ok(Heap(heap))
    }

    fn set(&self, total: u64, used: u64) {
        for (at, value) in [total, used, total.saturating_sub(used)].into_iter().enumerate() {
            set(&self.0, at, value);
        }
    }
}

/// Sets one number in the main thread's row.
fn set(counter: &Simple, at: usize, value: u64) {
    if let Some(cell) = counter.row(0).and_then(|row| row.get(at)) {
        cell.store(value, Ordering::Relaxed);
    }
}

/// The collector and what it remembers of its last round.
pub struct Collector {
    heartbeat: Number,
    last_update: Number,
    vector_rate: Number,
    input_rate: Number,
    workers: Number,
    vector_rates: Simple,
    loops: Simple,
    busy: Simple,
    pool: [Number; 3],
    heap: Heap,
    segment: Heap,
    at: Option<Time>,
    received: u64,
    threads: Vec<Seen>,
}

impl Collector {
    /// Declares everything it collects.
    ///
    /// # Errors
    /// The segment is full.
    pub fn new(graph: &Graph) -> io::Result<Self> {
        let counters = graph.counters();
        let now = graph.clock().wall(Time::default());
        let boot = counters.scalar("/sys/boottime")?;
        boot.set(now.duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs()));
        let pool = graph.pool().stats().name;
        let gauge = |what: &str| counters.gauge(&format!("/buffer-pools/{pool}/{what}"));
        Ok(Collector {
            heartbeat: counters.scalar("/sys/heartbeat")?,
            last_update: counters.scalar("/sys/last_update")?,
            vector_rate: counters.gauge("/sys/vector_rate")?,
            input_rate: counters.gauge("/sys/input_rate")?,
            workers: counters.gauge("/sys/num_worker_threads")?,
            vector_rates: counters.simple("/sys/vector_rate_per_worker", MAX_THREADS)?,
            loops: counters.simple("/sys/loops_per_worker", MAX_THREADS)?,
            busy: counters.simple("/sys/busy_microseconds_per_worker", MAX_THREADS)?,
            pool: [gauge("cached")?, gauge("used")?, gauge("available")?],
            heap: Heap::new(counters, "main heap")?,
            segment: Heap::new(counters, "stat segment")?,
            at: None,
            received: 0,
            threads: vec![Seen::default(); MAX_THREADS],
        })
    }

    /// One round.
    pub fn round(&mut self, graph: &Graph) {
        let now = graph.clock().now();
        let seconds = self.at.map_or(0.0, |at| now.since(at).as_secs_f64());
        self.at = Some(now);
        self.threads(graph, seconds);
        self.input(graph, seconds);
        self.memory(graph);
        self.last_update.set(now.seconds() as u64);
        // Last, because it says that the round is complete.
        self.heartbeat.set(self.heartbeat.get() + 1);
    }

    fn threads(&mut self, graph: &Graph, seconds: f64) {
        let threads = graph.threads();
        let mut internal = Vec::new();
        graph.each_node(|node, _, kind| {
            if kind != NodeKind::Input {
                internal.push(node.number() as usize);
            }
        });
        let length = threads.iter().map(|t| t.index + 1).max().unwrap_or(1);
        self.vector_rates.ensure(length);
        self.loops.ensure(length);
        self.busy.ensure(length);
        let counters = graph.graph_counters();
        let (mut sum, mut counted) = (0.0, 0u32);
        for thread in &threads {
            let Some(seen) = self.threads.get_mut(thread.index) else { continue };
            let total = |c: &Simple| internal.iter().map(|&n| c.get(thread.index, n)).sum::<u64>();
            let load = thread.load();
            set(&self.busy, thread.index, (load.busy as f64 / tsc_hz() * 1e6) as u64);
            let new =
                Seen { calls: total(&counters.calls), vectors: total(&counters.vectors), loops: load.loops };
            // A smaller number is one that was cleared in between.
            let since = |new: u64, old: u64| new.checked_sub(old).unwrap_or(new) as f64;
            let calls = since(new.calls, seen.calls);
            let rate = if calls == 0.0 { 0.0 } else { since(new.vectors, seen.vectors) / calls };
            set(&self.vector_rates, thread.index, rate as u64);
            set(&self.loops, thread.index, per_second(since(new.loops, seen.loops), seconds));
            *seen = new;
            if thread.index > 0 || threads.len() == 1 {
                (sum, counted) = (sum + rate, counted + 1);
            }
        }
        self.vector_rate.set((sum / f64::from(counted.max(1))) as u64);
        self.workers.set(threads.len() as u64 - 1);
    }

    fn input(&mut self, graph: &Graph, seconds: f64) {
        let rx = &graph.graph_counters().rx;
        let received: u64 = (0..rx.len()).map(|i| rx.sum(i).0).sum();
        let new = received.checked_sub(self.received).unwrap_or(received);
        self.input_rate.set(per_second(new as f64, seconds));
        self.received = received;
    }

    fn memory(&self, graph: &Graph) {
        let stats = graph.pool().stats();
        let figures = [stats.cached, stats.used, stats.available];
        self.pool.iter().zip(figures).for_each(|(number, value)| number.set(value as u64));
        let segment = graph.counters().segment();
        self.segment.set(segment.size() as u64, segment.used() as u64);
        if let Some(resident) = resident() {
            // There is no heap of a fixed size: all there is, is used.
            self.heap.set(resident, resident);
        }
    }
}

fn per_second(count: f64, seconds: f64) -> u64 {
    if seconds > 0.0 { (count / seconds) as u64 } else { 0 }
}

/// Bytes of memory that are the process's own and in use.
fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("RssAnon:"))?;
    Some(line.trim().trim_end_matches("kB").trim().parse::<u64>().ok()? * 1024)
}
