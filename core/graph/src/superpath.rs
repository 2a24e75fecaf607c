//! Superpaths: common chains of nodes, composed at compile time from the nodes' own code into one.
//!
//! A chain runs a packet through one node after the other as long as it is plain: each node says so of itself, in the
//! function its ordinary code begins with. A packet that is not plain for a node goes to that node in the ordinary
//! graph, untouched by it; a frame with traced packets takes the ordinary graph from the start.
//!
//! A lookup that waits for memory is done ahead: first of all packets of a block what they will look for is read and
//! memory asked for it, then the packets of the block before run through the chain, then all lookups of the block are
//! finished side by side, and its own packets run through the chain.

use std::any::TypeId;
use std::cell::Cell;
use std::sync::Arc;

use shoal_buffer::{Frame, Memory, Packet, SwIfIndex};
use shoal_infra::Guard;

use crate::cx::{Common, Cx};
use crate::dispatch::{Dispatch, Run, all_same};
use crate::lane::Lane;
use crate::node::{Edge, GROUP, NodeIndex, PacketNode, StagedNode};
use crate::topology::{NodeEntry, Topology};

/// The edge plain packets take: the first variant of a node's `Next`.
const FIRST: Edge = Edge(1);

/// Most nodes of a chain.
const DEPTH: usize = 8;

/// Packets whose lookups are done ahead together.
const BLOCK: usize = GROUP;

/// A node that knows its common case.
pub trait Plain: PacketNode {
    /// What it needs to know of an interface.
    type Facts<'g>: Copy;
    /// Bytes it takes off the front of every plain packet.
    const PULLS: usize = 0;

    /// What holds for all packets of one interface, asked once while they follow each other. `None` when none of them
    /// is plain: it is down, or has features.
    fn facts<'g>(&'g self, interface: SwIfIndex, guard: Guard<'g>) -> Option<Self::Facts<'g>>;

    /// Whether a packet goes along the node's first edge and nothing is to be said of it. If so, all the node does to
    /// a packet but counting is done; if not, the packet is as it was.
    fn plain(&self, facts: Self::Facts<'_>, pkt: &mut Packet<'_>) -> bool;

    /// Counts plain packets of one interface.
    fn count(&self, _interface: SwIfIndex, _packets: u64, _bytes: u64, _cx: &Cx<'_, Self>) {}
}

/// A node with a second common case: packets that go along its second edge.
pub trait PlainSecond: Plain {
    /// As [`Plain::plain`], of the node's second edge.
    fn plain_second(&self, facts: Self::Facts<'_>, pkt: &mut Packet<'_>) -> bool;

    /// Which of the two edges a packet takes if it is plain for either.
    fn is_second(pkt: &Packet<'_>) -> bool;
}

/// A staged node that on the way to its verdict finds what the next node would have to find again.
pub trait Finds: StagedNode {
    /// What it needs to know of an interface, as in [`Plain`].
    type Facts<'g>: Copy;
    /// What it finds.
    type Found<'g>;
    /// What it looks for, and the answer.
    type Sought: Copy + Default;
    /// What is known of several packets when their lookups have begun.
    type Begun: Copy + Default;

    /// As [`Plain::facts`].
    fn facts<'g>(&'g self, interface: SwIfIndex, guard: Guard<'g>) -> Option<Self::Facts<'g>>;

    /// Whether lookups take so long that it pays to do those of several packets together, ahead.
    fn is_far(facts: Self::Facts<'_>) -> bool;

    /// What will be looked for, of a packet whose header for this node is `offset` bytes behind its front. Any bytes
    /// may be there: a packet that is not plain for a node before does not come here.
    fn sought(pkt: &Packet<'_>, offset: usize) -> Self::Sought;

    /// Begins to look for what several packets seek: does what can be done at once, and asks memory for the rest.
    fn begin(facts: Self::Facts<'_>, all: &mut [Self::Sought]) -> Self::Begun;

    /// Finds what several packets seek, as it was begun.
    fn finish<'g>(
        &'g self,
        facts: Self::Facts<'g>,
        begun: Self::Begun,
        all: &mut [Self::Sought],
        guard: Guard<'g>,
    );

    /// All stages at once, for one packet; `ahead` is what was found ahead, when that was done. `None`, and the packet
    /// is as it was, when it does not go along the node's first edge.
    fn find<'g>(
        &'g self,
        facts: Self::Facts<'g>,
        ahead: Option<Self::Sought>,
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
    /// Packets of the run that took the second of two chains.
    second: &'a Cell<u64>,
    /// One for each chain's end.
    fans: &'a [Fan<'a>; 2],
}

/// Where in a chain a packet is.
#[derive(Clone, Copy)]
pub struct Spot {
    /// The node's number.
    at: usize,
    /// The chain's, of two that begin with the same node.
    side: usize,
}

impl Spot {
    const START: Spot = Spot { at: 0, side: 0 };

