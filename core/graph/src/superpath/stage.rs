//! Features as optional stages of a chain.

use std::sync::Arc;

use shoal_buffer::{Packet, SwIfIndex};
use shoal_infra::Guard;

use super::bind::Binder;
use super::link::Link;
use super::walk::{ChainPosition, Walk};
use super::{FIRST, Known, Optional, Pass, StagedLookup};
use crate::cx::Cx;
use crate::feature::Arc as FeatureArc;
use crate::graph::GraphError;
use crate::node::NodeIndex;

/// A feature, and the rest. Packets of an interface that has it not enabled pass by.
///
/// Behind [`Open`](super::Open) it is a feature of the receiving interface, in
/// [`Forward`](super::Forward) one of the sending interface. A feature whose module is not part of this router is
/// never enabled.
pub struct Stage<A, Rest> {
    node: Option<Arc<A>>,
    rest: Rest,
    bound: Option<(FeatureArc, u8)>,
}

impl<A: Optional, Rest> Stage<A, Rest> {
    /// The feature, if it is part of this router, and what comes behind it.
    pub fn new(node: Option<Arc<A>>, rest: Rest) -> Self {
        Stage { node, rest, bound: None }
    }

    pub(super) fn bind_self(&mut self, binder: &mut Binder<'_>) -> Result<(), GraphError> {
        self.bound = binder.feature(A::NAME, self.node.is_some())?;
        Ok(())
    }

    #[inline(always)]
    pub(super) fn node(&self) -> Option<&A> {
        self.node.as_deref()
    }

    /// The feature and what it needs to know of an interface, when it is enabled there.
    pub(super) fn facts_of<'g>(
        &'g self,
        interface: SwIfIndex,
        guard: Guard<'g>,
    ) -> Option<(&'g A, A::Facts<'g>)> {
        let enabled = self.bound.as_ref().map_or(0, |(arc, _)| arc.enabled(interface));
        Some((self.node()?, self.own_facts(enabled, interface, guard)?))
    }

    /// What the feature needs to know of an interface, when it is among those enabled there.
    #[inline(always)]
    fn own_facts<'g>(&'g self, enabled: u64, interface: SwIfIndex, guard: Guard<'g>) -> Option<A::Facts<'g>> {
        match (&self.bound, &self.node) {
            (Some((_, position)), Some(node)) if enabled >> position & 1 == 1 => {
                Some(node.facts(interface, guard))
            }
            _ => None,
        }
    }

    #[inline(always)]
    fn pass(&self, facts: A::Facts<'_>, pkt: &mut Packet<'_>, walk: &Walk<'_>, spot: ChainPosition) -> Pass {
        match &self.node {
            Some(node) => node.pass(facts, pkt, &Cx::new(walk.common, walk.entry(spot))),
            None => Pass::On,
        }
    }

    /// The packet goes on in the ordinary graph, on the arc it is on.
    #[cold]
    #[inline(never)]
    pub(super) fn leave(&self, mut pkt: Packet<'_>, walk: &Walk<'_>, spot: ChainPosition) -> NodeIndex {
        if let Some((arc, position)) = &self.bound {
            let meta = pkt.meta_mut();
            (meta.arc, meta.feature) = (arc.number, *position);
        }
        walk.leave(spot)
    }
}

impl<A: Optional, Rest: Link> Link for Stage<A, Rest> {
    type Facts<'g> = (Option<A::Facts<'g>>, Rest::Facts<'g>);
    type Lookup = Rest::Lookup;
    type Found<'g> = Rest::Found<'g>;
    const NODES: usize = 1 + Rest::NODES;
    const PULLS: usize = Rest::PULLS;

    fn bind(&mut self, binder: &mut Binder<'_>) -> Result<(), GraphError> {
        self.bind_self(binder)?;
        self.rest.bind(binder)
    }

    fn facts<'g>(&'g self, interface: SwIfIndex, walk: &Walk<'g>) -> Option<Self::Facts<'g>> {
        let enabled = self.bound.as_ref().map_or(0, |(arc, _)| arc.enabled(interface));
        let own = self.own_facts(enabled, interface, walk.common.guard);
        Some((own, self.rest.facts(interface, walk)?))
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
        self.rest.found(query, guard)
    }

    #[inline(always)]
    fn go<'g>(
        &'g self,
        facts: &Self::Facts<'g>,
        mut known: Known<'_, <Self::Lookup as StagedLookup>::Query, Self::Found<'g>>,
        pkt: &mut Packet<'_>,
        walk: &Walk<'g>,
        spot: ChainPosition,
    ) -> NodeIndex {
        if let Some(own) = facts.0
            && !matches!(known, Known::Chosen(..))
        {
            match self.pass(own, pkt, walk, spot) {
                Pass::On => {}
                Pass::Redirected => known = Known::Nothing,
                Pass::Chosen(number) => known = walk.chosen(number, spot),
                Pass::Leave => return self.leave(pkt.reborrow(), walk, spot),
            }
        }
        self.rest.go(&facts.1, known, pkt, walk, spot.next())
    }

    fn count(&self, interface: SwIfIndex, packets: u64, walk: &Walk<'_>, spot: ChainPosition) {
        self.rest.count(interface, packets, walk, spot.next());
    }

    fn finish(&self, walk: &Walk<'_>, spot: ChainPosition) {
        self.rest.finish(walk, spot.next());
    }
}

/// Features of the sending interface.
pub trait Outgoing: Send + Sync + 'static {
    /// How many nodes there are.
    const NODES: usize;

    /// Finds the nodes.
    ///
    /// # Errors
    /// As [`Link::bind`].
    fn bind(&mut self, binder: &mut Binder<'_>) -> Result<(), GraphError>;

    /// Runs a packet through those that are enabled on an interface; `Some` when it goes on in the ordinary graph.
    fn go(
        &self,
        enabled: u64,
        interface: SwIfIndex,
        pkt: &mut Packet<'_>,
        walk: &Walk<'_>,
        spot: ChainPosition,
    ) -> Option<NodeIndex>;
}

/// No feature.
impl Outgoing for () {
    const NODES: usize = 0;

    fn bind(&mut self, _: &mut Binder<'_>) -> Result<(), GraphError> {
        Ok(())
    }

    #[inline(always)]
    fn go(
        &self,
        _: u64,
        _: SwIfIndex,
        _: &mut Packet<'_>,
        _: &Walk<'_>,
        _: ChainPosition,
    ) -> Option<NodeIndex> {
        None
    }
}

impl<A: Optional, Rest: Outgoing> Outgoing for Stage<A, Rest> {
    const NODES: usize = 1 + Rest::NODES;

    fn bind(&mut self, binder: &mut Binder<'_>) -> Result<(), GraphError> {
        self.bind_self(binder)?;
        self.rest.bind(binder)
    }

    #[inline(always)]
    fn go(
        &self,
        enabled: u64,
        interface: SwIfIndex,
        pkt: &mut Packet<'_>,
        walk: &Walk<'_>,
        spot: ChainPosition,
    ) -> Option<NodeIndex> {
        if let Some(own) = self.own_facts(enabled, interface, walk.common.guard) {
            match self.pass(own, pkt, walk, spot) {
                Pass::On | Pass::Redirected => {}
                // The feature's own node sends it along its first edge.
                Pass::Chosen(number) => return Some(walk.turn_aside(number, pkt.reborrow(), FIRST, spot)),
                Pass::Leave => return Some(self.leave(pkt.reborrow(), walk, spot)),
            }
        }
        self.rest.go(enabled, interface, pkt, walk, spot.next())
    }
}
