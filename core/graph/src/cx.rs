//! What a node may ask for while packets are in its hands.

use std::cell::{RefCell, RefMut};
use std::fmt;
use std::marker::PhantomData;

use shoal_buffer::{Buffer, Cache, Frame, Memory, Packet, SwIfIndex};
use shoal_infra::Guard;

use crate::clock::Time;
use crate::dispatch::Run;
use crate::feature::{ALL_INTERFACES, Arc as FeatureArc, ArcSide, edge_to, next_position};
use crate::lane::{GraphCounters, Lane};
use crate::node::{Counts, Edge, ErrorCounters, NodeIndex};
use crate::state::{StateKey, Stateful, States};
use crate::topology::{NodeEntry, Topology};
use crate::trace::Tracer;

/// What is the same for all packets of one frame.
pub(crate) struct Common<'a> {
    pub(crate) guard: Guard<'a>,
    pub(crate) thread: usize,
    pub(crate) now: Time,
    pub(crate) topology: &'a Topology,
    pub(crate) counters: &'a GraphCounters,
    pub(crate) states: &'a RefCell<States>,
}

impl<'a> Common<'a> {
    pub(crate) fn of(run: &'a Run<'a>) -> Self {
        let Run { lane, topology, guard, .. } = run;
        Common {
            guard: *guard,
            thread: lane.thread,
            now: lane.now,
            topology,
            counters: &lane.counters,
            states: &lane.states,
        }
    }
}

/// The runtime, as a node sees it while it holds one packet.
pub struct Cx<'a, N: ?Sized> {
    common: &'a Common<'a>,
    entry: &'a NodeEntry,
    /// Known where the loop is compiled, so that loops without trace hold no trace of it.
    tracer: Option<&'a Tracer>,
    node: PhantomData<fn(&N)>,
}

impl<'a, N: ?Sized> Cx<'a, N> {
    #[inline(always)]
    pub(crate) fn new(common: &'a Common<'a>, entry: &'a NodeEntry) -> Self {
        Cx::traced(common, entry, None)
    }

    #[inline(always)]
    pub(crate) fn traced(common: &'a Common<'a>, entry: &'a NodeEntry, tracer: Option<&'a Tracer>) -> Self {
        Cx { common, entry, tracer, node: PhantomData }
    }

