//! The graph as threads see it. Each thread has a picture of its own, which only changes between two rounds of its
//! loop: a change brings the nodes that are new or other than before, whatever number of nodes there is.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::dispatch::Dispatch;
use crate::feature::ArcTable;
use crate::node::{Edge, ErrorCounter, ErrorCounters, NodeIndex};
use crate::trace::TraceRequest;

/// What kind of node it is, for `show`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NodeKind {
    /// Packets enter the graph here.
    Input,
    /// Packets pass.
    Internal,
    /// A fused chain of nodes.
    Superpath,
    /// A task of the main thread.
    Process,
    /// A feature's timer, which runs on each thread when something is due there.
    Timer,
}

/// Where each edge of a node leads; edge 0 is `error-drop`. Clones are the same table.
///
/// A table has room for more edges than the node has: those lead to `error-drop` until they are set. So a node with
/// an edge for each interface gets one more without a copy of the others.
#[derive(Clone)]
pub(crate) struct EdgeTable(Arc<[AtomicU32]>);

impl EdgeTable {
    /// A table of `room` edges that begins with those of another; all others lead to `drop`.
    pub(crate) fn new(room: usize, first: &[NodeIndex], drop: NodeIndex) -> Self {
        let rest = std::iter::repeat_n(drop, room.saturating_sub(first.len()));
        EdgeTable(first.iter().copied().chain(rest).map(|node| AtomicU32::new(node.0)).collect())
    }

    /// How many edges there is room for.
    #[inline(always)]
    pub(crate) fn room(&self) -> usize {
        self.0.len()
    }

    /// Where an edge leads.
    #[inline(always)]
    pub(crate) fn get(&self, edge: Edge) -> Option<NodeIndex> {
        // Relaxed: a thread learns of the edge by something that is published afterwards.
        self.0.get(usize::from(edge.0)).map(|node| NodeIndex(node.load(Ordering::Relaxed)))
    }

    /// Lets an edge lead to a node, for all threads. Only the control side does.
    pub(crate) fn set(&self, edge: usize, node: NodeIndex) {
        if let Some(slot) = self.0.get(edge) {
            slot.store(node.0, Ordering::Relaxed);
        }
    }

    /// The last edge that leads to a node.
    #[inline(always)]
    pub(crate) fn last_to(&self, node: NodeIndex) -> Option<Edge> {
        let edge = self.0.iter().rposition(|n| n.load(Ordering::Relaxed) == node.0)?;
        Some(Edge(edge as u16))
    }
}

/// One node of a [`Topology`].
pub(crate) struct NodeEntry {
    pub(crate) index: NodeIndex,
    pub(crate) name: Arc<str>,
    pub(crate) logic: Arc<dyn Dispatch>,
    pub(crate) edges: EdgeTable,
    /// Global number of the node's first error counter.
    pub(crate) error_base: u32,
    /// For each arc the node is on: the arc's number and the edge to position 0.
    pub(crate) arcs: Vec<(u8, u16)>,
    /// The type of the node's code, when chains may enter it through `Fan`.
    pub(crate) fan: Option<std::any::TypeId>,
    /// What of the packets that enter here is to be traced.
    pub(crate) trace: Arc<TraceRequest>,
}

impl NodeEntry {
    /// The number by which a packet says why it is dropped; there are no more than it holds.
    #[inline(always)]
    pub(crate) fn error(&self, why: impl ErrorCounters) -> u16 {
        (self.error_base + why.index()) as u16
    }

    #[inline(always)]
    pub(crate) fn target(&self, edge: Edge) -> Option<NodeIndex> {
        self.edges.get(edge)
    }
}

/// All nodes and arcs.
#[derive(Clone)]
pub(crate) struct Topology {
    pub(crate) nodes: Vec<Arc<NodeEntry>>,
    pub(crate) arcs: Vec<Arc<ArcTable>>,
    pub(crate) drop: NodeIndex,
}

/// What is other than before: nodes that follow those there are, and nodes that take the place of one.
pub(crate) struct Change {
    /// By index, so that those at the end come in order.
    pub(crate) nodes: Vec<Arc<NodeEntry>>,
    /// All arcs, if there was a change of any.
    pub(crate) arcs: Option<Vec<Arc<ArcTable>>>,
    pub(crate) drop: NodeIndex,
}

impl Topology {
    pub(crate) fn empty() -> Self {
        Topology { nodes: Vec::new(), arcs: Vec::new(), drop: NodeIndex(0) }
    }

    /// Takes a change over. `fit` sees each node before it does, and the one whose place it takes.
    pub(crate) fn take_over(&mut self, change: &Change, mut fit: impl FnMut(Option<&NodeEntry>, &NodeEntry)) {
        for entry in &change.nodes {
            let slot = self.nodes.get_mut(entry.index.at());
            fit(slot.as_deref().map(|old| &**old), entry);
            match slot {
                Some(slot) => *slot = Arc::clone(entry),
                None => self.nodes.push(Arc::clone(entry)),
            }
        }
        if let Some(arcs) = &change.arcs {
            self.arcs.clone_from(arcs);
        }
        self.drop = change.drop;
    }
}

/// What `show node` and `show graph` print of one node.
#[derive(Clone, Debug)]
pub struct NodeInfo {
    /// Its place.
    pub index: NodeIndex,
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: NodeKind,
    /// Names of the next nodes, by edge.
    pub next: Vec<String>,
    /// Names of the nodes that lead here.
    pub previous: Vec<String>,
    /// Its counters.
    pub errors: &'static [ErrorCounter],
    /// Global number of its first error counter.
    pub error_base: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_that_are_not_set_yet_lead_to_the_drop() {
        let table = EdgeTable::new(4, &[NodeIndex(7), NodeIndex(8)], NodeIndex(7));
        assert_eq!(table.get(Edge(1)), Some(NodeIndex(8)));
        assert_eq!((table.get(Edge(2)), table.get(Edge(4))), (Some(NodeIndex(7)), None));
        let same = table.clone();
        table.set(2, NodeIndex(9));
        assert_eq!((same.get(Edge(2)), same.last_to(NodeIndex(9))), (Some(NodeIndex(9)), Some(Edge(2))));
    }
}
