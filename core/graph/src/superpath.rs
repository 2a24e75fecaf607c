//! Superpaths: common chains of nodes, composed at compile time from the nodes' own code into one.
//!
//! A chain runs a packet through one node after the other as long as it is plain: each node says so of itself, in the
//! function its ordinary code begins with. A packet that is not plain for a node goes to that node in the ordinary
//! graph, untouched by it; a frame with traced packets takes the ordinary graph from the start.
//!
//! Where a frame's packets look for the same, as in a burst to one host, there is one lookup for all; a packet that looks
//! for something else after all has its own. Else, a lookup that waits for memory is done ahead, for a block of packets
//! side by side, and in three parts: what the packets will look for is read, and memory asked for it; one block later the
//! lookups go on, and memory is asked again; another block later they are finished, and the packets run through the
//! chain.
//!
//! A chain is put together from parts: [`Line`] or [`Split`] in front; [`Chained`], [`Open`], [`Stage`], [`FlowStage`] and
//! [`FlowLookup`] on the way; [`Forward`] or [`Direct`] at the end. The features that are stages of it are covered, those with state of
//! their own on each thread too ([`WithState`]): packets
//! of interfaces that have no others enabled take it. [`Graph::add_superpath`](crate::Graph::add_superpath) tells which.

use shoal_buffer::{Packet, SwIfIndex};
use shoal_infra::Guard;

use crate::cx::Cx;
use crate::feature::Arc as FeatureArc;
use crate::node::{Counts, Edge, NodeIndex, PacketNode, StagedNode};
use crate::state::Stateful;

mod ahead;
mod bind;
mod borrowed_table;
mod cross;
mod cross_lookups;
mod cross_with_state;
mod direct;
mod flow_lookup;
mod flow_stage;
mod forward;
mod link;
mod no_feature;
mod open;
mod runner;
mod split;
mod stage;
mod walk;
mod with_state;

pub use bind::{ArcPassage, Binder, SuperpathInfo};
pub use cross::{Cross, CrossOptional, Crossing};
pub use cross_with_state::StatefulCrossOptional;
pub use direct::Direct;
pub use flow_lookup::FlowLookup;
pub use flow_stage::{Directions, FlowStage};
pub use forward::Forward;
pub use link::{Chain, Chained, Line, Link};
pub use no_feature::NoFeature;
pub use open::Open;
pub(crate) use runner::ChainRunner;
pub use split::Split;
pub use stage::{Outgoing, Stage};
pub use walk::{ChainPosition, Walk};
pub use with_state::WithState;

/// The edge plain packets take: the first variant of a node's `Next`.
pub(crate) const FIRST: Edge = Edge(1);
/// The edge packets of a second common case take.
const SECOND: Edge = Edge(2);

/// Most nodes of a superpath; the compiler refuses longer ones.
pub const MOST_NODES: usize = 64;

/// Packets whose lookups are done ahead together.
const BLOCK: usize = 16;

/// Packets of a frame that are looked at to see whether all look for the same.
pub(crate) const SAMPLES: usize = 3;
/// Packets of a frame from which on that pays.
pub(crate) const WORTH_A_LOOK: usize = 4;

/// Which packets of a frame of `n` those are.
#[inline(always)]
pub(crate) fn samples(n: usize) -> [usize; SAMPLES] {
    [0, n / 2, n.saturating_sub(1)]
}

/// A node that knows its common case.
pub trait Plain: PacketNode {
    /// What it needs to know of an interface.
    type Facts<'g>: Copy;
    /// Bytes it takes off the front of every plain packet.
    const PULLS: usize = 0;
    /// Whether it counts bytes.
    const COUNTS_BYTES: bool = false;

    /// The interface of a packet that the node's facts are of: the receiving one, or the sending one.
    #[inline(always)]
    fn interface(pkt: &Packet<'_>) -> SwIfIndex {
        pkt.rx()
    }

    /// What holds for all packets of one interface, asked once while they follow each other. `None` when none of them
    /// is plain: it is down, or has features.
    fn facts<'g>(&'g self, interface: SwIfIndex, guard: Guard<'g>) -> Option<Self::Facts<'g>>;