    #[inline(always)]
    const fn next(self) -> Spot {
        self.skip(1)
    }

    #[inline(always)]
    const fn skip(self, nodes: usize) -> Spot {
        Spot { at: self.at + nodes, side: self.side }
    }
}

impl<'a> Walk<'a> {
    #[inline(always)]
    fn entry(&self, spot: Spot) -> &'a NodeEntry {
        match self.entries.get(spot.at) {
            Some(entry) => entry,
            None => unreachable!("a chain has an entry for each of its nodes"),
        }
    }

    #[inline(always)]
    fn fan(&self, spot: Spot) -> &'a Fan<'a> {
        match self.fans.get(spot.side) {
            Some(fan) => fan,
            None => unreachable!("there are two sides"),
        }
    }

    /// A packet goes on in the ordinary graph, with this node.
    #[inline(always)]
    fn leave(&self, spot: Spot) -> NodeIndex {
        leave(self.left.get(spot.at), self.entry(spot))
    }

    /// Packets left of a run after those that left at this node.
    fn after(&self, spot: Spot, packets: u64) -> u64 {
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
            output.count(self.interface.get(), packets, bytes, &Cx::direct(common, self.node.get()));
        }
    }
}

/// Part of a chain, from one node to the end.
pub trait Link: Send + Sync + 'static {
    /// What its nodes need to know of an interface.
    type Facts<'g>: Copy;
    /// What its lookup looks for.
    type Sought: Copy + Default;
    /// As [`Finds::Begun`].
    type Begun: Copy + Default;
    /// How many nodes there are from here on.
    const NODES: usize;