    /// The same view, to be given away: to a function that is rarely called and not inlined.
    #[inline(always)]
    pub fn aside(&self) -> Cx<'a, N> {
        let Cx { common, entry, tracer, .. } = *self;
        Cx { common, entry, tracer, node: PhantomData }
    }

    /// The same, of another type of the same node.
    #[inline(always)]
    pub(crate) fn of<M: ?Sized>(&self) -> Cx<'a, M> {
        let Cx { common, entry, tracer, .. } = *self;
        Cx { common, entry, tracer, node: PhantomData }
    }

    /// Lends the thread's state of a feature to a stage of a chain, for one packet.
    #[inline(always)]
    pub(crate) fn lend<M: Stateful>(&self, key: &StateKey<M>) -> RefMut<'a, M::State> {
        match self.common.states.try_borrow_mut() {
            Ok(states) => RefMut::map(states, |states| states.lent(key, self.common.thread)),
            Err(_) => unreachable!("code that has a state in hand cannot ask for another"),
        }
    }

    /// Proof that tables may be read.
    #[inline(always)]
    pub fn guard(&self) -> Guard<'a> {
        self.common.guard
    }

    /// The calling thread: 0 is the main thread.
    #[inline(always)]
    pub fn thread(&self) -> usize {
        self.common.thread
    }

    /// When this round of the loop began.
    #[inline(always)]
    pub fn now(&self) -> Time {
        self.common.now
    }

    /// Whether traced packets may be about; only then is [`Cx::trace`]'s closure run.
    #[inline(always)]
    pub fn tracing(&self) -> bool {
        self.tracer.is_some()
    }

    /// Says something about a traced packet. The closure is not run for others.
    #[inline(always)]
    pub fn trace<T: fmt::Display + Send + 'static>(&self, pkt: &Packet<'_>, line: impl FnOnce() -> T) {
        if let Some(tracer) = self.tracer
            && pkt.flags().has(shoal_buffer::Flags::TRACED)
        {
            tracer.add(pkt, self.entry.index, self.common.now, Some(Box::new(line())));
        }
    }

    /// Where an edge leads, for packets that come back from elsewhere.
    pub fn target(&self, edge: Edge) -> NodeIndex {
        self.entry.target(edge).unwrap_or(self.common.topology.drop)
    }

    /// The counters of interfaces and nodes.
    #[inline(always)]
    pub fn counters(&self) -> &'a GraphCounters {
        self.common.counters
    }

    /// Starts a packet on an arc if any feature is enabled on `interface`: the way to the first of them. `None`
    /// is the common case: go where the arc ends.
    #[inline(always)]
    pub fn start_arc(&self, arc: &FeatureArc, interface: SwIfIndex, pkt: &mut Packet<'_>) -> Option<Edge> {
        let enabled = arc.enabled(interface);
        if enabled == 0 { None } else { Some(self.aside().first_feature(arc, enabled, pkt.reborrow())) }
    }

    #[cold]
    fn first_feature(self, arc: &FeatureArc, enabled: u64, mut pkt: Packet<'_>) -> Edge {
        let meta = pkt.meta_mut();
        meta.arc = arc.number;
        meta.feature = enabled.trailing_zeros() as u8;
        self.arc_edge(arc.number, usize::from(meta.feature))
    }

    /// Sends a packet along an arc: the way to the first feature enabled on `interface`, or to the arc's end. For nodes
    /// that do not know where it ends.
    pub fn run_arc(&self, arc: &FeatureArc, interface: SwIfIndex, pkt: &mut Packet<'_>) -> Edge {
        let Some(table) = self.common.topology.arcs.get(usize::from(arc.number)) else { return Edge::DROP };
        let position = next_position(arc.enabled(interface), 0, table.features.len());
        let meta = pkt.meta_mut();
        (meta.arc, meta.feature) = (arc.number, position as u8);
        self.arc_edge(arc.number, position)
    }

    /// The way to the packet's next feature on the arc it is on, or to the arc's end.
    #[inline(always)]
    pub fn next_feature(&self, pkt: &mut Packet<'_>) -> Edge {
        let number = pkt.meta().arc;
        let Some(table) = self.common.topology.arcs.get(usize::from(number)) else { return Edge::DROP };
        let interface = match table.side {
            ArcSide::Receive => pkt.rx(),
            ArcSide::Send => pkt.tx(),
            ArcSide::All => ALL_INTERFACES,
        };
        let from = usize::from(pkt.meta().feature) + 1;
        let position = next_position(table.handle.enabled(interface), from, table.features.len());
        pkt.meta_mut().feature = position as u8;
        self.arc_edge(number, position)
    }

    #[inline(always)]
    fn arc_edge(&self, arc: u8, position: usize) -> Edge {
        let base = self.entry.arcs.iter().find(|(number, _)| *number == arc);
        base.map_or(Edge::DROP, |(_, base)| edge_to(*base, position))
    }
}

impl<N: Counts> Cx<'_, N> {
    /// Notes why a packet will be dropped, for one that gets to `error-drop` by way of other nodes.
    pub fn blame(&self, what: N::Error, pkt: &mut Packet<'_>) {
        pkt.meta_mut().error = self.entry.error(what);
    }

    /// Adds to a counter without dropping a packet.
    #[inline(always)]
    pub fn count(&self, what: N::Error, n: u64) {
        self.common.counters.errors.add(
            self.common.thread,
            (self.entry.error_base + what.index()) as usize,
            n,
        );
    }
}

