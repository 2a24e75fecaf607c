//! Where a packet is on its way through a chain, and what is counted there.

use std::any::TypeId;
use std::cell::Cell;

use shoal_buffer::{Packet, SwIfIndex};

use super::{FIRST, Known, Plain};
use crate::cx::{Common, Cx};
use crate::lane::Lane;
use crate::node::{Edge, NodeIndex};
use crate::topology::NodeEntry;

/// What the links share while a frame is on a superpath.
pub struct Walk<'a> {
    pub(super) common: &'a Common<'a>,
    /// The chain's nodes, by position.
    pub(super) nodes: &'a [NodeIndex],
    /// What stands for a node that the graph has no more.
    pub(super) nowhere: &'a NodeEntry,
    /// Packets of the run that left at each node.
    pub(super) left: &'a [Cell<u64>],
    /// Whether there are any.
    pub(super) any_left: &'a Cell<bool>,
    /// Packets of the run that took the second of two chains.
    pub(super) second: &'a Cell<u64>,
    /// One for each chain's end.
    pub(super) fans: &'a [LastTarget<'a>; 2],
}

/// Where in a chain a packet is.
#[derive(Clone, Copy)]
pub struct ChainPosition {
    /// The node's number.
    pub(super) at: usize,
    /// The chain's, of two that begin with the same node.
    pub(super) side: usize,
}

impl ChainPosition {
    pub(super) const START: ChainPosition = ChainPosition { at: 0, side: 0 };

    #[inline(always)]
    pub(super) const fn next(self) -> ChainPosition {
        self.skip(1)
    }

    #[inline(always)]
    const fn skip(self, nodes: usize) -> ChainPosition {
        ChainPosition { at: self.at + nodes, side: self.side }
    }
}

impl<'a> Walk<'a> {
    #[inline(always)]
    pub(super) fn entry(&self, spot: ChainPosition) -> &'a NodeEntry {
        let entry = self.nodes.get(spot.at).and_then(|node| self.common.topology.nodes.get(node.at()));
        entry.map_or(self.nowhere, |entry| entry)
    }

    #[inline(always)]
    pub(super) fn fan(&self, spot: ChainPosition) -> &'a LastTarget<'a> {
        match self.fans.get(spot.side) {
            Some(fan) => fan,
            None => unreachable!("there are two sides"),
        }
    }

    /// A packet goes on in the ordinary graph, with this node.
    #[inline(always)]
    pub(super) fn leave(&self, spot: ChainPosition) -> NodeIndex {
        leave(self.left.get(spot.at), self.any_left, self.nodes.get(spot.at), self.nowhere)
    }

    /// The same with a node that looks up, or where the packet goes that need not be looked up.
    #[inline(always)]
    pub(super) fn leave_lookup<S, F>(
        &self,
        known: &Known<'_, S, F>,
        mut pkt: Packet<'_>,
        spot: ChainPosition,
    ) -> NodeIndex {
        match known {
            Known::Chosen(number, node) => {
                pkt.meta_mut().adj = *number;
                *node
            }
            _ => self.leave(spot),
        }
    }

    /// The feature at `spot` has chosen where a packet goes.
    #[inline(always)]
    pub(super) fn chosen<S: 'static, F>(&self, number: u32, spot: ChainPosition) -> Known<'static, S, F> {
        Known::Chosen(number, Lane::target(self.common.topology, self.entry(spot), FIRST))
    }

    /// The same of a feature behind the last lookup: the packet goes there as if the feature's node had sent it.
    #[cold]
    pub(super) fn turn_aside(
        &self,
        number: u32,
        mut pkt: Packet<'_>,
        edge: Edge,
        spot: ChainPosition,
    ) -> NodeIndex {
        pkt.meta_mut().adj = number;
        Lane::target(self.common.topology, self.entry(spot), edge)
    }

    /// A packet takes an edge of the node at `spot`, to one of many nodes that all run `output`'s code, and passes that
    /// too.
    #[inline(always)]
    pub(super) fn fan_out<O: Plain>(
        &self,
        output: &O,
        pkt: &Packet<'_>,
        edge: Edge,
        spot: ChainPosition,
    ) -> NodeIndex {
        let fan = self.fan(spot);
        if fan.edge.get() != edge
            && let Err(node) = fan.turn(output, pkt.tx(), self.common, self.entry(spot), edge)
        {
            return node;
        }
        fan.packets.set(fan.packets.get() + 1);
        fan.bytes.set(fan.bytes.get() + pkt.len() as u64);
        fan.exit.get()
    }

    /// Where all packets of a frame of `n` went, if they all took the same edge of a chain's end. Comparing them one by
    /// one would have to wait until the last is written.
    #[inline(always)]
    pub(super) fn common_exit(&self, n: usize) -> Option<NodeIndex> {
        let fan = self.fans.iter().find(|fan| fan.packets.get() == n as u64)?;
        Some(fan.exit.get())
    }

    /// Packets left of a run after those that left at this node.
    pub(super) fn after(&self, spot: ChainPosition, packets: u64) -> u64 {
        packets.saturating_sub(self.left.get(spot.at).map_or(0, Cell::get))
    }

    /// Forgets which packets left.
    pub(super) fn forget(&self) {
        if self.any_left.take() {
            self.left.iter().for_each(|left| left.set(0));
        }
    }
}

#[cold]
#[inline(never)]
fn leave(
    left: Option<&Cell<u64>>,
    any_left: &Cell<bool>,
    node: Option<&NodeIndex>,
    nowhere: &NodeEntry,
) -> NodeIndex {
    any_left.set(true);
    if let Some(left) = left {
        left.update(|n| n + 1);
    }
    node.copied().unwrap_or(nowhere.index)
}

/// The one of many nodes that the last packet went to, and what it had to count so far: most packets of a frame go the
/// way of the one before.
pub(super) struct LastTarget<'a> {
    pub(super) edge: Cell<Edge>,
    /// Where packets go behind the node.
    pub(super) exit: Cell<NodeIndex>,
    pub(super) packets: Cell<u64>,
    pub(super) bytes: Cell<u64>,
    interface: Cell<SwIfIndex>,
    node: Cell<&'a NodeEntry>,
}

impl<'a> LastTarget<'a> {
    pub(super) fn new(nowhere: &'a NodeEntry) -> Self {
        LastTarget {
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
            output.count(self.interface.get(), packets, bytes, &Cx::new(common, self.node.get()));
        }
    }
}
