//! A worker that does not move: the main thread does not wait for it, changes are made or refused, and when it moves
//! again all that was made holds for it, too.

use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use shoal_buffer::{Frame, Pages, PoolConfig};
use shoal_graph::{
    Clock, FrameCx, FrameNode, Graph, GraphConfig, GraphError, NoError, NoNext, NodeIndex, QueueId, RxQueue,
};

/// A test that waits longer has failed.
const PATIENCE: Duration = Duration::from_mins(1);

/// Whether its thread has come, and whether it may go on.
type State = Arc<(Mutex<(bool, bool)>, Condvar)>;

/// A queue that holds its thread until it is let go.
#[derive(Clone, Default)]
struct Hold(State);

impl Hold {
    fn let_go(&self) {
        self.0.0.lock().unwrap().1 = true;
        self.0.1.notify_all();
    }

    fn holds(&self) {
        let guard = self.0.0.lock().unwrap();
        let (_guard, late) = self.0.1.wait_timeout_while(guard, PATIENCE, |(come, _)| !*come).unwrap();
        assert!(!late.timed_out(), "no thread comes");
    }
}

impl RxQueue for Hold {
    fn poll(&mut self, _: &mut FrameCx<'_>) -> usize {
        let mut guard = self.0.0.lock().unwrap();
        guard.0 = true;
        self.0.1.notify_all();
        let (_guard, late) = self.0.1.wait_timeout_while(guard, PATIENCE, |(_, go)| !*go).unwrap();
        assert!(!late.timed_out(), "the thread is not released");
        0
    }
}

/// A queue that does nothing.
struct Idle;

impl RxQueue for Idle {
    fn poll(&mut self, _: &mut FrameCx<'_>) -> usize {
        0
    }
}

/// Counts what comes.
struct Count(Arc<AtomicU64>);

impl FrameNode for Count {
    const NAME: &'static str = "test-count";
    type Next = NoNext;
    type Error = NoError;

    fn frame(&self, frame: &mut Frame, cx: &mut FrameCx<'_>) {
        self.0.fetch_add(frame.len() as u64, Ordering::Relaxed);
        cx.free_frame(frame);
    }
}

struct Bed {
    graph: Rc<Graph>,
    input: NodeIndex,
    hold: Hold,
    queue: QueueId,
}

/// Two workers, of which the first is held.
fn held() -> Bed {
    let buffers = PoolConfig { name: "test".into(), buffers: 1024, most: 1024, pages: Pages::Small };
    let graph = Graph::new(GraphConfig { buffers, stats_bytes: 1 << 30, clock: Clock::real() }).unwrap();
    let input = graph.add_input::<NoNext, NoError>("test-input").unwrap();
    graph.build().unwrap();
    for _ in 0..2 {
        graph.add_worker(None).unwrap();
    }
    let hold = Hold::default();
    let queue = graph.add_queue("hold", 0, input, Some(1), Box::new(hold.clone())).unwrap();
    hold.holds();
    Bed { graph, input, hold, queue }
}

fn is_stuck<T: std::fmt::Debug>(result: Result<T, GraphError>) {
    let error = result.unwrap_err();
    assert!(matches!(&error, GraphError::Stuck { thread, .. } if thread == "vpp_wk_0"), "{error}");
    assert!(error.to_string().starts_with("thread vpp_wk_0 is stuck: it has not moved for "), "{error}");
}

#[test]
fn a_thread_that_does_not_move_is_waited_for_once_and_what_it_was_asked_is_withdrawn() {
    let bed = held();
    let done = Arc::new(AtomicBool::new(false));
    let ask = || {
        let done = Arc::clone(&done);
        bed.graph.on_thread(1, move |_| done.store(true, Ordering::Relaxed))
    };
    is_stuck(ask());
    // It is known now: ten thousand times a tenth of a second would be a quarter of an hour.
    let begun = Instant::now();
    for _ in 0..10_000 {
        is_stuck(ask());
    }
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    is_stuck(bed.graph.on_every_thread(|_| ()));
    assert_eq!(bed.graph.on_thread(2, |worker| worker.thread()), Ok(2));
    assert_eq!(bed.graph.ledgers().into_keys().collect::<Vec<_>>(), [0, 2], "those that answer");
    bed.hold.let_go();
    bed.graph.barrier(PATIENCE).unwrap();
    assert!(!done.load(Ordering::Relaxed), "what was refused is not done later");
    assert_eq!(bed.graph.on_thread(1, |worker| worker.thread()), Ok(1));
    bed.graph.remove_queue(bed.queue).unwrap();
    bed.graph.stop_workers().unwrap();
}

