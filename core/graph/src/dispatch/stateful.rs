//! How nodes are run that are given their feature's state. It is taken out of the thread's slot for one frame.

use shoal_buffer::{FRAME_SIZE, Frame};

use super::{Dispatch, Run, forgotten, run_packets, verdict};
use crate::cx::{Common, Cx, FrameCx};
use crate::node::{GROUP, StatefulFrameNode, StatefulNode, StatefulStagedNode};
use crate::state::{StateKey, Stateful};

type StateOf<M> = <M as Stateful>::State;

/// Runs something with a thread's state.
#[inline(always)]
fn with_state<M: Stateful>(key: &StateKey<M>, run: Run<'_>, go: impl FnOnce(&mut M::State, Run<'_>)) {
    let Run { lane, entry, topology, guard } = run;
    let mut slot = lane.states.take(key, lane.thread);
    go(&mut slot.state, Run { lane: &mut *lane, entry, topology, guard });
    lane.states.put(key, slot);
}

/// Runs a [`StatefulNode`].
pub(crate) struct StatefulRunner<N: StatefulNode> {
    pub(crate) node: N,
    pub(crate) key: StateKey<N::Feature>,
}

impl<N: StatefulNode> StatefulRunner<N> {
    #[inline(always)]
    fn go<const TRACE: bool>(&self, state: &mut StateOf<N::Feature>, frame: Box<Frame>, run: Run<'_>) {
        let entry = run.entry;
        run_packets::<TRACE, N>(frame, run, |_, pkt, cx| {
            verdict(self.node.packet(state, pkt, cx), pkt, entry)
        });
    }

    #[cold]
    #[inline(never)]
    fn traced(&self, state: &mut StateOf<N::Feature>, frame: Box<Frame>, run: Run<'_>) {
        self.go::<true>(state, frame, run);
    }
}

impl<N: StatefulNode> Dispatch for StatefulRunner<N> {
    fn dispatch(&self, frame: Box<Frame>, run: Run<'_>) {
        with_state(&self.key, run, |state, run| {
            if run.lane.tracer.active {
                self.traced(state, frame, run);
            } else {
                self.go::<false>(state, frame, run);
            }
        });
    }
}

/// Runs a [`StatefulStagedNode`].
pub(crate) struct StatefulStagedRunner<N: StatefulStagedNode> {
    pub(crate) node: N,
    pub(crate) key: StateKey<N::Feature>,
}

impl<N: StatefulStagedNode> StatefulStagedRunner<N> {
    #[inline(always)]
    fn go<const TRACE: bool>(&self, state: &mut StateOf<N::Feature>, mut frame: Box<Frame>, run: Run<'_>) {
        let entry = run.entry;
        let mut keys = [N::Key::default(); FRAME_SIZE];
        self.prepare(state, &mut frame, &run, &mut keys);
        run_packets::<TRACE, N>(frame, run, |i, pkt, cx| {
            let key = keys.get(i).copied().unwrap_or_default();
            verdict(self.node.packet(state, key, pkt, cx), pkt, entry)
        });
    }

    /// All stages but the last, each over the whole frame.
    #[inline(always)]
    fn prepare(
        &self,
        state: &mut StateOf<N::Feature>,
        frame: &mut Frame,
        run: &Run<'_>,
        keys: &mut [N::Key; FRAME_SIZE],
    ) {
        let memory = run.lane.memory;
        let common = Common::of(run);
        let n = frame.len();
        frame.each(memory, |i, pkt| {
            if let Some(key) = keys.get_mut(i) {
                *key = self.node.prepare(state, pkt, &mut Cx::new(&common, run.entry));
            }
        });
        for group in keys.get_mut(..n).unwrap_or_default().chunks_mut(GROUP) {
            self.node.seek(state, group, &mut Cx::new(&common, run.entry));
        }
    }

    #[cold]
    #[inline(never)]
    fn traced(&self, state: &mut StateOf<N::Feature>, frame: Box<Frame>, run: Run<'_>) {
        self.go::<true>(state, frame, run);
    }
}

impl<N: StatefulStagedNode> Dispatch for StatefulStagedRunner<N> {
    fn dispatch(&self, frame: Box<Frame>, run: Run<'_>) {
        with_state(&self.key, run, |state, run| {
            if run.lane.tracer.active {
                self.traced(state, frame, run);
            } else {
                self.go::<false>(state, frame, run);
            }
        });
    }
}

/// Runs a [`StatefulFrameNode`].
pub(crate) struct StatefulFrameRunner<N: StatefulFrameNode> {
    pub(crate) node: N,
    pub(crate) key: StateKey<N::Feature>,
}

impl<N: StatefulFrameNode> Dispatch for StatefulFrameRunner<N> {
    fn dispatch(&self, mut frame: Box<Frame>, run: Run<'_>) {
        with_state(&self.key, run, |state, run| {
            let Run { lane, entry, topology, guard } = run;
            self.node.frame(state, &mut frame, &mut FrameCx { lane: &mut *lane, entry, topology, guard });
            if !frame.is_empty() {
                forgotten(&mut frame, lane, entry);
            }
            lane.recycle(frame);
        });
    }
}
