//! How nodes are run that are given their feature's state. It is taken out of the thread's slot for one frame.

use shoal_buffer::{Frame, Packet};

use super::{Dispatch, Run, Stages, forgotten, in_stages, run_packets, verdict};
use crate::cx::{Cx, FrameCx};
use crate::node::{Edge, StatefulFrameNode, StatefulNode, StatefulStagedNode};
use crate::state::{StateKey, Stateful};
use crate::topology::NodeEntry;

type StateOf<M> = <M as Stateful>::State;

/// Runs something with a thread's state.
#[inline(always)]
fn with_state<M: Stateful>(key: &StateKey<M>, run: Run<'_>, go: impl FnOnce(&mut M::State, Run<'_>)) {
    let Run { lane, entry, topology, guard } = run;
    let mut slot = lane.states.get_mut().take(key, lane.thread);
    go(&mut slot.state, Run { lane: &mut *lane, entry, topology, guard });
    lane.states.get_mut().put(key, slot);
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

/// A node with its state.
struct NodeWithState<'a, N: StatefulStagedNode>(&'a N, &'a mut StateOf<N::Feature>);

impl<N: StatefulStagedNode> Stages<N> for NodeWithState<'_, N> {
    type Key = N::Key;

    #[inline(always)]
    fn prepare(&mut self, pkt: &Packet<'_>, cx: &mut Cx<'_, N>) -> N::Key {
        self.0.prepare(self.1, pkt, cx)
    }

    #[inline(always)]
    fn seek(&mut self, keys: &mut [N::Key], cx: &mut Cx<'_, N>) {
        self.0.seek(self.1, keys, cx);
    }

    #[inline(always)]
    fn packet(&mut self, key: N::Key, pkt: &mut Packet<'_>, cx: &mut Cx<'_, N>, entry: &NodeEntry) -> Edge {
        verdict(self.0.packet(self.1, key, pkt, cx), pkt, entry)
    }
}

impl<N: StatefulStagedNode> StatefulStagedRunner<N> {
    #[cold]
    #[inline(never)]
    fn traced(&self, state: &mut StateOf<N::Feature>, frame: Box<Frame>, run: Run<'_>) {
        in_stages::<true, N, _>(NodeWithState(&self.node, state), frame, run);
    }
}

impl<N: StatefulStagedNode> Dispatch for StatefulStagedRunner<N> {
    fn dispatch(&self, frame: Box<Frame>, run: Run<'_>) {
        with_state(&self.key, run, |state, run| {
            if run.lane.tracer.active {
                self.traced(state, frame, run);
            } else {
                in_stages::<false, N, _>(NodeWithState(&self.node, state), frame, run);
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
