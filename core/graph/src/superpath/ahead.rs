//! Lookups of a block of packets, before the packets run through the chain.

use shoal_buffer::Packet;

use super::{BLOCK, Finds, Known};

/// For what lookups were done ahead.
#[derive(Clone, Copy)]
pub enum Of {
    /// For each packet of a block; this one is asked for.
    Packet(usize),
    /// For the first packet of the frame.
    Frame,
}

/// Lookups of a block by one node.
pub struct Ahead<L: Finds> {
    all: [L::Sought; BLOCK],
    begun: L::Begun,
    /// Whether they are done ahead.
    done: bool,
}

impl<L: Finds> Default for Ahead<L> {
    fn default() -> Self {
        Ahead { all: [L::Sought::default(); BLOCK], begun: L::Begun::default(), done: false }
    }
}

impl<L: Finds> Ahead<L> {
    /// Reads what a packet will look for, whose header for the node is `offset` bytes behind its front.
    #[inline(always)]
    pub(super) fn look(&mut self, i: usize, pkt: &Packet<'_>, offset: usize) {
        if let Some(sought) = self.all.get_mut(i) {
            *sought = L::sought(pkt, offset);
        }
    }

    /// Begins the first `n` lookups, if it pays.
    #[inline(always)]
    pub(super) fn begin(&mut self, facts: Option<L::Facts<'_>>, n: usize) {
        self.done = false;
        if let Some(facts) = facts
            && L::is_far(facts)
            && let Some(all) = self.all.get_mut(..n)
        {
            self.begun = L::begin(facts, all);
            self.done = true;
        }
    }

    /// Goes on with them.
    #[inline(always)]
    pub(super) fn advance(&mut self, facts: Option<L::Facts<'_>>, n: usize) {
        if let (true, Some(facts), Some(all)) = (self.done, facts, self.all.get_mut(..n)) {
            self.begun = L::advance(facts, self.begun, all);
        }
    }

    /// Finishes them.
    #[inline(always)]
    pub(super) fn finish(&mut self, facts: Option<L::Facts<'_>>, n: usize) {
        if let (true, Some(facts), Some(all)) = (self.done, facts, self.all.get_mut(..n)) {
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
        match (self.done, of) {
            (true, Of::Packet(i)) => self.all.get(i).map_or(Known::Nothing, |found| Known::Answer(*found)),
            (true, Of::Frame) => self.all.first().map_or(Known::Nothing, |found| Known::Other(*found)),
            _ => Known::Nothing,
        }
    }
}
