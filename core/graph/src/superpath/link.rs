//! Chains, link by link.

use std::sync::Arc;

use shoal_buffer::{Packet, SwIfIndex};
use shoal_infra::Guard;

use super::ahead::{Ahead, Hint};
use super::bind::Binder;
use super::walk::{ChainPosition, Walk};
use super::{Known, Plain, StagedLookup};
use crate::cx::Cx;
use crate::graph::GraphError;
use crate::node::NodeIndex;

/// Part of a chain, from one node to the end.
pub trait Link: Send + Sync + 'static {
    /// What its nodes need to know of an interface.
    type Facts<'g>: Copy;
    /// What among them looks something up; `()`: nothing does.
    type Lookup: StagedLookup;
    /// What one lookup for several packets has found.
    type Found<'g>: Copy;
    /// How many nodes there are from here on.
    const NODES: usize;
    /// Bytes they take off the front of every plain packet before the lookup.
    const PULLS: usize;

    /// Finds the nodes from here on.
    ///
    /// # Errors
    /// One of them is not in the graph, or features do not stand in the order of their arc.
    fn bind(&mut self, binder: &mut Binder<'_>) -> Result<(), GraphError>;

    /// As [`Plain::facts`], of all nodes from here on.
    fn facts<'g>(&'g self, interface: SwIfIndex, walk: &Walk<'g>) -> Option<Self::Facts<'g>>;

    /// What the lookup needs to know of an interface.
    fn of_lookup<'g>(facts: &Self::Facts<'g>) -> <Self::Lookup as StagedLookup>::Facts<'g>;

    /// What is found for all packets that look for the same, if it is the same for all.
    fn found<'g>(
        &'g self,
        query: &<Self::Lookup as StagedLookup>::Query,
        guard: Guard<'g>,
    ) -> Option<Self::Found<'g>>;

    /// Runs a packet through the nodes from here on, and says where it goes then.
    fn go<'g>(
        &'g self,
        facts: &Self::Facts<'g>,
        known: Known<'_, <Self::Lookup as StagedLookup>::Query, Self::Found<'g>>,
        pkt: &mut Packet<'_>,
        walk: &Walk<'g>,
        spot: ChainPosition,
    ) -> NodeIndex;

    /// Counts packets of one interface that came to the node.
    fn count(&self, interface: SwIfIndex, packets: u64, walk: &Walk<'_>, spot: ChainPosition);

    /// Counts what is still to be counted, after the frame.
    fn finish(&self, walk: &Walk<'_>, spot: ChainPosition);
}

/// A whole chain.
pub trait Chain: Send + Sync + 'static {
    /// What its nodes need to know of an interface. The default: none of its packets is plain.
    type Facts<'g>: Copy + Default;
    /// What its lookup looks for.
    type Query: Copy + Default + PartialEq;
    /// What one lookup for several packets has found.
    type Found<'g>: Copy;
    /// The lookups of a block that are done ahead.
    type Ahead: Copy + Default;
    /// Whether anything is looked up.
    const LOOKS_UP: bool;
    /// How many nodes there are.
    const NODES: usize;

    /// Finds the nodes.
    ///
    /// # Errors
    /// As [`Link::bind`].
    fn bind(&mut self, binder: &mut Binder<'_>) -> Result<(), GraphError>;

    /// As [`Plain::facts`], of all nodes.
    fn facts<'g>(&'g self, interface: SwIfIndex, walk: &Walk<'g>) -> Self::Facts<'g>;

    /// Whether it pays to do lookups ahead.
    fn is_far(&self, facts: &Self::Facts<'_>) -> bool;

    /// What will be looked for, of a packet that is plain for all nodes before.
    fn query(pkt: &Packet<'_>) -> Self::Query;

    /// Finds it for several packets, if the answer is the same for all.
    fn look_up<'g>(
        &'g self,
        facts: &Self::Facts<'g>,
        query: Self::Query,
        guard: Guard<'g>,
    ) -> Option<Self::Found<'g>>;

    /// Begins the lookup of packet `i` of a block, that are seen in order from 0 on.
    fn begin(facts: &Self::Facts<'_>, ahead: &mut Self::Ahead, i: usize, pkt: &Packet<'_>);

    /// The first `n` of a block have begun.
    fn begun(facts: &Self::Facts<'_>, ahead: &mut Self::Ahead, n: usize);

    /// Goes on with those of the first `n`, with the same facts.
    fn advance(facts: &Self::Facts<'_>, ahead: &mut Self::Ahead, n: usize);

    /// Finishes them, with the same facts.
    fn finish_ahead(facts: &Self::Facts<'_>, ahead: &mut Self::Ahead, n: usize);

    /// Runs a packet through the chain, and says where it goes then.
    fn go<'g>(
        &'g self,
        facts: &Self::Facts<'g>,
        hint: Hint<'_, Self::Found<'g>, Self::Ahead>,
        pkt: &mut Packet<'_>,
        walk: &Walk<'g>,
    ) -> NodeIndex;

    /// Counts packets of one interface.
    fn count(&self, interface: SwIfIndex, packets: u64, walk: &Walk<'_>);

    /// Counts what is still to be counted, after the frame.
    fn finish(&self, walk: &Walk<'_>);
}

/// A node, and the rest.
pub struct Chained<A, Rest>(pub Arc<A>, pub Rest);

impl<A: Plain, Rest: Link> Link for Chained<A, Rest> {
    type Facts<'g> = (A::Facts<'g>, Rest::Facts<'g>);
    type Lookup = Rest::Lookup;
    type Found<'g> = Rest::Found<'g>;
    const NODES: usize = 1 + Rest::NODES;
    const PULLS: usize = A::PULLS + Rest::PULLS;

    fn bind(&mut self, binder: &mut Binder<'_>) -> Result<(), GraphError> {
        binder.node(A::NAME)?;
        self.1.bind(binder)
    }

    fn facts<'g>(&'g self, interface: SwIfIndex, walk: &Walk<'g>) -> Option<Self::Facts<'g>> {
        Some((self.0.facts(interface, walk.common.guard)?, self.1.facts(interface, walk)?))
    }

    #[inline(always)]
    fn of_lookup<'g>(facts: &Self::Facts<'g>) -> <Self::Lookup as StagedLookup>::Facts<'g> {
        Rest::of_lookup(&facts.1)
    }

    #[inline(always)]
    fn found<'g>(
        &'g self,
        query: &<Self::Lookup as StagedLookup>::Query,
        guard: Guard<'g>,
    ) -> Option<Self::Found<'g>> {
        self.1.found(query, guard)
    }

    #[inline(always)]
    fn go<'g>(
        &'g self,
        facts: &Self::Facts<'g>,
        known: Known<'_, <Self::Lookup as StagedLookup>::Query, Self::Found<'g>>,
        pkt: &mut Packet<'_>,
        walk: &Walk<'g>,
        spot: ChainPosition,
    ) -> NodeIndex {
        if !self.0.plain(facts.0, pkt) {
            return walk.leave(spot);
        }
        self.1.go(&facts.1, known, pkt, walk, spot.next())
    }

    fn count(&self, interface: SwIfIndex, packets: u64, walk: &Walk<'_>, spot: ChainPosition) {
        let packets = walk.after(spot, packets);
        count(&*self.0, interface, packets, walk, spot);
        self.1.count(interface, packets, walk, spot.next());
    }

    fn finish(&self, walk: &Walk<'_>, spot: ChainPosition) {
        self.1.finish(walk, spot.next());
    }
}

pub(super) fn count<A: Plain>(
    node: &A,
    interface: SwIfIndex,
    packets: u64,
    walk: &Walk<'_>,
    spot: ChainPosition,
) {
    if packets > 0 {
        // No node that packets come in by counts their bytes.
        node.count(interface, packets, 0, &Cx::new(walk.common, walk.entry(spot)));
    }
}

/// A chain without branches.
pub struct Line<L>(pub L);

impl<L: Link> Chain for Line<L> {
    type Facts<'g> = Option<L::Facts<'g>>;
    type Query = <L::Lookup as StagedLookup>::Query;
    type Found<'g> = (Self::Query, L::Found<'g>);
    type Ahead = Ahead<L::Lookup>;
    const LOOKS_UP: bool = size_of::<Self::Query>() > 0;
    const NODES: usize = L::NODES;

    fn bind(&mut self, binder: &mut Binder<'_>) -> Result<(), GraphError> {
        self.0.bind(binder)
    }

    fn facts<'g>(&'g self, interface: SwIfIndex, walk: &Walk<'g>) -> Option<L::Facts<'g>> {
        self.0.facts(interface, walk)
    }

    fn is_far(&self, facts: &Self::Facts<'_>) -> bool {
        facts.as_ref().is_some_and(|facts| L::Lookup::is_far(L::of_lookup(facts)))
    }

    #[inline(always)]
    fn query(pkt: &Packet<'_>) -> Self::Query {
        L::Lookup::query(pkt, L::PULLS)
    }

    #[inline(always)]
    fn look_up<'g>(
        &'g self,
        facts: &Self::Facts<'g>,
        mut query: Self::Query,
        guard: Guard<'g>,
    ) -> Option<Self::Found<'g>> {
        L::Lookup::look_up(L::of_lookup(facts.as_ref()?), &mut query);
        Some((query, self.0.found(&query, guard)?))
    }

    #[inline(always)]
    fn begin(facts: &Self::Facts<'_>, ahead: &mut Self::Ahead, i: usize, pkt: &Packet<'_>) {
        ahead.begin(facts.as_ref().map(L::of_lookup), i, pkt, L::PULLS);
    }

    #[inline(always)]
    fn begun(facts: &Self::Facts<'_>, ahead: &mut Self::Ahead, n: usize) {
        ahead.begun(facts.as_ref().map(L::of_lookup), n);
    }

    #[inline(always)]
    fn advance(facts: &Self::Facts<'_>, ahead: &mut Self::Ahead, n: usize) {
        ahead.advance(facts.as_ref().map(L::of_lookup), n);
    }

    #[inline(always)]
    fn finish_ahead(facts: &Self::Facts<'_>, ahead: &mut Self::Ahead, n: usize) {
        ahead.finish(facts.as_ref().map(L::of_lookup), n);
    }

    #[inline(always)]
    fn go<'g>(
        &'g self,
        facts: &Self::Facts<'g>,
        hint: Hint<'_, Self::Found<'g>, Self::Ahead>,
        pkt: &mut Packet<'_>,
        walk: &Walk<'g>,
    ) -> NodeIndex {
        let Some(facts) = facts.as_ref() else { return walk.leave(ChainPosition::START) };
        let known = match hint {
            Hint::Nothing => Known::Nothing,
            Hint::Frame((query, found)) => Known::Other(query, *found),
            Hint::Block(ahead, i) => ahead.found(i),
        };
        self.0.go(facts, known, pkt, walk, ChainPosition::START)
    }

    fn count(&self, interface: SwIfIndex, packets: u64, walk: &Walk<'_>) {
        self.0.count(interface, packets, walk, ChainPosition::START);
    }

    fn finish(&self, walk: &Walk<'_>) {
        self.0.finish(walk, ChainPosition::START);
    }
}
