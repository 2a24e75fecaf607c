//! Features with a table of flows on each thread that give packets another protocol's header.

use shoal_buffer::Packet;

use super::borrowed_table::BorrowedTable;
use super::cross::{CrossOptional, Crossing};
use super::walk::Walk;
use super::{StatefulOptional, WithState};
use crate::cx::Cx;
use crate::state::Stateful;

/// Such a feature, for [`Cross`](super::Cross) by way of [`WithState`]. All is as of [`CrossOptional`], with what the feature keeps on
/// the thread.
pub trait StatefulCrossOptional: StatefulOptional {
    /// What is looked for in the table, and where the search is.
    type Query: Copy + Default + PartialEq;
    /// An address of the other protocol.
    type Destination;

    /// Whether look-ups wait for memory.
    fn is_far(state: &<Self::Feature as Stateful>::State) -> bool;

    /// What will be looked for.
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

    /// What becomes of a packet.
    fn cross(
        &self,
        state: &mut <Self::Feature as Stateful>::State,
        facts: Self::Facts<'_>,
        query: Option<&Self::Query>,
        pkt: &mut Packet<'_>,
        cx: &Cx<'_, Self>,
    ) -> Crossing;
}

impl<A: StatefulCrossOptional> CrossOptional for WithState<A> {
    type State = <A::Feature as Stateful>::State;
    type Query = A::Query;
    type Destination = A::Destination;
    type Lookup<'g> = (BorrowedTable<'g, A::Feature>, A::Facts<'g>);

    fn lookup<'g>(&'g self, facts: A::Facts<'g>, walk: &Walk<'g>) -> Self::Lookup<'g> {
        (BorrowedTable::new(&self.key, walk), facts)
    }

    #[inline(always)]
    fn look<'g, R>(
        (table, facts): Self::Lookup<'g>,
        look: impl FnOnce(&mut Self::State, A::Facts<'g>) -> R,
    ) -> R {
        table.look(|state| look(state, facts))
    }

    fn is_far(state: &mut Self::State) -> bool {
        A::is_far(state)
    }

    #[inline(always)]
    fn query(pkt: &Packet<'_>, offset: usize) -> A::Query {
        A::query(pkt, offset)
    }

    #[inline(always)]
    fn begin(state: &mut Self::State, facts: A::Facts<'_>, query: &mut A::Query) -> bool {
        A::begin(state, facts, query)
    }

    #[inline(always)]
    fn seek(state: &mut Self::State, query: &mut A::Query) {
        A::seek(state, query);
    }

    #[inline(always)]
    fn fetch(state: &mut Self::State, query: &mut A::Query) {
        A::fetch(state, query);
    }

    #[inline(always)]
    fn destination(state: &mut Self::State, _: A::Facts<'_>, query: &A::Query) -> Option<A::Destination> {
        A::destination(state, query)
    }

    #[inline(always)]
    fn cross(
        &self,
        facts: A::Facts<'_>,
        query: Option<&A::Query>,
        pkt: &mut Packet<'_>,
        cx: &Cx<'_, Self>,
    ) -> Crossing {
        let mut state = cx.lend(&self.key);
        self.stage.cross(&mut state, facts, query, pkt, &cx.of())
    }
}
