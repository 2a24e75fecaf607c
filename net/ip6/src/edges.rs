//! Ways to the nodes of the protocol that finds neighbours, which is not named here.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use shoal_graph::Edge;

/// Edges that somebody else sets; each leads to a drop at first. Clones are the same.
#[derive(Clone, Default)]
pub struct Ip6Edges(Arc<[AtomicU16; 2]>);

impl Ip6Edges {
    fn get(&self, at: usize) -> Edge {
        Edge(self.0.get(at).map_or(0, |edge| edge.load(Ordering::Acquire)))
    }

    fn set(&self, at: usize, edge: Edge) {
        if let Some(cell) = self.0.get(at) {
            cell.store(edge.0, Ordering::Release);
        }
    }

    /// The way from `ip6-lookup` of packets to a host on a connected network.
    pub fn glean(&self) -> Edge {
        self.get(0)
    }

    /// The way from `ip6-rewrite` of packets that leave by the interface they came in by.
    pub fn redirect(&self) -> Edge {
        self.get(1)
    }

    pub(crate) fn set_glean(&self, edge: Edge) {
        self.set(0, edge);
    }

    pub(crate) fn set_redirect(&self, edge: Edge) {
        self.set(1, edge);
    }
}