    /// The names of the nodes from here on.
    fn names(list: &mut Vec<&'static str>);

    /// As [`Plain::facts`], of all nodes from here on.
    fn facts<'g>(&'g self, interface: SwIfIndex, guard: Guard<'g>) -> Option<Self::Facts<'g>>;

    /// As [`Finds::is_far`].
    fn is_far(facts: Self::Facts<'_>) -> bool;

    /// As [`Finds::sought`].
    fn sought(pkt: &Packet<'_>, offset: usize) -> Self::Sought;

    /// As [`Finds::begin`].
    fn begin(facts: Self::Facts<'_>, all: &mut [Self::Sought]) -> Self::Begun;

    /// As [`Finds::finish`].
    fn finish_ahead<'g>(
        &'g self,
        facts: Self::Facts<'g>,
        begun: Self::Begun,
        all: &mut [Self::Sought],
        guard: Guard<'g>,
    );

    /// Runs a packet through the nodes from here on, and says where it goes then.
    fn go<'g>(
        &'g self,
        facts: Self::Facts<'g>,
        ahead: Option<Self::Sought>,
        pkt: &mut Packet<'_>,
        walk: &Walk<'g>,
        spot: Spot,
    ) -> NodeIndex;

    /// Counts packets of one interface that came to the node.
    fn count(&self, interface: SwIfIndex, packets: u64, walk: &Walk<'_>, spot: Spot);

    /// Counts what is still to be counted, after the frame.
    fn finish(&self, walk: &Walk<'_>, spot: Spot);
}

/// A whole chain.
pub trait Chain: Send + Sync + 'static {
    /// What its nodes need to know of an interface. The default: none of its packets is plain.
    type Facts<'g>: Copy + Default;
    /// The lookups of a block that are done ahead.
    type Ahead: Default;

    /// The names of all nodes.
    fn names(list: &mut Vec<&'static str>);

    /// As [`Plain::facts`], of all nodes.
    fn facts<'g>(&'g self, interface: SwIfIndex, guard: Guard<'g>) -> Self::Facts<'g>;

    /// Whether it pays to do lookups ahead.
    fn is_far(&self, facts: Self::Facts<'_>) -> bool;

    /// Reads what packet `i` of a block, that are seen in order from 0 on, will look for.
    fn look(ahead: &mut Self::Ahead, i: usize, pkt: &Packet<'_>);

    /// Begins the lookups of the first `n` packets of a block.
    fn begin(facts: Self::Facts<'_>, ahead: &mut Self::Ahead, n: usize);

    /// Does the lookups of the first `n` packets of a block, begun with the same facts.
    fn finish_ahead<'g>(
        &'g self,
        facts: Self::Facts<'g>,
        ahead: &mut Self::Ahead,
        n: usize,
        guard: Guard<'g>,
    );

    /// Runs a packet through the chain, and says where it goes then. With `ahead` it is packet `i` of a block whose
    /// lookups were done.
    fn go<'g>(
        &'g self,
        facts: Self::Facts<'g>,
        ahead: Option<(&Self::Ahead, usize)>,
        pkt: &mut Packet<'_>,
        walk: &Walk<'g>,
    ) -> NodeIndex;

    /// Counts packets of one interface.
    fn count(&self, interface: SwIfIndex, packets: u64, walk: &Walk<'_>);

    /// Counts what is still to be counted, after the frame.
    fn finish(&self, walk: &Walk<'_>);
}

/// The lookups of a block of one chain.
#[derive(Default)]
pub struct One<S, B> {
    all: [S; BLOCK],
    begun: B,
}

/// A node, and the rest.
pub struct Then<A, Rest>(pub Arc<A>, pub Rest);

impl<A: Plain, Rest: Link> Link for Then<A, Rest> {
    type Facts<'g> = (A::Facts<'g>, Rest::Facts<'g>);
    type Sought = Rest::Sought;
    type Begun = Rest::Begun;
    const NODES: usize = 1 + Rest::NODES;

    fn names(list: &mut Vec<&'static str>) {
        list.push(A::NAME);
        Rest::names(list);
    }

    fn facts<'g>(&'g self, interface: SwIfIndex, guard: Guard<'g>) -> Option<Self::Facts<'g>> {
        Some((self.0.facts(interface, guard)?, self.1.facts(interface, guard)?))
    }

    fn is_far(facts: Self::Facts<'_>) -> bool {
        Rest::is_far(facts.1)
    }

    #[inline(always)]
    fn sought(pkt: &Packet<'_>, offset: usize) -> Self::Sought {
        Rest::sought(pkt, offset + A::PULLS)
    }

    #[inline(always)]
    fn begin(facts: Self::Facts<'_>, all: &mut [Self::Sought]) -> Self::Begun {
        Rest::begin(facts.1, all)
    }

    #[inline(always)]
    fn finish_ahead<'g>(
        &'g self,
        facts: Self::Facts<'g>,
        begun: Self::Begun,
        all: &mut [Self::Sought],
        guard: Guard<'g>,
    ) {
        self.1.finish_ahead(facts.1, begun, all, guard);
    }

    #[inline(always)]
    fn go<'g>(
        &'g self,
        facts: Self::Facts<'g>,
        ahead: Option<Self::Sought>,
        pkt: &mut Packet<'_>,
        walk: &Walk<'g>,
        spot: Spot,
    ) -> NodeIndex {
        if !self.0.plain(facts.0, pkt) {
            return walk.leave(spot);
        }
        self.1.go(facts.1, ahead, pkt, walk, spot.next())
    }

    fn count(&self, interface: SwIfIndex, packets: u64, walk: &Walk<'_>, spot: Spot) {
        let packets = walk.after(spot, packets);
        count(&*self.0, interface, packets, walk, spot);
        self.1.count(interface, packets, walk, spot.next());
    }

    fn finish(&self, walk: &Walk<'_>, spot: Spot) {
        self.1.finish(walk, spot.next());
    }
}

fn count<A: Plain>(node: &A, interface: SwIfIndex, packets: u64, walk: &Walk<'_>, spot: Spot) {
    if packets > 0 {
        // No node that packets come in by counts their bytes.
        node.count(interface, packets, 0, &Cx::direct(walk.common, walk.entry(spot)));
    }
}

impl<A: Plain, Rest: Link> Chain for Then<A, Rest> {
    type Facts<'g> = Option<<Self as Link>::Facts<'g>>;
    type Ahead = One<Rest::Sought, Rest::Begun>;

    fn names(list: &mut Vec<&'static str>) {
        <Self as Link>::names(list);
    }

    fn facts<'g>(&'g self, interface: SwIfIndex, guard: Guard<'g>) -> Option<<Self as Link>::Facts<'g>> {
        Link::facts(self, interface, guard)
    }

    fn is_far(&self, facts: Self::Facts<'_>) -> bool {
        facts.is_some_and(<Self as Link>::is_far)
    }

    #[inline(always)]
    fn look(ahead: &mut Self::Ahead, i: usize, pkt: &Packet<'_>) {
        if let Some(sought) = ahead.all.get_mut(i) {
            *sought = <Self as Link>::sought(pkt, 0);
        }
    }

    #[inline(always)]
    fn begin(facts: Self::Facts<'_>, ahead: &mut Self::Ahead, n: usize) {
        if let (Some(facts), Some(all)) = (facts, ahead.all.get_mut(..n)) {
            ahead.begun = <Self as Link>::begin(facts, all);
        }
    }

    #[inline(always)]
    fn finish_ahead<'g>(
        &'g self,
        facts: Self::Facts<'g>,
        ahead: &mut Self::Ahead,
        n: usize,
        guard: Guard<'g>,
    ) {
        if let (Some(facts), Some(all)) = (facts, ahead.all.get_mut(..n)) {
            Link::finish_ahead(self, facts, ahead.begun, all, guard);
        }
    }

    #[inline(always)]
    fn go<'g>(
        &'g self,
        facts: Self::Facts<'g>,
        ahead: Option<(&Self::Ahead, usize)>,
        pkt: &mut Packet<'_>,
        walk: &Walk<'g>,
    ) -> NodeIndex {
        let Some(facts) = facts else { return walk.leave(Spot::START) };
        let ahead = ahead.and_then(|(block, i)| block.all.get(i)).copied();
        Link::go(self, facts, ahead, pkt, walk, Spot::START)
    }

    fn count(&self, interface: SwIfIndex, packets: u64, walk: &Walk<'_>) {
        Link::count(self, interface, packets, walk, Spot::START);
    }

    fn finish(&self, walk: &Walk<'_>) {
        Link::finish(self, walk, Spot::START);
    }
}

/// Two chains that begin with the same node: packets it finds plain take the first, those that are plain for its
/// second edge the other. An interface that has none for the one may have them for the other.
pub struct Split<N, A, B>(pub Arc<N>, pub A, pub B);

impl<N, A, B> Split<N, A, B>
where
    A: Link,
{
    const FIRST: Spot = Spot { at: 1, side: 0 };
    const SECOND: Spot = Spot { at: 1 + A::NODES, side: 1 };
}

/// The lookups of a block of two chains.
#[derive(Default)]
pub struct Sides<S, B> {
    all: [S; BLOCK],
    /// One bit for each packet of the second chain, that of the first packet lowest.
    second: u32,
    begun: B,
    /// Of which chains they were done.
    done: [bool; 2],
}

impl<S: Copy + Default, B> Sides<S, B> {
    /// Which chain the first `n` packets are of, if it is the same.
    #[inline(always)]
    fn side(&self, n: usize) -> Option<usize> {
        match self.second.count_ones() as usize {
            0 => Some(0),
            all if all == n => Some(1),
            _ => None,
        }
    }

    /// The lookup of packet `i`, if it was done.
    #[inline(always)]
    fn of(&self, i: usize, side: usize) -> Option<S> {
        if self.done.get(side) == Some(&true) { self.all.get(i).copied() } else { None }
    }

    /// Does the lookups of one chain's packets, side by side.
    fn each_of(&mut self, side: usize, n: usize, seek: impl FnOnce(&mut [S])) {
        let (mut own, mut count) = ([S::default(); BLOCK], 0);
        let second = self.second;
        let places = self.all.iter_mut().take(n).enumerate();
        let places = places.filter(|(i, _)| (second >> i & 1) as usize == side).map(|(_, place)| place);
        let mut places: [Option<&mut S>; BLOCK] = {
            let mut some = places;
            std::array::from_fn(|_| some.next())
        };
        for (slot, place) in own.iter_mut().zip(places.iter().flatten()) {
            *slot = **place;
            count += 1;
        }
        seek(own.get_mut(..count).unwrap_or_default());
        places.iter_mut().flatten().zip(own).for_each(|(place, sought)| **place = sought);
        if let Some(done) = self.done.get_mut(side) {
            *done = true;
        }
    }
}

impl<N: PlainSecond, A: Link, B: Link<Sought = A::Sought, Begun = A::Begun>> Split<N, A, B> {
    /// The lookups of a block with packets of both chains, each chain's side by side.
    #[inline(never)]
    fn seek_both<'g>(
        &'g self,
        facts: <Self as Chain>::Facts<'g>,
        ahead: &mut Sides<A::Sought, A::Begun>,
        n: usize,
        guard: Guard<'g>,
    ) {
        if let Some((_, facts)) = facts.0.filter(|(_, facts)| A::is_far(*facts)) {
            ahead.each_of(0, n, |own| self.1.finish_ahead(facts, A::begin(facts, own), own, guard));
        }
        if let Some((_, facts)) = facts.1.filter(|(_, facts)| B::is_far(*facts)) {
            ahead.each_of(1, n, |own| self.2.finish_ahead(facts, B::begin(facts, own), own, guard));
        }
    }
}

impl<N: PlainSecond, A: Link, B: Link<Sought = A::Sought, Begun = A::Begun>> Chain for Split<N, A, B> {
    type Facts<'g> = (Option<(N::Facts<'g>, A::Facts<'g>)>, Option<(N::Facts<'g>, B::Facts<'g>)>);
    type Ahead = Sides<A::Sought, A::Begun>;

    fn names(list: &mut Vec<&'static str>) {
        list.push(N::NAME);
        A::names(list);
        B::names(list);
    }

    fn facts<'g>(&'g self, interface: SwIfIndex, guard: Guard<'g>) -> Self::Facts<'g> {
        let Some(node) = self.0.facts(interface, guard) else { return (None, None) };
        let (a, b) = (self.1.facts(interface, guard), self.2.facts(interface, guard));
        (a.map(|a| (node, a)), b.map(|b| (node, b)))
    }

    fn is_far(&self, facts: Self::Facts<'_>) -> bool {
        facts.0.is_some_and(|(_, a)| A::is_far(a)) || facts.1.is_some_and(|(_, b)| B::is_far(b))
    }

    #[inline(always)]
    fn look(ahead: &mut Self::Ahead, i: usize, pkt: &Packet<'_>) {
        if i == 0 {
            ahead.second = 0;
        }
        let second = N::is_second(pkt);
        ahead.second |= u32::from(second) << i;
        if let Some(slot) = ahead.all.get_mut(i) {
            *slot = if second { B::sought(pkt, N::PULLS) } else { A::sought(pkt, N::PULLS) };
        }
    }

    #[inline(always)]
    fn begin(facts: Self::Facts<'_>, ahead: &mut Self::Ahead, n: usize) {
        let side = ahead.side(n);
        let Some(all) = ahead.all.get_mut(..n) else { return };
        match (side, facts) {
            (Some(0), (Some((_, facts)), _)) if A::is_far(facts) => ahead.begun = A::begin(facts, all),
            (Some(1), (_, Some((_, facts)))) if B::is_far(facts) => ahead.begun = B::begin(facts, all),
            _ => {}
        }
    }

    #[inline(always)]
    fn finish_ahead<'g>(
        &'g self,
        facts: Self::Facts<'g>,
        ahead: &mut Self::Ahead,
        n: usize,
        guard: Guard<'g>,
    ) {
        ahead.done = [false; 2];
        let (side, begun) = (ahead.side(n), ahead.begun);
        let Some(all) = ahead.all.get_mut(..n) else { return };
        match (side, facts) {
            (None, _) => self.seek_both(facts, ahead, n, guard),
            (Some(0), (Some((_, facts)), _)) if A::is_far(facts) => {
                self.1.finish_ahead(facts, begun, all, guard);
                ahead.done = [true, false];
            }
            (Some(1), (_, Some((_, facts)))) if B::is_far(facts) => {
                self.2.finish_ahead(facts, begun, all, guard);
                ahead.done = [false, true];
            }
            _ => {}
        }
    }

    #[inline(always)]
    fn go<'g>(
        &'g self,
        facts: Self::Facts<'g>,
        ahead: Option<(&Self::Ahead, usize)>,
        pkt: &mut Packet<'_>,
        walk: &Walk<'g>,
    ) -> NodeIndex {
        if let Some((node, a)) = facts.0
            && self.0.plain(node, pkt)
        {
            let ahead = ahead.and_then(|(all, i)| all.of(i, 0));
            return self.1.go(a, ahead, pkt, walk, Self::FIRST);
        }
        match facts.1 {
            Some((node, b)) if self.0.plain_second(node, pkt) => {
                walk.second.set(walk.second.get() + 1);
                let ahead = ahead.and_then(|(all, i)| all.of(i, 1));
                self.2.go(b, ahead, pkt, walk, Self::SECOND)
            }
            _ => walk.leave(Spot::START),
        }
    }

