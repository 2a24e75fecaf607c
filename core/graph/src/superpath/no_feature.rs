//! No feature, in the place of the second one of a stage.

use std::convert::Infallible;
use std::marker::PhantomData;

use shoal_buffer::{Packet, SwIfIndex};
use shoal_infra::Guard;

use super::{FlowOptional, Pass, StatefulOptional};
use crate::cx::Cx;
use crate::node::Counts;
use crate::state::Stateful;

/// What cannot be enabled, beside a feature of the same table of flows: there is no value of it.
pub struct NoFeature<A>(Infallible, PhantomData<fn(A)>);

impl<A: FlowOptional> Counts for NoFeature<A> {
    type Error = A::Error;
}

impl<A: FlowOptional> StatefulOptional for NoFeature<A> {
    const NAME: &'static str = "";
    type Feature = A::Feature;
    type Facts<'g> = Infallible;

    fn facts<'g>(&'g self, _: SwIfIndex, _: Guard<'g>) -> Infallible {
        self.0
    }

    #[inline(always)]
    fn pass(
        &self,
        _: &mut <A::Feature as Stateful>::State,
        facts: Infallible,
        _: &mut Packet<'_>,
        _: &Cx<'_, Self>,
    ) -> Pass {
        match facts {}
    }
}

impl<A: FlowOptional> FlowOptional for NoFeature<A> {
    type Query = A::Query;

    fn table(&self, _: SwIfIndex) -> u32 {
        match self.0 {}
    }

    fn is_far(state: &<A::Feature as Stateful>::State) -> bool {
        A::is_far(state)
    }

    #[inline(always)]
    fn query(pkt: &Packet<'_>, offset: usize) -> A::Query {
        A::query(pkt, offset)
    }

    #[inline(always)]
    fn begin(state: &mut <A::Feature as Stateful>::State, table: u32, query: &mut A::Query) {
        A::begin(state, table, query);
    }

    #[inline(always)]
    fn seek(state: &mut <A::Feature as Stateful>::State, query: &mut A::Query) {
        A::seek(state, query);
    }

    #[inline(always)]
    fn follow(
        &self,
        _: &mut <A::Feature as Stateful>::State,
        facts: Infallible,
        _: Option<&A::Query>,
        _: &mut Packet<'_>,
        _: &Cx<'_, Self>,
    ) -> Pass {
        match facts {}
    }
}
