//! Where a packet is on its way through a chain, and what is counted there.

use std::any::TypeId;
use std::cell::Cell;

use shoal_buffer::SwIfIndex;

use super::{DEPTH, FIRST, Plain};
use crate::cx::{Common, Cx};
use crate::lane::Lane;
use crate::node::{Edge, NodeIndex};
use crate::topology::NodeEntry;

/// What the links share while a frame is on a superpath.
pub struct Walk<'a> {
    pub(super) common: &'a Common<'a>,
    pub(super) entries: &'a [&'a NodeEntry; DEPTH],
    /// Packets of the run that left at each node.
    pub(super) left: &'a [Cell<u64>; DEPTH],
    /// Packets of the run that took the second of two chains.
    pub(super) second: &'a Cell<u64>,
    /// One for each chain's end.
    pub(super) fans: &'a [Fan<'a>; 2],
}

/// Where in a chain a packet is.
#[derive(Clone, Copy)]
pub struct Spot {
    /// The node's number.
    pub(super) at: usize,
    /// The chain's, of two that begin with the same node.
    pub(super) side: usize,
}

impl Spot {
    pub(super) const START: Spot = Spot { at: 0, side: 0 };

    #[inline(always)]
    pub(super) const fn next(self) -> Spot {
        self.skip(1)
    }

    #[inline(always)]
    const fn skip(self, nodes: usize) -> Spot {
        Spot { at: self.at + nodes, side: self.side }
    }
}

impl<'a> Walk<'a> {
    #[inline(always)]
    pub(super) fn entry(&self, spot: Spot) -> &'a NodeEntry {
        match self.entries.get(spot.at) {
            Some(entry) => entry,
            None => unreachable!("a chain has an entry for each of its nodes"),
        }
    }

    #[inline(always)]
    pub(super) fn fan(&self, spot: Spot) -> &'a Fan<'a> {
        match self.fans.get(spot.side) {
            Some(fan) => fan,
            None => unreachable!("there are two sides"),
        }
    }

    /// A packet goes on in the ordinary graph, with this node.
    #[inline(always)]
    pub(super) fn leave(&self, spot: Spot) -> NodeIndex {
        leave(self.left.get(spot.at), self.entry(spot))
    }

    /// Packets left of a run after those that left at this node.
    pub(super) fn after(&self, spot: Spot, packets: u64) -> u64 {
        packets.saturating_sub(self.left.get(spot.at).map_or(0, Cell::get))
    }
}

#[cold]
#[inline(never)]
fn leave(left: Option<&Cell<u64>>, entry: &NodeEntry) -> NodeIndex {
    if let Some(left) = left {
        left.update(|n| n + 1);
    }
    entry.index
}

/// The one of many nodes that the last packet went to, and what it had to count so far: most packets of a frame go the
/// way of the one before.
pub(super) struct Fan<'a> {
    pub(super) edge: Cell<Edge>,
    /// Where packets go behind the node.
    pub(super) exit: Cell<NodeIndex>,
    pub(super) packets: Cell<u64>,
    pub(super) bytes: Cell<u64>,
    interface: Cell<SwIfIndex>,
    node: Cell<&'a NodeEntry>,
}

impl<'a> Fan<'a> {
    pub(super) fn new(nowhere: &'a NodeEntry) -> Self {
        Fan {
            edge: Cell::new(Edge(u16::MAX)),
            exit: Cell::new(nowhere.index),
            packets: Cell::new(0),
            bytes: Cell::new(0),
            interface: Cell::new(SwIfIndex::NONE),
            node: Cell::new(nowhere),
        }
    }

    /// Goes over to the node that an edge of `entry` leads to. `Err` is one where packets of `interface` are not plain.
    #[cold]
    #[inline(never)]
    pub(super) fn turn<O: Plain>(
        &self,
        output: &O,
        interface: SwIfIndex,
        common: &'a Common<'a>,
        entry: &NodeEntry,
        edge: Edge,
    ) -> Result<(), NodeIndex> {
        let topology = common.topology;
        let node = Lane::target(topology, entry, edge);
        let found = topology.nodes.get(node.at()).filter(|e| e.fan == Some(TypeId::of::<O>()));
        let (Some(found), Some(_)) = (found, output.facts(interface, common.guard)) else { return Err(node) };
        self.flush(output, common);
        self.edge.set(edge);
        self.exit.set(Lane::target(topology, found, FIRST));
        self.interface.set(interface);
        self.node.set(found);
        Ok(())
    }

    pub(super) fn flush<O: Plain>(&self, output: &O, common: &Common<'_>) {
        let (packets, bytes) = (self.packets.take(), self.bytes.take());
        if packets > 0 {
            output.count(self.interface.get(), packets, bytes, &Cx::direct(common, self.node.get()));
        }
    }
}
