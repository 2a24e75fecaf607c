//! Two chains behind one node.

use std::sync::Arc;

use shoal_buffer::{Packet, SwIfIndex};
use shoal_infra::Guard;

use super::ahead::{Ahead, Hint};
use super::bind::Binder;
use super::link::{Chain, Link, count};
use super::walk::{ChainPosition, Walk};
use super::{Known, Plain, PlainSecond, StagedLookup};
use crate::graph::GraphError;
use crate::node::NodeIndex;

/// Two chains that begin with the same node: packets it finds plain take the first, those that are plain for its
/// second edge the other. An interface that has none for the one may have them for the other.
pub struct Split<N, A, B>(pub Arc<N>, pub A, pub B);

impl<N, A: Link, B: Link> Split<N, A, B> {
    const FIRST: ChainPosition = ChainPosition { at: 1, side: 0 };
    const SECOND: ChainPosition = ChainPosition { at: 1 + A::NODES, side: 1 };

    /// A packet of the first chain among many of the other.
    #[cold]
    #[inline(never)]
    fn first_by_itself<'g>(&'g self, a: &A::Facts<'g>, mut pkt: Packet<'_>, walk: &Walk<'g>) -> NodeIndex {
        self.1.go(a, Known::Nothing, &mut pkt, walk, Self::FIRST)
    }

    /// The reverse.
    #[cold]
    #[inline(never)]
    fn second_by_itself<'g>(&'g self, b: &B::Facts<'g>, mut pkt: Packet<'_>, walk: &Walk<'g>) -> NodeIndex {
        self.2.go(b, Known::Nothing, &mut pkt, walk, Self::SECOND)
    }
}

/// The lookups of a block of two chains. Each has a place for every packet; in those of the other's packets stands what
/// was there before, and is looked up too when a block has packets of both.
pub struct Sides<A: StagedLookup, B: StagedLookup> {
    first: Ahead<A>,
    other: Ahead<B>,
    /// Whether there are packets of the first chain, and of the second.
    any: [bool; 2],
}

impl<A: StagedLookup, B: StagedLookup> Clone for Sides<A, B> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<A: StagedLookup, B: StagedLookup> Copy for Sides<A, B> {}

impl<A: StagedLookup, B: StagedLookup> Default for Sides<A, B> {
    #[inline(always)]
    fn default() -> Self {
        Sides { first: Ahead::default(), other: Ahead::default(), any: [false; 2] }
    }
}

/// What a packet of one of two chains looks for.
#[derive(Clone, Copy, PartialEq)]
pub enum Either<A, B> {
    /// Of the first.
    First(A),
    /// Of the second.
    Second(B),
}

impl<A: Default, B> Default for Either<A, B> {
    fn default() -> Self {
        Either::First(A::default())
    }
}

/// What one lookup for several packets of a chain has found.
type FoundOf<'g, A> = (<<A as Link>::Lookup as StagedLookup>::Query, <A as Link>::Found<'g>);

/// What packets of two chains look for.
type OfEither<A, B> =
    Either<<<A as Link>::Lookup as StagedLookup>::Query, <<B as Link>::Lookup as StagedLookup>::Query>;

/// What two chains that begin with `N` need to know of an interface, each if its packets are plain.
type OfBoth<'g, N, A, B> = (OfChain<'g, N, A>, OfChain<'g, N, B>);
type OfChain<'g, N, A> = Option<(<N as Plain>::Facts<'g>, <A as Link>::Facts<'g>)>;

/// What the lookups of two chains that begin with `N` need to know of an interface.
type OfLookups<'g, A, B> = (Option<LookupFacts<'g, A>>, Option<LookupFacts<'g, B>>);
type LookupFacts<'g, A> = <<A as Link>::Lookup as StagedLookup>::Facts<'g>;

#[inline(always)]
fn of_lookups<'g, N: Plain, A: Link, B: Link>((a, b): &OfBoth<'g, N, A, B>) -> OfLookups<'g, A, B> {
    (a.as_ref().map(|(_, facts)| A::of_lookup(facts)), b.as_ref().map(|(_, facts)| B::of_lookup(facts)))
}

impl<N: PlainSecond, A: Link, B: Link> Chain for Split<N, A, B> {
    type Facts<'g> = OfBoth<'g, N, A, B>;
    type Query = OfEither<A, B>;
    type Found<'g> = Either<FoundOf<'g, A>, FoundOf<'g, B>>;
    type Ahead = Sides<A::Lookup, B::Lookup>;
    const LOOKS_UP: bool = true;

    const NODES: usize = 1 + A::NODES + B::NODES;

    fn bind(&mut self, binder: &mut Binder<'_>) -> Result<(), GraphError> {
        binder.node(N::NAME)?;
        self.1.bind(binder)?;
        binder.set_branch(1);
        self.2.bind(binder)
    }

    fn facts<'g>(&'g self, interface: SwIfIndex, walk: &Walk<'g>) -> Self::Facts<'g> {
        let Some(node) = self.0.facts(interface, walk.common.guard) else { return (None, None) };
        let (a, b) = (self.1.facts(interface, walk), self.2.facts(interface, walk));
        (a.map(|a| (node, a)), b.map(|b| (node, b)))
    }

