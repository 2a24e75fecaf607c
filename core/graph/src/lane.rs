//! What one thread needs to move packets: its buffer cache, the frames on their way, and its counters.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

use shoal_buffer::{Buffer, Cache, FRAME_SIZE, Frame, Memory};

use crate::clock::Time;
use crate::counter::{Combined, NodeRows, Simple};
use crate::handoff::Outbox;
use crate::ledger::DispatchLedger;
use crate::monitor::Monitor;
use crate::node::{Edge, NodeIndex};
use crate::state::States;
use crate::superpath::MOST_NODES;
use crate::topology::{NodeEntry, Topology};
use crate::trace::Tracer;

const CLOSED: usize = usize::MAX;
/// Frames a thread begins with.
const FRAMES: usize = 32;

/// Frames of one thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FrameCounts {
    /// Bytes of each.
    pub size: usize,
    /// That hold packets now.
    pub used: usize,
    /// That are put aside for the next time.
    pub free: usize,
}

/// The counters every thread keeps of every interface and node.
#[derive(Clone, Debug)]
pub struct GraphCounters {
    /// Packets and bytes received, by interface.
    pub rx: Combined,
    /// Packets and bytes sent, by interface.
    pub tx: Combined,
    /// Packets dropped, by receiving interface.
    pub drops: Simple,
    /// Packets handed to the host, by receiving interface.
    pub punt: Simple,
    /// Packets lost because no buffer was free, by interface.
    pub rx_no_buf: Simple,
    /// Packets the device lost before we saw them, by interface.
    pub rx_miss: Simple,
    /// Packets received damaged, by interface.
    pub rx_error: Simple,
    /// Packets that could not be sent, by interface.
    pub tx_error: Simple,
    /// Error counters of all nodes, by global number.
    pub errors: Simple,
    /// Times a node ran, by node.
    pub calls: Simple,
    /// Packets a node saw, by node.
    pub vectors: Simple,
    /// Clocks a node took, by node.
    pub clocks: Simple,
    /// Times a process was resumed, by node.
    pub suspends: Simple,
}

struct Pending {
    node: NodeIndex,
    frame: Option<Box<Frame>>,
}

/// One thread's moving parts. Nodes reach it through [`Cx`](crate::Cx) and [`FrameCx`](crate::FrameCx).
pub struct Lane {
    pub(crate) thread: usize,
    pub(crate) memory: Memory,
    pub(crate) cache: Cache,
    pub(crate) now: Time,
    pub(crate) counters: GraphCounters,
    pub(crate) node_rows: NodeRows,
    pub(crate) tracer: Tracer,
    pub(crate) outbox: Outbox,
    pub(crate) ledger: DispatchLedger,
    pub(crate) monitor: Monitor,
    /// Borrowed while a chain's stage has its state in hand, for one packet.
    pub(crate) states: RefCell<States>,
    /// Frames to be dispatched, in order; entries before `next` are done.
    pending: VecDeque<Pending>,
    /// How many entries have left `pending`, so that positions in `open` stay valid.
    done: usize,
    /// For each node the position of the frame that is still filling up.
    open: Vec<usize>,
    #[allow(clippy::vec_box)] // boxes are what frames travel in
    spare: Vec<Box<Frame>>,
    /// Frames it has, under way and put aside.
    made: usize,
    /// Where the packets of the frame in hand go: edges of its node, or nodes.
    pub(crate) nexts: [u16; FRAME_SIZE],
    pub(crate) exits: [NodeIndex; FRAME_SIZE],
    /// Packets of the frame in hand that left a superpath at each of its nodes; all zero between frames.
    pub(crate) left: [Cell<u64>; MOST_NODES],
}

impl Lane {
    pub(crate) fn new(thread: usize, cache: Cache, counters: GraphCounters, tracer: Tracer) -> Self {
        Lane {
            thread,
            memory: cache.memory(),
            cache,
            now: Time::default(),
            node_rows: NodeRows::new(&counters, thread),
            counters,
            tracer,
            outbox: Outbox::default(),
            ledger: DispatchLedger::default(),
            monitor: Monitor::default(),
            states: RefCell::default(),
            pending: VecDeque::with_capacity(64),
            done: 0,
            open: Vec::new(),
            spare: (0..FRAMES).map(|_| Box::default()).collect(),
            made: FRAMES,
            nexts: [0; FRAME_SIZE],
            exits: [NodeIndex(0); FRAME_SIZE],
            left: std::array::from_fn(|_| Cell::new(0)),
        }
    }

    /// Makes room for a node that is new, or takes the place of another.
    pub(crate) fn fit(&mut self, old: Option<&NodeEntry>, new: &NodeEntry) {
        let nodes = self.open.len().max(new.index.at() + 1);
        self.open.resize(nodes, CLOSED);
        self.ledger.fit(old, new);
    }

    /// An empty frame.
    #[inline(always)]
    pub(crate) fn blank(&mut self) -> Box<Frame> {
        match self.spare.pop() {
            Some(frame) => frame,
            None => self.make(),
        }
    }

    #[cold]
    #[inline(never)]
    fn make(&mut self) -> Box<Frame> {
        self.made += 1;
        Box::default()
    }

    /// How many frames there are.
    pub(crate) fn frame_counts(&self) -> FrameCounts {
        let free = self.spare.len();
        FrameCounts { size: size_of::<Frame>(), used: self.made.saturating_sub(free), free }
    }