    fn count(&self, interface: SwIfIndex, packets: u64, walk: &Walk<'_>) {
        let packets = walk.after(Spot::START, packets);
        count(&*self.0, interface, packets, walk, Spot::START);
        let second = walk.second.get().min(packets);
        self.1.count(interface, packets - second, walk, Self::FIRST);
        self.2.count(interface, second, walk, Self::SECOND);
    }

    fn finish(&self, walk: &Walk<'_>) {
        self.1.finish(walk, Self::FIRST);
        self.2.finish(walk, Self::SECOND);
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
    type Sought = L::Sought;
    type Begun = L::Begun;
    const NODES: usize = 2;

    fn names(list: &mut Vec<&'static str>) {
        list.extend([L::NAME, R::NAME]);
    }

    fn facts<'g>(&'g self, interface: SwIfIndex, guard: Guard<'g>) -> Option<Self::Facts<'g>> {
        self.0.facts(interface, guard)
    }

    fn is_far(facts: Self::Facts<'_>) -> bool {
        L::is_far(facts)
    }

    #[inline(always)]
    fn sought(pkt: &Packet<'_>, offset: usize) -> Self::Sought {
        L::sought(pkt, offset)
    }

    #[inline(always)]
    fn begin(facts: Self::Facts<'_>, all: &mut [Self::Sought]) -> Self::Begun {
        L::begin(facts, all)
    }

    #[inline(always)]
    fn finish_ahead<'g>(
        &'g self,
        facts: Self::Facts<'g>,
        begun: Self::Begun,
        all: &mut [Self::Sought],
        guard: Guard<'g>,
    ) {
        self.0.finish(facts, begun, all, guard);
    }