    /// The same for [`edge`](Self::edge), of a node that has more common cases when it is run by itself.
    #[inline(always)]
    fn facts_alone<'g>(&'g self, interface: SwIfIndex, guard: Guard<'g>) -> Option<Self::Facts<'g>> {
        self.facts(interface, guard)
    }

    /// Whether a packet goes along the node's first edge without an error or a count. If so, all the node does to a
    /// packet but counting is done; if not, the packet is as it was.
    fn plain(&self, facts: Self::Facts<'_>, pkt: &mut Packet<'_>) -> bool;

    /// The edge that a plain packet goes along, for a node with more than one common case. It is asked where the node is
    /// run by itself, outside of a chain.
    #[inline(always)]
    fn edge(&self, facts: Self::Facts<'_>, pkt: &mut Packet<'_>) -> Option<Edge> {
        self.plain(facts, pkt).then_some(FIRST)
    }

    /// Counts plain packets of one interface. `bytes` is 0 unless the node counts them.
    fn count(&self, _interface: SwIfIndex, _packets: u64, _bytes: u64, _cx: &Cx<'_, Self>) {}
}

/// A node with a second common case: packets that go along its second edge.
pub trait PlainSecond: Plain {
    /// As [`Plain::plain`], of the node's second edge.
    fn plain_second(&self, facts: Self::Facts<'_>, pkt: &mut Packet<'_>) -> bool;

    /// Both at once, for [`Plain::edge`].
    #[inline(always)]
    fn either(&self, facts: Self::Facts<'_>, pkt: &mut Packet<'_>) -> Option<Edge> {
        if self.plain(facts, pkt) {
            return Some(FIRST);
        }
        self.plain_second(facts, pkt).then_some(SECOND)
    }

    /// Which of the two edges a packet takes if it is plain for either.
    fn is_second(pkt: &Packet<'_>) -> bool;
}

/// A node at which an arc begins: packets are plain for it when they are well formed. By itself it has facts of
/// interfaces without features on the arc; in a chain packets go through the features that the chain covers.
pub trait Opens: for<'g> Plain<Facts<'g> = ()> {
    /// The arc; its features are those of the receiving interface.
    fn arc(&self) -> &FeatureArc;
}

/// What becomes of a packet at a feature that is part of a chain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pass {
    /// It goes on to the next feature: all the feature does to it is done.
    On,
    /// As [`On`](Self::On), and it has another destination than when it came: what is known of its lookup is not for it.
    Redirected,
    /// It goes on where this number leads, which the feature has found, and meets no other feature of the arc: all the
    /// feature does to it is done. The feature's own node would send it along its first edge.
    Chosen(u32),
    /// It goes to the feature's node and is as it was.
    Leave,
}

/// A feature that can be an optional stage of a chain: where it is not enabled, packets pass by.
pub trait Optional: Counts + Send + Sync + Sized + 'static {
    /// Name of the feature's node.
    const NAME: &'static str;
    /// What it needs to know of an interface that it is enabled on.
    type Facts<'g>: Copy;

    /// What holds for all packets of one interface, asked once while they follow each other. The interface is the
    /// receiving or the sending one, as the arc says.
    fn facts<'g>(&'g self, interface: SwIfIndex, guard: Guard<'g>) -> Self::Facts<'g>;

    /// Does what the feature does to one packet, counting included, or leaves it to the feature's node.
    fn pass(&self, facts: Self::Facts<'_>, pkt: &mut Packet<'_>, cx: &Cx<'_, Self>) -> Pass;
}

/// A feature with state of its own on each thread that can be an optional stage of a chain: see [`WithState`].
pub trait StatefulOptional: Counts + Send + Sync + Sized + 'static {
    /// Name of the feature's node.
    const NAME: &'static str;
    /// Whose state it is.
    type Feature: Stateful;
    /// As [`Optional::Facts`].
    type Facts<'g>: Copy;

    /// As [`Optional::facts`].
    fn facts<'g>(&'g self, interface: SwIfIndex, guard: Guard<'g>) -> Self::Facts<'g>;

    /// As [`Optional::pass`], with what the feature keeps on this thread: the same that its node is given. A packet that
    /// is left to the node must leave no trace in it.
    fn pass(
        &self,
        state: &mut <Self::Feature as Stateful>::State,
        facts: Self::Facts<'_>,
        pkt: &mut Packet<'_>,
        cx: &Cx<'_, Self>,
    ) -> Pass;
}

