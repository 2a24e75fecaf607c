//! What features keep in packets and on each thread, as the control plane sees it: claiming, looking in, moving.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc;

use shoal_buffer::slot::{SlotKey, SlotValue};

use super::{Graph, GraphError};
use crate::clock::Time;
use crate::dispatch::{NotDispatched, StatefulFrameRunner, StatefulRunner, StatefulStagedRunner};
use crate::node::{
    Counts, ErrorCounters, NextNodes, NodeIndex, StatefulFrameNode, StatefulNode, StatefulStagedNode,
};
use crate::state::{Share, StateKey, StateMaker, Stateful};
use crate::thread::ThreadShared;
use crate::topology::NodeKind;
use crate::worker::Worker;

impl Graph {
    /// A place in every packet for a `T` of the feature that is named, which lasts until the packet's end.
    ///
    /// # Errors
    /// There is no room, or another feature has a place for the same type; all are named.
    pub fn claim_slot<T: SlotValue>(&self, by: &'static str) -> Result<SlotKey<T>, GraphError> {
        Ok(self.slots.borrow_mut().claim(by)?)
    }

    /// The place that another feature has claimed for a `T`.
    ///
    /// # Errors
    /// None has.
    pub fn slot<T: SlotValue>(&self) -> Result<SlotKey<T>, GraphError> {
        Ok(self.slots.borrow().of()?)
    }

    /// Has every thread, now and later, keep what a feature wants to be kept. The key is for the feature's nodes.
    ///
    /// # Errors
    /// A node has the name of the feature's timer; a thread does not answer.
    pub fn add_state<M: Stateful>(&self, feature: M) -> Result<StateKey<M>, GraphError> {
        let (next, errors) = (M::Next::NAMES, M::Error::COUNTERS);
        let node = self.add(M::NAME, NodeKind::Timer, Arc::new(NotDispatched), next, errors, None)?;
        let slot = self.makers.borrow().len();
        let key = StateKey { slot, node, feature: Arc::new(feature) };
        StateMaker::workers(&key, &self.forwarding());
        self.makers.borrow_mut().push(Arc::new(key.clone()));
        for thread in self.registry().all() {
            let maker = key.clone();
            self.give(&thread, move |worker| {
                let place = StateMaker::make(&maker, worker.thread());
                worker.lane.states.get_mut().enter(slot, place);
            });
        }
        Ok(key)
    }

    /// Adds a node that is given its feature's state, under its type's name.
    ///
    /// # Errors
    /// As [`Graph::add_packet`].
    pub fn add_stateful<N: StatefulNode>(
        &self,
        node: N,
        key: &StateKey<N::Feature>,
    ) -> Result<NodeIndex, GraphError> {
        let logic = Arc::new(StatefulRunner { node, key: key.clone() });
        let errors = <N as Counts>::Error::COUNTERS;
        self.add(N::NAME, NodeKind::Internal, logic, N::Next::NAMES, errors, None)
    }

    /// Adds a staged node that is given its feature's state, under its type's name.
    ///
    /// # Errors
    /// As [`Graph::add_packet`].
    pub fn add_stateful_staged<N: StatefulStagedNode>(
        &self,
        node: N,
        key: &StateKey<N::Feature>,
    ) -> Result<NodeIndex, GraphError> {
        let logic = Arc::new(StatefulStagedRunner { node, key: key.clone() });
        let errors = <N as Counts>::Error::COUNTERS;
        self.add(N::NAME, NodeKind::Internal, logic, N::Next::NAMES, errors, None)
    }

    /// Adds a frame node that is given its feature's state, under its type's name.
    ///
    /// # Errors
    /// As [`Graph::add_packet`].
    pub fn add_stateful_frame<N: StatefulFrameNode>(
        &self,
        node: N,
        key: &StateKey<N::Feature>,
    ) -> Result<NodeIndex, GraphError> {
        self.add_stateful_frame_named(N::NAME, node, key)
    }

    /// Adds a frame node that is given its feature's state, under a name of its own.
    ///
    /// # Errors
    /// As [`Graph::add_packet`].
    pub fn add_stateful_frame_named<N: StatefulFrameNode>(
        &self,
        name: &str,
        node: N,
        key: &StateKey<N::Feature>,
    ) -> Result<NodeIndex, GraphError> {
        let logic = Arc::new(StatefulFrameRunner { node, key: key.clone() });
        self.add(name, NodeKind::Internal, logic, N::Next::NAMES, N::Error::COUNTERS, None)
    }

