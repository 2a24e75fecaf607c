//! Threads and receive queues: starting and ending workers, placing and moving queues while packets flow.

use std::cell::RefMut;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::thread::JoinHandle;
use std::time::Duration;

use shoal_infra::spsc;

use super::ask::{Asked, LatePolicy, WaitLimit};
use super::{Graph, GraphError};
use crate::MAX_THREADS;
use crate::handoff::RING_FRAMES;
use crate::lane::Lane;
use crate::monitor::Monitoring;
use crate::node::NodeIndex;
use crate::process::{Processes, Wake};
use crate::rx::{QueueCount, QueueId, RxMode, RxQueue};
use crate::stall::ThreadList;
use crate::state::{Share, States};
use crate::thread::ThreadShared;
use crate::trace::Tracer;
use crate::worker::{Round, Worker};

/// Between two looks at a worker that ends: it takes some hundred microseconds.
const LOOK: Duration = Duration::from_micros(50);
/// Looks before its threads' patience counts.
const LOOKS: u32 = 200;

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

/// A worker that ends: others still have to let go of it.
struct RetiringWorker {
    running: Running,
    stage: Stage,
}

/// What a worker that ends waits for.
enum Stage {
    /// No thread sends to it any more.
    Unlinking(Vec<Waited>),
    /// It handles what it has, gives up what it keeps and ends.
    Ending(Waited, Receiver<Vec<Share>>),
    /// The others have handled what it sent them; then they get what it kept.
    Draining(Vec<Waited>, Vec<Share>),
    /// Nothing.
    Over,
}

/// A thread that has something to do, and whether it has.
struct Waited {
    shared: Arc<ThreadShared>,
    done: Arc<AtomicBool>,
}

impl Stage {
    /// The threads it waits for.
    fn waits_for(&self) -> Vec<Arc<ThreadShared>> {
        let all = match self {
            Stage::Unlinking(all) | Stage::Draining(all, _) => all.iter().collect(),
            Stage::Ending(one, _) => vec![one],
            Stage::Over => Vec::new(),
        };
        let late = all.into_iter().filter(|w| !w.done.load(Ordering::Acquire));
        late.map(|w| Arc::clone(&w.shared)).collect()
    }
}

pub(crate) struct Threads {
    /// The same threads, for those who watch them.
    roster: Arc<ThreadList>,
    /// By number; a hole where a worker was ended.
    running: BTreeMap<usize, Running>,
    queues: BTreeMap<QueueId, QueueInfo>,
    next_queue: u32,
    observers: Vec<Rc<dyn Fn()>>,
    /// Workers that have been ended and wait for a thread that does not move.
    leaving: Vec<RetiringWorker>,
}

impl Threads {
    pub(super) fn new(main: Arc<ThreadShared>) -> Self {
        main.lwp.store(nix::unistd::gettid().as_raw(), Ordering::Relaxed);
        let roster = Arc::new(ThreadList::default());
        roster.enter(Arc::clone(&main));
        let running = BTreeMap::from([(0, Running { shared: main, join: None })]);
        Threads {
            roster,
            running,
            queues: BTreeMap::new(),
            next_queue: 0,
            observers: Vec::new(),
            leaving: Vec::new(),
        }
    }

    pub(super) fn all(&self) -> Vec<Arc<ThreadShared>> {
        self.running.values().map(|r| Arc::clone(&r.shared)).collect()
    }

    pub(super) fn shared(&self, thread: usize) -> Result<Arc<ThreadShared>, GraphError> {
        let there = self.running.get(&thread).map(|r| Arc::clone(&r.shared));
        there.ok_or(GraphError::NoThread(thread, self.running.len()))
    }

    /// The thread with the fewest queues: a worker if there is any that moves.
    fn least_loaded(&self) -> usize {
        let load = |t: usize| self.queues.values().filter(|q| q.thread == t).count();
        let moves = |(thread, running): (&usize, &Running)| {
            (*thread != 0 && running.shared.stuck_for().is_none()).then_some(*thread)
        };
        self.running.iter().filter_map(moves).min_by_key(|t| (load(*t), *t)).unwrap_or(0)
    }

    fn is_taken(&self, number: usize) -> bool {
        self.running.contains_key(&number) || self.leaving.iter().any(|l| l.running.shared.index == number)
    }
}

