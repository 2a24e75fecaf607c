//! Superpaths: common chains of nodes, composed at compile time from the nodes' own code into one.
//!
//! A chain runs a packet through one node after the other as long as it is plain: each node says so of itself, in the
//! function its ordinary code begins with. A packet that is not plain for a node goes to that node in the ordinary
//! graph, untouched by it; a frame with traced packets takes the ordinary graph from the start.

use std::any::TypeId;
use std::cell::Cell;
use std::sync::Arc;

use shoal_buffer::{Frame, Packet, SwIfIndex};
use shoal_infra::Guard;

use crate::cx::{Common, Cx, Tallies};
use crate::dispatch::{Dispatch, Run, all_same};
use crate::lane::Lane;
use crate::node::{Edge, NodeIndex, PacketNode, StagedNode};
use crate::topology::{NodeEntry, Topology};

/// The edge plain packets take: the first variant of a node's `Next`.
const FIRST: Edge = Edge(1);

/// Most nodes of a chain.
const DEPTH: usize = 8;

/// A node that knows its common case.
pub trait Plain: PacketNode {
    /// What it needs to know of an interface.
    type Facts<'g>: Copy;

    /// What holds for all packets of one interface, asked once while they follow each other. `None` when none of them
    /// is plain: it is down, or has features.
    fn facts<'g>(&'g self, interface: SwIfIndex, guard: Guard<'g>) -> Option<Self::Facts<'g>>;

    /// Whether a packet goes along the node's first edge and nothing is to be said of it. If so, all the node does to
    /// a packet but counting is done; if not, the packet is as it was.
    fn plain(&self, facts: Self::Facts<'_>, pkt: &mut Packet<'_>) -> bool;

    /// Counts plain packets of one interface.
    fn count(&self, _interface: SwIfIndex, _packets: u64, _bytes: u64, _cx: &Cx<'_, Self>) {}
}

/// A staged node that on the way to its verdict finds what the next node would have to find again.
pub trait Finds: StagedNode {
    /// What it needs to know of an interface, as in [`Plain`].
    type Facts<'g>: Copy;
    /// What it finds.
    type Found<'g>;

    /// As [`Plain::facts`].
    fn facts<'g>(&'g self, interface: SwIfIndex, guard: Guard<'g>) -> Option<Self::Facts<'g>>;

    /// All stages at once, for one packet: between the nodes of a superpath there is no frame to overlap. `None`, and
    /// the packet is as it was, when it does not go along the node's first edge.
    fn find<'g>(
        &'g self,
        facts: Self::Facts<'g>,
        pkt: &mut Packet<'_>,
        guard: Guard<'g>,
    ) -> Option<Self::Found<'g>>;
}

/// A node that is told what the one before has found, and by that sends packets to one of many nodes.
pub trait Uses<F>: PacketNode {
    /// The edge a plain packet takes, after all the node does to it was done; `None`, and the packet is as it was, for
    /// another.
    fn plain_with(&self, found: F, pkt: &mut Packet<'_>) -> Option<Edge>;
}

/// What the links share while a frame is on a superpath.
pub struct Walk<'a> {
    common: &'a Common<'a>,
    entries: &'a [&'a NodeEntry; DEPTH],
    /// Packets of the run that left at each node.
    left: &'a [Cell<u64>; DEPTH],
    fan: &'a Fan<'a>,
}

impl<'a> Walk<'a> {
    #[inline(always)]
    fn entry(&self, at: usize) -> &'a NodeEntry {
        match self.entries.get(at) {
            Some(entry) => entry,
            None => unreachable!("a chain has an entry for each of its nodes"),
        }
    }

    /// A packet goes on in the ordinary graph, with node `at`.
    #[inline(always)]
    fn leave(&self, at: usize) -> NodeIndex {
        leave(self.left.get(at), self.entry(at))
    }

    /// Packets left of a run after those that left at node `at`.
    fn after(&self, at: usize, packets: u64) -> u64 {
        packets.saturating_sub(self.left.get(at).map_or(0, Cell::get))
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
struct Fan<'a> {
    edge: Cell<Edge>,
    /// Where packets go behind the node.
    exit: Cell<NodeIndex>,
    packets: Cell<u64>,
    bytes: Cell<u64>,
    interface: Cell<SwIfIndex>,
    node: Cell<&'a NodeEntry>,
}

