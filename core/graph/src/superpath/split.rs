//! Two chains behind one node.

use std::sync::Arc;

use shoal_buffer::{Packet, SwIfIndex};
use shoal_infra::Guard;

use super::link::{Chain, Link, count};
use super::walk::{Spot, Walk};
use super::{BLOCK, PlainSecond};
use crate::node::NodeIndex;

/// Two chains that begin with the same node: packets it finds plain take the first, those that are plain for its
/// second edge the other. An interface that has none for the one may have them for the other.
pub struct Split<N, A, B>(pub Arc<N>, pub A, pub B);

impl<N, A, B> Split<N, A, B>
where
    A: Link,
{
    const FIRST: Spot = Spot { at: 1, side: 0 };
    const SECOND: Spot = Spot { at: 1 + A::NODES, side: 1 };
}

/// The lookups of a block of two chains.
#[derive(Default)]
pub struct Sides<S, B> {
    all: [S; BLOCK],
    /// One bit for each packet of the second chain, that of the first packet lowest.
    second: u32,
    begun: B,
    /// Of which chains they were done.
    done: [bool; 2],
}

impl<S: Copy + Default, B> Sides<S, B> {
    /// Which chain the first `n` packets are of, if it is the same.
    #[inline(always)]
    fn side(&self, n: usize) -> Option<usize> {
        match self.second.count_ones() as usize {
            0 => Some(0),
            all if all == n => Some(1),
            _ => None,
        }
    }

    /// The lookup of packet `i`, if it was done.
    #[inline(always)]
    fn of(&self, i: usize, side: usize) -> Option<S> {
        if self.done.get(side) == Some(&true) { self.all.get(i).copied() } else { None }
    }

    /// Does the lookups of one chain's packets, side by side.
    fn each_of(&mut self, side: usize, n: usize, seek: impl FnOnce(&mut [S])) {
        let (mut own, mut count) = ([S::default(); BLOCK], 0);
        let second = self.second;
        let places = self.all.iter_mut().take(n).enumerate();
        let places = places.filter(|(i, _)| (second >> i & 1) as usize == side).map(|(_, place)| place);
        let mut places: [Option<&mut S>; BLOCK] = {
            let mut some = places;
            std::array::from_fn(|_| some.next())
        };
        for (slot, place) in own.iter_mut().zip(places.iter().flatten()) {
            *slot = **place;
            count += 1;
        }
        seek(own.get_mut(..count).unwrap_or_default());
        places.iter_mut().flatten().zip(own).for_each(|(place, sought)| **place = sought);
        if let Some(done) = self.done.get_mut(side) {
            *done = true;
        }
    }
}

impl<N: PlainSecond, A: Link, B: Link<Sought = A::Sought, Begun = A::Begun>> Split<N, A, B> {
    /// The lookups of a block with packets of both chains, each chain's side by side.
    #[inline(never)]
    fn seek_both<'g>(
        &'g self,
        facts: <Self as Chain>::Facts<'g>,
        ahead: &mut Sides<A::Sought, A::Begun>,
        n: usize,
        guard: Guard<'g>,
    ) {
        if let Some((_, facts)) = facts.0.filter(|(_, facts)| A::is_far(*facts)) {
            ahead.each_of(0, n, |own| self.1.finish_ahead(facts, A::begin(facts, own), own, guard));
        }
        if let Some((_, facts)) = facts.1.filter(|(_, facts)| B::is_far(*facts)) {
            ahead.each_of(1, n, |own| self.2.finish_ahead(facts, B::begin(facts, own), own, guard));
        }
    }
}

impl<N: PlainSecond, A: Link, B: Link<Sought = A::Sought, Begun = A::Begun>> Chain for Split<N, A, B> {
    type Facts<'g> = (Option<(N::Facts<'g>, A::Facts<'g>)>, Option<(N::Facts<'g>, B::Facts<'g>)>);
    type Ahead = Sides<A::Sought, A::Begun>;

    fn names(list: &mut Vec<&'static str>) {
        list.push(N::NAME);
        A::names(list);
        B::names(list);
    }

