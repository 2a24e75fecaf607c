//! The loops: how each kind of node is run over a frame.

use std::sync::Arc;

use shoal_buffer::{FRAME_SIZE, Frame, Meta, Packet};
use shoal_infra::Guard;

use crate::cx::{Common, Cx, FrameCx};
use crate::lane::Lane;
use crate::node::{Edge, ErrorCounters, FrameNode, GROUP, NextNodes, PacketNode, StagedNode};
use crate::topology::{NodeEntry, Topology};

mod plain;
mod resolving;
mod stateful;

pub(crate) use plain::PlainRunner;
pub(crate) use resolving::ResolvingRunner;
pub(crate) use stateful::{StatefulFrameRunner, StatefulRunner, StatefulStagedRunner};

/// What a node is run with.
pub(crate) struct Run<'a> {
    pub(crate) lane: &'a mut Lane,
    pub(crate) entry: &'a NodeEntry,
    pub(crate) topology: &'a Topology,
    pub(crate) guard: Guard<'a>,
}

/// A node of any kind, run over one frame.
pub(crate) trait Dispatch: Send + Sync {
    fn dispatch(&self, frame: Box<Frame>, run: Run<'_>);
}

/// One packet's verdict as a number: the edge. A drop leaves its reason in the packet.
#[inline(always)]
pub(crate) fn verdict<X: NextNodes, E: ErrorCounters>(
    result: Result<X, E>,
    pkt: &mut Packet<'_>,
    entry: &NodeEntry,
) -> Edge {
    match result {
        Ok(next) => next.edge(),
        Err(error) => mark(pkt.meta_mut(), entry.error(error)),
    }
}

#[cold]
#[inline(never)]
fn mark(meta: &mut Meta, error: u16) -> Edge {
    meta.error = error;
    Edge::DROP
}

/// Runs `each` over a frame, collects where packets go, and sends them there.
#[inline(always)]
fn run_packets<const TRACE: bool, N>(
    mut frame: Box<Frame>,
    run: Run<'_>,
    mut each: impl FnMut(usize, &mut Packet<'_>, &mut Cx<'_, N>) -> Edge,
) {
    let Run { lane, entry, topology, guard } = run;
    {
        let Lane { memory, counters, tracer, nexts, thread, now, states, .. } = &mut *lane;
        let common = Common { guard, thread: *thread, now: *now, topology, counters, states };
        let tracer = if TRACE { Some(&*tracer) } else { None };
        frame.each(*memory, |i, pkt| {
            let edge = each(i, pkt, &mut Cx::traced(&common, entry, tracer)).0;
            if let Some(slot) = nexts.get_mut(i) {
                *slot = edge;
            }
        });
    }
    follow(frame, lane, topology, entry);
}

/// Sends the packets of a frame where their edges lead.
#[inline(always)]
fn follow(frame: Box<Frame>, lane: &mut Lane, topology: &Topology, entry: &NodeEntry) {
    let nexts = lane.nexts.get(..frame.len()).unwrap_or_default();
    let first = nexts.first().copied().unwrap_or(0);
    if all_same(nexts, first) {
        let node = Lane::target(topology, entry, Edge(first));
        lane.ledger.count(Edge(first), frame.len());
        lane.forward(node, frame);
    } else {
        lane.scatter(frame, |next| Lane::target(topology, entry, Edge(next)));
    }
}

/// Whether all are `first`. Without a branch per item, so that it is done many at once, where they are many: it has to
/// wait until the last ones are written, and a few are compared sooner.
#[inline(always)]
#[allow(clippy::needless_bitwise_bool)] // a lazy operator would be a branch
pub(crate) fn all_same<T: Copy + PartialEq>(items: &[T], first: T) -> bool {
    if items.len() <= FEW {
        return items.iter().all(|item| *item == first);
    }
    items.iter().fold(true, |same, item| same & (*item == first))
}

/// Items that are compared one by one.
const FEW: usize = 24;

/// Runs a [`PacketNode`].
pub(crate) struct PacketRunner<N>(pub(crate) Arc<N>);

impl<N: PacketNode> Dispatch for PacketRunner<N> {
    fn dispatch(&self, frame: Box<Frame>, run: Run<'_>) {
        if run.lane.tracer.active {
            packets_traced(&*self.0, frame, run);
        } else {
            packets::<false, N>(&self.0, frame, run);
        }
    }
}

#[inline(always)]
fn packets<const TRACE: bool, N: PacketNode>(node: &N, frame: Box<Frame>, run: Run<'_>) {
    let entry = run.entry;
    run_packets::<TRACE, N>(frame, run, |_, pkt, cx| verdict(node.packet(pkt, cx), pkt, entry));
}

#[cold]
#[inline(never)]
fn packets_traced<N: PacketNode>(node: &N, frame: Box<Frame>, run: Run<'_>) {
    packets::<true, N>(node, frame, run);
}

/// Runs a [`StagedNode`].
pub(crate) struct StagedRunner<N>(pub(crate) Arc<N>);

impl<N: StagedNode> Dispatch for StagedRunner<N> {
    fn dispatch(&self, frame: Box<Frame>, run: Run<'_>) {
        if run.lane.tracer.active {
            staged_traced(&*self.0, frame, run);
        } else {
            staged::<false, N>(&self.0, frame, run);
        }
    }
}

#[inline(always)]
fn staged<const TRACE: bool, N: StagedNode>(node: &N, frame: Box<Frame>, run: Run<'_>) {
    in_stages::<TRACE, N, _>(node, frame, run);
}

#[cold]
#[inline(never)]
fn staged_traced<N: StagedNode>(node: &N, frame: Box<Frame>, run: Run<'_>) {
    staged::<true, N>(node, frame, run);
}

/// A node's stages, with or without a state.
trait Stages<N> {
    type Key: Copy + Default;

