//! A feature that gives packets the header of another protocol, as a stage of a chain with an end for each protocol.

use std::sync::Arc;

use shoal_buffer::{Packet, SwIfIndex};
use shoal_infra::Guard;

use super::bind::Binder;
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

/// A feature that gives packets the header of another protocol. In a [`Stage`] of its own it leaves them to its node; in
/// [`Cross`] they go on.
pub trait CrossOptional: StatefulOptional {
    /// As [`StatefulOptional::pass`].
    fn cross(
        &self,
        state: &mut <Self::Feature as Stateful>::State,
        facts: Self::Facts<'_>,
        pkt: &mut Packet<'_>,
        cx: &Cx<'_, Self>,
    ) -> Crossing;
}

/// The feature, the end of the chain for packets that keep their protocol, and the end for those that it has changed. Where
/// two such chains stand side by side, both ends of a protocol share one memory of where packets went last.
pub struct Cross<A: CrossOptional, Same, Other> {
    feature: Stage<WithState<A>, ()>,
    same: Same,
    other: Other,
}

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
        pkt: &mut Packet<'_>,
        walk: &Walk<'_>,
        spot: ChainPosition,
    ) -> Crossing {
        let Some(node) = self.feature.node() else { return Crossing::On };
        let cx: Cx<'_, A> = Cx::new(walk.common, walk.entry(spot));
        cx.lend(&node.key, |state| node.stage.cross(state, facts, pkt, &cx))
    }
}

impl<A: CrossOptional, Same: Link, Other: Link> Link for Cross<A, Same, Other> {
    /// Of the feature if it is enabled, and of both ends.
    type Facts<'g> = (Option<A::Facts<'g>>, Same::Facts<'g>, Other::Facts<'g>);
    type Lookup = Same::Lookup;
    type Found<'g> = Same::Found<'g>;
    const NODES: usize = 1 + Same::NODES + Other::NODES;
    const PULLS: usize = Same::PULLS;

    fn bind(&mut self, binder: &mut Binder<'_>) -> Result<(), GraphError> {
        self.feature.bind_self(binder)?;
        self.same.bind(binder)?;
        self.other.bind(binder)
    }

    fn facts<'g>(&'g self, interface: SwIfIndex, walk: &Walk<'g>) -> Option<Self::Facts<'g>> {
        let own = self.feature.facts_of(interface, walk.common.guard).map(|(_, facts)| facts);
        Some((own, self.same.facts(interface, walk)?, self.other.facts(interface, walk)?))
    }

    #[inline(always)]
    fn of_lookup<'g>((_, same, _): &Self::Facts<'g>) -> <Self::Lookup as StagedLookup>::Facts<'g> {
        Same::of_lookup(same)
    }

    #[inline(always)]
    fn found<'g>(
        &'g self,
        query: &<Self::Lookup as StagedLookup>::Query,
        guard: Guard<'g>,
    ) -> Option<Self::Found<'g>> {
        self.same.found(query, guard)
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
        if let Some(own) = own
            && !matches!(known, Known::Chosen(..))
        {
            match self.cross(*own, pkt, walk, spot) {
                Crossing::On => {}
                Crossing::Crossed => {
                    return self.other.go(other, Known::Nothing, pkt, walk, Self::across(spot));
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