    fn facts<'g>(&'g self, interface: SwIfIndex, guard: Guard<'g>) -> Self::Facts<'g> {
        let Some(node) = self.0.facts(interface, guard) else { return (None, None) };
        let (a, b) = (self.1.facts(interface, guard), self.2.facts(interface, guard));
        (a.map(|a| (node, a)), b.map(|b| (node, b)))
    }

    fn is_far(&self, facts: Self::Facts<'_>) -> bool {
        facts.0.is_some_and(|(_, a)| A::is_far(a)) || facts.1.is_some_and(|(_, b)| B::is_far(b))
    }

    #[inline(always)]
    fn look(ahead: &mut Self::Ahead, i: usize, pkt: &Packet<'_>) {
        if i == 0 {
            ahead.second = 0;
        }
        let second = N::is_second(pkt);
        ahead.second |= u32::from(second) << i;
        if let Some(slot) = ahead.all.get_mut(i) {
            *slot = if second { B::sought(pkt, N::PULLS) } else { A::sought(pkt, N::PULLS) };
        }
    }

    #[inline(always)]
    fn begin(facts: Self::Facts<'_>, ahead: &mut Self::Ahead, n: usize) {
        let side = ahead.side(n);
        let Some(all) = ahead.all.get_mut(..n) else { return };
        match (side, facts) {
            (Some(0), (Some((_, facts)), _)) if A::is_far(facts) => ahead.begun = A::begin(facts, all),
            (Some(1), (_, Some((_, facts)))) if B::is_far(facts) => ahead.begun = B::begin(facts, all),
            _ => {}
        }
    }

    #[inline(always)]
    fn finish_ahead<'g>(
        &'g self,
        facts: Self::Facts<'g>,
        ahead: &mut Self::Ahead,
        n: usize,
        guard: Guard<'g>,
    ) {
        ahead.done = [false; 2];
        let (side, begun) = (ahead.side(n), ahead.begun);
        let Some(all) = ahead.all.get_mut(..n) else { return };
        match (side, facts) {
            (None, _) => self.seek_both(facts, ahead, n, guard),
            (Some(0), (Some((_, facts)), _)) if A::is_far(facts) => {
                self.1.finish_ahead(facts, begun, all, guard);
                ahead.done = [true, false];
            }
            (Some(1), (_, Some((_, facts)))) if B::is_far(facts) => {
                self.2.finish_ahead(facts, begun, all, guard);
                ahead.done = [false, true];
            }
            _ => {}
        }
    }

    #[inline(always)]
    fn go<'g>(
        &'g self,
        facts: Self::Facts<'g>,
        ahead: Option<(&Self::Ahead, usize)>,
        pkt: &mut Packet<'_>,
        walk: &Walk<'g>,
    ) -> NodeIndex {
        if let Some((node, a)) = facts.0
            && self.0.plain(node, pkt)
        {
            let ahead = ahead.and_then(|(all, i)| all.of(i, 0));
            return self.1.go(a, ahead, pkt, walk, Self::FIRST);
        }
        match facts.1 {
            Some((node, b)) if self.0.plain_second(node, pkt) => {
                walk.second.set(walk.second.get() + 1);
                let ahead = ahead.and_then(|(all, i)| all.of(i, 1));
                self.2.go(b, ahead, pkt, walk, Self::SECOND)
            }
            _ => walk.leave(Spot::START),
        }
    }

    fn count(&self, interface: SwIfIndex, packets: u64, walk: &Walk<'_>) {
        let packets = walk.after(Spot::START, packets);
        count(&*self.0, interface, packets, walk, Spot::START);
        let second = walk.second.get().min(packets);
        self.1.count(interface, packets - second, walk, Self::FIRST);
        self.2.count(interface, second, walk, Self::SECOND);
    }

    fn finish(&self, walk: &Walk<'_>) {
        self.1.finish(walk, Self::FIRST);
        self.2.finish(walk, Self::SECOND);
    }
}
