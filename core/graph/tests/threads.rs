//! Real threads: packets are handed from one to another, workers and queues come, move and go, and every packet is
//! accounted for: what came in is what came out and what was dropped with a name.

#![allow(clippy::unwrap_used)] // helpers of tests

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use shoal_buffer::{Frame, Pages, PoolConfig};
use shoal_derive::{ErrorCounters, NextNodes};
use shoal_graph::handoff::Sent;
use shoal_graph::{
    Clock, Edge, FrameCx, FrameNode, Graph, GraphConfig, NoError, NoNext, NodeIndex, RxMode, RxQueue,
};

/// A test that waits longer has failed.
const PATIENCE: Duration = Duration::from_mins(1);

#[derive(NextNodes, Clone, Copy, Debug)]
enum ToEnd {
    #[node("test-end")]
    #[allow(dead_code)] // only its name is needed
    End,
}

/// Hands packet after packet to the threads in turn.
struct Spread {
    threads: Arc<Mutex<Vec<usize>>>,
    end: Arc<AtomicU64>,
    turn: AtomicUsize,
}

impl FrameNode for Spread {
    const NAME: &'static str = "test-spread";
    type Next = ToEnd;
    type Error = NoError;

    fn frame(&self, frame: &mut Frame, cx: &mut FrameCx<'_>) {
        let threads = self.threads.lock().unwrap().clone();
        let end = NodeIndex::from_number(self.end.load(Ordering::Relaxed) as u32);
        for buffer in frame.drain() {
            let turn = self.turn.fetch_add(1, Ordering::Relaxed);
            let to = threads.get(turn % threads.len().max(1)).copied().unwrap_or(0);
            cx.handoff(to, end, buffer);
        }
    }
}

/// Frees what comes and writes down which packets those were.
struct End {
    count: Arc<AtomicU64>,
    seen: Arc<Mutex<Vec<(usize, u32)>>>,
}

impl FrameNode for End {
    const NAME: &'static str = "test-end";
    type Next = NoNext;
    type Error = NoError;

    fn frame(&self, frame: &mut Frame, cx: &mut FrameCx<'_>) {
        let memory = cx.memory();
        let mut seen = self.seen.lock().unwrap();
        for i in 0..frame.len() {
            seen.push((cx.thread(), frame.packet(memory, i).unwrap().meta().flow_hash));
        }
        self.count.fetch_add(frame.len() as u64, Ordering::Relaxed);
        cx.free_frame(frame);
    }
}

/// Makes numbered packets on request, as many at a time as requested.
struct Source {
    on: Arc<AtomicBool>,
    made: Arc<AtomicU64>,
    burst: usize,
    to: NodeIndex,
}

impl RxQueue for Source {
    fn poll(&mut self, cx: &mut FrameCx<'_>) -> usize {
        if !self.on.load(Ordering::Relaxed) {
            return 0;
        }
        let (mut frame, memory) = (cx.blank(), cx.memory());
        let n = cx.cache().alloc(&mut frame, self.burst);
        let first = self.made.fetch_add(n as u64, Ordering::Relaxed);
        for i in 0..n {
            frame.packet(memory, i).unwrap().meta_mut().flow_hash = (first + i as u64) as u32;
        }
        cx.forward(self.to, frame);
        n
    }
}

/// Stops its thread until it is opened.
#[derive(Clone, Default)]
struct Gate(Arc<(Mutex<(bool, bool)>, Condvar)>);

impl Gate {
    fn open(&self) {
        self.0.0.lock().unwrap().0 = true;
        self.0.1.notify_all();
    }

    /// Waits until a thread stands before it.
    fn reached(&self) {
        let guard = self.0.0.lock().unwrap();
        let (guard, late) = self.0.1.wait_timeout_while(guard, PATIENCE, |(_, reached)| !*reached).unwrap();
        assert!(!late.timed_out(), "no thread comes to the gate");
        drop(guard);
    }
}

impl RxQueue for Gate {
    fn poll(&mut self, _: &mut FrameCx<'_>) -> usize {
        let mut guard = self.0.0.lock().unwrap();
        guard.1 = true;
        self.0.1.notify_all();
        let (_guard, late) = self.0.1.wait_timeout_while(guard, PATIENCE, |(open, _)| !*open).unwrap();
        assert!(!late.timed_out(), "the gate stays closed");
        0
    }
}

struct Bed {
    graph: Rc<Graph>,
    input: NodeIndex,
    spread: NodeIndex,
    threads: Arc<Mutex<Vec<usize>>>,
    on: Arc<AtomicBool>,
    made: Arc<AtomicU64>,
    ended: Arc<AtomicU64>,
    seen: Arc<Mutex<Vec<(usize, u32)>>>,
}