    /// The frames on their way to nodes.
    pub(crate) fn pending_frames(&mut self) -> impl Iterator<Item = &mut Frame> {
        self.pending.iter_mut().filter_map(|pending| pending.frame.as_deref_mut())
    }

    /// Puts an empty frame aside for the next time.
    #[inline(always)]
    pub(crate) fn recycle(&mut self, mut frame: Box<Frame>) {
        if !frame.is_empty() {
            self.cache.free_frame(&mut frame);
        }
        self.spare.push(frame);
    }

    /// The next frame to dispatch.
    #[inline(always)]
    pub(crate) fn next_pending(&mut self) -> Option<(NodeIndex, Box<Frame>)> {
        loop {
            let entry = self.pending.pop_front()?;
            let position = self.done;
            self.done = self.done.wrapping_add(1);
            if let Some(open) = self.open.get_mut(entry.node.at())
                && *open == position
            {
                *open = CLOSED;
            }
            if let Some(frame) = entry.frame {
                return Some((entry.node, frame));
            }
        }
    }

    /// Whether anything is to be dispatched.
    pub(crate) fn has_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// The frame of `node` that is filling up, if it has room.
    #[inline(always)]
    fn opened(&mut self, node: NodeIndex) -> Option<&mut Frame> {
        let position = *self.open.get(node.at())?;
        if position == CLOSED {
            return None;
        }
        let frame = self.pending.get_mut(position.wrapping_sub(self.done))?.frame.as_deref_mut()?;
        if frame.is_full() { None } else { Some(frame) }
    }

    #[inline(always)]
    fn push_pending(&mut self, node: NodeIndex, frame: Box<Frame>) {
        let position = self.done.wrapping_add(self.pending.len());
        self.pending.push_back(Pending { node, frame: Some(frame) });
        match self.open.get_mut(node.at()) {
            Some(open) => *open = position,
            None => self.open_unknown(node, position),
        }
    }

    /// A thread that was stuck when a node came may meet it before it knows it.
    #[cold]
    #[inline(never)]
    fn open_unknown(&mut self, node: NodeIndex, position: usize) {
        self.open.resize(node.at() + 1, CLOSED);
        if let Some(open) = self.open.get_mut(node.at()) {
            *open = position;
        }
    }

    /// A frame on its way to `node` with room for at least one packet.
    #[inline(always)]
    pub(crate) fn frame_for(&mut self, node: NodeIndex) -> &mut Frame {
        if self.opened(node).is_none() {
            let blank = self.blank();
            self.push_pending(node, blank);
        }
        // The branch above made sure that there is one; a fresh frame is the last entry.
        match self.opened(node) {
            Some(frame) => frame,
            None => unreachable!("a frame was just opened for this node"),
        }
    }

    /// Sends a whole frame on: by moving the box when nothing is on its way to `node` yet.
    #[inline(always)]
    pub(crate) fn forward(&mut self, node: NodeIndex, mut frame: Box<Frame>) {
        if frame.is_empty() {
            self.spare.push(frame);
            return;
        }
        match self.opened(node) {
            Some(open) if open.room() >= frame.len() => {
                open.append(&mut frame);
                self.spare.push(frame);
            }
            _ => self.push_pending(node, frame),
        }
    }

    /// Sends one packet on.
    #[inline(always)]
    pub(crate) fn send(&mut self, node: NodeIndex, buffer: Buffer) {
        if let Err(buffer) = self.frame_for(node).push(buffer) {
            self.cache.free(buffer);
        }
    }

    /// Parts a frame by the edges in `nexts`, run by run.
    pub(crate) fn scatter(&mut self, frame: Box<Frame>, target: impl Fn(u16) -> NodeIndex) {
        let nexts = self.nexts;
        let key = |at: usize| nexts.get(at).copied().unwrap_or(0);
        self.part(frame, key, target, |ledger, edge, n| ledger.count(Edge(edge), n));
    }

    /// Parts a frame by `exits`, run by run.
    pub(crate) fn scatter_to(&mut self, frame: Box<Frame>) {
        let (exits, nowhere) = (self.exits, NodeIndex(0));
        self.part(frame, |at| exits.get(at).copied().unwrap_or(nowhere), |node| node, |_, _, _| ());
    }

    #[inline(always)]
    fn part<K: Copy + PartialEq>(
        &mut self,
        mut frame: Box<Frame>,
        key: impl Fn(usize) -> K,
        target: impl Fn(K) -> NodeIndex,
        note: impl Fn(&mut DispatchLedger, K, usize),
    ) {
        let n = frame.len();
        let mut split = frame.split();
        let mut at = 0;
        while at < n {
            let this = key(at);
            let mut run = 1;
            while at + run < n && key(at + run) == this {
                run += 1;
            }
            at += run;
            note(&mut self.ledger, this, run);
            let node = target(this);
            while run > 0 {
                run -= split.move_to(self.frame_for(node), run);
            }
        }
        drop(split);
        self.spare.push(frame);
    }

    /// The node an edge of `entry` leads to; `error-drop` for an edge this thread does not know yet.
    #[inline(always)]
    pub(crate) fn target(topology: &Topology, entry: &NodeEntry, edge: Edge) -> NodeIndex {
        entry.target(edge).unwrap_or(topology.drop)
    }
}
