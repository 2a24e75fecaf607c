//! Edges between nodes, and how threads learn a change.

use std::any::TypeId;
use std::sync::Arc;

use super::draft::{Edges, NodeDraft};
use super::{Graph, GraphError};
use crate::NodeKind;
use crate::dispatch::PacketRunner;
use crate::node::{Edge, NextNodes, NodeIndex, PacketNode};
use crate::topology::Change;

/// The edges a node has: its own, or those it shares.
pub(super) fn edges<'a>(nodes: &'a [NodeDraft], draft: &'a NodeDraft) -> &'a Edges {
    let shared = draft.edges_of.and_then(|of| nodes.get(of.at()));
    &shared.unwrap_or(draft).edges
}

impl Graph {
    /// Notes that threads must learn of a node.
    pub(super) fn touch(&self, node: NodeIndex) {
        let mut nodes = self.nodes.borrow_mut();
        let Some(draft) = nodes.get_mut(node.at()) else { return };
        let sharers = draft.edges_for.clone();
        for index in std::iter::once(node).chain(sharers) {
            if let Some(draft) = nodes.get_mut(index.at())
                && !std::mem::replace(&mut draft.changed, true)
            {
                self.changed.borrow_mut().push(index);
            }
        }
    }

    /// Gives a node its edges to the nodes it names.
    pub(super) fn connect(&self, node: NodeIndex) -> Result<(), GraphError> {
        let (name, names) = match self.nodes.borrow().get(node.at()) {
            Some(draft) if !draft.connected => (Arc::clone(&draft.name), draft.next_names),
            _ => return Ok(()),
        };
        let mut unknown = Vec::new();
        let mut edges = Vec::with_capacity(names.len());
        for next in names {
            match self.node(next) {
                Ok(index) => edges.push(index),
                Err(_) => unknown.push(format!("node `{next}', next of `{name}'")),
            }
        }
        if !unknown.is_empty() {
            return Err(GraphError::Unknown(unknown));
        }
        if let Some(draft) = self.nodes.borrow_mut().get_mut(node.at()) {
            edges.into_iter().enumerate().for_each(|(at, next)| draft.edges.set(1 + at, next));
            draft.connected = true;
        }
        Ok(())
    }

    pub(super) fn push_edges(&self, node: NodeIndex, to: &[NodeIndex]) -> Result<Edge, GraphError> {
        let (first, grows) = {
            let mut nodes = self.nodes.borrow_mut();
            let Some(draft) = nodes.get_mut(node.at()) else {
                return Err(GraphError::NoNode(node.0.to_string(), None));
            };
            let first = draft.edges.len();
            let too_many = GraphError::TooMany("edges of one node", usize::from(u16::MAX));
            (Edge(first as u16), draft.edges.push(to).ok_or(too_many)?)
        };
        if grows {
            self.touch(node);
        }
        Ok(first)
    }

    /// An edge from one node to another, made if there is none, and known to all threads when this returns.
    ///
    /// # Errors
    /// More edges than a node can have.
    pub fn add_edge(&self, from: NodeIndex, to: NodeIndex) -> Result<Edge, GraphError> {
        // Not among the declared ones: those mean something of their own.
        if let Some(there) = self.nodes.borrow().get(from.at()).and_then(|draft| draft.edges.find(to)) {
            return Ok(there);
        }
        let edge = self.push_edges(from, &[to])?;
        self.publish()?;
        Ok(edge)
    }

    /// Gives a node all edges of another, now and later: both send packets by the same table of edges. The node must
    /// name the same next nodes as the other.
    ///
    /// # Errors
    /// The system refused to publish the change.
    pub fn share_edges(&self, node: NodeIndex, of: NodeIndex) -> Result<(), GraphError> {
        {
            let mut nodes = self.nodes.borrow_mut();
            let Some(draft) = nodes.get_mut(node.at()) else { return Ok(()) };
            draft.edges_of = Some(of);
            if let Some(owner) = nodes.get_mut(of.at()) {
                owner.edges_for.push(node);
            }
        }
        self.touch(node);
        self.publish()
    }

    /// Adds a node that goes on where another one stopped: it sends packets by that node's edges and counts their errors
    /// with that node's counters, so its types of both must be that node's.
    ///
    /// # Errors
    /// As [`Graph::add_packet`].
    pub fn add_packet_behind<N: PacketNode>(&self, node: N, of: NodeIndex) -> Result<NodeIndex, GraphError> {
        let logic = Arc::new(PacketRunner(Arc::new(node)));
        let fan = Some(TypeId::of::<N>());
        self.batch(|| {
            let added = self.add(N::NAME, NodeKind::Internal, logic, N::Next::NAMES, &[], fan)?;
            let mut nodes = self.nodes.borrow_mut();
            let base = nodes.get(of.at()).map(|owner| owner.error_base);
            if let (Some(draft), Some(base)) = (nodes.get_mut(added.at()), base) {
                draft.error_base = base;
            }
            drop(nodes);
            self.share_edges(added, of)?;
            Ok(added)
        })
    }

    /// Makes several changes and tells threads of all at once, even if one of them fails: each telling waits until every
    /// thread has come to the end of its round.
    ///
    /// # Errors
    /// What a change says, or the system refused to publish them.
    pub fn batch<R, E: From<GraphError>>(&self, changes: impl FnOnce() -> Result<R, E>) -> Result<R, E> {
        let outer = self.held.replace(true);
        let made = changes();
        self.held.set(outer);
        let published = self.publish();
        let made = made?;
        published?;
        Ok(made)
    }

    /// Tells all threads what has changed, and waits until those that move have taken it over.
    pub(super) fn publish(&self) -> Result<(), GraphError> {
        if !self.built.get() || self.held.get() {
            return Ok(());
        }
        let mut changed = self.changed.take();
        let arcs = self.arcs_changed.take();
        if changed.is_empty() && !arcs {
            return Ok(());
        }
        changed.sort_unstable();
        let mut nodes = self.nodes.borrow_mut();
        for index in &changed {
            if let Some(draft) = nodes.get_mut(index.at()) {
                draft.changed = false;
            }
        }
        let entry = |index: &NodeIndex| {
            let draft = nodes.get(index.at())?;
            Some(draft.entry(*index, edges(&nodes, draft).table()))
        };
        let entries = changed.iter().filter_map(entry).collect();
        drop(nodes);
        self.copied.set(self.copied.get() + changed.len() as u64);
        let arcs = arcs.then(|| self.arcs.borrow().tables.clone());
        let change = Change { nodes: entries, arcs, drop: self.drop.get() };
        self.hand_out(&change);
        // The graph's own picture comes last, so that what was replaced is freed here and not by a worker.
        self.topology.borrow_mut().take_over(&change, |_, _| ());
        Ok(())
    }

    /// How many nodes were given to threads so far, new or changed: what changes of the graph cost.
    pub fn published(&self) -> u64 {
        self.copied.get()
    }
}
