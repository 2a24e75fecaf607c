//! Adjacencies of packets that are bridged out of an interface, behind the link's header they came with.

use std::rc::Rc;

use shoal_buffer::SwIfIndex;
use shoal_graph::{Edge, NodeIndex};

use super::{Adjacencies, Key};
use crate::{AdjError, AdjIndex, Link};

/// Called for the first adjacency of packets that are bridged out of an interface (`true`), and when the last one has
/// gone.
pub type DvrWatch = Rc<dyn Fn(SwIfIndex, bool)>;

impl Adjacencies {
    /// The node that bridges a link's packets behind the header they came with, and the watch for the first such
    /// adjacency on an interface and the end of the last one.
    pub fn set_dvr_node(&self, link: Link, node: NodeIndex, watch: DvrWatch) {
        self.change_nodes(link, |nodes| nodes.dvr = Some(node));
        if let Some(slot) = self.dvr_watches.borrow_mut().get_mut(link as usize) {
            *slot = Some(watch);
        }
    }

    /// The adjacency of packets that are bridged out of an interface behind the header they came with, locked once more.
    ///
    /// # Errors
    /// The table is full, there is no such interface, or no node bridges such packets.
    pub fn bridged(&self, interface: SwIfIndex, link: Link) -> Result<AdjIndex, AdjError> {
        self.interfaces.data(interface)?;
        self.edge_to_dvr(link)?;
        self.lock(Key::Dvr(interface, link))
    }

    /// The adjacency of packets that a node takes from the lookup node, locked once more.
    ///
    /// # Errors
    /// The table is full, or there is no such node.
    pub fn to_node(&self, node: &'static str, link: Link) -> Result<AdjIndex, AdjError> {
        self.edge_to_node(node, link)?;
        self.lock(Key::Node(node, link))
    }

    pub(super) fn edge_to_node(&self, node: &'static str, link: Link) -> Result<Edge, AdjError> {
        self.edge_to_asker(link, self.graph.node(node)?)
    }

    /// The node that an adjacency leads to, if it leads to one.
    pub fn node_of(&self, index: AdjIndex) -> Option<&'static str> {
        match self.entries.borrow().get(&index)?.key {
            Key::Node(node, _) => Some(node),
            _ => None,
        }
    }

    pub(super) fn edge_to_dvr(&self, link: Link) -> Result<Edge, AdjError> {
        let node = self.nodes(link).dvr.ok_or(AdjError::NoNode { link, what: "bridges" })?;
        self.edge_to_asker(link, node)
    }

    pub(super) fn tell_of_dvr(&self, key: Key, begins: bool) {
        let Key::Dvr(interface, link) = key else { return };
        let watch = self.dvr_watches.borrow().get(link as usize).cloned().flatten();
        if let Some(watch) = watch {
            watch(interface, begins);
        }
    }
}