impl<'a> Fan<'a> {
    fn new(nowhere: &'a NodeEntry) -> Self {
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
    fn turn<O: Plain>(
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

    fn flush<O: Plain>(&self, output: &O, common: &Common<'_>) {
        let (packets, bytes) = (self.packets.take(), self.bytes.take());
        if packets > 0 {
            let tallies = Tallies::default();
            let cx = Cx::new(common, self.node.get(), &tallies).aside();
            output.count(self.interface.get(), packets, bytes, &cx);
        }
    }
}

/// Part of a chain, from one node to the end.
pub trait Link: Send + Sync + 'static {
    /// What its nodes need to know of an interface.
    type Facts<'g>: Copy;

    /// The names of the nodes from here on.
    fn names(list: &mut Vec<&'static str>);

    /// As [`Plain::facts`], of all nodes from here on.
    fn facts<'g>(&'g self, interface: SwIfIndex, guard: Guard<'g>) -> Option<Self::Facts<'g>>;

    /// Runs a packet through the nodes from here on, the first of which is node `at` of the chain, and says where it
    /// goes then.
    fn go<'g>(
        &'g self,
        facts: Self::Facts<'g>,
        pkt: &mut Packet<'_>,
        walk: &Walk<'g>,
        at: usize,
    ) -> NodeIndex;

    /// Counts packets of one interface that came to node `at`.
    fn count(&self, interface: SwIfIndex, packets: u64, walk: &Walk<'_>, at: usize);

    /// Counts what is still to be counted, after the frame.
    fn finish(&self, walk: &Walk<'_>);
}

/// A node, and the rest.
pub struct Then<A, Rest>(pub Arc<A>, pub Rest);

impl<A: Plain, Rest: Link> Link for Then<A, Rest> {
    type Facts<'g> = (A::Facts<'g>, Rest::Facts<'g>);

    fn names(list: &mut Vec<&'static str>) {
        list.push(A::NAME);
        Rest::names(list);
    }

    fn facts<'g>(&'g self, interface: SwIfIndex, guard: Guard<'g>) -> Option<Self::Facts<'g>> {
        Some((self.0.facts(interface, guard)?, self.1.facts(interface, guard)?))
    }

    #[inline(always)]
    fn go<'g>(
        &'g self,
        facts: Self::Facts<'g>,
        pkt: &mut Packet<'_>,
        walk: &Walk<'g>,
        at: usize,
    ) -> NodeIndex {
        if !self.0.plain(facts.0, pkt) {
            return walk.leave(at);
        }
        self.1.go(facts.1, pkt, walk, at + 1)
    }

    fn count(&self, interface: SwIfIndex, packets: u64, walk: &Walk<'_>, at: usize) {
        let packets = walk.after(at, packets);
        if packets > 0 {
            let tallies = Tallies::default();
            let cx = Cx::new(walk.common, walk.entry(at), &tallies).aside();
            // No node that packets come in by counts their bytes.
            self.0.count(interface, packets, 0, &cx);
        }
        self.1.count(interface, packets, walk, at + 1);
    }

    fn finish(&self, walk: &Walk<'_>) {
        self.1.finish(walk);
    }
}

/// The end of a chain: a lookup, the node that uses what it finds, and the one of many nodes which that sends packets
/// to (`<interface>-output`): they all run `O`'s code, each with an entry of its own.
pub struct Forward<L, R, O>(pub Arc<L>, pub Arc<R>, pub O);

impl<L, R, O> Link for Forward<L, R, O>
where
    L: Finds,
    R: for<'g> Uses<L::Found<'g>>,
    O: Plain,
{
    type Facts<'g> = L::Facts<'g>;

    fn names(list: &mut Vec<&'static str>) {
        list.extend([L::NAME, R::NAME]);
    }

    fn facts<'g>(&'g self, interface: SwIfIndex, guard: Guard<'g>) -> Option<Self::Facts<'g>> {
        self.0.facts(interface, guard)
    }

    #[inline(always)]
    fn go<'g>(
        &'g self,
        facts: Self::Facts<'g>,
        pkt: &mut Packet<'_>,
        walk: &Walk<'g>,
        at: usize,
    ) -> NodeIndex {
        let Some(found) = self.0.find(facts, pkt, walk.common.guard) else { return walk.leave(at) };
        let Some(edge) = self.1.plain_with(found, pkt) else { return walk.leave(at + 1) };
        let fan = walk.fan;
        if fan.edge.get() != edge
            && let Err(node) = fan.turn(&self.2, pkt.tx(), walk.common, walk.entry(at + 1), edge)
        {
            return node;
        }
        fan.packets.set(fan.packets.get() + 1);
        fan.bytes.set(fan.bytes.get() + pkt.len() as u64);
        fan.exit.get()
    }

    fn count(&self, _: SwIfIndex, _: u64, _: &Walk<'_>, _: usize) {}

    fn finish(&self, walk: &Walk<'_>) {
        walk.fan.flush(&self.2, walk.common);
    }
}

/// Packets of a frame that follow each other and came in by the same interface.
struct Same<F> {
    interface: SwIfIndex,
    /// Position of the first in the frame.
    since: usize,
    facts: Option<F>,
}

/// Runs a chain.
pub(crate) struct ChainRunner<L> {
    pub(crate) chain: L,
    /// The chain's nodes in the graph, by position.
    pub(crate) nodes: Vec<NodeIndex>,
}

impl<L: Link> ChainRunner<L> {
    #[inline(always)]
    fn go<'a>(&'a self, frame: &mut Frame, lane: &mut Lane, topology: &'a Topology, guard: Guard<'a>) {
        let Some(nowhere) = topology.nodes.first() else { return };
        let mut entries: [&NodeEntry; DEPTH] = [nowhere; DEPTH];
        for (slot, node) in entries.iter_mut().zip(&self.nodes) {
            if let Some(entry) = topology.nodes.get(node.at()) {
                *slot = entry;
            }
        }
        let Lane { memory, counters, thread, now, exits, .. } = &mut *lane;
        let common = Common { guard, thread: *thread, now: *now, topology, counters };
        let (left, fan) = (<[Cell<u64>; DEPTH]>::default(), Fan::new(nowhere));
        let walk = Walk { common: &common, entries: &entries, left: &left, fan: &fan };
        let mut same = Same { interface: SwIfIndex::NONE, since: 0, facts: None };
        let n = frame.len();
        frame.each(*memory, |i, pkt| {
            if pkt.rx() != same.interface {
                self.turn(&mut same, i, pkt.rx(), &walk);
            }
            let exit = match same.facts {
                Some(facts) => self.chain.go(facts, pkt, &walk, 0),
                None => walk.leave(0),
            };
            if let Some(slot) = exits.get_mut(i) {
                *slot = exit;
            }
        });
        self.flush(&same, n, &walk);
        self.chain.finish(&walk);
    }

    /// Packet `i` came in by another interface than the one before.
    #[cold]
    #[inline(never)]
    fn turn<'g>(&'g self, same: &mut Same<L::Facts<'g>>, i: usize, interface: SwIfIndex, walk: &Walk<'g>) {
        self.flush(same, i, walk);
        walk.left.iter().for_each(|left| left.set(0));
        let facts = self.chain.facts(interface, walk.common.guard);
        *same = Same { interface, since: i, facts };
    }

    /// Counts the packets before packet `i`.
    fn flush<'g>(&'g self, same: &Same<L::Facts<'g>>, i: usize, walk: &Walk<'g>) {
        let packets = i.saturating_sub(same.since) as u64;
        if packets > 0 {
            self.chain.count(same.interface, packets, walk, 0);
        }
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
        self.go(&mut frame, lane, topology, guard);
        let exits = lane.exits.get(..frame.len()).unwrap_or_default();
        let first = exits.first().copied().unwrap_or(topology.drop);
        if all_same(exits, first) {
            lane.forward(first, frame);
        } else {
            lane.scatter_to(frame);
        }
    }
}

/// The names of a chain's nodes.
pub(crate) fn names<L: Link>(_: &L) -> Vec<&'static str> {
    let mut list = Vec::new();
    L::names(&mut list);
    list
}
