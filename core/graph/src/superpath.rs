//! Superpaths: common chains of nodes, composed at compile time from the nodes' own code into one.
//!
//! A chain runs a packet through one node after the other as long as it is plain: each node says so of itself, in the
//! function its ordinary code begins with. A packet that is not plain for a node goes to that node in the ordinary
//! graph, untouched by it; a frame with traced packets takes the ordinary graph from the start.
//!
//! Where a frame's packets look for the same, as in a burst to one host, there is one lookup for all; a packet that looks
//! for something else after all has its own. Else, a lookup that waits for memory is done ahead, for a block of packets side by side, and in three parts: what the
//! packets will look for is read, and memory asked for it; one block later the lookups go on, and memory is asked again;
//! another block later they are finished, and the packets run through the chain.

use shoal_buffer::{Packet, SwIfIndex};
use shoal_infra::Guard;

use crate::cx::Cx;
use crate::node::{Edge, PacketNode, StagedNode};

mod ahead;
mod forward;
mod link;
mod runner;
mod split;
mod walk;

pub use forward::Forward;
pub use link::{Chain, Link, Then};
pub(crate) use runner::{ChainRunner, names};
pub use split::Split;
pub use walk::{Spot, Walk};

/// The edge plain packets take: the first variant of a node's `Next`.
const FIRST: Edge = Edge(1);

/// Most nodes of a chain.
const DEPTH: usize = 8;

/// Packets whose lookups are done ahead together.
const BLOCK: usize = 16;

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

/// What is known of a lookup before its packet comes.
#[derive(Clone, Copy, Debug)]
pub enum Known<S> {
    /// Nothing.
    Nothing,
    /// The answer.
    Answer(S),
    /// The answer for another packet, which may look for the same.
    Other(S),
}

/// A staged node that on the way to its verdict finds what the next node would have to find again.
pub trait Finds: StagedNode {
    /// What it needs to know of an interface, as in [`Plain`].
    type Facts<'g>: Copy;
    /// What it finds.
    type Found<'g>;
    /// What it looks for, and the answer. Two that have begun are equal when they look for the same.
    type Sought: Copy + Default + PartialEq;
    /// What is known of several packets when their lookups are under way.
    type Begun: Copy + Default;

    /// As [`Plain::facts`].
    fn facts<'g>(&'g self, interface: SwIfIndex, guard: Guard<'g>) -> Option<Self::Facts<'g>>;

    /// Whether lookups take so long that it pays to do those of several packets together, ahead.
    fn is_far(facts: Self::Facts<'_>) -> bool;

    /// What will be looked for, of a packet whose header for this node is `offset` bytes behind its front. Any bytes
    /// may be there: a packet that is not plain for a node before does not come here.
    fn sought(pkt: &Packet<'_>, offset: usize) -> Self::Sought;

    /// Begins to look for what a packet seeks: does what can be done at once, and asks memory for the rest.
    fn begin(facts: Self::Facts<'_>, sought: &mut Self::Sought);

    /// Goes on with several that were begun, when memory has had time to answer, and asks it for the rest.
    fn advance(facts: Self::Facts<'_>, all: &mut [Self::Sought]) -> Self::Begun;

    /// Finds what several packets seek, as it was begun and advanced.
    fn finish(facts: Self::Facts<'_>, begun: Self::Begun, all: &mut [Self::Sought]);

    /// All stages at once, for one packet. `None`, and the packet is as it was, when it does not go along the node's
    /// first edge.
    fn find<'g>(
        &'g self,
        facts: Self::Facts<'g>,
        known: Known<Self::Sought>,
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