/// A feature with a table of flows on each thread: see [`FlowStage`].
pub trait FlowOptional: StatefulOptional {
    /// What is looked for in the table, and where the search is. Two that have not begun are equal when they look for the
    /// same; the default finds nothing.
    type Query: Copy + Default + PartialEq;

    /// The forwarding table packets of an interface come by, which is part of what tells flows apart.
    fn table(&self, interface: SwIfIndex) -> u32;

    /// Whether look-ups wait for memory.
    fn is_far(state: &<Self::Feature as Stateful>::State) -> bool;

    /// What will be looked for, as [`StagedLookup::query`]. The table is not known yet.
    fn query(pkt: &Packet<'_>, offset: usize) -> Self::Query;

    /// Begins a look-up of a packet that came by a table: asks memory for the first part.
    fn begin(state: &mut <Self::Feature as Stateful>::State, table: u32, query: &mut Self::Query);

    /// Goes on: asks memory for the flow.
    fn seek(state: &mut <Self::Feature as Stateful>::State, query: &mut Self::Query);

    /// As [`StatefulOptional::pass`], with the look-up of the packet's flow, or of another packet's.
    fn follow(
        &self,
        state: &mut <Self::Feature as Stateful>::State,
        facts: Self::Facts<'_>,
        query: Option<&Self::Query>,
        pkt: &mut Packet<'_>,
        cx: &Cx<'_, Self>,
    ) -> Pass;
}

/// What is known of a lookup before its packet comes.
#[derive(Clone, Copy, Debug)]
pub enum Known<'a, S, F = ()> {
    /// Nothing.
    Nothing,
    /// The answer.
    Answer(&'a S),
    /// The answer for another packet, which may look for the same, and what [`ResolvingNode::found`] makes of it.
    Other(&'a S, F),
    /// There is nothing to look up: a feature has chosen this number. If the lookup's node cannot follow it, the packet
    /// goes to the node that is named.
    Chosen(u32, NodeIndex),
}

/// What looks something up, for many packets at once and ahead of them.
pub trait StagedLookup: Send + Sync + 'static {
    /// What it needs to know of an interface, as in [`Plain`].
    type Facts<'g>: Copy;
    /// What it looks for, and the answer. Two that have begun are equal when they look for the same.
    type Query: Copy + Default + PartialEq;
    /// What is known of several packets when their lookups are under way.
    type InFlight: Copy + Default;

    /// Whether lookups take so long that it pays to do those of several packets together, ahead.
    fn is_far(facts: Self::Facts<'_>) -> bool;

    /// What will be looked for, of a packet whose header for this node is `offset` bytes behind its front. Any bytes
    /// may be there: a packet that is not plain for a node before does not come here.
    fn query(pkt: &Packet<'_>, offset: usize) -> Self::Query;

    /// Begins to look for what a packet seeks: does what can be done at once, and asks memory for the rest.
    fn begin(facts: Self::Facts<'_>, query: &mut Self::Query);

    /// Several have begun: for what is better done for many at once.
    #[inline(always)]
    fn begun(_: Self::Facts<'_>, _: &mut [Self::Query]) {}

    /// Goes on with several that were begun, when memory has had time to answer, and asks it for the rest.
    fn advance(facts: Self::Facts<'_>, all: &mut [Self::Query]) -> Self::InFlight;

    /// Finds what several packets seek, as it was begun and advanced.
    fn finish(facts: Self::Facts<'_>, begun: Self::InFlight, all: &mut [Self::Query]);

    /// Finds what one packet seeks.
    #[inline(always)]
    fn look_up(facts: Self::Facts<'_>, query: &mut Self::Query) {
        Self::begin(facts, query);
        let one = std::slice::from_mut(query);
        Self::begun(facts, one);
        let begun = Self::advance(facts, one);
        Self::finish(facts, begun, one);
    }
}

/// Nothing is looked up.
impl StagedLookup for () {
    type Facts<'g> = ();
    type Query = ();
    type InFlight = ();

    fn is_far((): ()) -> bool {
        false
    }

    #[inline(always)]
    fn query(_: &Packet<'_>, _: usize) {}

    #[inline(always)]
    fn begin((): (), (): &mut ()) {}

    #[inline(always)]
    fn advance((): (), _: &mut [()]) {}

    #[inline(always)]
    fn finish((): (), (): (), _: &mut [()]) {}
}

/// A staged node that on the way to its verdict finds what the next node would have to find again.
pub trait ResolvingNode: StagedNode + StagedLookup {
    /// What it finds.
    type Found<'g>: Copy;

    /// As [`Plain::facts`].
    fn facts<'g>(
        &'g self,
        interface: SwIfIndex,
        guard: Guard<'g>,
    ) -> Option<<Self as StagedLookup>::Facts<'g>>;

    /// All stages at once, for one packet. `None`, and the packet is as it was, when it does not go along the node's
    /// first edge.
    fn find<'g>(
        &'g self,
        facts: <Self as StagedLookup>::Facts<'g>,
        known: Known<'_, Self::Query>,
        pkt: &mut Packet<'_>,
        guard: Guard<'g>,
    ) -> Option<Self::Found<'g>>;

    /// What all packets find that look for the same, if they go along the node's first edge whatever else is in them.
    fn found<'g>(&'g self, query: &Self::Query, guard: Guard<'g>) -> Option<Self::Found<'g>>;

    /// Whether a packet looks for this, which was [found](Finds::found). If so, all the node does to it is done; if not,
    /// or when something else about the packet matters, it is as it was.
    fn takes(query: &Self::Query, pkt: &mut Packet<'_>) -> bool;
}

/// A staged node that looks packets up in a table of its own and then lets them go on to another lookup: flows in front
/// of the forwarding table.
pub trait FlowLookupNode: StagedNode + StagedLookup {
    /// As [`Plain::facts`].
    fn facts<'g>(
        &'g self,
        interface: SwIfIndex,
        guard: Guard<'g>,
    ) -> Option<<Self as StagedLookup>::Facts<'g>>;

    /// Looks one packet up and does to it what the node does; see [`Pass`]. What is known of another packet is no more
    /// than its answer.
    fn consult(
        &self,
        facts: <Self as StagedLookup>::Facts<'_>,
        known: Known<'_, Self::Query>,
        pkt: &mut Packet<'_>,
        cx: &Cx<'_, Self>,
    ) -> Pass;

    /// Counts packets of an interface that have passed the node, all of a run of the frame at once.
    #[inline(always)]
    fn count_passed(&self, _packets: u64, _cx: &Cx<'_, Self>) {}
}

/// A node that gets what the one before has found, and by that sends packets to one of many nodes.
pub trait Uses<F>: PacketNode {
    /// The edge a plain packet takes, after all the node does to it was done; `None`, and the packet is as it was, for
    /// another.
    fn plain_with(&self, found: F, pkt: &mut Packet<'_>) -> Option<Edge>;

    /// The same of packets of a second common case, which are asked for when they are not of the first.
    fn plain_otherwise(&self, _found: F, _pkt: &mut Packet<'_>) -> Option<Edge> {
        None
    }
}

/// A node behind which an arc of the sending interface begins.
pub trait UsesOut<F>: Uses<F> {
    /// The arc.
    fn arc(&self) -> &FeatureArc;

    /// The interface packets leave by when it may have features on the arc, and that is all that keeps
    /// [`Uses::plain_with`] from them.
    fn featured(found: F) -> Option<SwIfIndex>;

    /// As [`Uses::plain_with`], for what is [featured](UsesOut::featured). The packet is then as its first feature
    /// expects it.
    fn plain_featured(&self, found: F, pkt: &mut Packet<'_>) -> Option<Edge>;
}

/// A node that sends packets straight to one of many nodes, without looking anything up.
pub trait DirectingNode: PacketNode {
    /// What it needs to know of an interface.
    type Facts<'g>: Copy;

    /// As [`Plain::facts`].
    fn facts<'g>(&'g self, interface: SwIfIndex, guard: Guard<'g>) -> Option<Self::Facts<'g>>;

    /// The edge a plain packet takes, after all the node does to it was done; `None`, and the packet is as it was, for
    /// another. It has set the interface that the packet leaves by.
    fn direct(&self, facts: Self::Facts<'_>, pkt: &mut Packet<'_>) -> Option<Edge>;

    /// Counts plain packets of one interface.
    fn count(&self, _interface: SwIfIndex, _packets: u64, _bytes: u64, _cx: &Cx<'_, Self>) {}
}
