//! Features with a table of flows as optional stages of a chain, whose look-ups are done ahead.

use std::marker::PhantomData;
use std::sync::Arc;

use shoal_buffer::{Packet, SwIfIndex};
use shoal_infra::Guard;

use super::ahead::side_by_side;
use super::bind::Binder;
use super::borrowed_table::BorrowedTable;
use super::link::Link;
use super::walk::{ChainPosition, Walk};
use super::{FlowOptional, Known, NoFeature, Pass, Stage, StagedLookup, WithState};
use crate::cx::Cx;
use crate::graph::GraphError;
use crate::node::NodeIndex;

/// Two features that look in the same table, of which an interface has one or none, and the rest: the two directions of a
/// translation, for instance. The look-ups in their table are done ahead together with those of the rest.
pub struct FlowStage<A: FlowOptional, B: FlowOptional, Rest> {
    first: Stage<WithState<A>, ()>,
    second: Stage<WithState<B>, ()>,
    rest: Rest,
}

impl<A, B, Rest> FlowStage<A, B, Rest>
where
    A: FlowOptional,
    B: FlowOptional<Feature = A::Feature, Query = A::Query>,
{
    /// The features, if they are part of this router, and what comes behind them.
    pub fn new(nodes: Option<Directions<A, B>>, rest: Rest) -> Self {
        let (first, second) = nodes.unzip();
        FlowStage { first: Stage::new(first, ()), second: Stage::new(second, ()), rest }
    }
}

impl<A: FlowOptional, Rest> FlowStage<A, NoFeature<A>, Rest> {
    /// One feature that is alone with its table.
    pub fn one(node: Arc<WithState<A>>, rest: Rest) -> Self {
        FlowStage { first: Stage::new(Some(node), ()), second: Stage::new(None, ()), rest }
    }
}

/// Both features of a stage.
pub type Directions<A, B> = (Arc<WithState<A>>, Arc<WithState<B>>);

/// What a stage knows of an interface, by which of the two features it has.
#[derive(Clone, Copy)]
pub enum Side<A, B> {
    /// The first.
    First(A),
    /// The second.
    Second(B),
}

/// What both look-ups need to know of an interface: of the stage, the state and the forwarding table packets come by.
type OfBoth<'g, F, L> = (Option<(BorrowedTable<'g, F>, u32)>, <L as StagedLookup>::Facts<'g>);

/// The look-ups of a stage and of the rest.
pub struct StageLookups<A, L>(PhantomData<fn(A, L)>);

impl<A: FlowOptional, L: StagedLookup> StagedLookup for StageLookups<A, L> {
    type Facts<'g> = OfBoth<'g, A::Feature, L>;
    type Query = (A::Query, L::Query);
    type InFlight = L::InFlight;

    fn is_far((own, rest): Self::Facts<'_>) -> bool {
        own.is_some_and(|(lent, _)| lent.look(|state| A::is_far(state))) || L::is_far(rest)
    }

    #[inline(always)]
    fn query(pkt: &Packet<'_>, offset: usize) -> Self::Query {
        (A::query(pkt, offset), L::query(pkt, offset))
    }

    #[inline(always)]
    fn begin((_, rest): Self::Facts<'_>, (_, query): &mut Self::Query) {
        if L::is_far(rest) {
            L::begin(rest, query);
        }
    }

    #[inline(always)]
    fn begun((own, _): Self::Facts<'_>, all: &mut [Self::Query]) {
        if let Some((lent, table)) = own {
            lent.look(|state| all.iter_mut().for_each(|(flow, _)| A::begin(state, table, flow)));
        }
    }

    #[inline(always)]
    fn advance((own, rest): Self::Facts<'_>, all: &mut [Self::Query]) -> L::InFlight {
        if let Some((lent, _)) = own {
            lent.look(|state| all.iter_mut().for_each(|(flow, _)| A::seek(state, flow)));
        }
        if L::is_far(rest) {
            side_by_side(all, |(_, query)| query, |some| L::advance(rest, some))
        } else {
            L::InFlight::default()
        }
    }

    #[inline(always)]
    fn finish((_, rest): Self::Facts<'_>, begun: L::InFlight, all: &mut [Self::Query]) {
        if L::is_far(rest) {
            side_by_side(all, |(_, query)| query, |some| L::finish(rest, begun, some));
        } else {
            for (_, query) in all {
                L::look_up(rest, query);
            }
        }
    }
}