impl Bed {
    fn new() -> Bed {
        Bed::with(16_384)
    }

    fn with(buffers: usize) -> Bed {
        let buffers = PoolConfig { name: "test".into(), buffers, most: buffers, pages: Pages::Small };
        let graph = Graph::new(GraphConfig { buffers, stats_bytes: 1 << 30, clock: Clock::real() }).unwrap();
        let (threads, end_node) = (Arc::<Mutex<Vec<usize>>>::default(), Arc::new(AtomicU64::new(0)));
        let (ended, seen) = (Arc::<AtomicU64>::default(), Arc::<Mutex<Vec<_>>>::default());
        let end = graph.add_frame(End { count: Arc::clone(&ended), seen: Arc::clone(&seen) }).unwrap();
        end_node.store(u64::from(end.number()), Ordering::Relaxed);
        let spread = Spread { threads: Arc::clone(&threads), end: end_node, turn: AtomicUsize::new(0) };
        let spread = graph.add_frame(spread).unwrap();
        let input = graph.add_input::<NoNext, NoError>("test-input").unwrap();
        graph.build().unwrap();
        let (on, made) = (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
        Bed { graph, input, spread, threads, on, made, ended, seen }
    }

    fn source(&self, thread: usize, burst: usize) -> shoal_graph::QueueId {
        let (on, made) = (Arc::clone(&self.on), Arc::clone(&self.made));
        let source = Source { on, made, burst, to: self.spread };
        self.graph.add_queue("test", 0, self.input, Some(thread), Box::new(source)).unwrap()
    }

    fn spread_to(&self, threads: &[usize]) {
        *self.threads.lock().unwrap() = threads.to_vec();
    }

    fn full(&self) -> u64 {
        self.graph.error_count("error-drop", "handoff ring full").unwrap()
    }

    /// Stops the sources and waits until every packet has come to its end or was dropped.
    fn settle(&self) {
        self.on.store(false, Ordering::Relaxed);
        // After this no source is in the middle of a poll.
        self.graph.barrier(Duration::from_secs(10)).unwrap();
        let deadline = Instant::now() + PATIENCE;
        loop {
            self.graph.round();
            let (made, ended) = (self.made.load(Ordering::Relaxed), self.ended.load(Ordering::Relaxed));
            if made == ended + self.full() {
                break;
            }
            assert!(Instant::now() < deadline, "{made} in, {ended} out, {} dropped", self.full());
            std::thread::yield_now();
        }
    }

    /// Everything balanced.
    fn check(self) {
        self.settle();
        self.graph.stop_workers().unwrap();
        self.graph.round();
        for what in ["left in a frame by a node", "interface or node was deleted"] {
            assert_eq!(self.graph.error_count("error-drop", what), Some(0));
        }
        assert_eq!(self.graph.pool().stats().used, 0);
        let mut seen: Vec<_> = self.seen.lock().unwrap().iter().map(|(_, n)| *n).collect();
        let n = seen.len();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), n, "a packet came twice");
    }

    /// Runs the main thread for as long as it takes until `packets` more were made.
    fn until_made(&self, packets: u64) {
        let (goal, deadline) = (self.made.load(Ordering::Relaxed) + packets, Instant::now() + PATIENCE);
        while self.made.load(Ordering::Relaxed) < goal {
            assert!(Instant::now() < deadline, "the sources stand still");
            self.graph.round();
            std::thread::yield_now();
        }
    }
}

/// A worker that takes nothing until the gate is opened.
fn stopped(bed: &Bed) -> (usize, Gate, shoal_graph::QueueId) {
    let worker = bed.graph.add_worker(None).unwrap();
    bed.spread_to(&[worker]);
    let gate = Gate::default();
    let queue = bed.graph.add_queue("gate", 0, bed.input, Some(worker), Box::new(gate.clone())).unwrap();
    gate.reached();
    (worker, gate, queue)
}

fn ring(bed: &Bed, to: usize) -> shoal_graph::RingInfo {
    bed.graph.handoff_rings().into_iter().find(|r| (r.from, r.to) == (0, to)).unwrap()
}

