//! The end of a chain: a lookup, a node that uses what it finds, and one of many outputs.

use std::sync::Arc;

use shoal_buffer::{Packet, SwIfIndex};
use shoal_infra::Guard;

use super::bind::Binder;
use super::link::Link;
use super::stage::Outgoing;
use super::walk::{Spot, Walk};
use super::{Finds, Known, Plain, Seeks, Uses, UsesOut};
use crate::graph::GraphError;
use crate::node::{Edge, NodeIndex};

/// The end of a chain: a lookup, the node that uses what it finds, and the one of many nodes which that sends packets
/// to (`<interface>-output`): they all run `O`'s code, each with an entry of its own.
pub struct Forward<L, R, O>(pub Arc<L>, pub Arc<R>, pub O);

impl<L, R, O> Link for Forward<L, R, O>
where
    L: Finds,
    R: for<'g> Uses<L::Found<'g>>,
    O: Plain,
{
    type Facts<'g> = <L as Seeks>::Facts<'g>;
    type Lookup = L;
    const NODES: usize = 2;
    const PULLS: usize = 0;

    fn bind(&mut self, binder: &mut Binder<'_>) -> Result<(), GraphError> {
        binder.node(L::NAME)?;
        binder.node(R::NAME)
    }

    fn facts<'g>(&'g self, interface: SwIfIndex, guard: Guard<'g>) -> Option<Self::Facts<'g>> {
        Finds::facts(&*self.0, interface, guard)
    }

    #[inline(always)]
    fn of_lookup(facts: Self::Facts<'_>) -> <L as Seeks>::Facts<'_> {
        facts
    }

    #[inline(always)]
    fn go<'g>(
        &'g self,
        facts: Self::Facts<'g>,
        known: Known<L::Sought>,
        pkt: &mut Packet<'_>,
        walk: &Walk<'g>,
        spot: Spot,
    ) -> NodeIndex {
        let Some(found) = self.0.find(facts, known, pkt, walk.common.guard) else {
            return walk.leave_lookup(&known, pkt.reborrow(), spot);
        };
        let Some(edge) = self.1.plain_with(found, pkt) else { return walk.leave(spot.next()) };
        walk.fan_out(&self.2, pkt, edge, spot.next())
    }

    fn count(&self, _: SwIfIndex, _: u64, _: &Walk<'_>, _: Spot) {}

    fn finish(&self, walk: &Walk<'_>, spot: Spot) {
        walk.fan(spot).flush(&self.2, walk.common);
    }
}

/// As [`Forward`], with features of the sending interface behind the node that uses what was found. A packet that
/// leaves by an interface with other features goes on in the ordinary graph from that node on.
pub struct ForwardOut<L, R, S, O> {
    lookup: Arc<L>,
    uses: Arc<R>,
    stages: S,
    output: O,
    covered: u64,
}

impl<L, R, S, O> ForwardOut<L, R, S, O> {
    /// A lookup, a node that uses what it finds, features, and the code of the outputs.
    pub fn new(lookup: Arc<L>, uses: Arc<R>, stages: S, output: O) -> Self {
        ForwardOut { lookup, uses, stages, output, covered: 0 }
    }
}

impl<L, R, S, O> ForwardOut<L, R, S, O>
where
    L: Finds,
    R: for<'g> UsesOut<L::Found<'g>>,
    S: Outgoing,
{
    /// The way out by an interface with features.
    #[inline(always)]
    fn featured<'g>(
        &'g self,
        found: L::Found<'g>,
        pkt: &mut Packet<'_>,
        walk: &Walk<'g>,
        spot: Spot,
    ) -> Result<Edge, NodeIndex> {
        let Some(interface) = <R as UsesOut<L::Found<'g>>>::featured(found) else {
            return Err(walk.leave(spot));
        };
        let arc = <R as UsesOut<L::Found<'g>>>::arc(&self.uses);
        let enabled = arc.enabled(interface);
        if enabled & !self.covered != 0 {
            return Err(walk.leave(spot));
        }
        let Some(edge) = self.uses.plain_featured(found, pkt) else { return Err(walk.leave(spot)) };
        match self.stages.go(enabled, interface, pkt, walk, spot.next()) {
            Some(node) => Err(node),
            None => Ok(edge),
        }
    }
}

impl<L, R, S, O> Link for ForwardOut<L, R, S, O>
where
    L: Finds,
    R: for<'g> UsesOut<L::Found<'g>>,
    S: Outgoing,
    O: Plain,
{
    type Facts<'g> = <L as Seeks>::Facts<'g>;
    type Lookup = L;
    const NODES: usize = 2 + S::NODES;
    const PULLS: usize = 0;

    fn bind(&mut self, binder: &mut Binder<'_>) -> Result<(), GraphError> {
        binder.node(L::NAME)?;
        binder.node(R::NAME)?;
        let ForwardOut { uses, stages, covered, .. } = self;
        let arc = <R as UsesOut<L::Found<'_>>>::arc(uses);
        *covered = binder.on_arc(arc, |binder| stages.bind(binder))?;
        Ok(())
    }

    fn facts<'g>(&'g self, interface: SwIfIndex, guard: Guard<'g>) -> Option<Self::Facts<'g>> {
        Finds::facts(&*self.lookup, interface, guard)
    }

    #[inline(always)]
    fn of_lookup(facts: Self::Facts<'_>) -> <L as Seeks>::Facts<'_> {
        facts
    }

    #[inline(always)]
    fn go<'g>(
        &'g self,
        facts: Self::Facts<'g>,
        known: Known<L::Sought>,
        pkt: &mut Packet<'_>,
        walk: &Walk<'g>,
        spot: Spot,
    ) -> NodeIndex {
        let Some(found) = self.lookup.find(facts, known, pkt, walk.common.guard) else {
            return walk.leave_lookup(&known, pkt.reborrow(), spot);
        };
        let edge = match self.uses.plain_with(found, pkt) {
            Some(edge) => edge,
            None => match self.featured(found, pkt, walk, spot.next()) {
                Ok(edge) => edge,
                Err(node) => return node,
            },
        };
        walk.fan_out(&self.output, pkt, edge, spot.next())
    }

    fn count(&self, _: SwIfIndex, _: u64, _: &Walk<'_>, _: Spot) {}

    fn finish(&self, walk: &Walk<'_>, spot: Spot) {
        walk.fan(spot).flush(&self.output, walk.common);
    }
}