    fn is_far(&self, facts: &Self::Facts<'_>) -> bool {
        let (a, b) = of_lookups::<N, A, B>(facts);
        a.is_some_and(A::Lookup::is_far) || b.is_some_and(B::Lookup::is_far)
    }

    #[inline(always)]
    fn query(pkt: &Packet<'_>) -> Self::Query {
        if N::is_second(pkt) {
            Either::Second(B::Lookup::query(pkt, N::PULLS + B::PULLS))
        } else {
            Either::First(A::Lookup::query(pkt, N::PULLS + A::PULLS))
        }
    }

    #[inline(always)]
    fn look_up<'g>(
        &'g self,
        facts: &Self::Facts<'g>,
        query: Self::Query,
        guard: Guard<'g>,
    ) -> Option<Self::Found<'g>> {
        let (a, b) = of_lookups::<N, A, B>(facts);
        Some(match query {
            Either::First(mut query) => {
                A::Lookup::look_up(a?, &mut query);
                Either::First((query, self.1.found(&query, guard)?))
            }
            Either::Second(mut query) => {
                B::Lookup::look_up(b?, &mut query);
                Either::Second((query, self.2.found(&query, guard)?))
            }
        })
    }

    #[inline(always)]
    fn begin(facts: &Self::Facts<'_>, ahead: &mut Self::Ahead, i: usize, pkt: &Packet<'_>) {
        if i == 0 {
            ahead.any = [false; 2];
        }
        let (a, b) = of_lookups::<N, A, B>(facts);
        let [first, second] = &mut ahead.any;
        if N::is_second(pkt) {
            *second = true;
            ahead.other.begin(b, i, pkt, N::PULLS + B::PULLS);
        } else {
            *first = true;
            ahead.first.begin(a, i, pkt, N::PULLS + A::PULLS);
        }
    }

    #[inline(always)]
    fn begun(facts: &Self::Facts<'_>, ahead: &mut Self::Ahead, n: usize) {
        let (a, b) = of_lookups::<N, A, B>(facts);
        let [first, second] = ahead.any;
        ahead.first.begun(a.filter(|_| first), n);
        ahead.other.begun(b.filter(|_| second), n);
    }

    #[inline(always)]
    fn advance(facts: &Self::Facts<'_>, ahead: &mut Self::Ahead, n: usize) {
        let (a, b) = of_lookups::<N, A, B>(facts);
        let [first, second] = ahead.any;
        ahead.first.advance(a.filter(|_| first), n);
        ahead.other.advance(b.filter(|_| second), n);
    }

    #[inline(always)]
    fn finish_ahead(facts: &Self::Facts<'_>, ahead: &mut Self::Ahead, n: usize) {
        let (a, b) = of_lookups::<N, A, B>(facts);
        let [first, second] = ahead.any;
        ahead.first.finish(a.filter(|_| first), n);
        ahead.other.finish(b.filter(|_| second), n);
    }

    #[inline(always)]
    fn go<'g>(
        &'g self,
        facts: &Self::Facts<'g>,
        hint: Hint<'_, Self::Found<'g>, Self::Ahead>,
        pkt: &mut Packet<'_>,
        walk: &Walk<'g>,
    ) -> NodeIndex {
        if let Some((node, a)) = &facts.0
            && self.0.plain(*node, pkt)
        {
            let known = match hint {
                Hint::Frame(Either::First((query, found))) => Known::Other(query, *found),
                Hint::Frame(Either::Second(_)) => return self.first_by_itself(a, pkt.reborrow(), walk),
                Hint::Block(ahead, i) => ahead.first.found(i),
                Hint::Nothing => Known::Nothing,
            };
            return self.1.go(a, known, pkt, walk, Self::FIRST);
        }
        match &facts.1 {
            Some((node, b)) if self.0.plain_second(*node, pkt) => {
                walk.second.set(walk.second.get() + 1);
                let known = match hint {
                    Hint::Frame(Either::Second((query, found))) => Known::Other(query, *found),
                    Hint::Frame(Either::First(_)) => return self.second_by_itself(b, pkt.reborrow(), walk),
                    Hint::Block(ahead, i) => ahead.other.found(i),
                    Hint::Nothing => Known::Nothing,
                };
                self.2.go(b, known, pkt, walk, Self::SECOND)
            }
            _ => walk.leave(ChainPosition::START),
        }
    }

    fn count(&self, interface: SwIfIndex, packets: u64, walk: &Walk<'_>) {
        let packets = walk.after(ChainPosition::START, packets);
        count(&*self.0, interface, packets, walk, ChainPosition::START);
        let second = walk.second.get().min(packets);
        self.1.count(interface, packets - second, walk, Self::FIRST);
        self.2.count(interface, second, walk, Self::SECOND);
    }

    fn finish(&self, walk: &Walk<'_>) {
        self.1.finish(walk, Self::FIRST);
        self.2.finish(walk, Self::SECOND);
    }
}
