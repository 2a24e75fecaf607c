//! A feature that gives packets the header of another protocol, as a stage of a chain with an end for each protocol.

use std::sync::Arc;

use shoal_buffer::{Packet, SwIfIndex};
use shoal_infra::Guard;

use super::bind::Binder;
use super::cross_lookups::{CrossLookups, CrossQuery, FoundOfEnds};
use super::link::Link;
use super::walk::{ChainPosition, Walk};
use super::{Known, Optional, Stage, StagedLookup};
use crate::cx::Cx;
use crate::graph::GraphError;
use crate::node::NodeIndex;

/// What becomes of a packet at a feature that may give it another protocol's header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Crossing {
    /// It is not for the feature and goes on as it is.
    On,
    /// It is a packet of the other protocol now: all the feature does to it is done. It goes on by the forwarding table that the
    /// receiving interface has for that protocol.
    Crossed,
    /// It goes to the feature's node and is as it was.
    Leave,
}

/// What becomes of a packet that is for the feature: it was done, or could not be.
impl From<Option<()>> for Crossing {
    #[inline(always)]
    fn from(done: Option<()>) -> Self {
        if done.is_some() { Crossing::Crossed } else { Crossing::Leave }
    }
}

/// A feature that gives packets the header of another protocol. In a [`Stage`] of its own it leaves packets to its node; in [`Cross`]
/// they go on.
pub trait CrossOptional: Optional {
    /// What it keeps on each thread that look-ups need.
    type State;
    /// What is looked for, and where the search is. Two that have not begun are equal when they look for the same; the default
    /// finds nothing.
    type Query: Copy + Default + PartialEq;
    /// An address of the other protocol.
    type Destination;
    /// What look-ups need of an interface.
    type Lookup<'g>: Copy;

