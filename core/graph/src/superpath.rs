//! Superpaths: common chains of nodes, composed at compile time from the nodes' own code into one.
//!
//! A chain runs a packet through one node after the other while each sends it along its first edge, the common
//! one. A packet that leaves the common case goes to exactly the node it would have gone to from the ordinary
//! graph, with the same marks; a frame with traced packets takes the ordinary graph from the start.

use std::sync::Arc;

use shoal_buffer::{FRAME_SIZE, Frame, Packet};

use crate::cx::{Common, Cx, Tally};
use crate::dispatch::{Dispatch, Run, all_same, verdict};
use crate::lane::Lane;
use crate::node::{Edge, NextNodes, NodeIndex, PacketNode, StagedNode};
use crate::topology::{NodeEntry, Topology};

/// The edge that stays on a chain: the first variant of a node's `Next`.
const ON: Edge = Edge(1);

/// Where a packet is after a chain: the node it goes to next.
pub type Exit = NodeIndex;

/// A packet on a superpath, between the runtime and the links.
pub struct Walk<'a, 'b> {
    common: &'a Common<'a>,
    entries: &'a [&'b NodeEntry],
    /// The last fan edge taken, the node it led to, and where that node's first edge leads: most packets of a
    /// frame go the way of the one before.
    last: std::cell::Cell<(Edge, &'a NodeEntry, Exit)>,
}