impl Graph {
    /// Starts a worker thread, pinned to a processor if one is named; tells its number.
    ///
    /// # Errors
    /// Too many threads, or the system refused.
    pub fn add_worker(&self, cpu: Option<usize>) -> Result<usize, GraphError> {
        let number = (1..MAX_THREADS)
            .find(|n| !self.registry().is_taken(*n))
            .ok_or(GraphError::TooMany("threads", MAX_THREADS))?;
        self.counters.ensure_threads(number + 1)?;
        let name = format!("vpp_wk_{}", number - 1);
        let shared = ThreadShared::new(number, name.clone())?;
        let (pool, counters) = (Arc::clone(&self.pool), self.graph_counters.clone());
        let (traces, clock) = (Arc::clone(&self.traces), self.clock.clone());
        let (topology, face) = (self.topology.borrow().clone(), Arc::clone(&shared));
        let makers = self.makers.borrow().clone();
        let monitored = self.monitoring.get() == Monitoring::On;
        let observations = self.observations.borrow().clone();
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
            lane.states = States::of(&makers, number).into();
            lane.monitor.count(monitored);
            for (id, make) in observations {
                let observer = make(number);
                lane.monitor.observe(|all| all.add(id, observer));
            }
            let _ended = ThreadEndGuard(Arc::clone(&face));
            Worker::new(lane, topology, face, clock).run();
        };
        let join = std::thread::Builder::new().name(name).spawn(body)?;
        let running = Running { shared: Arc::clone(&shared), join: Some(join) };
        let others = self.registry().all();
        self.threads.borrow_mut().running.insert(number, running);
        self.registry().roster.enter(Arc::clone(&shared));
        for other in others {
            self.join_by_rings(&shared, &other);
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

    /// Lays handoff rings both ways between two threads. One that does not move takes its ends when it does.
    fn join_by_rings(&self, a: &Arc<ThreadShared>, b: &Arc<ThreadShared>) {
        for (from, to) in [(a, b), (b, a)] {
            let (producer, consumer) = spsc::ring(RING_FRAMES);
            let face = Arc::clone(to);
            let (sender, receiver) = (from.index, to.index);
            self.give(to, move |w| w.inbox.connect(sender, consumer));
            self.give(from, move |w| w.lane.outbox.connect(receiver, producer, face));
        }
    }

    /// Something that a thread does in any case: at once, or when it moves again.
    pub(super) fn give(&self, shared: &Arc<ThreadShared>, job: impl FnOnce(&mut Worker) + Send + 'static) {
        if shared.index == 0 {
            return job(&mut self.main.borrow_mut());
        }
        let asked = Asked::post(shared, job);
        if shared.stuck_for().is_none() {
            // What is late comes later.
            let _ = asked.wait(LatePolicy::Do);
        }
    }

    /// The same for all threads, without waiting.
    fn give_all(&self, job: impl Fn(&mut Worker) + Clone + Send + 'static) -> Vec<Waited> {
        let give = |shared: Arc<ThreadShared>| {
            let (job, done) = (job.clone(), Arc::new(AtomicBool::new(false)));
            let tell = Arc::clone(&done);
            shared.post(Box::new(move |worker| {
                job(worker);
                tell.store(true, Ordering::Release);
            }));
            Waited { shared, done }
        };
        let all = self.others().into_iter().map(give).collect();
        job(&mut self.main.borrow_mut());
        all
    }

    /// Ends a worker thread after moving its queues to the others; packets on their way to it are still handled. When
    /// a thread stops moving just now, the worker ends as soon as that one moves again.
    ///
    /// # Errors
    /// There is no such worker, or a thread does not move; nothing is changed then, but that some of the worker's queues
    /// may have moved.
    pub fn remove_worker(&self, thread: usize) -> Result<(), GraphError> {
        if thread == 0 {
            return Err(GraphError::System("the main thread, 0, cannot be removed".into()));
        }
        self.registry().shared(thread)?;
        // All let go of it, so all must move.
        self.all_move()?;
        let Some(running) = self.threads.borrow_mut().running.remove(&thread) else {
            return Err(GraphError::NoThread(thread, self.registry().running.len()));
        };
        self.tell_observers();
        self.reshard();
        let queues: Vec<QueueInfo> =
            self.registry().queues.values().filter(|q| q.thread == thread).cloned().collect();
        for queue in queues {
            let to = self.registry().least_loaded();
            if let Err(why) = self.move_from(&running.shared, &queue, to) {
                self.threads.borrow_mut().running.insert(thread, running);
                self.tell_observers();
                self.reshard();
                return Err(why);
            }
        }
        // No thread sends to it any more; it empties its rings and ends.
        let stage = Stage::Unlinking(self.give_all(move |w| w.disconnect(thread)));
        let mut leaving = RetiringWorker { running, stage };
        let mut looks = 0;
        let mut patience: Vec<WaitLimit> = Vec::new();
        while !self.advance(&mut leaving)? {
            std::thread::sleep(LOOK);
            looks += 1;
            if looks % LOOKS != 0 {
                continue;
            }
            let late = leaving.stage.waits_for();
            patience.retain(|p| late.iter().any(|s| p.is_for(s)));
            for shared in &late {
                if !patience.iter().any(|p| p.is_for(shared)) {
                    patience.push(WaitLimit::new(shared));
                }
            }
            if patience.iter_mut().any(WaitLimit::is_over) {
                tracing::warn!("worker {} ends as soon as a thread moves that does not", thread - 1);
                self.threads.borrow_mut().leaving.push(leaving);
                return Ok(());
            }
        }
        Ok(())
    }

    /// Goes on with the end of a worker as far as that can be done now; tells whether it has ended.
    fn advance(&self, leaving: &mut RetiringWorker) -> Result<bool, GraphError> {
        let shared = Arc::clone(&leaving.running.shared);
        let thread = shared.index;
        while leaving.stage.waits_for().is_empty() {
            leaving.stage = match std::mem::replace(&mut leaving.stage, Stage::Over) {
                Stage::Unlinking(_) => {
                    let states = self.give_up_states(&shared);
                    shared.ask_to_stop_after_mail();
                    let end = Waited { shared: Arc::clone(&shared), done: Arc::clone(&shared.ended) };
                    Stage::Ending(end, states)
                }
                Stage::Ending(_, states) => {
                    if let Some(join) = leaving.running.join.take() {
                        join.join()
                            .map_err(|_| GraphError::System(format!("worker {thread} ended badly")))?;
                    }
                    self.registry().roster.leave(thread);
                    let drained = self.give_all(move |w| {
                        w.round_inbox();
                        w.inbox.disconnect(thread);
                    });
                    Stage::Draining(drained, states.try_recv().unwrap_or_default())
                }
                Stage::Draining(_, states) => {
                    self.deliver(states);
                    self.events.write(0, format!("worker {} ended", thread - 1));
                    return Ok(true);
                }
                Stage::Over => return Ok(true),
            };
        }
        Ok(false)
    }

    /// Goes on with workers whose end waited for a thread.
    fn advance_leaving(&self) {
        if self.registry().leaving.is_empty() {
            return;
        }
        let leaving = std::mem::take(&mut self.threads.borrow_mut().leaving);
        for mut one in leaving {
            match self.advance(&mut one) {
                Ok(true) => {}
                Ok(false) => self.threads.borrow_mut().leaving.push(one),
                Err(why) => tracing::warn!("{why}"),
            }
        }
    }

    /// Ends all workers.
    ///
    /// # Errors
    /// A thread does not move; those that could be ended have ended.
    pub fn stop_workers(&self) -> Result<(), GraphError> {
        let workers: Vec<usize> = self.registry().running.keys().copied().filter(|t| *t != 0).collect();
        let ended = workers.into_iter().map(|worker| self.remove_worker(worker));
        let ended = ended.fold(Ok(()), Result::and);
        let left = self.registry().leaving.iter().flat_map(|l| l.stage.waits_for()).next();
        left.map_or(ended, |shared| Err(shared.stuck()))
    }

    /// Places a receive queue on the given thread, or on the one with the fewest queues.
    ///
    /// # Errors
    /// There is no such thread, or it does not move.
    pub fn add_queue(
        &self,
        interface: &str,
        number: u32,
        node: NodeIndex,
        thread: Option<usize>,
        queue: Box<dyn RxQueue>,
    ) -> Result<QueueId, GraphError> {
        let thread = match thread {
            Some(thread) => {
                let shared = self.registry().shared(thread)?;
                shared.must_move()?;
                shared.index
            }
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
        let shared = self.registry().shared(thread)?;
        self.threads.borrow_mut().queues.insert(id, info.clone());
        self.give(&shared, adoption(&info, queue));
        Ok(id)
    }

    /// Takes a receive queue off its thread; it is not called again. `None` when its thread does not move: the queue is
    /// given up before the thread's next round.
    ///
    /// # Errors
    /// There is no such queue.
    pub fn remove_queue(&self, id: QueueId) -> Result<Option<Box<dyn RxQueue>>, GraphError> {
        let info = self.threads.borrow_mut().queues.remove(&id).ok_or(GraphError::NoQueue(id.0))?;
        if info.thread == 0 {
            return Ok(self.main.borrow_mut().release(id));
        }
        let shared = self.registry().shared(info.thread)?;
        let asked = Asked::post(&shared, move |w| w.release(id));
        if shared.stuck_for().is_some() {
            return Ok(None);
        }
        Ok(asked.wait(LatePolicy::Do).ok().flatten())
    }

    /// Moves a receive queue to another thread. What its device holds waits for it there.
    ///
    /// # Errors
    /// There is no such queue or thread, or one of the threads does not move; nothing is changed then.
    pub fn move_queue(&self, id: QueueId, thread: usize) -> Result<(), GraphError> {
        self.registry().shared(thread)?;
        let info = self.registry().queues.get(&id).cloned().ok_or(GraphError::NoQueue(id.0))?;
        if info.thread == thread {
            return Ok(());
        }
        let from = self.registry().shared(info.thread)?;
        self.move_from(&from, &info, thread)?;
        self.events.write(0, format!("queue {} of {} moved to thread {thread}", info.queue, info.interface));
        Ok(())
    }

    /// Moves a queue: the thread that has it hands it to the other one, so that it is never lost on the way.
    fn move_from(&self, from: &Arc<ThreadShared>, info: &QueueInfo, to: usize) -> Result<(), GraphError> {
        let to = self.registry().shared(to)?;
        from.must_move()?;
        to.must_move()?;
        let (face, moved) = (Arc::clone(&to), info.clone());
        let hand_over = move |w: &mut Worker| {
            let queue = w.release(moved.id);
            let is_there = queue.is_some();
            if let Some(queue) = queue {
                face.post(Box::new(adoption(&moved, queue)));
            }
            is_there
        };
        let is_there = if from.index == 0 {
            hand_over(&mut self.main.borrow_mut())
        } else {
            Asked::post(from, hand_over).wait(LatePolicy::Withdraw)?
        };
        if !is_there {
            return Err(GraphError::NoQueue(info.id.0));
        }
        if let Some(known) = self.threads.borrow_mut().queues.get_mut(&info.id) {
            known.thread = to.index;
        }
        // What is in its mail comes first.
        self.give(&to, |_| ());
        if to.index == 0 {
            self.main.borrow_mut().read_mail();
        }
        Ok(())
    }

    /// Changes how its thread waits for a queue.
    ///
    /// # Errors
    /// There is no such queue, or its thread does not move.
    pub fn set_queue_mode(&self, id: QueueId, mode: RxMode) -> Result<(), GraphError> {
        let thread = self.registry().queues.get(&id).ok_or(GraphError::NoQueue(id.0))?.thread;
        self.on_thread(thread, move |w| w.set_mode(id, mode))?;
        if let Some(info) = self.threads.borrow_mut().queues.get_mut(&id) {
            info.mode = mode;
        }
        Ok(())
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

    /// The threads, for those who watch them from a thread of their own.
    pub fn roster(&self) -> Arc<ThreadList> {
        Arc::clone(&self.registry().roster)
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

    /// Gives back unused buffers, and gets more before they run out.
    pub fn housekeeping(&self) {
        self.advance_leaving();
        self.reshard_late();
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

/// What a thread does to take a queue.
fn adoption(info: &QueueInfo, queue: Box<dyn RxQueue>) -> impl FnOnce(&mut Worker) + Send + use<> {
    let (id, node, mode, count) = (info.id, info.node, info.mode, Arc::clone(&info.count));
    move |w| w.adopt(id, node, mode, (queue, count))
}

/// Says that a thread has ended, even when a node panics.
struct ThreadEndGuard(Arc<ThreadShared>);

impl Drop for ThreadEndGuard {
    fn drop(&mut self) {
        self.0.ended.store(true, Ordering::Release);
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
