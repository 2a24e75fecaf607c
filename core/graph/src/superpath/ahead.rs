//! Lookups of a block of packets, before the packets run through the chain.

use shoal_buffer::Packet;

use super::{BLOCK, Known, StagedLookup};

/// What a chain knows of a packet's lookup before the packet comes.
pub enum Hint<'a, F, A> {
    /// Nothing.
    Nothing,
    /// What the first packet of the frame looks for, and the answer.
    Frame(&'a F),
    /// Lookups of a block were done ahead; this is the packet's place in the block.
    Block(&'a A, usize),
}

/// Lookups of a block by one node.
pub struct Ahead<L: StagedLookup> {
    all: [L::Query; BLOCK],
    begun: L::InFlight,
}

impl<L: StagedLookup> Clone for Ahead<L> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<L: StagedLookup> Copy for Ahead<L> {}

impl<L: StagedLookup> Default for Ahead<L> {
    #[inline(always)]
    fn default() -> Self {
        Ahead { all: [L::Query::default(); BLOCK], begun: L::InFlight::default() }
    }
}

impl<L: StagedLookup> Ahead<L> {
    /// Reads what a packet will look for, whose header for the node is `offset` bytes behind its front, and begins.
    #[inline(always)]
    pub(super) fn begin(&mut self, facts: Option<L::Facts<'_>>, i: usize, pkt: &Packet<'_>, offset: usize) {
        if let (Some(facts), Some(slot)) = (facts, self.all.get_mut(i % BLOCK)) {
            let mut query = L::query(pkt, offset);
            L::begin(facts, &mut query);
            *slot = query;
        }
    }

    /// The first `n` have begun.
    #[inline(always)]
    pub(super) fn begun(&mut self, facts: Option<L::Facts<'_>>, n: usize) {
        if let (Some(facts), Some(all)) = (facts, self.all.get_mut(..n)) {
            L::begun(facts, all);
        }
    }

    /// Goes on with the first `n`.
    #[inline(always)]
    pub(super) fn advance(&mut self, facts: Option<L::Facts<'_>>, n: usize) {
        if let (Some(facts), Some(all)) = (facts, self.all.get_mut(..n)) {
            self.begun = L::advance(facts, all);
        }
    }

    /// Finishes them.
    #[inline(always)]
    pub(super) fn finish(&mut self, facts: Option<L::Facts<'_>>, n: usize) {
        if let (Some(facts), Some(all)) = (facts, self.all.get_mut(..n)) {
            L::finish(facts, self.begun, all);
        }
    }

    /// What was found for a packet.
    #[inline(always)]
    pub(super) fn found<F>(&self, i: usize) -> Known<'_, L::Query, F> {
        match self.all.get(i % BLOCK) {
            Some(found) => Known::Answer(found),
            None => unreachable!("a remainder is less than what was divided by"),
        }
    }
}

/// Parts of the lookups of a block, side by side as their node wants them.
#[inline(always)]
pub(super) fn side_by_side<Q, P: Copy + Default, T>(
    all: &mut [Q],
    part: impl Fn(&mut Q) -> &mut P,
    run: impl FnOnce(&mut [P]) -> T,
) -> T {
    let mut block = [P::default(); BLOCK];
    block.iter_mut().zip(&mut *all).for_each(|(to, from)| *to = *part(from));
    let some = block.get_mut(..all.len()).unwrap_or_default();
    let done = run(some);
    all.iter_mut().zip(block).for_each(|(to, from)| *part(to) = from);
    done
}
