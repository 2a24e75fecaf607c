//! The node where an arc of the receiving interface begins.

use std::sync::Arc;

use shoal_buffer::{Packet, SwIfIndex};
use shoal_infra::Guard;

use super::bind::Binder;
use super::link::Link;
use super::walk::{ChainPosition, Walk};
use super::{Known, Opens, StagedLookup};
use crate::cx::Cx;
use crate::graph::GraphError;
use crate::node::NodeIndex;

/// A node where an arc begins, and the rest: stages for the features that are covered, then where the arc ends. Packets
/// of an interface with other features on the arc do not take the chain.
pub struct Open<A, Rest> {
    node: Arc<A>,
    rest: Rest,
    covered: u64,
}

impl<A: Opens, Rest: Link> Open<A, Rest> {
    /// The node, and what comes behind it.
    pub fn new(node: Arc<A>, rest: Rest) -> Self {
        Open { node, rest, covered: 0 }
    }
}

impl<A: Opens, Rest: Link> Link for Open<A, Rest> {
    type Facts<'g> = Rest::Facts<'g>;
    type Lookup = Rest::Lookup;
    type Found<'g> = Rest::Found<'g>;
    const NODES: usize = 1 + Rest::NODES;
    const PULLS: usize = A::PULLS + Rest::PULLS;

    fn bind(&mut self, binder: &mut Binder<'_>) -> Result<(), GraphError> {
        binder.node(A::NAME)?;
        let Open { node, rest, covered } = self;
        *covered = binder.on_arc(node.arc(), |binder| rest.bind(binder))?;
        Ok(())
    }

    fn facts<'g>(&'g self, interface: SwIfIndex, walk: &Walk<'g>) -> Option<Self::Facts<'g>> {
        if self.node.arc().enabled(interface) & !self.covered != 0 {
            return None;
        }
        self.rest.facts(interface, walk)
    }

    #[inline(always)]
    fn of_lookup<'g>(facts: &Self::Facts<'g>) -> <Self::Lookup as StagedLookup>::Facts<'g> {
        Rest::of_lookup(facts)
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
        known: Known<'_, <Self::Lookup as StagedLookup>::Query, Self::Found<'g>>,
        pkt: &mut Packet<'_>,
        walk: &Walk<'g>,
        spot: ChainPosition,
    ) -> NodeIndex {
        if !self.node.plain((), pkt) {
            return walk.leave(spot);
        }
        self.rest.go(facts, known, pkt, walk, spot.next())
    }

    fn count(&self, interface: SwIfIndex, packets: u64, walk: &Walk<'_>, spot: ChainPosition) {
        let packets = walk.after(spot, packets);
        if packets > 0 {
            self.node.count(interface, packets, 0, &Cx::new(walk.common, walk.entry(spot)));
        }
        self.rest.count(interface, packets, walk, spot.next());
    }

    fn finish(&self, walk: &Walk<'_>, spot: ChainPosition) {
        self.rest.finish(walk, spot.next());
    }
}