    /// What look-ups need, in a run of packets of one interface.
    fn lookup<'g>(&'g self, facts: Self::Facts<'g>, walk: &Walk<'g>) -> Self::Lookup<'g>;

    /// Looks something up.
    fn look<'g, R>(lookup: Self::Lookup<'g>, look: impl FnOnce(&mut Self::State, Self::Facts<'g>) -> R) -> R;

    /// Whether look-ups wait for memory.
    fn is_far(_: &mut Self::State) -> bool {
        false
    }

    /// What will be looked for, as [`StagedLookup::query`].
    fn query(pkt: &Packet<'_>, offset: usize) -> Self::Query;

    /// Begins a look-up: asks memory for the first part. False: the packet is not for the feature.
    fn begin(state: &mut Self::State, facts: Self::Facts<'_>, query: &mut Self::Query) -> bool;

    /// Goes on: asks memory for the flow.
    fn seek(_: &mut Self::State, _: &mut Self::Query) {}

    /// Asks memory for what else a packet of the flow needs.
    fn fetch(_: &mut Self::State, _: &mut Self::Query) {}

    /// Where a packet goes when it has crossed, if that is known.
    fn destination(
        state: &mut Self::State,
        facts: Self::Facts<'_>,
        query: &Self::Query,
    ) -> Option<Self::Destination>;

    /// As [`Optional::pass`], with the look-up of the packet, or of another packet's.
    fn cross(
        &self,
        facts: Self::Facts<'_>,
        query: Option<&Self::Query>,
        pkt: &mut Packet<'_>,
        cx: &Cx<'_, Self>,
    ) -> Crossing;
}

/// The feature, the end of the chain for packets that keep their protocol, and the end for those that it has changed. Where
/// two such chains stand side by side, both ends of a protocol share one memory of where packets went last.
///
/// `BY_ROUTE`: routes lead packets to the feature's node; it is on no arc. A packet that it leaves to the node goes on with its look-up.
pub struct Cross<A: CrossOptional, Same, Other, const BY_ROUTE: bool = false> {
    feature: Stage<A, ()>,
    same: Same,
    other: Other,
}

type LookupQuery<L> = <<L as Link>::Lookup as StagedLookup>::Query;

impl<A: CrossOptional, Same: Link, Other: Link> Cross<A, Same, Other> {
    /// The feature, and both ends.
    pub fn new(feature: Arc<A>, same: Same, other: Other) -> Self {
        Cross { feature: Stage::new(Some(feature), ()), same, other }
    }
}

impl<A: CrossOptional, Same: Link, Other: Link> Cross<A, Same, Other, true> {
    /// The same of a feature that no interface has: packets have a route to its node.
    pub fn by_route(feature: Arc<A>, same: Same, other: Other) -> Self {
        Cross { feature: Stage::new(Some(feature), ()), same, other }
    }
}

impl<A: CrossOptional, Same: Link, Other: Link, const BY_ROUTE: bool> Cross<A, Same, Other, BY_ROUTE> {
    /// Where the other end begins.
    const fn across(spot: ChainPosition) -> ChainPosition {
        ChainPosition { at: spot.at + 1 + Same::NODES, side: 1 - spot.side }
    }

    #[inline(always)]
    fn cross(
        &self,
        facts: A::Facts<'_>,
        query: Option<&A::Query>,
        pkt: &mut Packet<'_>,
        walk: &Walk<'_>,
        spot: ChainPosition,
    ) -> Crossing {
        let Some(feature) = self.feature.node() else { return Crossing::On };
        feature.cross(facts, query, pkt, &Cx::new(walk.common, walk.entry(spot)))
    }
}

impl<A, Same, Other, const BY_ROUTE: bool> Link for Cross<A, Same, Other, BY_ROUTE>
where
    A: CrossOptional,
    Same: Link,
    Other: Link,
    LookupQuery<Other>: From<A::Destination>,
{
    /// Of the feature if it is enabled, and of both ends.
    type Facts<'g> = (Option<(A::Lookup<'g>, A::Facts<'g>)>, Same::Facts<'g>, Other::Facts<'g>);
    type Lookup = CrossLookups<A, Same::Lookup, Other::Lookup>;
    type Found<'g> = FoundOfEnds<Same::Found<'g>, Other::Found<'g>>;
    const NODES: usize = 1 + Same::NODES + Other::NODES;
    const PULLS: usize = Same::PULLS;

    fn bind(&mut self, binder: &mut Binder<'_>) -> Result<(), GraphError> {
        if BY_ROUTE {
            binder.node(A::NAME)?;
        } else {
            self.feature.bind_self(binder)?;
        }
        self.same.bind(binder)?;
        self.other.bind(binder)
    }

    fn facts<'g>(&'g self, interface: SwIfIndex, walk: &Walk<'g>) -> Option<Self::Facts<'g>> {
        let guard = walk.common.guard;
        let own = if BY_ROUTE {
            self.feature.node().map(|feature| (feature, feature.facts(interface, guard)))
        } else {
            self.feature.facts_of(interface, guard)
        };
        let own = own.map(|(feature, facts)| (feature.lookup(facts, walk), facts));
        Some((own, self.same.facts(interface, walk)?, self.other.facts(interface, walk)?))
    }

    #[inline(always)]
    fn of_lookup<'g>((own, same, other): &Self::Facts<'g>) -> <Self::Lookup as StagedLookup>::Facts<'g> {
        (own.as_ref().map(|own| own.0), Same::of_lookup(same), Other::of_lookup(other))
    }

    #[inline(always)]
    fn found<'g>(
        &'g self,
        query: &<Self::Lookup as StagedLookup>::Query,
        guard: Guard<'g>,
    ) -> Option<Self::Found<'g>> {
        Some(query.found(|same| self.same.found(same, guard), |other| self.other.found(other, guard)))
    }

    #[inline(always)]
    fn go<'g>(
        &'g self,
        (own, same, other): &Self::Facts<'g>,
        known: Known<'_, <Self::Lookup as StagedLookup>::Query, Self::Found<'g>>,
        pkt: &mut Packet<'_>,
        walk: &Walk<'g>,
        spot: ChainPosition,
    ) -> NodeIndex {
        let (query, known, known_across) = CrossQuery::known(known);
        if let Some((_, own)) = own
            && !matches!(known, Known::Chosen(..))
        {
            match self.cross(*own, query, pkt, walk, spot) {
                Crossing::On => {}
                Crossing::Leave if BY_ROUTE => {}
                Crossing::Crossed => {
                    return self.other.go(other, known_across, pkt, walk, Self::across(spot));
                }
                Crossing::Leave => return self.feature.leave(pkt.reborrow(), walk, spot),
            }
        }
        self.same.go(same, known, pkt, walk, spot.next())
    }

    fn count(&self, interface: SwIfIndex, packets: u64, walk: &Walk<'_>, spot: ChainPosition) {
        self.same.count(interface, packets, walk, spot.next());
    }

    fn finish(&self, walk: &Walk<'_>, spot: ChainPosition) {
        self.same.finish(walk, spot.next());
        self.other.finish(walk, Self::across(spot));
    }
}
