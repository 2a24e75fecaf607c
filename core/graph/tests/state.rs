//! What a feature keeps on each thread: lent to its nodes, timed, moved with the workers, seen by the control plane.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use shoal_buffer::{Buffer, Frame, Packet, Pages, PoolConfig};
use shoal_derive::{ErrorCounters, NextNodes};
use shoal_graph::clock::Time;
use shoal_graph::{
    Clock, Counts, Cx, FrameCx, FrameNode, Graph, GraphConfig, NextNodes as _, NoError, NoNext, NodeIndex,
    Shares, StateKey, Stateful, StatefulFrameNode, StatefulNode, StatefulStagedNode,
};
use shoal_testkit::Rng;

/// How long a packet is kept.
const KEPT: Duration = Duration::from_millis(10);

#[derive(NextNodes, Clone, Copy, Debug)]
enum ToEnd {
    #[node("test-end")]
    End,
}

#[derive(ErrorCounters, Clone, Copy, Debug)]
enum Error {
    /// seen
    #[severity(info)]
    Seen,
    /// odd ones
    Odd,
}

/// A packet that is kept, and until when.
struct Kept {
    until: Time,
    id: u32,
    buffer: Buffer,
}

/// Keeps packets for a while, each on the thread that its number belongs to.
#[derive(Default)]
struct Keeper {
    workers: Mutex<Vec<usize>>,
    lost: Arc<AtomicU64>,
}

/// What is kept on a thread, in order of age, and how many were seen there.
#[derive(Default)]
struct Keeping {
    kept: Vec<Kept>,
    seen: u64,
}

fn owner(id: u32, workers: &[usize]) -> usize {
    workers[id as usize % workers.len()]
}

fn share_out(kept: Vec<Kept>, workers: &[usize]) -> Shares<Keeping> {
    let mut all: BTreeMap<usize, Keeping> = BTreeMap::new();
    for one in kept {
        all.entry(owner(one.id, workers)).or_default().kept.push(one);
    }
    all.into_iter().collect()
}

impl Stateful for Keeper {
    const NAME: &'static str = "test-keep-timer";
    type Next = ToEnd;
    type Error = Error;
    type State = Keeping;

    fn make(&self, _: usize) -> Keeping {
        Keeping::default()
    }

    fn due(&self, state: &Keeping) -> Option<Time> {
        state.kept.first().map(|kept| kept.until)
    }

    fn expire(&self, state: &mut Keeping, cx: &mut FrameCx<'_>) {
        let now = cx.now();
        // Two at a time, so that there is more left to do.
        let due = state.kept.iter().take(2).filter(|kept| kept.until <= now).count();
        assert!(due > 0, "nothing is due before its time");
        for kept in state.kept.drain(..due) {
            cx.count(Error::Seen, 1);
            cx.send(ToEnd::End.edge(), kept.buffer);
        }
    }

    fn workers(&self, workers: &[usize]) {
        *self.workers.lock().unwrap() = workers.to_vec();
    }

    fn reshard(&self, state: &mut Keeping, here: usize, workers: &[usize]) -> Shares<Keeping> {
        let (stay, go) = state.kept.drain(..).partition(|kept| owner(kept.id, workers) == here);
        state.kept = stay;
        share_out(go, workers)
    }

    fn give_up(&self, ended: Keeping, workers: &[usize]) -> Shares<Keeping> {
        self.lost.fetch_add(ended.seen, Ordering::Relaxed);
        share_out(ended.kept, workers)
    }

    fn adopt(&self, mine: &mut Keeping, other: Keeping, _: &mut FrameCx<'_>) {
        mine.kept.extend(other.kept);
        mine.kept.sort_by_key(|kept| kept.until);
    }
}

/// Takes packets in.
struct Keep;

impl StatefulFrameNode for Keep {
    const NAME: &'static str = "test-keep";
    type Feature = Keeper;
    type Next = NoNext;
    type Error = NoError;

    fn frame(&self, state: &mut Keeping, frame: &mut Frame, cx: &mut FrameCx<'_>) {
        let until = cx.now().after(KEPT);
        for mut buffer in frame.drain() {
            let id = cx.cache().packet(&mut buffer).meta().flow_hash;
            state.seen += 1;
            state.kept.push(Kept { until, id, buffer });
        }
    }
}