impl<A, B, Rest> Link for FlowStage<A, B, Rest>
where
    A: FlowOptional,
    B: FlowOptional<Feature = A::Feature, Query = A::Query>,
    Rest: Link,
{
    type Facts<'g> = (
        Option<Side<A::Facts<'g>, B::Facts<'g>>>,
        Option<(BorrowedTable<'g, A::Feature>, u32)>,
        Rest::Facts<'g>,
    );
    type Lookup = StageLookups<A, Rest::Lookup>;
    /// Nothing where the rest finds nothing: a packet for an address that another stands for is found in the flows alone.
    type Found<'g> = Option<Rest::Found<'g>>;
    const NODES: usize = 2 + Rest::NODES;
    const PULLS: usize = Rest::PULLS;

    fn bind(&mut self, binder: &mut Binder<'_>) -> Result<(), GraphError> {
        self.first.bind_self(binder)?;
        self.second.bind_self(binder)?;
        self.rest.bind(binder)
    }

    fn facts<'g>(&'g self, interface: SwIfIndex, walk: &Walk<'g>) -> Option<Self::Facts<'g>> {
        let (guard, rest) = (walk.common.guard, self.rest.facts(interface, walk)?);
        let (first, second) = (self.first.facts_of(interface, guard), self.second.facts_of(interface, guard));
        let (side, key) = match (first, second) {
            (None, None) => return Some((None, None, rest)),
            (Some((node, facts)), None) => (Side::First(facts), (&node.key, node.stage.table(interface))),
            (None, Some((node, facts))) => (Side::Second(facts), (&node.key, node.stage.table(interface))),
            // Packets meet the one and then the other: nothing that one stage does.
            (Some(_), Some(_)) => return None,
        };
        let lent = BorrowedTable::new(key.0, walk);
        Some((Some(side), Some((lent, key.1)), rest))
    }

    #[inline(always)]
    fn of_lookup<'g>((_, own, rest): &Self::Facts<'g>) -> <Self::Lookup as StagedLookup>::Facts<'g> {
        (*own, Rest::of_lookup(rest))
    }

    #[inline(always)]
    fn found<'g>(
        &'g self,
        (_, query): &<Self::Lookup as StagedLookup>::Query,
        guard: Guard<'g>,
    ) -> Option<Self::Found<'g>> {
        Some(self.rest.found(query, guard))
    }

    #[inline(always)]
    fn go<'g>(
        &'g self,
        (side, _, facts): &Self::Facts<'g>,
        known: Known<'_, <Self::Lookup as StagedLookup>::Query, Self::Found<'g>>,
        pkt: &mut Packet<'_>,
        walk: &Walk<'g>,
        spot: ChainPosition,
    ) -> NodeIndex {
        let (flow, mut known) = match known {
            Known::Nothing => (None, Known::Nothing),
            Known::Answer((flow, query)) => (Some(flow), Known::Answer(query)),
            Known::Other((flow, query), Some(found)) => (Some(flow), Known::Other(query, found)),
            Known::Other((flow, _), None) => (Some(flow), Known::Nothing),
            Known::Chosen(number, node) => (None, Known::Chosen(number, node)),
        };
        if let Some(side) = side
            && !matches!(known, Known::Chosen(..))
        {
            let pass = match side {
                Side::First(facts) => self.first.follow(*facts, flow, pkt, walk, spot),
                Side::Second(facts) => self.second.follow(*facts, flow, pkt, walk, spot.next()),
            };
            match pass {
                Pass::On => {}
                Pass::Redirected => known = Known::Nothing,
                Pass::Chosen(number) => {
                    let at = if matches!(side, Side::First(_)) { spot } else { spot.next() };
                    known = walk.chosen(number, at);
                }
                Pass::Leave if matches!(side, Side::First(_)) => {
                    return self.first.leave(pkt.reborrow(), walk, spot);
                }
                Pass::Leave => return self.second.leave(pkt.reborrow(), walk, spot.next()),
            }
        }
        self.rest.go(facts, known, pkt, walk, spot.next().next())
    }

    fn count(&self, interface: SwIfIndex, packets: u64, walk: &Walk<'_>, spot: ChainPosition) {
        self.rest.count(interface, packets, walk, spot.next().next());
    }

    fn finish(&self, walk: &Walk<'_>, spot: ChainPosition) {
        self.rest.finish(walk, spot.next().next());
    }
}

impl<A: FlowOptional> Stage<WithState<A>, ()> {
    /// Runs a packet through the feature, with what is known of its flow.
    #[inline(always)]
    fn follow(
        &self,
        facts: A::Facts<'_>,
        flow: Option<&A::Query>,
        pkt: &mut Packet<'_>,
        walk: &Walk<'_>,
        spot: ChainPosition,
    ) -> Pass {
        let Some(node) = self.node() else { return Pass::On };
        let cx: Cx<'_, A> = Cx::new(walk.common, walk.entry(spot));
        let mut state = cx.lend(&node.key);
        node.stage.follow(&mut state, facts, flow, pkt, &cx)
    }
}
