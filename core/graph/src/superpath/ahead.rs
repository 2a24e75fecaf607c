//! Lookups of a block of packets, before the packets run through the chain.

use shoal_buffer::Packet;

use super::{BLOCK, Finds};

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

    /// What one of them found, if they were done.
    #[inline(always)]
    pub(super) fn found(&self, i: usize) -> Option<L::Sought> {
        if self.done { self.all.get(i).copied() } else { None }
    }
}