/// Frees what comes and writes down what that was.
struct End(Arc<Mutex<Vec<u32>>>);

impl FrameNode for End {
    const NAME: &'static str = "test-end";
    type Next = NoNext;
    type Error = NoError;

    fn frame(&self, frame: &mut Frame, cx: &mut FrameCx<'_>) {
        let memory = cx.memory();
        let ids = (0..frame.len()).map(|i| frame.packet(memory, i).unwrap().meta().flow_hash);
        self.0.lock().unwrap().extend(ids.collect::<Vec<_>>());
        cx.free_frame(frame);
    }
}

struct Bench {
    graph: Rc<Graph>,
    clock: Clock,
    key: StateKey<Keeper>,
    keep: NodeIndex,
    ended: Arc<Mutex<Vec<u32>>>,
}

impl Bench {
    fn new(clock: Clock) -> Bench {
        let buffers = PoolConfig { name: "test".into(), buffers: 4096, most: 4096, pages: Pages::Small };
        let graph = Graph::new(GraphConfig { buffers, stats_bytes: 1 << 30, clock: clock.clone() }).unwrap();
        let ended = Arc::default();
        let key = graph.add_state(Keeper::default()).unwrap();
        let keep = graph.add_stateful_frame(Keep, &key).unwrap();
        graph.add_frame(End(Arc::clone(&ended))).unwrap();
        graph.build().unwrap();
        Bench { graph, clock, key, keep, ended }
    }

    fn workers(&self) -> Vec<usize> {
        self.key.feature().workers.lock().unwrap().clone()
    }

    /// Gives a packet to the thread it belongs to.
    fn send(&self, id: u32) {
        let keep = self.keep;
        let to = owner(id, &self.workers());
        self.graph
            .on_thread(to, move |worker| {
                let mut buffer = worker.cache().alloc_data(b"kept").unwrap();
                worker.cache().packet(&mut buffer).meta_mut().flow_hash = id;
                worker.inject(keep, buffer);
            })
            .unwrap();
    }

    /// Runs all threads until nothing is left to do now.
    fn settle(&self) {
        loop {
            let before = self.ended.lock().unwrap().len();
            let mut worked = self.graph.round().worked;
            for _ in 0..3 {
                self.graph.barrier(Duration::from_mins(1)).unwrap();
                worked |= self.graph.round().worked;
            }
            let next = self.graph.next_timer().unwrap().filter(|next| *next <= self.clock.now());
            if !worked && next.is_none() && self.ended.lock().unwrap().len() == before {
                return;
            }
        }
    }

    /// What is kept, by number: where.
    fn kept(&self) -> BTreeMap<u32, usize> {
        let list = |_: &Keeper, state: &mut Keeping| state.kept.iter().map(|k| k.id).collect::<Vec<_>>();
        let all = self.graph.on_every_state(&self.key, list).unwrap();
        let pairs = all.iter().flat_map(|(thread, ids)| ids.iter().map(|id| (*id, *thread)));
        let (map, count) = (pairs.clone().collect::<BTreeMap<_, _>>(), pairs.count());
        assert_eq!(map.len(), count, "none is kept twice");
        map
    }

    fn in_use(&self) -> usize {
        self.graph.pool().stats().used
    }
}

#[test]
fn what_is_kept_leaves_when_it_is_due_and_not_before() {
    let bench = Bench::new(Clock::manual());
    assert_eq!(bench.graph.next_timer().unwrap(), None);
    for id in 0..5 {
        bench.send(id);
    }
    bench.settle();
    assert_eq!(bench.kept().len(), 5);
    let due = bench.graph.next_timer().unwrap().unwrap();
    assert!(due <= Time::default().after(KEPT), "{due:?}");
    bench.clock.advance(KEPT.checked_sub(Duration::from_nanos(1)).unwrap());
    bench.settle();
    assert_eq!((bench.kept().len(), bench.in_use()), (5, 5));
    // The timer's tick is longer than a nanosecond.
    bench.clock.advance(Duration::from_millis(1));
    bench.settle();
    assert_eq!((bench.kept().len(), bench.in_use()), (0, 0));
    assert_eq!(*bench.ended.lock().unwrap(), [0, 1, 2, 3, 4]);
    assert_eq!(bench.graph.error_count("test-keep-timer", "seen"), Some(5));
    let node = bench.graph.node("test-keep-timer").unwrap().number() as usize;
    assert_eq!(bench.graph.graph_counters().calls.sum(node), 3, "two at a time");
    assert_eq!(bench.graph.next_timer().unwrap(), None);
    assert!(!bench.graph.round().worked);
}

