//! A feature that gives packets the header of another protocol, as a stage of a chain with an end for each protocol.

use std::sync::Arc;

use shoal_buffer::{Packet, SwIfIndex};
use shoal_infra::Guard;

use super::bind::Binder;
use super::borrowed_table::BorrowedTable;
use super::cross_lookups::{CrossLookups, CrossQuery, FoundOfEnds};
use super::link::Link;
use super::walk::{ChainPosition, Walk};
use super::{Known, Stage, StagedLookup, StatefulOptional, WithState};
use crate::cx::Cx;
use crate::graph::GraphError;
use crate::node::NodeIndex;
use crate::state::Stateful;

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

/// A feature that gives packets the header of another protocol, and has a table of flows on each thread. In a [`Stage`] of its own it
/// leaves packets to its node; in [`Cross`] they go on.
pub trait CrossOptional: StatefulOptional {
    /// What is looked for in the table, and where the search is. Two that have not begun are equal when they look for the
    /// same; the default finds nothing.
    type Query: Copy + Default + PartialEq;
    /// An address of the other protocol.
    type Destination;

    /// Whether look-ups wait for memory.
    fn is_far(state: &<Self::Feature as Stateful>::State) -> bool;

    /// What will be looked for, as [`StagedLookup::query`].
    fn query(pkt: &Packet<'_>, offset: usize) -> Self::Query;

    /// Begins a look-up: asks memory for the first part. False: the packet is not for the feature.
    fn begin(
        state: &mut <Self::Feature as Stateful>::State,
        facts: Self::Facts<'_>,
        query: &mut Self::Query,
    ) -> bool;

    /// Goes on: asks memory for the flow.
    fn seek(state: &mut <Self::Feature as Stateful>::State, query: &mut Self::Query);

    /// Asks memory for what else a packet of the flow needs.
    fn fetch(_: &mut <Self::Feature as Stateful>::State, _: &mut Self::Query) {}

    /// Where a packet goes when it has crossed; `None`: it has no flow.
    fn destination(
        state: &mut <Self::Feature as Stateful>::State,
        query: &Self::Query,
    ) -> Option<Self::Destination>;

    /// As [`StatefulOptional::pass`], with the look-up of the packet's flow, or of another packet's.
    fn cross(
        &self,
        state: &mut <Self::Feature as Stateful>::State,
        facts: Self::Facts<'_>,
        query: Option<&Self::Query>,
        pkt: &mut Packet<'_>,
        cx: &Cx<'_, Self>,
    ) -> Crossing;
}

/// What a feature looks for in its table.
pub(super) type FlowOf<A> = <A as CrossOptional>::Query;

/// The feature, the end of the chain for packets that keep their protocol, and the end for those that it has changed. Where
/// two such chains stand side by side, both ends of a protocol share one memory of where packets went last.
pub struct Cross<A: CrossOptional, Same, Other> {
    feature: Stage<WithState<A>, ()>,
    same: Same,
    other: Other,
}

/// What the feature knows of an interface, and its table.
pub(super) type OwnFacts<'g, A> =
    (BorrowedTable<'g, <A as StatefulOptional>::Feature>, <A as StatefulOptional>::Facts<'g>);
type LookupQuery<L> = <<L as Link>::Lookup as StagedLookup>::Query;

impl<A: CrossOptional, Same: Link, Other: Link> Cross<A, Same, Other> {
    /// The feature, and both ends.
    pub fn new(feature: Arc<WithState<A>>, same: Same, other: Other) -> Self {
        Cross { feature: Stage::new(Some(feature), ()), same, other }
    }

    /// Where the other end begins.
    const fn across(spot: ChainPosition) -> ChainPosition {
        ChainPosition { at: spot.at + 1 + Same::NODES, side: 1 - spot.side }
    }

    #[inline(always)]
    fn cross(
        &self,
        facts: A::Facts<'_>,
        flow: Option<&FlowOf<A>>,
        pkt: &mut Packet<'_>,
        walk: &Walk<'_>,
        spot: ChainPosition,
    ) -> Crossing {
        let Some(node) = self.feature.node() else { return Crossing::On };
        let cx: Cx<'_, A> = Cx::new(walk.common, walk.entry(spot));
        cx.lend(&node.key, |state| node.stage.cross(state, facts, flow, pkt, &cx))
    }
}

impl<A, Same, Other> Link for Cross<A, Same, Other>
where
    A: CrossOptional,
    Same: Link,
    Other: Link,
    LookupQuery<Other>: From<A::Destination>,
{
    /// Of the feature if it is enabled, and of both ends.
    type Facts<'g> = (Option<OwnFacts<'g, A>>, Same::Facts<'g>, Other::Facts<'g>);
    type Lookup = CrossLookups<A, Same::Lookup, Other::Lookup>;
    type Found<'g> = FoundOfEnds<Same::Found<'g>, Other::Found<'g>>;
    const NODES: usize = 1 + Same::NODES + Other::NODES;
    const PULLS: usize = Same::PULLS;

    fn bind(&mut self, binder: &mut Binder<'_>) -> Result<(), GraphError> {
        self.feature.bind_self(binder)?;
        self.same.bind(binder)?;
        self.other.bind(binder)
    }

    fn facts<'g>(&'g self, interface: SwIfIndex, walk: &Walk<'g>) -> Option<Self::Facts<'g>> {
        let own = self.feature.facts_of(interface, walk.common.guard);
        let own = own.map(|(node, facts)| (BorrowedTable::new(&node.key, walk), facts));
        Some((own, self.same.facts(interface, walk)?, self.other.facts(interface, walk)?))
    }

    #[inline(always)]
    fn of_lookup<'g>((own, same, other): &Self::Facts<'g>) -> <Self::Lookup as StagedLookup>::Facts<'g> {
        (*own, Same::of_lookup(same), Other::of_lookup(other))
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
        let (flow, known, known_across) = CrossQuery::known(known);
        if let Some((_, own)) = own
            && !matches!(known, Known::Chosen(..))
        {
            match self.cross(*own, flow, pkt, walk, spot) {
                Crossing::On => {}
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
