//! Chains, link by link.

use std::sync::Arc;

use shoal_buffer::{Packet, SwIfIndex};
use shoal_infra::Guard;

use super::walk::{Spot, Walk};
use super::{BLOCK, Plain};
use crate::cx::Cx;
use crate::node::NodeIndex;

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

pub(super) fn count<A: Plain>(node: &A, interface: SwIfIndex, packets: u64, walk: &Walk<'_>, spot: Spot) {
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
