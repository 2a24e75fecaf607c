//! Counts of buffers by node, switched on and off: where they are taken, given back, and kept; and the place where
//! observers look at nodes.
//!
//! What a node takes and gives back are differences of two counts of its thread's cache; what it sends on is the
//! difference of what is on its way before and after. While it is on, packets pass every node by itself, so that each
//! has its own row. While it is off, a thread looks at one flag with each frame.

use shoal_buffer::{Frame, Memory};

use crate::lane::Lane;
use crate::node::NodeIndex;
use crate::observer::Observers;
use crate::topology::NodeEntry;

/// Buffers, not packets: one of several segments counts as several.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BufferMoves {
    /// Taken from the pool.
    pub allocated: u64,
    /// Given back to it.
    pub freed: u64,
    /// That came to the node.
    pub received: u64,
    /// That it sent on, to nodes of this and other threads.
    pub sent: u64,
}

impl BufferMoves {
    /// What came to the node and has not left it yet; below zero for what was there when counting began.
    pub fn kept(&self) -> i64 {
        let (came, left) = (self.allocated.wrapping_add(self.received), self.freed.wrapping_add(self.sent));
        came.wrapping_sub(left).cast_signed()
    }

    /// Adds what another thread has counted.
    pub fn add(&mut self, other: &BufferMoves) {
        self.allocated += other.allocated;
        self.freed += other.freed;
        self.received += other.received;
        self.sent += other.sent;
    }
}

/// Whether buffers are counted by node.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Monitoring {
    /// They are.
    On,
    /// They are not.
    #[default]
    Off,
}

/// One thread's counts.
#[derive(Default)]
pub(crate) struct Monitor {
    /// Whether it counts, or anything observes.
    pub(crate) is_on: bool,
    /// Whether it counts.
    pub(crate) counts: bool,
    /// What looks at nodes.
    pub(crate) observers: Observers,
    /// By node.
    pub(crate) rows: Vec<BufferMoves>,
    /// Buffers handed over to other threads so far.
    pub(crate) handed: u64,
    /// The counts before the node that runs.
    before: Mark,
}

#[derive(Clone, Copy, Default)]
struct Mark {
    allocated: u64,
    freed: u64,
    under_way: u64,
    received: u64,
}

impl Monitor {
    /// Begins or ends to count.
    pub(crate) fn count(&mut self, counts: bool) {
        self.counts = counts;
        self.settle();
    }

    /// Changes what observes.
    pub(crate) fn observe(&mut self, change: impl FnOnce(&mut Observers)) {
        change(&mut self.observers);
        self.settle();
    }

    fn settle(&mut self) {
        self.is_on = self.counts || !self.observers.is_empty();
    }
}

/// The buffers of a frame's packets.
pub(crate) fn buffers(frame: &mut Frame, memory: Memory) -> u64 {
    let mut n = 0;
    for at in 0..frame.len() {
        n += frame.packet(memory, at).map_or(0, |pkt| pkt.segments().count().max(1) as u64);
    }
    n
}

impl Lane {
    /// Buffers that have left nodes: on their way here, or to other threads.
    fn under_way(&mut self) -> u64 {
        let memory = self.memory;
        let here: u64 = self.pending_frames().map(|frame| buffers(frame, memory)).sum();
        let leaving: u64 = self.outbox.filling().map(|frame| buffers(frame, memory)).sum();
        here + leaving + self.monitor.handed
    }

    /// A node is about to run, with a frame or as an input.
    #[cold]
    #[inline(never)]
    pub(crate) fn monitor_before(&mut self, entry: &NodeEntry, mut frame: Option<&mut Frame>) {
        let memory = self.memory;
        self.monitor.observers.before(entry.index, &entry.name, frame.as_deref_mut(), memory);
        if !self.monitor.counts {
            return;
        }
        let received = frame.map_or(0, |frame| buffers(frame, self.memory));
        let (allocated, freed) = self.cache.moved();
        self.monitor.before = Mark { allocated, freed, under_way: self.under_way(), received };
    }

    /// It has run, and taken or received so many packets.
    #[cold]
    #[inline(never)]
    pub(crate) fn monitor_after(&mut self, entry: &NodeEntry, packets: usize) {
        self.monitor.observers.after(entry.index, &entry.name, packets);
        if self.monitor.counts {
            self.count_moves(entry.index);
        }
    }

    fn count_moves(&mut self, node: NodeIndex) {
        let (allocated, freed) = self.cache.moved();
        let under_way = self.under_way();
        let Monitor { rows, before, .. } = &mut self.monitor;
        if rows.len() <= node.at() {
            rows.resize(node.at() + 1, BufferMoves::default());
        }
        if let Some(row) = rows.get_mut(node.at()) {
            row.add(&BufferMoves {
                allocated: allocated.wrapping_sub(before.allocated),
                freed: freed.wrapping_sub(before.freed),
                received: before.received,
                sent: under_way.saturating_sub(before.under_way),
            });
        }
    }
}