#[test]
fn a_full_ring_drops_and_counts_and_the_rest_arrives_in_order() {
    let bed = Bed::with(32_768);
    let (worker, gate, queue) = stopped(&bed);
    bed.source(0, 256);
    bed.on.store(true, Ordering::Relaxed);
    // A full frame each round, for a thread that takes none. The ring holds 64, and one waits in front of it.
    for _ in 0..100 {
        bed.graph.round();
    }
    assert_eq!(bed.made.load(Ordering::Relaxed), 25_600);
    assert_eq!(bed.full(), 35 * 256);
    gate.open();
    let sent = Sent { frames: 64, packets: 64 * 256, dropped: 35 * 256 };
    let found = ring(&bed, worker);
    assert_eq!((found.capacity, found.sent), (64, sent));
    bed.on.store(false, Ordering::Relaxed);
    drop(bed.graph.remove_queue(queue).unwrap());
    bed.settle();
    let seen = bed.seen.lock().unwrap().clone();
    let last = 99 * 256..100 * 256;
    let wanted: Vec<_> = (0..64 * 256).chain(last).map(|n| (worker, n)).collect();
    assert_eq!(seen, wanted);
    // The ring is as good as new.
    bed.on.store(true, Ordering::Relaxed);
    bed.until_made(10);
    bed.check();
}

#[test]
fn short_frames_for_a_thread_that_is_behind_wait_until_they_are_full() {
    let bed = Bed::new();
    let (worker, gate, queue) = stopped(&bed);
    bed.source(0, 1);
    bed.on.store(true, Ordering::Relaxed);
    // The first 32 leave at once, the others fill frames: 300 packets need no more than 34 places.
    for _ in 0..300 {
        bed.graph.round();
    }
    gate.open();
    bed.on.store(false, Ordering::Relaxed);
    drop(bed.graph.remove_queue(queue).unwrap());
    bed.settle();
    assert_eq!((bed.full(), ring(&bed, worker).sent), (0, Sent { frames: 34, packets: 300, dropped: 0 }));
    assert_eq!(*bed.seen.lock().unwrap(), (0..300).map(|n| (worker, n)).collect::<Vec<_>>());
    bed.check();
}

#[test]
fn packets_kept_back_for_a_worker_that_is_ended_are_handled_here() {
    let bed = Bed::new();
    let (worker, gate, _) = stopped(&bed);
    bed.source(0, 1);
    bed.on.store(true, Ordering::Relaxed);
    for _ in 0..50 {
        bed.graph.round();
    }
    assert!(bed.graph.round().worked, "packets that wait are work");
    bed.on.store(false, Ordering::Relaxed);
    gate.open();
    bed.graph.remove_worker(worker).unwrap();
    bed.settle();
    assert_eq!((bed.full(), bed.seen.lock().unwrap().len()), (0, 51));
    bed.check();
}

#[test]
fn a_queue_keeps_its_count_when_it_moves() {
    let bed = Bed::new();
    let worker = bed.graph.add_worker(None).unwrap();
    bed.spread_to(&[0]);
    let queue = bed.source(0, 4);
    bed.on.store(true, Ordering::Relaxed);
    bed.graph.round();
    bed.graph.round();
    let count = || bed.graph.queues().into_iter().find(|q| q.id == queue).unwrap().count.get();
    assert_eq!(count(), (2, 8));
    bed.graph.move_queue(queue, worker).unwrap();
    bed.until_made(4);
    bed.settle();
    assert_eq!(count().1, bed.made.load(Ordering::Relaxed));
    let load = bed.graph.threads().iter().find(|t| t.index == 0).unwrap().load();
    assert_eq!((load.packets - load.handed, load.packets), (8, bed.made.load(Ordering::Relaxed)));
    bed.check();
}

#[test]
fn who_observes_workers_hears_of_each_that_comes_and_goes() {
    let bed = Bed::new();
    let heard = Rc::new(std::cell::RefCell::new(Vec::new()));
    let (ear, graph) = (Rc::clone(&heard), Rc::downgrade(&bed.graph));
    bed.graph.observe_workers(move || {
        let there: Vec<usize> = graph.upgrade().unwrap().threads().iter().map(|t| t.index).collect();
        ear.borrow_mut().push(there);
    });
    bed.graph.add_worker(None).unwrap();
    bed.graph.add_worker(None).unwrap();
    bed.graph.remove_worker(1).unwrap();
    assert_eq!(*heard.borrow(), [vec![0, 1], vec![0, 1, 2], vec![0, 2]]);
    bed.check();
}

/// Counts the packets that nodes are run with, by thread; how many there are of it.
struct Count {
    of: Arc<Mutex<BTreeMap<usize, usize>>>,
    thread: usize,
    alive: Arc<()>,
}

impl shoal_graph::Observer for Count {
    fn before(&mut self, _: NodeIndex, name: &str, packets: Option<shoal_graph::Observed<'_>>) {
        if let Some(packets) = packets.filter(|_| name == "test-end") {
            let mut of = self.of.lock().unwrap();
            packets.each(|_| *of.entry(self.thread).or_default() += 1);
        }
        assert!(Arc::strong_count(&self.alive) > 1);
    }

