//! Threads and receive queues: starting and ending workers, placing and moving queues while packets flow.

use std::cell::RefMut;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use shoal_infra::spsc;

use super::{Graph, GraphError};
use crate::MAX_THREADS;
use crate::handoff::RING_FRAMES;
use crate::lane::Lane;
use crate::node::NodeIndex;
use crate::process::{Processes, Wake};
use crate::rx::{QueueCount, QueueId, RxMode, RxQueue};
use crate::state::States;
use crate::thread::ThreadShared;
use crate::trace::Tracer;
use crate::worker::{Round, Worker};

/// How long a thread may take to answer before it is called stuck.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// What `show interface rx-placement` prints of a queue.
#[derive(Clone, Debug)]
pub struct QueueInfo {
    /// Its number.
    pub id: QueueId,
    /// The interface's name.
    pub interface: String,
    /// The queue's number on its interface.
    pub queue: u32,
    /// The input node it runs under.
    pub node: NodeIndex,
    /// The thread it is placed on.
    pub thread: usize,
    /// How the thread waits for it.
    pub mode: RxMode,
    /// What it has brought.
    pub count: Arc<QueueCount>,
}

struct Running {
    shared: Arc<ThreadShared>,
    /// `None` for the main thread.
    join: Option<JoinHandle<()>>,
}

pub(crate) struct Threads {
    /// By number; a hole where a worker was ended.
    running: BTreeMap<usize, Running>,
    queues: BTreeMap<QueueId, QueueInfo>,
    next_queue: u32,
    observers: Vec<Rc<dyn Fn()>>,
}

impl Threads {
    pub(super) fn new(main: Arc<ThreadShared>) -> Self {
        main.lwp.store(nix::unistd::gettid().as_raw(), Ordering::Relaxed);
        let running = BTreeMap::from([(0, Running { shared: main, join: None })]);
        Threads { running, queues: BTreeMap::new(), next_queue: 0, observers: Vec::new() }
    }

    pub(super) fn all(&self) -> Vec<Arc<ThreadShared>> {
        self.running.values().map(|r| Arc::clone(&r.shared)).collect()
    }

    fn shared(&self, thread: usize) -> Result<Arc<ThreadShared>, GraphError> {
        let there = self.running.get(&thread).map(|r| Arc::clone(&r.shared));
        there.ok_or(GraphError::NoThread(thread, self.running.len()))
    }

    /// The thread with the fewest queues: a worker if there is any.
    fn least_loaded(&self) -> usize {
        let load = |t: usize| self.queues.values().filter(|q| q.thread == t).count();
        self.running.keys().copied().filter(|t| *t != 0).min_by_key(|t| (load(*t), *t)).unwrap_or(0)
    }
}