    /// Shows the control plane a feature's state on one thread, between two rounds of its loop, and waits for the answer.
    ///
    /// # Errors
    /// There is no such thread, or it does not answer.
    pub fn on_state<M: Stateful, R: Send + 'static>(
        &self,
        key: &StateKey<M>,
        thread: usize,
        look: impl FnOnce(&M, &mut M::State) -> R + Send + 'static,
    ) -> Result<R, GraphError> {
        let key = key.clone();
        self.on_thread(thread, move |worker| worker.lane.with_state(&key, look))
    }

    /// Tells a feature's state on one thread something between two rounds of its loop, and does not wait. A thread that does not
    /// move hears of it when it does; one that is just ending has heard it before it gives up the state.
    ///
    /// # Errors
    /// There is no such thread.
    pub fn tell_state<M: Stateful>(
        &self,
        key: &StateKey<M>,
        thread: usize,
        tell: impl FnOnce(&M, &mut M::State) + Send + 'static,
    ) -> Result<(), GraphError> {
        let key = key.clone();
        let job = move |worker: &mut Worker| worker.lane.with_state(&key, tell);
        if thread == 0 {
            job(&mut self.main.borrow_mut());
        } else {
            self.registry().shared(thread)?.post(Box::new(job));
        }
        Ok(())
    }

    /// Shows the control plane a feature's state on every thread; the answers, by thread.
    ///
    /// # Errors
    /// A thread does not answer.
    pub fn on_every_state<M: Stateful, R: Send + 'static>(
        &self,
        key: &StateKey<M>,
        look: impl Fn(&M, &mut M::State) -> R + Clone + Send + 'static,
    ) -> Result<BTreeMap<usize, R>, GraphError> {
        let key = key.clone();
        let (answer, answers) = mpsc::channel();
        self.on_every_thread(move |worker| {
            let found = worker.lane.with_state(&key, look.clone());
            let _ = answer.send((worker.thread(), found));
        })?;
        Ok(answers.try_iter().collect())
    }

    /// When the next state of any thread is due, or may be.
    ///
    /// # Errors
    /// A thread does not answer.
    pub fn next_timer(&self) -> Result<Option<Time>, GraphError> {
        let (answer, answers) = mpsc::channel();
        self.on_every_thread(move |worker| {
            let _ = answer.send(worker.lane.states.get_mut().next());
        })?;
        Ok(answers.try_iter().flatten().min())
    }

    /// The threads that forward: all workers, or the main thread when there is none.
    fn forwarding(&self) -> Vec<usize> {
        let all = self.registry().all();
        let workers: Vec<usize> = all.iter().map(|thread| thread.index).filter(|t| *t != 0).collect();
        if workers.is_empty() { vec![0] } else { workers }
    }

    /// A worker has come or gone: moves what belongs to other threads now.
    pub(super) fn reshard(&self) {
        let makers = self.makers.borrow().clone();
        if makers.is_empty() {
            return;
        }
        let workers = self.forwarding();
        for maker in &makers {
            maker.workers(&workers);
        }
        let (answer, answers) = mpsc::channel();
        let asked = self.on_every_thread(move |worker| {
            let here = worker.thread();
            let _ = answer.send(worker.lane.states.get_mut().reshard(here, &workers));
        });
        if let Err(e) = asked {
            tracing::warn!("what a thread keeps stays there until it moves: {e}");
            self.reshards_late.set(true);
        }
        self.deliver(answers.try_iter().flatten().collect());
    }

    /// Does again what a thread that was stuck has not done.
    pub(super) fn reshard_late(&self) {
        if self.reshards_late.get() && self.others().iter().all(|shared| shared.stuck_for().is_none()) {
            self.reshards_late.set(false);
            self.reshard();
        }
    }

    /// Has a worker that is about to end finish its work and give up what it keeps, which comes when it has.
    pub(super) fn give_up_states(&self, leaving: &ThreadShared) -> mpsc::Receiver<Vec<Share>> {
        let workers = self.forwarding();
        let (answer, wait) = mpsc::sync_channel(1);
        leaving.post(Box::new(move |worker| {
            worker.finish();
            let _ = answer.send(worker.lane.states.get_mut().give_up(&workers));
        }));
        wait
    }

    /// Gives parts of states to the threads they belong to.
    pub(super) fn deliver(&self, shares: Vec<Share>) {
        let mut by_thread: BTreeMap<usize, Vec<Share>> = BTreeMap::new();
        for share in shares {
            by_thread.entry(share.to).or_default().push(share);
        }
        for (thread, shares) in by_thread {
            // A thread that has ended meanwhile keeps nothing.
            let there = self.registry().all().iter().any(|t| t.index == thread);
            let to = if there { thread } else { self.forwarding().first().copied().unwrap_or(0) };
            if let Ok(to) = self.registry().shared(to) {
                self.give(&to, move |worker| worker.adopt_states(shares));
            }
        }
    }
}
