//! Look-ups of a feature that gives packets another protocol's header, and of what comes behind it.

use std::marker::PhantomData;

use shoal_buffer::Packet;

use super::ahead::side_by_side;
use super::cross::CrossOptional;
use super::{Known, StagedLookup};

/// Look-ups of the feature, of packets that keep their protocol, and of those that have crossed. A packet that is for the feature is
/// looked up by it alone; where that leads is looked up for packets that are all alike.
pub struct CrossLookups<A, S, O>(PhantomData<fn(A, S, O)>);

/// What a packet looks for.
#[derive(Clone, Copy, PartialEq, Default)]
pub struct CrossQuery<F, S, O> {
    own: F,
    /// Whether it is for the feature; known once it has begun.
    is_own: bool,
    same: S,
    /// Where it goes when it has crossed.
    other: Option<O>,
}

/// What two ends have found for all packets.
pub(super) type FoundOfEnds<S, O> = (Option<S>, Option<O>);

/// What is known of a packet: of its own, and of the look-up of each end.
pub(super) type KnownOfEnds<'a, F, S, FS, O, FO> = (Option<&'a F>, Known<'a, S, FS>, Known<'a, O, FO>);

impl<F, S, O> CrossQuery<F, S, O> {
    /// Where its end of the chain finds something, what that is.
    #[inline(always)]
    pub(super) fn found<FS, FO>(
        &self,
        same: impl FnOnce(&S) -> Option<FS>,
        other: impl FnOnce(&O) -> Option<FO>,
    ) -> FoundOfEnds<FS, FO> {
        if self.is_own { (None, self.other.as_ref().and_then(other)) } else { (same(&self.same), None) }
    }

    /// What a packet's look-up, or that of another packet, says.
    #[inline(always)]
    pub(super) fn known<FS, FO>(
        known: Known<'_, Self, FoundOfEnds<FS, FO>>,
    ) -> KnownOfEnds<'_, F, S, FS, O, FO> {
        match known {
            Known::Nothing => (None, Known::Nothing, Known::Nothing),
            Known::Chosen(number, node) => (None, Known::Chosen(number, node), Known::Nothing),
            Known::Answer(query) if query.is_own => (Some(&query.own), Known::Nothing, Known::Nothing),
            Known::Answer(query) => (None, Known::Answer(&query.same), Known::Nothing),
            Known::Other(query, (same, other)) => {
                let own = query.is_own.then_some(&query.own);
                let same = same.map_or(Known::Nothing, |found| Known::Other(&query.same, found));
                let other = query.other.as_ref().zip(other);
                (own, same, other.map_or(Known::Nothing, |(query, found)| Known::Other(query, found)))
            }
        }
    }
}

type QueryOf<A, S, O> =
    CrossQuery<<A as CrossOptional>::Query, <S as StagedLookup>::Query, <O as StagedLookup>::Query>;

impl<A, S, O> StagedLookup for CrossLookups<A, S, O>
where
    A: CrossOptional,
    S: StagedLookup,
    O: StagedLookup,
    O::Query: From<A::Destination>,
{
    type Facts<'g> = (Option<A::Lookup<'g>>, S::Facts<'g>, O::Facts<'g>);
    type Query = QueryOf<A, S, O>;
    /// Whether there are packets that are not for the feature, and their look-ups.
    type InFlight = (bool, S::InFlight);

    fn is_far((own, same, _): Self::Facts<'_>) -> bool {
        own.is_some_and(|own| A::look(own, |state, _| A::is_far(state))) || S::is_far(same)
    }

    #[inline(always)]
    fn query(pkt: &Packet<'_>, offset: usize) -> Self::Query {
        CrossQuery { own: A::query(pkt, offset), is_own: false, same: S::query(pkt, offset), other: None }
    }

    #[inline(always)]
    fn begin(_: Self::Facts<'_>, _: &mut Self::Query) {}

    #[inline(always)]
    fn begun((own, same, _): Self::Facts<'_>, all: &mut [Self::Query]) {
        if let Some(own) = own {
            A::look(own, |state, facts| {
                for query in &mut *all {
                    query.is_own = A::begin(state, facts, &mut query.own);
                }
            });
        }
        if S::is_far(same) && any_passes(all) {
            for query in &mut *all {
                S::begin(same, &mut query.same);
            }
            side_by_side(all, |query| &mut query.same, |some| S::begun(same, some));
        }
    }

    #[inline(always)]
    fn advance((own, same, _): Self::Facts<'_>, all: &mut [Self::Query]) -> Self::InFlight {
        if let Some(own) = own {
            A::look(own, |state, _| of_own(all).for_each(|query| A::seek(state, query)));
        }
        let any = any_passes(all);
        let begun = if any && S::is_far(same) {
            side_by_side(all, |query| &mut query.same, |some| S::advance(same, some))
        } else {
            S::InFlight::default()
        };
        (any, begun)
    }

    #[inline(always)]
    fn finish((own, same, _): Self::Facts<'_>, (any, begun): Self::InFlight, all: &mut [Self::Query]) {
        if let Some(own) = own {
            A::look(own, |state, _| of_own(all).for_each(|query| A::fetch(state, query)));
        }
        if !any {
            return;
        }
        if S::is_far(same) {
            side_by_side(all, |query| &mut query.same, |some| S::finish(same, begun, some));
        } else {
            all.iter_mut().filter(|query| !query.is_own).for_each(|query| S::look_up(same, &mut query.same));
        }
    }

    #[inline(always)]
    fn look_up(facts: Self::Facts<'_>, query: &mut Self::Query) {
        let one = std::slice::from_mut(query);
        Self::begun(facts, one);
        let begun = Self::advance(facts, one);
        Self::finish(facts, begun, one);
        let (own, _, other) = facts;
        if let Some(own) = own.filter(|_| query.is_own) {
            let to = A::look(own, |state, facts| A::destination(state, facts, &query.own));
            query.other = to.map(Into::into);
        }
        if let Some(query) = &mut query.other {
            O::look_up(other, query);
        }
    }
}

/// The flows of packets that are for the feature.
#[inline(always)]
fn of_own<F, S, O>(all: &mut [CrossQuery<F, S, O>]) -> impl Iterator<Item = &mut F> {
    all.iter_mut().filter(|query| query.is_own).map(|query| &mut query.own)
}

/// Whether there is a packet that is not for the feature.
#[inline(always)]
fn any_passes<F, S, O>(all: &[CrossQuery<F, S, O>]) -> bool {
    all.iter().any(|query| !query.is_own)
}
