//! What one thread notes of its nodes besides the shared counters: packets by edge, and each node's dearest call.
//!
//! Only the thread writes its ledger; readers ask the thread for a copy. So a note costs an addition to memory that no
//! other core touches.

use crate::node::{Edge, NodeIndex};
use crate::topology::NodeEntry;

/// The call of a node that took most clocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SlowestCall {
    /// Clocks it took.
    pub clocks: u64,
    /// Packets it was given.
    pub vectors: u64,
}

/// One thread's notes.
#[derive(Clone, Debug, Default)]
pub struct DispatchLedger {
    /// For each node the place of its edge 0 in `edges`, and how many edges have a place there.
    places: Vec<(usize, usize)>,
    edges: Vec<u64>,
    slowest_call: Vec<SlowestCall>,
    /// The places of the edges of the node that runs.
    here: (usize, usize),
}

impl DispatchLedger {
    /// Makes room for a node that is new, or takes the place of another. One of the same name keeps its notes.
    pub(crate) fn fit(&mut self, old: Option<&NodeEntry>, new: &NodeEntry) {
        let nodes = self.places.len().max(new.index.at() + 1);
        self.places.resize(nodes, (0, 0));
        self.slowest_call.resize(nodes, SlowestCall::default());
        let Some(place) = self.places.get_mut(new.index.at()) else { return };
        let (first, len) = *place;
        if old.is_none_or(|old| old.name != new.name) {
            self.edges.get_mut(first..first + len).unwrap_or_default().fill(0);
            if let Some(slowest_call) = self.slowest_call.get_mut(new.index.at()) {
                *slowest_call = SlowestCall::default();
            }
        }
        if new.edges.room() > len {
            // What the node leaves behind is less than what it has now: tables double.
            *place = (self.edges.len(), new.edges.room());
            self.edges.extend_from_within(first..first + len);
            self.edges.resize(place.0 + place.1, 0);
        }
    }

    /// A node begins to run.
    #[inline(always)]
    pub(crate) fn begin(&mut self, entry: &NodeEntry) {
        self.here = self.places.get(entry.index.at()).copied().unwrap_or((0, 0));
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
        if let Some(edge) = entry.edges.last_to(node) {
            self.count(edge, packets);
        }
    }

    /// A call of a node has ended.
    #[inline(always)]
    pub(crate) fn ended(&mut self, node: NodeIndex, clocks: u64, vectors: u64) {
        if let Some(most) = self.slowest_call.get_mut(node.at())
            && clocks > most.clocks
        {
            *most = SlowestCall { clocks, vectors };
        }
    }

    /// Forgets what was noted.
    pub(crate) fn clear(&mut self) {
        self.edges.fill(0);
        self.slowest_call.fill(SlowestCall::default());
    }

    /// Packets that went over an edge of a node.
    pub fn packets(&self, node: NodeIndex, edge: Edge) -> u64 {
        let Some((first, len)) = self.places.get(node.at()).copied() else { return 0 };
        self.edges.get(first..first + len).and_then(|e| e.get(usize::from(edge.0))).copied().unwrap_or(0)
    }

    /// The call of a node that took most clocks; all zero when it has not run.
    pub fn slowest_call(&self, node: NodeIndex) -> SlowestCall {
        self.slowest_call.get(node.at()).copied().unwrap_or_default()
    }
}