    fn after(&mut self, _: NodeIndex, _: &str, _: usize) {}
}

#[test]
fn observers_see_every_node_of_threads_that_are_there_and_that_come_later() {
    let bed = Bed::new();
    let (of, alive) = (Arc::<Mutex<BTreeMap<usize, usize>>>::default(), Arc::new(()));
    let early = bed.graph.add_worker(None).unwrap();
    let (counted, life) = (Arc::clone(&of), Arc::clone(&alive));
    let make = move |thread| -> Box<dyn shoal_graph::Observer> {
        Box::new(Count { of: Arc::clone(&counted), thread, alive: Arc::clone(&life) })
    };
    let id = bed.graph.observe_nodes(Arc::new(make)).unwrap();
    let late = bed.graph.add_worker(None).unwrap();
    bed.spread_to(&[0, early, late]);
    bed.source(0, 9);
    bed.on.store(true, Ordering::Relaxed);
    bed.until_made(90);
    bed.settle();
    let counted = || of.lock().unwrap().values().sum::<usize>();
    let seen = counted();
    assert_eq!(seen as u64, bed.made.load(Ordering::Relaxed) - bed.full());
    assert_eq!(of.lock().unwrap().len(), 3, "each thread has one of its own");
    bed.graph.end_observation(id);
    assert_eq!(Arc::strong_count(&alive), 1, "all of them went");
    bed.on.store(true, Ordering::Relaxed);
    bed.until_made(90);
    bed.settle();
    assert_eq!(counted(), seen, "nothing looks any more");
    bed.check();
}

#[test]
fn each_thread_notes_packets_by_edge_and_its_dearest_call_until_it_forgets() {
    let bed = Bed::new();
    let spread = bed.graph.node("test-spread").unwrap();
    let end = bed.graph.node("test-end").unwrap();
    bed.spread_to(&[0]);
    bed.source(0, 8);
    bed.on.store(true, Ordering::Relaxed);
    bed.graph.round();
    bed.settle();
    let made = bed.made.load(Ordering::Relaxed);
    let of_main = || bed.graph.ledgers().remove(&0).unwrap();
    assert_eq!(of_main().packets(spread, Edge(1)), made);
    assert_eq!(of_main().packets(spread, Edge::DROP), 0);
    assert!(of_main().slowest_call(end).clocks > 0);
    assert_eq!(of_main().slowest_call(end).vectors, 8);
    // More nodes and edges do not disturb what was noted.
    let more =
        bed.graph.add_frame_named("more", End { count: Arc::default(), seen: Arc::default() }).unwrap();
    let edge = bed.graph.add_edge(spread, more).unwrap();
    assert_eq!((of_main().packets(spread, Edge(1)), of_main().packets(spread, edge)), (made, 0));
    // A node that takes the place of another starts from zero.
    bed.graph.remove(more).unwrap();
    let other =
        bed.graph.add_frame_named("other", End { count: Arc::default(), seen: Arc::default() }).unwrap();
    assert_eq!((other, of_main().slowest_call(other).clocks), (more, 0));
    bed.graph.on_every_thread(shoal_graph::Worker::clear_ledger).unwrap();
    assert_eq!((of_main().packets(spread, Edge(1)), of_main().slowest_call(end).clocks), (0, 0));
    bed.check();
}

#[test]
fn a_packet_for_a_thread_that_is_not_there_stays_where_it_is() {
    let bed = Bed::new();
    bed.spread_to(&[17]);
    bed.source(0, 8);
    bed.on.store(true, Ordering::Relaxed);
    bed.graph.round();
    bed.settle();
    assert_eq!(*bed.seen.lock().unwrap(), (0..8).map(|n| (0, n)).collect::<Vec<_>>());
    bed.check();
}

#[test]
fn handoff_between_threads_in_both_directions_loses_nothing() {
    let bed = Bed::new();
    let workers = [bed.graph.add_worker(None).unwrap(), bed.graph.add_worker(None).unwrap()];
    bed.spread_to(&[0, workers[0], workers[1]]);
    for thread in [0, workers[0], workers[1]] {
        bed.source(thread, 32);
    }
    bed.on.store(true, Ordering::Relaxed);
    bed.until_made(200_000);
    bed.settle();
    let seen = bed.seen.lock().unwrap();
    for thread in [0, workers[0], workers[1]] {
        assert!(seen.iter().any(|(t, _)| *t == thread), "thread {thread} saw no packet");
    }
    drop(seen);
    bed.check();
}

