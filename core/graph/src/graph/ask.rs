//! Something is done on a thread between two rounds of its loop. A thread that does not move is not waited for.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use super::{Graph, GraphError};
use crate::thread::ThreadShared;
use crate::topology::Change;
use crate::worker::Worker;

/// How long the main thread waits for one that has a processor to run on.
const PATIENCE: Duration = Duration::from_millis(100);
/// One look at whether it is still worth waiting.
const STEP: Duration = Duration::from_millis(10);
/// Most looks at a thread that has no processor: one that others keep from running is not stuck, but slow.
const MOST_STEPS: u32 = 100;

const WAITS: u8 = 0;
const BEGUN: u8 = 1;
const WITHDRAWN: u8 = 2;

/// What becomes of work that its thread has not begun when the main thread waits no longer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum LatePolicy {
    /// The thread does it when it moves again.
    Do,
    /// It is never done.
    Withdraw,
}

/// How long to wait for one thread.
pub(super) struct WaitLimit {
    shared: Arc<ThreadShared>,
    loops: u64,
    begun: Instant,
    steps: u32,
    /// What the kernel says it has run, at the first look that matters.
    ran: Option<Duration>,
}

impl WaitLimit {
    pub(super) fn new(shared: &Arc<ThreadShared>) -> Self {
        let loops = shared.load().loops;
        WaitLimit { shared: Arc::clone(shared), loops, begun: Instant::now(), steps: 0, ran: None }
    }

    /// Another [`STEP`] has passed in vain; tells whether that was the last one, and marks the thread as stuck then.
    /// Steps are counted, not measured: the main thread, too, may have had no processor.
    pub(super) fn is_over(&mut self) -> bool {
        self.steps += 1;
        if self.shared.load().loops != self.loops {
            // It moves: what it is asked for comes with its next round.
            self.loops = self.shared.load().loops;
            self.ran = None;
            return self.steps >= MOST_STEPS;
        }
        if STEP * self.steps < PATIENCE {
            return false;
        }
        if self.steps < MOST_STEPS && self.is_starved() {
            return false;
        }
        self.shared.mark_stuck(self.loops, self.begun.elapsed());
        true
    }

    /// Whether it is for this thread.
    pub(super) fn is_for(&self, shared: &Arc<ThreadShared>) -> bool {
        Arc::ptr_eq(&self.shared, shared)
    }

    /// Whether the thread could run and has not run for as long as it may take.
    fn is_starved(&mut self) -> bool {
        let Some((can_run, ran)) = self.shared.ran() else { return false };
        let first = *self.ran.get_or_insert(ran);
        can_run && ran.saturating_sub(first) < PATIENCE / 2
    }
}

/// Work that a thread was given.
pub(super) struct Asked<R> {
    answer: Receiver<R>,
    ticket: Arc<AtomicU8>,
    patience: WaitLimit,
}

impl<R: Send + 'static> Asked<R> {
    /// Gives a thread something to do.
    pub(super) fn post(
        shared: &Arc<ThreadShared>,
        job: impl FnOnce(&mut Worker) -> R + Send + 'static,
    ) -> Self {
        let (sender, answer) = sync_channel(1);
        let ticket = Arc::new(AtomicU8::new(WAITS));
        let patience = WaitLimit::new(shared);
        let mine = Arc::clone(&ticket);
        shared.post(Box::new(move |worker| {
            if mine.compare_exchange(WAITS, BEGUN, Ordering::AcqRel, Ordering::Acquire).is_ok() {
                // The one who asked may have gone.
                let _ = sender.send(job(worker));
            }
        }));
        Asked { answer, ticket, patience }
    }

    /// Waits for the answer for as long as the thread may take.
    pub(super) fn wait(mut self, late: LatePolicy) -> Result<R, GraphError> {
        loop {
            match self.answer.recv_timeout(STEP) {
                Ok(answer) => return Ok(answer),
                Err(RecvTimeoutError::Disconnected) => {
                    let name = &self.patience.shared.name;
                    return Err(GraphError::System(format!("thread {name} has ended")));
                }
                Err(RecvTimeoutError::Timeout) if !self.patience.is_over() => {}
                Err(RecvTimeoutError::Timeout) => break,
            }
        }
        if late == LatePolicy::Withdraw {
            let withdrawn =
                self.ticket.compare_exchange(WAITS, WITHDRAWN, Ordering::AcqRel, Ordering::Acquire);
            // It may have been done just now.
            if withdrawn.is_err()
                && let Ok(answer) = self.answer.try_recv()
            {
                return Ok(answer);
            }
        }
        Err(self.patience.shared.stuck())
    }
}

impl ThreadShared {
    /// The error that names the thread.
    pub(super) fn stuck(&self) -> GraphError {
        let still = self.stuck_for().unwrap_or(PATIENCE);
        GraphError::Stuck { thread: self.name.clone(), still }
    }