impl Graph {
    /// Runs something on one thread between two rounds of its loop, and waits for the answer. Not from inside
    /// a round.
    ///
    /// # Errors
    /// There is no such thread, or it does not answer.
    pub fn on_thread<R: Send + 'static>(
        &self,
        thread: usize,
        job: impl FnOnce(&mut Worker) -> R + Send + 'static,
    ) -> Result<R, GraphError> {
        if thread == 0 {
            return Ok(job(&mut self.main.borrow_mut()));
        }
        let shared = self.registry().shared(thread)?;
        let (answer, wait) = mpsc::sync_channel(1);
        shared.post(Box::new(move |worker| {
            let _ = answer.send(job(worker));
        }));
        wait.recv_timeout(PATIENCE)
            .map_err(|_| GraphError::System(format!("thread {thread} does not answer")))
    }

    /// Runs something on every thread and waits until all have done it.
    ///
    /// # Errors
    /// A thread does not answer.
    pub fn on_every_thread(
        &self,
        job: impl Fn(&mut Worker) + Clone + Send + 'static,
    ) -> Result<(), GraphError> {
        let others: Vec<_> = self.registry().all().into_iter().filter(|s| s.index != 0).collect();
        let (answer, wait) = mpsc::sync_channel(others.len().max(1));
        for shared in &others {
            let (job, answer) = (job.clone(), answer.clone());
            shared.post(Box::new(move |worker| {
                job(worker);
                let _ = answer.send(());
            }));
        }
        job(&mut self.main.borrow_mut());
        for _ in &others {
            wait.recv_timeout(PATIENCE).map_err(|_| GraphError::System("a thread does not answer".into()))?;
        }
        Ok(())
    }

    /// Starts a worker thread, pinned to a processor if one is named; tells its number.
    ///
    /// # Errors
    /// Too many threads, or the system refused.
    pub fn add_worker(&self, cpu: Option<usize>) -> Result<usize, GraphError> {
        let number = (1..MAX_THREADS)
            .find(|n| !self.registry().running.contains_key(n))
            .ok_or(GraphError::TooMany("threads", MAX_THREADS))?;
        self.counters.ensure_threads(number + 1)?;
        let name = format!("vpp_wk_{}", number - 1);
        let shared = ThreadShared::new(number, name.clone())?;
        let (pool, counters) = (Arc::clone(&self.pool), self.graph_counters.clone());
        let (traces, clock) = (Arc::clone(&self.traces), self.clock.clone());
        let (topology, face) = (self.topology.borrow().clone(), Arc::clone(&shared));
        let makers = self.makers.borrow().clone();
        let body = move || {
            face.lwp.store(nix::unistd::gettid().as_raw(), Ordering::Relaxed);
            if let Some(cpu) = cpu {
                match pin(cpu) {
                    Ok(()) => face.cpu.store(cpu as u32, Ordering::Relaxed),
                    Err(e) => tracing::warn!(thread = face.name, cpu, "not pinned: {e}"),
                }
            }
            face.clear_busy();
            let mut lane = Lane::new(number, pool.cache(), counters, Tracer::new(number, traces));
            lane.states = States::of(&makers, number);
            Worker::new(lane, topology, face, clock).run();
        };
        let join = std::thread::Builder::new().name(name).spawn(body)?;
        let running = Running { shared: Arc::clone(&shared), join: Some(join) };
        let others = self.registry().all();
        self.threads.borrow_mut().running.insert(number, running);
        for other in others {
            self.join_by_rings(&shared, &other)?;
        }
        self.events.write(0, format!("worker {} started", number - 1));
        self.tell_observers();
        self.reshard();
        Ok(number)
    }

    /// Calls `observer` whenever a worker was started, and when one is about to end: it is in [`Graph::threads`] no
    /// more, but still takes what is on its way to it.
    pub fn observe_workers(&self, observer: impl Fn() + 'static) {
        self.threads.borrow_mut().observers.push(Rc::new(observer));
    }

    fn tell_observers(&self) {
        let observers = self.registry().observers.clone();
        for tell in observers {
            tell();
        }
    }

    /// Lays handoff rings both ways between two threads.
    fn join_by_rings(&self, a: &Arc<ThreadShared>, b: &Arc<ThreadShared>) -> Result<(), GraphError> {
        for (from, to) in [(a, b), (b, a)] {
            let (producer, consumer) = spsc::ring(RING_FRAMES);
            let (from, to) = (Arc::clone(from), Arc::clone(to));
            let (sender, receiver) = (from.index, to.index);
            self.on_thread(receiver, move |w| w.inbox.connect(sender, consumer))?;
            self.on_thread(sender, move |w| w.lane.outbox.connect(receiver, producer, to))?;
        }
        Ok(())
    }

    /// Ends a worker thread after moving its queues to the others; packets on their way to it are still handled.
    ///
    /// # Errors
    /// There is no such worker.
    pub fn remove_worker(&self, thread: usize) -> Result<(), GraphError> {
        if thread == 0 {
            return Err(GraphError::System("the main thread, 0, cannot be removed".into()));
        }
        let running = self.threads.borrow_mut().running.remove(&thread);
        let Some(running) = running else {
            return Err(GraphError::NoThread(thread, self.registry().running.len()));
        };
        self.tell_observers();
        self.reshard();
        let queues: Vec<QueueInfo> =
            self.registry().queues.values().filter(|q| q.thread == thread).cloned().collect();
        for queue in queues {
            let to = self.registry().least_loaded();
            let (id, (answer, wait)) = (queue.id, mpsc::sync_channel(1));
            running.shared.post(Box::new(move |w| {
                let _ = answer.send(w.release(id));
            }));
            if let Ok(Some(moved)) = wait.recv_timeout(PATIENCE) {
                self.settle(&queue, to, moved)?;
            }
        }
        // Nobody sends to it any more; it empties its rings and ends.
        self.on_every_thread(move |w| w.disconnect(thread))?;
        let states = self.give_up_states(&running.shared);
        running.shared.ask_to_stop_after_mail();
        if let Some(join) = running.join {
            join.join().map_err(|_| GraphError::System(format!("worker {thread} ended badly")))?;
        }
        self.on_every_thread(move |w| {
            w.round_inbox();
            w.inbox.disconnect(thread);
        })?;
        self.deliver(states);
        self.events.write(0, format!("worker {} ended", thread - 1));
        Ok(())
    }

    /// Ends all workers.
    pub fn stop_workers(&self) {
        let workers: Vec<usize> = self.registry().running.keys().copied().filter(|t| *t != 0).collect();
        for worker in workers {
            if let Err(e) = self.remove_worker(worker) {
                tracing::warn!(worker, "{e}");
            }
        }
    }

    /// Places a receive queue on the given thread, or on the one with the fewest queues.
    ///
    /// # Errors
    /// There is no such thread.
    pub fn add_queue(
        &self,
        interface: &str,
        number: u32,
        node: NodeIndex,
        thread: Option<usize>,
        queue: Box<dyn RxQueue>,
    ) -> Result<QueueId, GraphError> {
        let thread = match thread {
            Some(thread) => self.registry().shared(thread)?.index,
            None => self.registry().least_loaded(),
        };
        let id = {
            let mut threads = self.threads.borrow_mut();
            threads.next_queue += 1;
            QueueId(threads.next_queue)
        };
        let info = QueueInfo {
            id,
            interface: interface.to_owned(),
            queue: number,
            node,
            thread,
            mode: RxMode::default(),
            count: Arc::default(),
        };
        self.settle(&info, thread, queue)?;
        Ok(id)
    }

    fn settle(&self, queue: &QueueInfo, thread: usize, moved: Box<dyn RxQueue>) -> Result<(), GraphError> {
        let (id, node, mode, count) = (queue.id, queue.node, queue.mode, Arc::clone(&queue.count));
        let info = QueueInfo { thread, ..queue.clone() };
        self.threads.borrow_mut().queues.insert(id, info);
        self.on_thread(thread, move |w| w.adopt(id, node, mode, (moved, count)))
    }

    /// Takes a receive queue off its thread.
    ///
    /// # Errors
    /// There is no such queue.
    pub fn remove_queue(&self, id: QueueId) -> Result<Box<dyn RxQueue>, GraphError> {
        let info = self.threads.borrow_mut().queues.remove(&id).ok_or(GraphError::NoQueue(id.0))?;
        self.on_thread(info.thread, move |w| w.release(id))?.ok_or(GraphError::NoQueue(id.0))
    }

    /// Moves a receive queue to another thread. What its device holds waits for it there.
    ///
    /// # Errors
    /// There is no such queue or thread; nothing is changed then.
    pub fn move_queue(&self, id: QueueId, thread: usize) -> Result<(), GraphError> {
        self.registry().shared(thread)?;
        let info = self.registry().queues.get(&id).cloned().ok_or(GraphError::NoQueue(id.0))?;
        if info.thread == thread {
            return Ok(());
        }
        let queue = self.on_thread(info.thread, move |w| w.release(id))?.ok_or(GraphError::NoQueue(id.0))?;
        self.settle(&info, thread, queue)?;
        self.events.write(0, format!("queue {} of {} moved to thread {thread}", info.queue, info.interface));
        Ok(())
    }

    /// Changes how its thread waits for a queue.
    ///
    /// # Errors
    /// There is no such queue.
    pub fn set_queue_mode(&self, id: QueueId, mode: RxMode) -> Result<(), GraphError> {
        let thread = {
            let mut threads = self.threads.borrow_mut();
            let info = threads.queues.get_mut(&id).ok_or(GraphError::NoQueue(id.0))?;
            info.mode = mode;
            info.thread
        };
        self.on_thread(thread, move |w| w.set_mode(id, mode))
    }

    /// Calls a receive queue's interface by another name; a queue that is gone is passed over.
    pub fn rename_queue(&self, id: QueueId, interface: &str) {
        if let Some(info) = self.threads.borrow_mut().queues.get_mut(&id) {
            interface.clone_into(&mut info.interface);
        }
    }

    /// All receive queues.
    pub fn queues(&self) -> Vec<QueueInfo> {
        self.registry().queues.values().cloned().collect()
    }

    /// One receive queue.
    pub fn queue(&self, id: QueueId) -> Option<QueueInfo> {
        self.registry().queues.get(&id).cloned()
    }

    /// Makes a thread look at its queues again: one of them has work it did not have before.
    pub fn wake(&self, thread: usize) {
        if let Ok(shared) = self.registry().shared(thread) {
            shared.wake();
        }
    }

    /// One round of the main thread's graph.
    pub fn round(&self) -> Round {
        OfflineAfterwards(self.main.borrow_mut()).0.round()
    }

    /// The main thread's loop: tasks, its part of the graph, rest; until `stop` says so.
    pub fn run(self: &Rc<Self>, processes: &Processes, stop: impl Fn() -> bool) {
        let shared = Arc::clone(self.main.borrow().shared());
        let wake: Arc<dyn Wake> = shared;
        let mut rounds = 0u32;
        while !stop() {
            let ran = processes.run(64, &wake);
            let round = self.round();
            rounds = rounds.wrapping_add(1);
            if !round.worked || rounds.is_multiple_of(1024) {
                self.housekeeping();
            }
            if !ran && !round.worked {
                self.main.borrow_mut().rest(processes.deadline(), || true);
            }
        }
    }

    /// Gives back what nobody uses any more, and gets more buffers before they run out.
    pub fn housekeeping(&self) {
        shoal_infra::qsbr::reclaim();
        if shoal_buffer::lost::count() > 0 {
            self.pool.reclaim_lost();
        }
        if self.pool.wants_to_grow() {
            let more = self.pool.stats().total / 2;
            match self.pool.grow(more) {
                Ok(n) => self.events.write(0, format!("buffer pool grown by {n}")),
                Err(e) => tracing::warn!("buffer pool cannot grow: {e}"),
            }
        }
    }
}

/// Goes off line even when a node panics: a reader that stays on line would stop reclamation for the whole process,
/// and every test beside the failed one would wait for ever.
struct OfflineAfterwards<'a>(RefMut<'a, Worker>);

impl Drop for OfflineAfterwards<'_> {
    fn drop(&mut self) {
        self.0.offline();
    }
}

/// Pins the calling thread to one processor.
fn pin(cpu: usize) -> nix::Result<()> {
    let mut set = nix::sched::CpuSet::new();
    set.set(cpu)?;
    nix::sched::sched_setaffinity(nix::unistd::Pid::from_raw(0), &set)
}
