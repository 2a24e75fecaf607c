//! A node as the control side keeps it.

use std::any::TypeId;
use std::collections::HashMap;
use std::sync::Arc;

use crate::dispatch::Dispatch;
use crate::node::{Edge, ErrorCounter, NodeIndex};
use crate::topology::{EdgeTable, NodeEntry, NodeKind};
use crate::trace::TraceRequest;

/// Edges up to which a table has no more room than it needs: a node of so many is small, and its last edge is looked
/// for from the table's end.
const SMALL: usize = 16;

/// The edges of one node: one to the drop, those declared, then others.
pub(super) struct Edges {
    table: EdgeTable,
    used: usize,
    /// Those behind the declared ones, by the node they lead to.
    by_node: HashMap<NodeIndex, Edge>,
    drop: NodeIndex,
}

impl Edges {
    /// So many edges, which all lead to the drop.
    pub(super) fn new(used: usize, drop: NodeIndex) -> Self {
        Edges { table: EdgeTable::new(used, &[], drop), used, by_node: HashMap::new(), drop }
    }

    pub(super) fn len(&self) -> usize {
        self.used
    }

    pub(super) fn table(&self) -> &EdgeTable {
        &self.table
    }

    /// Lets a declared edge lead to a node.
    pub(super) fn set(&self, edge: usize, node: NodeIndex) {
        self.table.set(edge, node);
    }

    /// The first edge to a node behind the declared ones.
    pub(super) fn find(&self, node: NodeIndex) -> Option<Edge> {
        self.by_node.get(&node).copied()
    }

    /// Adds edges behind the others; tells whether threads must be given the table again. `None` when there are more
    /// than a node can have; nothing is changed then.
    pub(super) fn push(&mut self, nodes: &[NodeIndex]) -> Option<bool> {
        let used = self.used + nodes.len();
        u16::try_from(used).ok()?;
        let grows = used > self.table.room();
        if grows {
            let room = if used <= SMALL { used } else { used.next_power_of_two().min(1 << 16) };
            let old: Vec<NodeIndex> = self.iter().collect();
            self.table = EdgeTable::new(room, &old, self.drop);
        }
        for (edge, node) in (self.used..).zip(nodes) {
            self.table.set(edge, *node);
            self.by_node.entry(*node).or_insert(Edge(edge as u16));
        }
        self.used = used;
        Some(grows)
    }

    /// Where they lead, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = NodeIndex> {
        (0..self.used).filter_map(|edge| self.table.get(Edge(edge as u16)))
    }
}

/// A node.
pub(super) struct NodeDraft {
    pub(super) name: Arc<str>,
    pub(super) kind: NodeKind,
    pub(super) logic: Arc<dyn Dispatch>,
    pub(super) next_names: &'static [&'static str],
    pub(super) edges: Edges,
    /// Whether those declared lead to their nodes; until then they lead to the drop.
    pub(super) connected: bool,
    pub(super) errors: &'static [ErrorCounter],
    pub(super) error_base: u32,
    pub(super) arcs: Vec<(u8, u16)>,
    pub(super) fan: Option<TypeId>,
    pub(super) trace: Arc<TraceRequest>,
    pub(super) deleted: bool,
    /// The node whose edges it has instead of its own.
    pub(super) edges_of: Option<NodeIndex>,
    /// The nodes that have its edges instead of their own.
    pub(super) edges_for: Vec<NodeIndex>,
    /// Whether threads do not know the last change yet.
    pub(super) changed: bool,
}

impl NodeDraft {
    /// The node as threads see it, with these edges.
    pub(super) fn entry(&self, index: NodeIndex, edges: &EdgeTable) -> Arc<NodeEntry> {
        Arc::new(NodeEntry {
            index,
            name: Arc::clone(&self.name),
            logic: Arc::clone(&self.logic),
            edges: edges.clone(),
            error_base: self.error_base,
            arcs: self.arcs.clone(),
            fan: self.fan,
            trace: Arc::clone(&self.trace),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_with_many_edges_gets_a_new_table_a_few_times_only() {
        let mut edges = Edges::new(2, NodeIndex(0));
        let grown = (1..10_000).filter(|n| edges.push(&[NodeIndex(*n)]).unwrap()).count();
        assert!(grown < SMALL + 14, "{grown} tables for 10000 edges");
        assert_eq!(edges.find(NodeIndex(5_000)), Some(Edge(5_001)));
        assert_eq!(edges.iter().nth(5_001), Some(NodeIndex(5_000)));
        assert_eq!(edges.find(NodeIndex(10_000)), None);
    }

    #[test]
    fn more_edges_than_a_number_can_name_are_refused_and_nothing_changes() {
        let mut edges = Edges::new(1, NodeIndex(0));
        let all: Vec<NodeIndex> = (1..usize::from(u16::MAX) as u32).map(NodeIndex).collect();
        assert_eq!(edges.push(&all), Some(true));
        assert_eq!(edges.push(&[NodeIndex(1)]), None);
        assert_eq!(edges.len(), usize::from(u16::MAX));
        assert_eq!(edges.table().room(), 1 << 16);
    }
}