    /// # Errors
    /// It is known that the thread does not move.
    pub(super) fn must_move(&self) -> Result<(), GraphError> {
        if self.stuck_for().is_some() { Err(self.stuck()) } else { Ok(()) }
    }
}

impl Graph {
    /// Runs something on one thread between two rounds of its loop, and waits for the answer. Not from inside
    /// a round.
    ///
    /// # Errors
    /// There is no such thread, or it does not move: nothing was done then and nothing will be, unless it hangs in this
    /// very work. One that is known to be stuck is not waited for at all.
    pub fn on_thread<R: Send + 'static>(
        &self,
        thread: usize,
        job: impl FnOnce(&mut Worker) -> R + Send + 'static,
    ) -> Result<R, GraphError> {
        if thread == 0 {
            return Ok(job(&mut self.main.borrow_mut()));
        }
        let shared = self.registry().shared(thread)?;
        shared.must_move()?;
        Asked::post(&shared, job).wait(LatePolicy::Withdraw)
    }

    /// Whether all threads move: before something is taken away that one may be using.
    ///
    /// # Errors
    /// One does not.
    pub fn all_move(&self) -> Result<(), GraphError> {
        self.on_every_thread(|_| ())
    }

    /// The threads beside the main one.
    pub(super) fn others(&self) -> Vec<Arc<ThreadShared>> {
        self.registry().all().into_iter().filter(|s| s.index != 0).collect()
    }

    /// Runs something on every thread and waits until all have done it.
    ///
    /// # Errors
    /// A thread does not move. When that was known, nothing was done; when it came to light now, the others have done
    /// it and this one does not.
    pub fn on_every_thread(
        &self,
        job: impl Fn(&mut Worker) + Clone + Send + 'static,
    ) -> Result<(), GraphError> {
        let others = self.others();
        others.iter().try_for_each(|shared| shared.must_move())?;
        let asked: Vec<_> = others.iter().map(|shared| Asked::post(shared, job.clone())).collect();
        job(&mut self.main.borrow_mut());
        let mut result = Ok(());
        for asked in asked {
            result = result.and(asked.wait(LatePolicy::Withdraw));
        }
        result
    }

    /// Runs something on every thread; one that does not move does it when it moves again.
    pub(super) fn on_every_thread_at_last(&self, job: impl Fn(&mut Worker) + Clone + Send + 'static) {
        let asked: Vec<_> = self.others().iter().map(|shared| Asked::post(shared, job.clone())).collect();
        job(&mut self.main.borrow_mut());
        for asked in asked {
            // What is late has it in its mail.
            let _ = asked.wait(LatePolicy::Do);
        }
    }

    /// Asks every thread that moves for something of its own.
    pub(super) fn gather<T: Send + 'static>(
        &self,
        of: impl Fn(&Worker) -> T + Clone + Send + 'static,
    ) -> std::collections::BTreeMap<usize, T> {
        let moving: Vec<_> = self.others().into_iter().filter(|s| s.stuck_for().is_none()).collect();
        let ask = |shared: &Arc<ThreadShared>| {
            let of = of.clone();
            (shared.index, Asked::post(shared, move |worker| of(worker)))
        };
        let asked: Vec<_> = moving.iter().map(ask).collect();
        let main = (0, of(&self.main.borrow()));
        let answers =
            asked.into_iter().filter_map(|(index, a)| Some((index, a.wait(LatePolicy::Withdraw).ok()?)));
        std::iter::once(main).chain(answers).collect()
    }

    /// Tells all threads what has changed in the graph, and waits until those that move have taken it over. One that does
    /// not takes it over before its next round; packets that meet a node it does not know are dropped until then.
    pub(super) fn hand_out(&self, change: &Change) {
        self.main.borrow_mut().take_over(change);
        let others = self.others();
        for shared in &others {
            shared.leave_change(change);
        }
        let moving = others.iter().filter(|shared| shared.stuck_for().is_none());
        let asked: Vec<_> = moving.map(|shared| Asked::post(shared, |_| ())).collect();
        for asked in asked {
            // A late thread has it in its mailbox.
            let _ = asked.wait(LatePolicy::Withdraw);
        }
    }

    /// Waits until all threads have finished the round they are in, for as long as `most`: for tests and measurements.
    ///
    /// # Errors
    /// One has not.
    pub fn barrier(&self, most: Duration) -> Result<(), GraphError> {
        let until = Instant::now() + most;
        loop {
            let asked: Vec<_> =
                self.others().iter().map(|s| (Arc::clone(s), Asked::post(s, |_| ()))).collect();
            let late = asked
                .into_iter()
                .find_map(|(shared, a)| a.wait(LatePolicy::Withdraw).is_err().then_some(shared));
            match late {
                None => return Ok(()),
                Some(shared) if Instant::now() >= until => return Err(shared.stuck()),
                Some(_) => {}
            }
        }
    }
}
