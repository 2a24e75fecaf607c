//! The graph as threads see it: an unchanging picture, replaced as a whole when nodes or edges are added.

use std::sync::Arc;

use crate::dispatch::Dispatch;
use crate::feature::ArcTable;
use crate::node::{Edge, ErrorCounter, NodeIndex};
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
}

/// One node of a [`Topology`].
pub(crate) struct NodeEntry {
    pub(crate) index: NodeIndex,
    pub(crate) name: String,
    pub(crate) logic: Arc<dyn Dispatch>,
    /// Where each edge leads; edge 0 is `error-drop`.
    pub(crate) edges: Vec<NodeIndex>,
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
    #[inline(always)]
    pub(crate) fn target(&self, edge: Edge) -> Option<NodeIndex> {
        self.edges.get(usize::from(edge.0)).copied()
    }
}

/// All nodes and arcs.
pub(crate) struct Topology {
    pub(crate) nodes: Vec<Arc<NodeEntry>>,
    pub(crate) arcs: Vec<Arc<ArcTable>>,
    pub(crate) drop: NodeIndex,
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
