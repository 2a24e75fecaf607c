//! Lookups of a block of packets, before the packets run through the chain.

use shoal_buffer::Packet;

use super::{BLOCK, Known, Seeks};

/// For what lookups were done ahead.
#[derive(Clone, Copy)]
pub enum Of {
    /// For each packet of a block; this one is asked for.
    Packet(usize),
    /// For the first packet of the frame.
    Frame,
}

/// Lookups of a block by one node.
pub struct Ahead<L: Seeks> {
    all: [L::Sought; BLOCK],
    begun: L::Begun,
}

impl<L: Seeks> Default for Ahead<L> {
    fn default() -> Self {
        Ahead { all: [L::Sought::default(); BLOCK], begun: L::Begun::default() }
    }
}

impl<L: Seeks> Ahead<L> {
    /// Reads what a packet will look for, whose header for the node is `offset` bytes behind its front, and begins.
    #[inline(always)]
    pub(super) fn begin(&mut self, facts: Option<L::Facts<'_>>, i: usize, pkt: &Packet<'_>, offset: usize) {
        if let (Some(facts), Some(slot)) = (facts, self.all.get_mut(i % BLOCK)) {
            let mut sought = L::sought(pkt, offset);
            L::begin(facts, &mut sought);
            *slot = sought;
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

    /// Whether the first `n` packets look for the same.
    #[inline(always)]
    pub(super) fn are_alike(&self, n: usize) -> bool {
        let all = self.all.get(..n).unwrap_or_default();
        all.first().is_some_and(|first| all.iter().all(|other| other == first))
    }

    /// What is known for a packet.
    #[inline(always)]
    pub(super) fn known(&self, of: Of) -> Known<L::Sought> {
        match of {
            Of::Packet(i) => match self.all.get(i % BLOCK) {
                Some(found) => Known::Answer(*found),
                None => unreachable!("a remainder is less than what was divided by"),
            },
            Of::Frame => self.all.first().map_or(Known::Nothing, |found| Known::Other(*found)),
        }
    }
}
