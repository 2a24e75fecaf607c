//! What a superpath learns of the graph it is put into, and what the graph learns of it.

use crate::feature::{Arc as FeatureArc, ArcSide};
use crate::graph::{Graph, GraphError};
use crate::node::NodeIndex;

/// An arc that packets of a superpath pass, and the features on it that are stages of the superpath.
#[derive(Clone, Debug)]
pub struct ArcPassage {
    /// The arc.
    pub arc: FeatureArc,
    /// Its name.
    pub name: &'static str,
    /// Whose features run.
    pub side: ArcSide,
    /// The branch it belongs to: 0, or 1 for the second of two chains.
    pub branch: usize,
    /// The features that are covered, a bit each as in [`FeatureArc::enabled`](crate::FeatureArc::enabled).
    pub covered: u64,
}

/// A superpath that is part of the graph.
#[derive(Clone, Debug)]
pub struct SuperpathInfo {
    /// Its node.
    pub node: NodeIndex,
    /// The first node of its chain.
    pub first: NodeIndex,
    /// The arcs its packets pass.
    pub passages: Vec<ArcPassage>,
}

/// Tells the parts of a chain where their nodes and features are, from the first to the last.
pub struct Binder<'a> {
    graph: &'a Graph,
    pub(crate) nodes: Vec<NodeIndex>,
    pub(crate) passages: Vec<ArcPassage>,
    /// The arc whose features come next.
    arc: Option<(FeatureArc, usize)>,
    covered: u64,
    branch: usize,
}

impl<'a> Binder<'a> {
    pub(crate) fn new(graph: &'a Graph) -> Self {
        Binder { graph, nodes: Vec::new(), passages: Vec::new(), arc: None, covered: 0, branch: 0 }
    }

    pub(super) fn set_branch(&mut self, branch: usize) {
        self.branch = branch;
    }

    /// A node of the chain.
    pub(super) fn node(&mut self, name: &str) -> Result<(), GraphError> {
        self.nodes.push(self.graph.node(name)?);
        Ok(())
    }

    /// The parts that `bind` binds are features of an arc, in its order; tells which of its features they are.
    pub(super) fn on_arc(
        &mut self,
        arc: &FeatureArc,
        bind: impl FnOnce(&mut Self) -> Result<(), GraphError>,
    ) -> Result<u64, GraphError> {
        let before = (self.arc.replace((arc.clone(), 0)), std::mem::take(&mut self.covered));
        bind(self)?;
        let covered = std::mem::replace(&mut self.covered, before.1);
        self.arc = before.0;
        let (name, side) = self.graph.arc_facts(arc);
        self.passages.push(ArcPassage { arc: arc.clone(), name, side, branch: self.branch, covered });
        Ok(covered)
    }

    /// A feature of the arc, if it is part of this router: the arc and the feature's position.
    pub(super) fn feature(
        &mut self,
        name: &str,
        there: bool,
    ) -> Result<Option<(FeatureArc, u8)>, GraphError> {
        if !there {
            // Nothing comes to its place.
            self.nodes.push(self.graph.drop_node());
            return Ok(None);
        }
        self.node(name)?;
        let Some((arc, from)) = self.arc.clone() else { return Err(GraphError::Order(name.to_owned())) };
        let position = self.graph.feature_position(&arc, name)?;
        if position < from {
            return Err(GraphError::Order(name.to_owned()));
        }
        self.arc = Some((arc.clone(), position + 1));
        self.covered |= 1 << position;
        Ok(Some((arc, position as u8)))
    }
}