    #[inline(always)]
    fn go<'g>(
        &'g self,
        facts: Self::Facts<'g>,
        ahead: Option<Self::Sought>,
        pkt: &mut Packet<'_>,
        walk: &Walk<'g>,
        spot: Spot,
    ) -> NodeIndex {
        let Some(found) = self.0.find(facts, ahead, pkt, walk.common.guard) else { return walk.leave(spot) };
        let Some(edge) = self.1.plain_with(found, pkt) else { return walk.leave(spot.next()) };
        let fan = walk.fan(spot);
        if fan.edge.get() != edge
            && let Err(node) = fan.turn(&self.2, pkt.tx(), walk.common, walk.entry(spot.next()), edge)
        {
            return node;
        }
        fan.packets.set(fan.packets.get() + 1);
        fan.bytes.set(fan.bytes.get() + pkt.len() as u64);
        fan.exit.get()
    }

    fn count(&self, _: SwIfIndex, _: u64, _: &Walk<'_>, _: Spot) {}

    fn finish(&self, walk: &Walk<'_>, spot: Spot) {
        walk.fan(spot).flush(&self.2, walk.common);
    }
}

/// A block whose lookups are done ahead.
#[derive(Default)]
struct Block<A> {
    ahead: A,
    /// For which run of packets of one interface, by the position of its first: facts of an earlier one do not hold.
    of: Option<usize>,
}

