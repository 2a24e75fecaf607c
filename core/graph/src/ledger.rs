//! What one thread notes of its nodes besides the shared counters: packets by edge, and each node's dearest call.
//!
//! Only the thread writes its ledger; whoever wants to read asks the thread for a copy. So a note costs an addition
//! to memory that no other core touches.

use crate::node::{Edge, NodeIndex};
use crate::topology::{NodeEntry, Topology};

/// The call of a node that took most clocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Dearest {
    /// Clocks it took.
    pub clocks: u64,
    /// Packets it was given.
    pub vectors: u64,
}

/// One thread's notes.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    /// For each node the place of its edge 0 in `edges`, and behind the last node the end.
    first: Vec<usize>,
    edges: Vec<u64>,
    dearest: Vec<Dearest>,
    /// Where the edges of the node that runs begin, and how many it has.
    here: (usize, usize),
}

impl Ledger {
    /// Makes room for a new topology; nodes that are in both keep their notes.
    pub(crate) fn fit(&mut self, old: &Topology, new: &Topology) {
        let mut fresh = Ledger::default();
        for (at, entry) in new.nodes.iter().enumerate() {
            let stays = old.nodes.get(at).is_some_and(|o| o.name == entry.name);
            let node = NodeIndex(at as u32);
            fresh.first.push(fresh.edges.len());
            let count = |edge| if stays { self.packets(node, edge) } else { 0 };
            fresh.edges.extend((0..entry.edges.len()).map(|edge| count(Edge(edge as u16))));
            fresh.dearest.push(if stays { self.dearest(node) } else { Dearest::default() });
        }
        fresh.first.push(fresh.edges.len());
        *self = fresh;
    }

    /// A node begins to run.
    #[inline(always)]
    pub(crate) fn begin(&mut self, entry: &NodeEntry) {
        self.here = (self.first.get(entry.index.at()).copied().unwrap_or(0), entry.edges.len());
    }

    /// Packets of the node that runs take an edge.
    #[inline(always)]
    pub(crate) fn count(&mut self, edge: Edge, packets: usize) {
        let (first, len) = self.here;
        // An edge this thread does not know leads to `error-drop`, as edge 0 does.
        let edge = if usize::from(edge.0) < len { usize::from(edge.0) } else { 0 };
        if let Some(count) = self.edges.get_mut(first + edge) {
            *count += packets as u64;
        }
    }

    /// Packets of the node that runs go to another by its index.
    #[inline(always)]
    pub(crate) fn count_to(&mut self, entry: &NodeEntry, node: NodeIndex, packets: usize) {
        if let Some(edge) = entry.edges.iter().rposition(|n| *n == node) {
            self.count(Edge(edge as u16), packets);
        }
    }

    /// A call of a node has ended.
    #[inline(always)]
    pub(crate) fn ended(&mut self, node: NodeIndex, clocks: u64, vectors: u64) {
        if let Some(most) = self.dearest.get_mut(node.at())
            && clocks > most.clocks
        {
            *most = Dearest { clocks, vectors };
        }
    }

    /// Forgets what was noted.
    pub(crate) fn clear(&mut self) {
        self.edges.fill(0);
        self.dearest.fill(Dearest::default());
    }

    /// Packets that went over an edge of a node.
    pub fn packets(&self, node: NodeIndex, edge: Edge) -> u64 {
        let (Some(first), Some(end)) = (self.first.get(node.at()), self.first.get(node.at() + 1)) else {
            return 0;
        };
        self.edges.get(*first..*end).and_then(|e| e.get(usize::from(edge.0))).copied().unwrap_or(0)
    }

    /// The call of a node that took most clocks; all zero when it has not run.
    pub fn dearest(&self, node: NodeIndex) -> Dearest {
        self.dearest.get(node.at()).copied().unwrap_or_default()
    }
}