    fn prepare(&mut self, pkt: &Packet<'_>, cx: &mut Cx<'_, N>) -> Self::Key;

    fn seek(&mut self, keys: &mut [Self::Key], cx: &mut Cx<'_, N>);

    fn packet(&mut self, key: Self::Key, pkt: &mut Packet<'_>, cx: &mut Cx<'_, N>, entry: &NodeEntry)
    -> Edge;
}

impl<N: StagedNode> Stages<N> for &N {
    type Key = N::Key;

    #[inline(always)]
    fn prepare(&mut self, pkt: &Packet<'_>, cx: &mut Cx<'_, N>) -> N::Key {
        N::prepare(self, pkt, cx)
    }

    #[inline(always)]
    fn seek(&mut self, keys: &mut [N::Key], cx: &mut Cx<'_, N>) {
        N::seek(self, keys, cx);
    }

    #[inline(always)]
    fn packet(&mut self, key: N::Key, pkt: &mut Packet<'_>, cx: &mut Cx<'_, N>, entry: &NodeEntry) -> Edge {
        verdict(N::packet(self, key, pkt, cx), pkt, entry)
    }
}

/// Runs all stages, each over the whole frame.
#[inline(always)]
fn in_stages<const TRACE: bool, N, S: Stages<N>>(mut stages: S, mut frame: Box<Frame>, run: Run<'_>) {
    let entry = run.entry;
    let mut keys = [S::Key::default(); FRAME_SIZE];
    let (memory, n) = (run.lane.memory, frame.len());
    {
        let common = Common::of(&run);
        frame.each(memory, |i, pkt| {
            if let Some(key) = keys.get_mut(i) {
                *key = stages.prepare(pkt, &mut Cx::new(&common, entry));
            }
        });
        for group in keys.get_mut(..n).unwrap_or_default().chunks_mut(GROUP) {
            stages.seek(group, &mut Cx::new(&common, entry));
        }
    }
    run_packets::<TRACE, N>(frame, run, |i, pkt, cx| {
        let key = keys.get(i).copied().unwrap_or_default();
        stages.packet(key, pkt, cx, entry)
    });
}

/// Runs a [`FrameNode`].
pub(crate) struct FrameRunner<N>(pub(crate) N);

impl<N: FrameNode> Dispatch for FrameRunner<N> {
    fn dispatch(&self, mut frame: Box<Frame>, run: Run<'_>) {
        let Run { lane, entry, topology, guard } = run;
        self.0.frame(&mut frame, &mut FrameCx { lane, entry, topology, guard });
        if !frame.is_empty() {
            forgotten(&mut frame, lane, entry);
        }
        lane.recycle(frame);
    }
}

/// A frame node left packets behind: a defect, counted under its name, but no leak.
#[cold]
fn forgotten(frame: &mut Frame, lane: &mut Lane, entry: &NodeEntry) {
    let n = frame.len();
    lane.cache.free_frame(frame);
    lane.counters.errors.add(lane.thread, crate::error_drop::FORGOTTEN as usize, n as u64);
    tracing::error!(node = &*entry.name, packets = n, "packets were left in a frame");
}

/// What takes the place of a node that was deleted: frees what still comes.
pub(crate) struct Deleted;

impl Dispatch for Deleted {
    fn dispatch(&self, mut frame: Box<Frame>, run: Run<'_>) {
        for i in 0..frame.len() {
            if let Some(mut pkt) = frame.packet(run.lane.memory, i) {
                pkt.meta_mut().error = crate::error_drop::DELETED;
            }
        }
        let node = run.topology.drop;
        run.lane.forward(node, frame);
    }
}

/// For nodes that are only names: inputs, whose queues are polled, and processes.
pub(crate) struct NotDispatched;

impl Dispatch for NotDispatched {
    fn dispatch(&self, frame: Box<Frame>, run: Run<'_>) {
        Deleted.dispatch(frame, run);
    }
}