/// Packets of a frame that follow each other and came in by the same interface.
struct Same<F> {
    interface: SwIfIndex,
    /// Position of the first in the frame.
    since: usize,
    facts: F,
}

/// Runs a chain.
pub(crate) struct ChainRunner<L> {
    pub(crate) chain: L,
    /// The chain's nodes in the graph, by position.
    pub(crate) nodes: Vec<NodeIndex>,
}

impl<L: Chain> ChainRunner<L> {
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
        let (left, second) = (<[Cell<u64>; DEPTH]>::default(), Cell::default());
        let fans = [Fan::new(nowhere), Fan::new(nowhere)];
        let walk = Walk { common: &common, entries: &entries, left: &left, second: &second, fans: &fans };
        let mut same = Same { interface: SwIfIndex::NONE, since: 0, facts: L::Facts::default() };
        let n = frame.len();
        let memory = *memory;
        if let Some(first) = frame.packet(memory, 0) {
            self.turn(&mut same, 0, first.rx(), &walk);
        }
        if self.chain.is_far(same.facts) {
            self.go_ahead(frame, memory, exits, &mut same, &walk);
        } else {
            frame.each(memory, |i, pkt| {
                if pkt.rx() != same.interface {
                    self.turn(&mut same, i, pkt.rx(), &walk);
                }
                let exit = self.chain.go(same.facts, None, pkt, &walk);
                if let Some(slot) = exits.get_mut(i) {
                    *slot = exit;
                }
            });
        }
        self.flush(&same, n, &walk);
        self.chain.finish(&walk);
    }

    /// Runs all packets, block by block, each after its lookups. A block of packets from several interfaces, which may
    /// have several tables, goes without.
    #[inline(always)]
    fn go_ahead<'g>(
        &'g self,
        frame: &mut Frame,
        memory: Memory,
        exits: &mut [NodeIndex],
        same: &mut Same<L::Facts<'g>>,
        walk: &Walk<'g>,
    ) {
        let n = frame.len();
        let mut blocks = <[Block<L::Ahead>; 2]>::default();
        frame.prefetch_first(memory, BLOCK);
        let [first, _] = &mut blocks;
        Self::begin(frame, memory, 0, first, same);
        for start in (0..n).step_by(BLOCK) {
            let [even, odd] = &mut blocks;
            let (block, next) = if start / BLOCK % 2 == 0 { (even, odd) } else { (odd, even) };
            let end = (start + BLOCK).min(n);
            if end < n {
                Self::begin(frame, memory, end, next, same);
            }
            // Interfaces may have changed, and with them what holds for all.
            let done = block.of == Some(same.since);
            if done {
                self.chain.finish_ahead(same.facts, &mut block.ahead, end - start, walk.common.guard);
            }
            frame.each_of::<false>(memory, start..end, |i, pkt| {
                if pkt.rx() != same.interface {
                    self.turn(same, i, pkt.rx(), walk);
                }
                let ahead = if done { Some((&block.ahead, i - start)) } else { None };
                let exit = self.chain.go(same.facts, ahead, pkt, walk);
                if let Some(slot) = exits.get_mut(i) {
                    *slot = exit;
                }
            });
        }
    }

    /// Begins the lookups of the packets from `start` on, if all came in by the same interface.
    #[inline(always)]
    fn begin<'g>(
        frame: &mut Frame,
        memory: Memory,
        start: usize,
        block: &mut Block<L::Ahead>,
        same: &Same<L::Facts<'g>>,
    ) {
        let end = (start + BLOCK).min(frame.len());
        let mut mixed = false;
        frame.each_of::<true>(memory, start..end, |i, pkt| {
            mixed |= pkt.rx() != same.interface;
            L::look(&mut block.ahead, i - start, pkt);
        });
        block.of = (!mixed).then_some(same.since);
        if !mixed {
            L::begin(same.facts, &mut block.ahead, end - start);
        }
    }

    /// Packet `i` came in by another interface than the one before.
    #[cold]
    #[inline(never)]
    fn turn<'g>(&'g self, same: &mut Same<L::Facts<'g>>, i: usize, interface: SwIfIndex, walk: &Walk<'g>) {
        self.flush(same, i, walk);
        walk.left.iter().for_each(|left| left.set(0));
        walk.second.set(0);
        let facts = self.chain.facts(interface, walk.common.guard);
        *same = Same { interface, since: i, facts };
    }

    /// Counts the packets before packet `i`.
    fn flush<'g>(&'g self, same: &Same<L::Facts<'g>>, i: usize, walk: &Walk<'g>) {
        let packets = i.saturating_sub(same.since) as u64;
        if packets > 0 {
            self.chain.count(same.interface, packets, walk);
        }
    }
}

impl<L: Chain> Dispatch for ChainRunner<L> {
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
pub(crate) fn names<L: Chain>(_: &L) -> Vec<&'static str> {
    let mut list = Vec::new();
    L::names(&mut list);
    list
}