#[test]
fn workers_come_and_go_and_queues_move_under_load_and_nothing_is_lost() {
    let bed = Bed::new();
    let queues = [bed.source(0, 64), bed.source(0, 7)];
    bed.on.store(true, Ordering::Relaxed);
    let mut workers: Vec<usize> = Vec::new();
    for round in 0..40usize {
        if workers.len() < 3 && round % 3 != 2 {
            workers.push(bed.graph.add_worker(None).unwrap());
        } else if let Some(gone) = workers.pop() {
            // Packets are on their way to it, and its queues hold more.
            bed.graph.remove_worker(gone).unwrap();
        }
        // Those that have just gone stay in the list for a while.
        let mut targets = vec![0, 1, 2, 3];
        targets.rotate_left(round % 4);
        bed.spread_to(&targets);
        for (n, queue) in queues.iter().enumerate() {
            let to = workers.get((round + n) % (workers.len() + 1)).copied().unwrap_or(0);
            bed.graph.move_queue(*queue, to).unwrap();
        }
        let mode = [RxMode::Polling, RxMode::Adaptive, RxMode::Interrupt][round % 3];
        bed.graph.set_queue_mode(queues[round % 2], mode).unwrap();
        bed.until_made(1000);
    }
    bed.settle();
    assert!(bed.ended.load(Ordering::Relaxed) > 30_000);
    bed.check();
}

#[test]
fn a_removed_workers_queues_go_on_elsewhere() {
    let bed = Bed::new();
    let worker = bed.graph.add_worker(None).unwrap();
    bed.source(worker, 16);
    bed.spread_to(&[0]);
    bed.on.store(true, Ordering::Relaxed);
    bed.until_made(100);
    bed.graph.remove_worker(worker).unwrap();
    assert_eq!(bed.graph.queues().iter().map(|q| q.thread).collect::<Vec<_>>(), [0]);
    bed.until_made(100);
    bed.check();
}

#[test]
fn nodes_and_edges_are_added_under_load_and_known_everywhere() {
    let bed = Bed::new();
    let worker = bed.graph.add_worker(None).unwrap();
    bed.source(worker, 64);
    bed.spread_to(&[0, worker]);
    bed.on.store(true, Ordering::Relaxed);
    for n in 0..50 {
        let end = End { count: Arc::default(), seen: Arc::default() };
        let node = bed.graph.add_frame_named(&format!("end-{n}"), end).unwrap();
        let edge = bed.graph.add_edge(bed.spread, node).unwrap();
        assert_eq!(bed.graph.add_edge(bed.spread, node).unwrap(), edge, "the same edge the second time");
        bed.until_made(64);
        bed.graph.remove(node).unwrap();
    }
    bed.check();
}

#[test]
fn what_is_not_there_is_named_in_the_error() {
    let bed = Bed::new();
    let queue = bed.source(0, 1);
    assert_eq!(
        bed.graph.move_queue(queue, 5).unwrap_err().to_string(),
        "no thread 5: there is only the main thread, 0"
    );
    assert_eq!(
        bed.graph.remove_worker(3).unwrap_err().to_string(),
        "no thread 3: there is only the main thread, 0"
    );
    assert!(bed.graph.remove_worker(0).is_err());
    drop(bed.graph.remove_queue(queue).unwrap());
    assert!(bed.graph.remove_queue(queue).is_err());
}

#[derive(ErrorCounters, Clone, Copy, Debug)]
enum Why {
    /// first reason
    First,
    /// second reason
    #[allow(dead_code)] // only its counter is needed
    Second,
}

/// Drops everything.
struct Drops;

impl FrameNode for Drops {
    const NAME: &'static str = "drops";
    type Next = NoNext;
    type Error = Why;

    fn frame(&self, frame: &mut Frame, cx: &mut FrameCx<'_>) {
        cx.drop_frame(frame, Why::First);
    }
}

#[test]
fn nodes_come_and_go_for_ever_without_using_up_counters() {
    let bed = Bed::new();
    let drop_one = |node| {
        let mut main = bed.graph.main();
        let buffer = main.cache().alloc_one().unwrap();
        main.inject(node, buffer);
        drop(main);
        bed.graph.round();
    };
    // More counters in all than there is room for.
    for n in 0..33_000 {
        let name = format!("drops-{}", n % 7);
        let node = bed.graph.add_frame_named(&name, Drops).unwrap();
        if n % 1000 == 0 {
            drop_one(node);
            assert_eq!(
                bed.graph.error_count(&name, "first reason"),
                Some(1),
                "a new node's counters begin at 0"
            );
        }
        bed.graph.remove(node).unwrap();
    }
    bed.check();
}
