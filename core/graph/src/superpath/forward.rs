//! The end of a chain: a lookup, a node that uses what it finds, and one of many outputs.

use std::sync::Arc;

use shoal_buffer::{Packet, SwIfIndex};
use shoal_infra::Guard;

use super::bind::Binder;
use super::link::Link;
use super::stage::Outgoing;
use super::walk::{ChainPosition, Walk};
use super::{Known, Plain, ResolvingNode, StagedLookup, UsesOut};
use crate::graph::GraphError;
use crate::node::{Edge, NodeIndex};

/// What a packet finds. `Err` is where it goes if it is not plain, or nothing if what another packet has found is not
/// for it: it is to be looked up by itself then.
#[inline(always)]
fn own<'g, L: ResolvingNode>(
    lookup: &'g L,
    facts: <L as StagedLookup>::Facts<'g>,
    known: Known<'_, L::Query, L::Found<'g>>,
    pkt: &mut Packet<'_>,
    walk: &Walk<'g>,
    spot: ChainPosition,
) -> Result<L::Found<'g>, Option<NodeIndex>> {
    let known = match known {
        Known::Other(query, found) if L::takes(query, pkt) => return Ok(found),
        Known::Other(..) => return Err(None),
        Known::Nothing => Known::Nothing,
        Known::Answer(query) => Known::Answer(query),
        Known::Chosen(number, node) => Known::Chosen(number, node),
    };
    match lookup.find(facts, known, pkt, walk.common.guard) {
        Some(found) => Ok(found),
        None => Err(Some(walk.leave_lookup(&known, pkt.reborrow(), spot))),
    }
}

/// The end of a chain: a lookup, the node that uses what it finds, features of the sending interface, and the one of
/// many nodes which packets are sent to (`<interface>-output`): they all run `O`'s code, each with an entry of its own. A
/// packet that leaves by an interface with other features goes on in the ordinary graph from the node on that uses what
/// was found.
pub struct Forward<L, R, S, O> {
    lookup: Arc<L>,
    uses: Arc<R>,
    stages: S,
    output: O,
    covered: u64,
}

impl<L, R, S, O> Forward<L, R, S, O> {
    /// A lookup, a node that uses what it finds, features (`()`: none), and the code of the outputs.
    pub fn new(lookup: Arc<L>, uses: Arc<R>, stages: S, output: O) -> Self {
        Forward { lookup, uses, stages, output, covered: 0 }
    }
}

impl<L, R, S, O> Forward<L, R, S, O>
where
    L: ResolvingNode,
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
        spot: ChainPosition,
    ) -> Result<Edge, NodeIndex> {
        let Some(interface) = <R as UsesOut<L::Found<'g>>>::featured(found) else {
            return self.uses.plain_otherwise(found, pkt).ok_or_else(|| walk.leave(spot));
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

impl<L, R, S, O> Forward<L, R, S, O>
where
    L: ResolvingNode,
    R: for<'g> UsesOut<L::Found<'g>>,
    S: Outgoing,
    O: Plain,
{
    /// A packet that looks for something else than most of its frame.
    #[cold]
    #[inline(never)]
    fn by_itself<'g>(
        &'g self,
        facts: &<L as StagedLookup>::Facts<'g>,
        mut pkt: Packet<'_>,
        walk: &Walk<'g>,
        spot: ChainPosition,
    ) -> NodeIndex {
        self.go(facts, Known::Nothing, &mut pkt, walk, spot)
    }

    /// A packet that is not of the first common case.
    #[cold]
    #[inline(never)]
    fn otherwise<'g>(
        &'g self,
        found: L::Found<'g>,
        mut pkt: Packet<'_>,
        walk: &Walk<'g>,
        spot: ChainPosition,
    ) -> NodeIndex {
        match self.uses.plain_otherwise(found, &mut pkt) {
            Some(edge) => walk.fan_out(&self.output, &pkt, edge, spot),
            None => walk.leave(spot),
        }
    }
}

impl<L, R, S, O> Link for Forward<L, R, S, O>
where
    L: ResolvingNode,
    R: for<'g> UsesOut<L::Found<'g>>,
    S: Outgoing,
    O: Plain,
{
    type Facts<'g> = <L as StagedLookup>::Facts<'g>;
    type Lookup = L;
    type Found<'g> = L::Found<'g>;
    const NODES: usize = 2 + S::NODES;
    const PULLS: usize = 0;

    fn bind(&mut self, binder: &mut Binder<'_>) -> Result<(), GraphError> {
        binder.node(L::NAME)?;
        binder.node(R::NAME)?;
        if S::NODES == 0 {
            return Ok(());
        }
        let Forward { uses, stages, covered, .. } = self;
        let arc = <R as UsesOut<L::Found<'_>>>::arc(uses);
        *covered = binder.on_arc(arc, |binder| stages.bind(binder))?;
        Ok(())
    }

    fn facts<'g>(&'g self, interface: SwIfIndex, walk: &Walk<'g>) -> Option<Self::Facts<'g>> {
        ResolvingNode::facts(&*self.lookup, interface, walk.common.guard)
    }

    #[inline(always)]
    fn of_lookup<'g>(facts: &Self::Facts<'g>) -> <L as StagedLookup>::Facts<'g> {
        *facts
    }

    #[inline(always)]
    fn found<'g>(&'g self, query: &L::Query, guard: Guard<'g>) -> Option<L::Found<'g>> {
        self.lookup.found(query, guard)
    }

    #[inline(always)]
    fn go<'g>(
        &'g self,
        facts: &Self::Facts<'g>,
        known: Known<'_, L::Query, L::Found<'g>>,
        pkt: &mut Packet<'_>,
        walk: &Walk<'g>,
        spot: ChainPosition,
    ) -> NodeIndex {
        let found = match own(&*self.lookup, *facts, known, pkt, walk, spot) {
            Ok(found) => found,
            Err(Some(node)) => return node,
            Err(None) => return self.by_itself(facts, pkt.reborrow(), walk, spot),
        };
        let edge = match self.uses.plain_with(found, pkt) {
            Some(edge) => edge,
            None if S::NODES == 0 => return self.otherwise(found, pkt.reborrow(), walk, spot.next()),
            None => match self.featured(found, pkt, walk, spot.next()) {
                Ok(edge) => edge,
                Err(node) => return node,
            },
        };
        walk.fan_out(&self.output, pkt, edge, spot.next())
    }

    fn count(&self, _: SwIfIndex, _: u64, _: &Walk<'_>, _: ChainPosition) {}

    fn finish(&self, walk: &Walk<'_>, spot: ChainPosition) {
        walk.fan(spot).flush(&self.output, walk.common);
    }
}