/// The runtime, as a [`FrameNode`](crate::FrameNode) or a receive queue sees it.
pub struct FrameCx<'a> {
    pub(crate) lane: &'a mut Lane,
    pub(crate) entry: &'a NodeEntry,
    pub(crate) topology: &'a Topology,
    pub(crate) guard: Guard<'a>,
}

impl<'a> FrameCx<'a> {
    /// Proof that tables may be read.
    #[inline(always)]
    pub fn guard(&self) -> Guard<'a> {
        self.guard
    }

    /// The calling thread: 0 is the main thread.
    #[inline(always)]
    pub fn thread(&self) -> usize {
        self.lane.thread
    }

    /// When this round of the loop began.
    #[inline(always)]
    pub fn now(&self) -> Time {
        self.lane.now
    }

    /// Where buffers come from and go to.
    #[inline(always)]
    pub fn cache(&mut self) -> &mut Cache {
        &mut self.lane.cache
    }

    /// The memory handle for [`Frame::packet`].
    #[inline(always)]
    pub fn memory(&self) -> Memory {
        self.lane.memory
    }

    /// The counters of interfaces and nodes.
    #[inline(always)]
    pub fn counters(&self) -> &GraphCounters {
        &self.lane.counters
    }

    /// An empty frame to fill.
    #[inline(always)]
    pub fn blank(&mut self) -> Box<Frame> {
        self.lane.blank()
    }

    /// Puts a frame from [`FrameCx::blank`] back; packets inside are freed.
    #[inline(always)]
    pub fn recycle(&mut self, frame: Box<Frame>) {
        self.lane.recycle(frame);
    }

    /// Frees the packets of a frame that have no byte.
    #[cold]
    pub fn free_empty(&mut self, frame: &mut Frame) {
        let mut kept = self.blank();
        for mut buffer in frame.drain() {
            let empty = self.cache().packet(&mut buffer).is_empty();
            if empty {
                self.cache().free(buffer);
            } else if let Err(buffer) = kept.push(buffer) {
                self.cache().free(buffer);
            }
        }
        frame.append(&mut kept);
        self.recycle(kept);
    }

    /// Sends one packet along an edge.
    #[inline(always)]
    pub fn send(&mut self, edge: Edge, buffer: Buffer) {
        let node = Lane::target(self.topology, self.entry, edge);
        self.lane.ledger.count(edge, 1);
        self.lane.send(node, buffer);
    }

    /// Sends all packets of a frame along an edge and leaves it empty.
    #[inline(always)]
    pub fn send_frame(&mut self, edge: Edge, frame: &mut Frame) {
        let node = Lane::target(self.topology, self.entry, edge);
        self.lane.ledger.count(edge, frame.len());
        self.move_all(node, frame);
    }

    /// Sends a whole frame to a node by its index: for receive queues, whose next node is their interface's.
    #[inline(always)]
    pub fn forward(&mut self, node: NodeIndex, frame: Box<Frame>) {
        let node = if node.at() < self.topology.nodes.len() { node } else { self.topology.drop };
        self.lane.ledger.count_to(self.entry, node, frame.len());
        self.lane.forward(node, frame);
    }

    /// Sends one packet to a node by its index.
    pub fn send_to(&mut self, node: NodeIndex, buffer: Buffer) {
        let node = if node.at() < self.topology.nodes.len() { node } else { self.topology.drop };
        self.lane.ledger.count_to(self.entry, node, 1);
        self.lane.send(node, buffer);
    }

    #[inline(always)]
    fn move_all(&mut self, node: NodeIndex, frame: &mut Frame) {
        while !frame.is_empty() {
            self.lane.frame_for(node).append(frame);
        }
    }

    /// Adds to one of the node's counters without dropping a packet. `what` is of the node's own error type.
    #[inline(always)]
    pub fn count(&self, what: impl ErrorCounters, n: u64) {
        let index = self.entry.error_base + what.index();
        self.lane.counters.errors.add(self.lane.thread, index as usize, n);
    }

    /// Drops one packet for a reason of the node's own error type.
    pub fn drop(&mut self, mut buffer: Buffer, why: impl ErrorCounters) {
        self.lane.cache.packet(&mut buffer).meta_mut().error = self.entry.error(why);
        let node = self.topology.drop;
        self.lane.ledger.count(Edge::DROP, 1);
        self.lane.send(node, buffer);
    }

    /// Drops all packets of a frame for one reason.
    pub fn drop_frame(&mut self, frame: &mut Frame, why: impl ErrorCounters) {
        let error = self.entry.error(why);
        for i in 0..frame.len() {
            if let Some(mut pkt) = frame.packet(self.lane.memory, i) {
                pkt.meta_mut().error = error;
            }
        }
        let node = self.topology.drop;
        self.lane.ledger.count(Edge::DROP, frame.len());
        self.move_all(node, frame);
    }

    /// Frees all packets of a frame: they were sent, or end here in good order.
    #[inline(always)]
    pub fn free_frame(&mut self, frame: &mut Frame) {
        self.lane.cache.free_frame(frame);
    }

    /// Whether packets entering by this node are to be traced. Ask once a frame.
    #[inline(always)]
    pub fn wants_trace(&self) -> bool {
        self.entry.trace.wanted()
    }

    /// Begins the trace of a packet that enters here, if it is wanted.
    pub fn begin_trace(&mut self, pkt: &mut Packet<'_>, line: impl fmt::Display + Send + 'static) {
        let Lane { tracer, now, .. } = &mut *self.lane;
        tracer.begin(&self.entry.trace, self.entry.index, *now, pkt, line);
    }

    /// Whether traced packets may be about.
    #[inline(always)]
    pub fn tracing(&self) -> bool {
        self.lane.tracer.active
    }

    /// Says something about a traced packet. The closure is not run for others.
    #[inline(always)]
    pub fn trace<T: fmt::Display + Send + 'static>(&self, pkt: &Packet<'_>, line: impl FnOnce() -> T) {
        if self.lane.tracer.active && pkt.flags().has(shoal_buffer::Flags::TRACED) {
            self.lane.tracer.add(pkt, self.entry.index, self.lane.now, Some(Box::new(line())));
        }
    }

    /// The same, in the name of another node.
    pub(crate) fn trace_at<T: fmt::Display + Send + 'static>(
        &self,
        node: NodeIndex,
        pkt: &Packet<'_>,
        line: impl FnOnce() -> T,
    ) {
        if self.lane.tracer.active && pkt.flags().has(shoal_buffer::Flags::TRACED) {
            self.lane.tracer.add(pkt, node, self.lane.now, Some(Box::new(line())));
        }
    }

    /// The way to the packet's next feature on the arc it is on, or to the arc's end.
    pub fn next_feature(&self, pkt: &mut Packet<'_>) -> Edge {
        let common = Common {
            guard: self.guard,
            thread: self.lane.thread,
            now: self.lane.now,
            topology: self.topology,
            counters: &self.lane.counters,
            states: &self.lane.states,
        };
        Cx::<()>::new(&common, self.entry).next_feature(pkt)
    }

    /// Hands a packet to `node` on another thread; it arrives there in the next round, or is counted as dropped
    /// if that thread's ring is full.
    pub fn handoff(&mut self, thread: usize, node: NodeIndex, buffer: Buffer) {
        self.lane.ledger.count_to(self.entry, node, 1);
        self.lane.handoff(thread, node, buffer, self.topology);
    }

    /// Whether packets can be handed to a thread: one that comes or goes takes none yet, or no more.
    pub fn reaches(&self, thread: usize) -> bool {
        self.lane.reaches(thread)
    }

    /// A node's name, for traces.
    pub fn node_name(&self, node: NodeIndex) -> &str {
        self.topology.nodes.get(node.at()).map_or("", |entry| &entry.name)
    }

    /// Where an edge leads.
    pub fn target(&self, edge: Edge) -> NodeIndex {
        Lane::target(self.topology, self.entry, edge)
    }
}