/// Part of a chain, from one node to the end.
pub trait Link: Send + Sync + 'static {
    /// What the staged node's `direct` finds for the rest of the way.
    type Key: Copy + Default;

    /// The names of the nodes from here on.
    fn names(list: &mut Vec<&'static str>);

    /// The way up to and with the staged node's `direct`. `Err` is a packet that left the chain.
    fn first(&self, pkt: &mut Packet<'_>, walk: &Walk<'_, '_>, at: usize) -> Result<Self::Key, Exit>;

    /// The rest of the way.
    fn second(&self, key: Self::Key, pkt: &mut Packet<'_>, walk: &Walk<'_, '_>, at: usize) -> Exit;
}

impl<'a> Walk<'a, '_> {
    /// The node a fan edge leads to, if it runs `B`'s code, and where its first edge leads.
    #[cold]
    fn fan<B: PacketNode>(&self, at: usize, edge: Edge) -> Result<(&'a NodeEntry, Exit), Exit> {
        let node = self.exit(at, edge);
        let entry = self.common.topology.nodes.get(node.at()).map(|e| &**e);
        match entry.filter(|e| e.fan == Some(std::any::TypeId::of::<B>())) {
            Some(entry) => Ok((entry, Lane::target(self.common.topology, entry, ON))),
            None => Err(node),
        }
    }

    #[inline(always)]
    fn entry(&self, at: usize) -> &NodeEntry {
        match self.entries.get(at) {
            Some(entry) => entry,
            None => unreachable!("a chain has an entry for each of its nodes"),
        }
    }

    #[inline(always)]
    fn exit(&self, at: usize, edge: Edge) -> Exit {
        Lane::target(self.common.topology, self.entry(at), edge)
    }
}

/// A node that runs before the chain's staged node, and the rest.
pub struct Then<A, Rest>(pub Arc<A>, pub Rest);

impl<A: PacketNode, Rest: Link> Link for Then<A, Rest> {
    type Key = Rest::Key;

    fn names(list: &mut Vec<&'static str>) {
        list.push(A::NAME);
        Rest::names(list);
    }

    #[inline(always)]
    fn first(&self, pkt: &mut Packet<'_>, walk: &Walk<'_, '_>, at: usize) -> Result<Self::Key, Exit> {
        let entry = walk.entry(at);
        let result = self.0.packet(pkt, &mut Cx::new(walk.common, entry));
        match verdict(result, pkt, entry) {
            ON => self.1.first(pkt, walk, at + 1),
            edge => Err(walk.exit(at, edge)),
        }
    }

    #[inline(always)]
    fn second(&self, key: Self::Key, pkt: &mut Packet<'_>, walk: &Walk<'_, '_>, at: usize) -> Exit {
        self.1.second(key, pkt, walk, at + 1)
    }
}

/// The chain's staged node, and the nodes after it.
pub struct Staged<A, Rest>(pub Arc<A>, pub Rest);

impl<A: StagedNode, Rest: Tail> Link for Staged<A, Rest> {
    type Key = A::Key;

    fn names(list: &mut Vec<&'static str>) {
        list.push(A::NAME);
        Rest::names(list);
    }

    #[inline(always)]
    fn first(&self, pkt: &mut Packet<'_>, walk: &Walk<'_, '_>, at: usize) -> Result<Self::Key, Exit> {
        Ok(self.0.direct(pkt, &mut Cx::new(walk.common, walk.entry(at))))
    }

    #[inline(always)]
    fn second(&self, key: Self::Key, pkt: &mut Packet<'_>, walk: &Walk<'_, '_>, at: usize) -> Exit {
        let entry = walk.entry(at);
        let mut key = key;
        for stage in 0..A::STAGES {
            key = self.0.stage(stage, key, &mut Cx::new(walk.common, entry));
        }
        let result = self.0.packet(key, pkt, &mut Cx::new(walk.common, entry));
        match verdict(result, pkt, entry) {
            ON => self.1.go(pkt, walk, at + 1),
            edge => walk.exit(at, edge),
        }
    }
}

/// Nodes after the staged one.
pub trait Tail: Send + Sync + 'static {
    /// The names of the nodes from here on.
    fn names(list: &mut Vec<&'static str>);

    /// The rest of the way.
    fn go(&self, pkt: &mut Packet<'_>, walk: &Walk<'_, '_>, at: usize) -> Exit;
}

/// The last node with a name: it sends packets to one of many nodes that all run `B`'s code (`<interface>-output`),
/// each with an entry of its own.
pub struct Fan<A, B>(pub Arc<A>, pub B);

impl<A: PacketNode, B: PacketNode> Tail for Fan<A, B>
where
    A::Next: FanOut,
{
    fn names(list: &mut Vec<&'static str>) {
        list.push(A::NAME);
    }

    #[inline(always)]
    fn go(&self, pkt: &mut Packet<'_>, walk: &Walk<'_, '_>, at: usize) -> Exit {
        let entry = walk.entry(at);
        let result = self.0.packet(pkt, &mut Cx::new(walk.common, entry));
        let fan = matches!(&result, Ok(next) if next.is_fan());
        let edge = verdict(result, pkt, entry);
        if !fan {
            return walk.exit(at, edge);
        }
        let (last, mut node, mut exit) = walk.last.get();
        if last != edge {
            match walk.fan::<B>(at, edge) {
                Ok((found, leads)) => {
                    (node, exit) = (found, leads);
                    walk.last.set((edge, node, exit));
                }
                Err(plain) => return plain,
            }
        }
        let result = self.1.packet(pkt, &mut Cx::new(walk.common, node));
        match verdict(result, pkt, node) {
            ON => exit,
            edge => Lane::target(walk.common.topology, node, edge),
        }
    }
}

/// A `Next` with a variant that leads to the nodes a chain may enter through [`Fan`].
pub trait FanOut: NextNodes {
    /// Whether this value does.
    fn is_fan(self) -> bool;
}

/// Runs a chain.
pub(crate) struct ChainRunner<L> {
    pub(crate) chain: L,
    /// The chain's nodes in the graph, by position.
    pub(crate) nodes: Vec<NodeIndex>,
}

impl<L: Link> ChainRunner<L> {
    #[inline(always)]
    fn go(
        &self,
        frame: &mut Frame,
        lane: &mut Lane,
        topology: &Topology,
        guard: shoal_infra::Guard<'_>,
        exits: &mut [NodeIndex; FRAME_SIZE],
    ) {
        const DEPTH: usize = 8;
        let mut entries: [&NodeEntry; DEPTH] = match topology.nodes.first() {
            Some(first) => [first; DEPTH],
            None => return,
        };
        for (slot, node) in entries.iter_mut().zip(&self.nodes) {
            if let Some(entry) = topology.nodes.get(node.at()) {
                *slot = entry;
            }
        }
        let Lane { memory, counters, thread, now, .. } = &mut *lane;
        let common = Common {
            guard,
            thread: *thread,
            now: *now,
            topology,
            counters,
            tx: Tally::default(),
            ip4: Tally::default(),
        };
        let Some(&nowhere) = entries.first() else { return };
        let last = std::cell::Cell::new((Edge(u16::MAX), nowhere, topology.drop));
        let walk = Walk { common: &common, entries: &entries, last };
        frame.each(*memory, |i, pkt| {
            let exit = match self.chain.first(pkt, &walk, 0) {
                Ok(key) => self.chain.second(key, pkt, &walk, 0),
                Err(exit) => exit,
            };
            if let Some(slot) = exits.get_mut(i) {
                *slot = exit;
            }
        });
        common.flush();
    }
}

impl<L: Link> Dispatch for ChainRunner<L> {
    fn dispatch(&self, mut frame: Box<Frame>, run: Run<'_>) {
        let Run { lane, topology, guard, .. } = run;
        if lane.tracer.active {
            if let Some(first) = self.nodes.first() {
                lane.forward(*first, frame);
            }
            return;
        }
        let mut exits = [topology.drop; FRAME_SIZE];
        self.go(&mut frame, lane, topology, guard, &mut exits);
        let all = exits.get(..frame.len()).unwrap_or_default();
        let first = all.first().copied().unwrap_or(topology.drop);
        if all_same(all, first) {
            lane.forward(first, frame);
        } else {
            lane.scatter_to(frame, &exits);
        }
    }
}

/// The names of a chain's nodes.
pub(crate) fn names<L: Link>(_: &L) -> Vec<&'static str> {
    let mut list = Vec::new();
    L::names(&mut list);
    list
}
