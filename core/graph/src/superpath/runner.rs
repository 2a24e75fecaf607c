//! Runs a chain over frames.

use std::cell::Cell;

use shoal_buffer::{Frame, Memory, SwIfIndex};
use shoal_infra::Guard;

use super::link::Chain;
use super::walk::{Fan, Walk};
use super::{BLOCK, DEPTH};
use crate::cx::Common;
use crate::dispatch::{Dispatch, Run, all_same};
use crate::lane::Lane;
use crate::node::NodeIndex;
use crate::topology::{NodeEntry, Topology};

/// A block whose lookups are done ahead.
#[derive(Default)]
struct Block<A> {
    ahead: A,
    /// For which run of packets of one interface, by the position of its first: facts of an earlier one do not hold.
    of: Option<usize>,
}

/// Packets of a frame that follow each other and came in by the same interface.
struct Same<F> {
    interface: SwIfIndex,
    /// Position of the first in the frame.
    since: usize,
    facts: F,
}

/// Runs a chain.
pub(crate) struct ChainRunner<L> {
    pub(crate) chain: L,
    /// The chain's nodes in the graph, by position.
    pub(crate) nodes: Vec<NodeIndex>,
}

impl<L: Chain> ChainRunner<L> {
    #[inline(always)]
    fn go<'a>(&'a self, frame: &mut Frame, lane: &mut Lane, topology: &'a Topology, guard: Guard<'a>) {
        let Some(nowhere) = topology.nodes.first() else { return };
        let mut entries: [&NodeEntry; DEPTH] = [nowhere; DEPTH];
        for (slot, node) in entries.iter_mut().zip(&self.nodes) {
            if let Some(entry) = topology.nodes.get(node.at()) {
                *slot = entry;
            }
        }
        let Lane { memory, counters, thread, now, exits, .. } = &mut *lane;
        let common = Common { guard, thread: *thread, now: *now, topology, counters };
        let (left, second) = (<[Cell<u64>; DEPTH]>::default(), Cell::default());
        let fans = [Fan::new(nowhere), Fan::new(nowhere)];
        let walk = Walk { common: &common, entries: &entries, left: &left, second: &second, fans: &fans };
        let mut same = Same { interface: SwIfIndex::NONE, since: 0, facts: L::Facts::default() };
        let n = frame.len();
        let memory = *memory;
        if let Some(first) = frame.packet(memory, 0) {
            self.turn(&mut same, 0, first.rx(), &walk);
        }
        if self.chain.is_far(same.facts) {
            self.go_ahead(frame, memory, exits, &mut same, &walk);
        } else {
            frame.each(memory, |i, pkt| {
                if pkt.rx() != same.interface {
                    self.turn(&mut same, i, pkt.rx(), &walk);
                }
                let exit = self.chain.go(same.facts, None, pkt, &walk);
                if let Some(slot) = exits.get_mut(i) {
                    *slot = exit;
                }
            });
        }
        self.flush(&same, n, &walk);
        self.chain.finish(&walk);
    }

    /// Runs all packets, block by block, each after its lookups. A block of packets from several interfaces, which may
    /// have several tables, goes without.
    #[inline(always)]
    fn go_ahead<'g>(
        &'g self,
        frame: &mut Frame,
        memory: Memory,
        exits: &mut [NodeIndex],
        same: &mut Same<L::Facts<'g>>,
        walk: &Walk<'g>,
    ) {
        let n = frame.len();
        let mut blocks = <[Block<L::Ahead>; 2]>::default();
        frame.prefetch_first(memory, BLOCK);
        let [first, _] = &mut blocks;
        Self::begin(frame, memory, 0, first, same);
        for start in (0..n).step_by(BLOCK) {
            let [even, odd] = &mut blocks;
            let (block, next) = if (start / BLOCK).is_multiple_of(2) { (even, odd) } else { (odd, even) };
            let end = (start + BLOCK).min(n);
            if end < n {
                Self::begin(frame, memory, end, next, same);
            }
            // Interfaces may have changed, and with them what holds for all.
            let done = block.of == Some(same.since);
            if done {
                self.chain.finish_ahead(same.facts, &mut block.ahead, end - start, walk.common.guard);
            }
            frame.each_of::<false>(memory, start..end, |i, pkt| {
                if pkt.rx() != same.interface {
                    self.turn(same, i, pkt.rx(), walk);
                }
                let ahead = if done { Some((&block.ahead, i - start)) } else { None };
                let exit = self.chain.go(same.facts, ahead, pkt, walk);
                if let Some(slot) = exits.get_mut(i) {
                    *slot = exit;
                }
            });
        }
    }

    /// Begins the lookups of the packets from `start` on, if all came in by the same interface.
    #[inline(always)]
    fn begin(
        frame: &mut Frame,
        memory: Memory,
        start: usize,
        block: &mut Block<L::Ahead>,
        same: &Same<L::Facts<'_>>,
    ) {
        let end = (start + BLOCK).min(frame.len());
        let mut mixed = false;
        frame.each_of::<true>(memory, start..end, |i, pkt| {
            mixed |= pkt.rx() != same.interface;
            L::look(&mut block.ahead, i - start, pkt);
        });
        block.of = (!mixed).then_some(same.since);
        if !mixed {
            L::begin(same.facts, &mut block.ahead, end - start);
        }
    }

    /// Packet `i` came in by another interface than the one before.
    #[cold]
    #[inline(never)]
    fn turn<'g>(&'g self, same: &mut Same<L::Facts<'g>>, i: usize, interface: SwIfIndex, walk: &Walk<'g>) {
        self.flush(same, i, walk);
        walk.left.iter().for_each(|left| left.set(0));
        walk.second.set(0);
        let facts = self.chain.facts(interface, walk.common.guard);
        *same = Same { interface, since: i, facts };
    }

    /// Counts the packets before packet `i`.
    fn flush<'g>(&'g self, same: &Same<L::Facts<'_>>, i: usize, walk: &Walk<'g>) {
        let packets = i.saturating_sub(same.since) as u64;
        if packets > 0 {
            self.chain.count(same.interface, packets, walk);
        }
    }
}

impl<L: Chain> Dispatch for ChainRunner<L> {
    fn dispatch(&self, mut frame: Box<Frame>, run: Run<'_>) {
        let Run { lane, topology, guard, .. } = run;
        if lane.tracer.active {
            if let Some(first) = self.nodes.first() {
                lane.forward(*first, frame);
            }
            return;
        }
        self.go(&mut frame, lane, topology, guard);
        let exits = lane.exits.get(..frame.len()).unwrap_or_default();
        let first = exits.first().copied().unwrap_or(topology.drop);
        if all_same(exits, first) {
            lane.forward(first, frame);
        } else {
            lane.scatter_to(frame);
        }
    }
}

/// The names of a chain's nodes.
pub(crate) fn names<L: Chain>(_: &L) -> Vec<&'static str> {
    let mut list = Vec::new();
    L::names(&mut list);
    list
}