#[test]
fn nodes_and_queues_come_while_a_worker_is_held_and_it_takes_them_over_when_it_moves() {
    let bed = held();
    is_stuck(bed.graph.on_thread(1, |_| ()));
    let (count, begun) = (Arc::<AtomicU64>::default(), Instant::now());
    let mut last = None;
    // Each is a new picture of the graph; only the newest waits.
    for n in 0..200 {
        let name = format!("test-count-{n}");
        last = Some(bed.graph.add_frame_named(&name, Count(Arc::clone(&count))).unwrap());
    }
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}: a wait for each", begun.elapsed());
    let queue = bed.graph.add_queue("idle", 0, bed.input, None, Box::new(Idle)).unwrap();
    let placed = bed.graph.queues().into_iter().find(|q| q.id == queue).unwrap().thread;
    assert_eq!(placed, 2, "on a worker that moves");
    is_stuck(bed.graph.add_queue("idle", 1, bed.input, Some(1), Box::new(Idle)));
    is_stuck(bed.graph.move_queue(queue, 1));
    is_stuck(bed.graph.move_queue(bed.queue, 2));
    is_stuck(bed.graph.set_queue_mode(bed.queue, shoal_graph::RxMode::Polling));
    is_stuck(bed.graph.remove_worker(1));
    is_stuck(bed.graph.remove_worker(2));
    is_stuck(bed.graph.all_move());
    assert_eq!(bed.graph.threads().len(), 3);
    assert_eq!(bed.graph.add_worker(None), Ok(3));
    // The queue that holds the thread is given up as soon as that returns from it.
    assert!(bed.graph.remove_queue(bed.queue).unwrap().is_none());
    assert!(matches!(bed.graph.remove_queue(bed.queue), Err(GraphError::NoQueue(1))));
    bed.hold.let_go();
    bed.graph.barrier(PATIENCE).unwrap();
    let deadline = Instant::now() + PATIENCE;
    while Arc::strong_count(&bed.hold.0) > 1 {
        assert!(Instant::now() < deadline, "its queue is still there");
        std::thread::yield_now();
    }
    let last = last.unwrap();
    for thread in [1, 2, 3] {
        let sent = bed.graph.on_thread(thread, move |worker| {
            let mut frame = Frame::new();
            assert_eq!(worker.cache().alloc(&mut frame, 1), 1);
            frame.drain().for_each(|buffer| worker.inject(last, buffer));
        });
        sent.unwrap();
    }
    while count.load(Ordering::Relaxed) < 3 {
        assert!(Instant::now() < deadline, "{count:?} packets came to the newest node");
        bed.graph.round();
    }
    bed.graph.move_queue(queue, 1).unwrap();
    bed.graph.stop_workers().unwrap();
    assert_eq!(bed.graph.pool().stats().used, 0);
}

#[test]
fn a_worker_whose_end_waits_for_another_ends_when_that_one_moves() {
    let bed = held();
    // Not known to be stuck yet, and held only from now on: the end of the other worker has begun.
    bed.hold.let_go();
    bed.graph.remove_queue(bed.queue).unwrap();
    let late = Hold::default();
    let graph = Rc::clone(&bed.graph);
    let (then, input) = (late.clone(), bed.input);
    bed.graph.observe_workers(move || {
        if graph.threads().len() == 2 && graph.queues().is_empty() {
            graph.add_queue("hold", 0, input, Some(1), Box::new(then.clone())).unwrap();
            then.holds();
        }
    });
    bed.graph.remove_worker(2).unwrap();
    assert_eq!(bed.graph.threads().len(), 2);
    assert_eq!(bed.graph.roster().threads().len(), 3, "it is still there");
    is_stuck(bed.graph.stop_workers());
    late.let_go();
    let deadline = Instant::now() + PATIENCE;
    while bed.graph.roster().threads().len() > 2 {
        assert!(Instant::now() < deadline, "it does not end");
        bed.graph.housekeeping();
        std::thread::yield_now();
    }
    bed.graph.stop_workers().unwrap();
}