#[test]
fn a_worker_that_sleeps_wakes_for_its_timer() {
    let bench = Bench::new(Clock::real());
    bench.graph.add_worker(None).unwrap();
    let begin = Instant::now();
    for id in 0..20 {
        bench.send(id);
        while bench.ended.lock().unwrap().len() <= id as usize {
            // Nothing else wakes it, but once a second.
            assert!(begin.elapsed() < Duration::from_secs(15), "{id} of 20 after 15 seconds");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    bench.graph.stop_workers().unwrap();
}

#[test]
fn states_move_with_the_workers_and_nothing_is_lost() {
    let seed = Rng::seed(1);
    let mut rng = Rng::new(seed);
    let bench = Bench::new(Clock::manual());
    let (mut next, mut sent, mut threads) = (0, BTreeMap::new(), BTreeSet::new());
    for step in 0..200 {
        match rng.below(10) {
            0 if threads.len() < 4 => {
                threads.insert(bench.graph.add_worker(None).unwrap());
            }
            1 => {
                if let Some(thread) = threads.iter().copied().nth(rng.below(4)) {
                    threads.remove(&thread);
                    bench.graph.remove_worker(thread).unwrap();
                }
            }
            2 | 3 => bench.clock.advance(Duration::from_millis(rng.below(8) as u64)),
            _ => {
                for _ in 0..rng.below(20) {
                    bench.send(next);
                    sent.insert(next, bench.clock.now());
                    next += 1;
                }
            }
        }
        bench.settle();
        let workers = bench.workers();
        let wanted: Vec<usize> = if threads.is_empty() { vec![0] } else { threads.iter().copied().collect() };
        assert_eq!(workers, wanted, "seed {seed} step {step}");
        let kept = bench.kept();
        for (id, thread) in &kept {
            assert_eq!(owner(*id, &workers), *thread, "seed {seed} step {step}: {id} is elsewhere");
        }
        let ended: BTreeSet<u32> = bench.ended.lock().unwrap().iter().copied().collect();
        assert_eq!(ended.len(), bench.ended.lock().unwrap().len(), "seed {seed}: none ends twice");
        for (id, at) in &sent {
            let age = bench.clock.now().since(*at);
            // The timer may be late by a tick.
            let (due, early) = (age >= KEPT + Duration::from_micros(70), age < KEPT);
            assert!(!due || ended.contains(id), "seed {seed} step {step}: {id} is still kept");
            assert!(!early || kept.contains_key(id), "seed {seed} step {step}: {id} is gone");
        }
        assert_eq!(bench.in_use(), kept.len(), "seed {seed} step {step}");
    }
    bench.graph.stop_workers().unwrap();
    bench.clock.advance(KEPT * 2);
    bench.settle();
    assert_eq!(
        (bench.kept().len(), bench.in_use(), bench.ended.lock().unwrap().len()),
        (0, 0, next as usize)
    );
    // All that was counted where workers ended, and here.
    let here = bench.graph.on_state(&bench.key, 0, |_, state| state.seen).unwrap();
    assert_eq!(here + bench.key.feature().lost.load(Ordering::Relaxed), u64::from(next));
}

/// Counts packets, and has two kinds of nodes.
struct Counting;

impl Stateful for Counting {
    const NAME: &'static str = "test-counting-timer";
    type Next = NoNext;
    type Error = NoError;
    type State = (u64, u64);

    fn make(&self, thread: usize) -> (u64, u64) {
        (thread as u64 * 1000, 0)
    }

    fn adopt(&self, mine: &mut (u64, u64), other: (u64, u64), _: &mut FrameCx<'_>) {
        (mine.0, mine.1) = (mine.0 + other.0, mine.1 + other.1);
    }
}

struct CountOne;

impl Counts for CountOne {
    type Error = Error;
}

impl StatefulNode for CountOne {
    const NAME: &'static str = "test-count";
    type Feature = Counting;
    type Next = ToStaged;
    type Trace = String;

    fn packet(
        &self,
        state: &mut (u64, u64),
        pkt: &mut Packet<'_>,
        cx: &mut Cx<'_, Self>,
    ) -> Result<ToStaged, Error> {
        state.0 += 1;
        cx.count(Error::Seen, 1);
        cx.trace(pkt, || format!("{}", state.0));
        if pkt.meta().flow_hash % 2 == 1 { Err(Error::Odd) } else { Ok(ToStaged::Staged) }
    }
}

#[derive(NextNodes, Clone, Copy, Debug)]
enum ToStaged {
    #[node("test-count-staged")]
    Staged,
}

struct CountStaged;

impl Counts for CountStaged {
    type Error = Error;
}

impl StatefulStagedNode for CountStaged {
    const NAME: &'static str = "test-count-staged";
    type Feature = Counting;
    type Next = ToEnd;
    type Trace = &'static str;
    type Key = u32;

    fn prepare(&self, state: &mut (u64, u64), pkt: &Packet<'_>, _: &mut Cx<'_, Self>) -> u32 {
        state.1 += 1;
        pkt.meta().flow_hash
    }

    fn seek(&self, state: &mut (u64, u64), keys: &mut [u32], _: &mut Cx<'_, Self>) {
        state.1 += 100;
        for key in keys {
            *key += 1;
        }
    }

    fn packet(
        &self,
        state: &mut (u64, u64),
        key: u32,
        pkt: &mut Packet<'_>,
        cx: &mut Cx<'_, Self>,
    ) -> Result<ToEnd, Error> {
        assert_eq!(key, pkt.meta().flow_hash + 1, "stages are of one packet");
        state.1 += 10_000;
        cx.count(Error::Seen, 1);
        Ok(ToEnd::End)
    }
}

#[test]
fn nodes_of_all_kinds_are_given_the_state_of_their_thread() {
    let bench = Bench::new(Clock::manual());
    let key = bench.graph.add_state(Counting).unwrap();
    let count = bench.graph.add_stateful(CountOne, &key);
    assert!(count.is_err(), "a next node is not there yet");
    bench.graph.add_stateful_staged(CountStaged, &key).unwrap();
    let count = bench.graph.add_stateful(CountOne, &key).unwrap();
    assert!(bench.graph.add_state(Counting).is_err(), "the name is taken");
    let worker = bench.graph.add_worker(None).unwrap();
    for thread in [0, worker] {
        let send = move |worker: &mut shoal_graph::Worker| {
            for id in 0..80 {
                let mut buffer = worker.cache().alloc_data(b"x").unwrap();
                worker.cache().packet(&mut buffer).meta_mut().flow_hash = id;
                worker.inject(count, buffer);
            }
        };
        bench.graph.on_thread(thread, send).unwrap();
    }
    bench.settle();
    let all = bench.graph.on_every_state(&key, |_, state| *state).unwrap();
    // 40 in each stage; two groups of up to 32.
    let staged = 40 + 2 * 100 + 40 * 10_000;
    assert_eq!(all, BTreeMap::from([(0, (80, staged)), (worker, (1080, staged))]));
    assert_eq!(bench.graph.error_count("test-count", "odd ones"), Some(80));
    assert_eq!(bench.graph.error_count("test-count", "seen"), Some(160));
    assert_eq!(bench.graph.error_count("test-count-staged", "seen"), Some(80));
    // What a thread is told last, it knows before it gives its state up.
    bench.graph.tell_state(&key, 0, |_, s| s.0 += 1).unwrap();
    bench.graph.tell_state(&key, worker, |_, s| s.0 += 2).unwrap();
    bench.graph.remove_worker(worker).unwrap();
    assert_eq!(bench.graph.on_state(&key, 0, |_, s| *s).unwrap(), (1163, 2 * staged));
    assert!(bench.graph.tell_state(&key, worker, |_, _| ()).is_err());
    assert!(bench.graph.on_state(&key, worker, |_, s| *s).is_err());
    assert_eq!(bench.in_use(), 0);
}
