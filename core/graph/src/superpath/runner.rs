//! Runs a chain over frames.

use std::cell::Cell;
use std::ops::Range;

use shoal_buffer::{Frame, Memory, SwIfIndex};
use shoal_infra::Guard;

use super::ahead::Hint;
use super::link::Chain;
use super::walk::{LastTarget, Walk};
use super::{BLOCK, SAMPLES, WORTH_A_LOOK, samples};
use crate::cx::Common;
use crate::dispatch::{Dispatch, Run, all_same};
use crate::lane::Lane;
use crate::node::NodeIndex;
use crate::topology::Topology;

/// Blocks under way at a time, in a frame of many. One of few is a single block.
const RING: usize = 3;

/// A block whose lookups are done ahead.
#[derive(Clone, Copy, Default)]
struct Block<A> {
    ahead: A,
    /// Its packets.
    n: usize,
    /// For which run of packets of one interface, by the position of its first: facts of an earlier one do not hold.
    of: Option<usize>,
}

/// The place of the block that begins at packet `start`.
#[inline(always)]
fn at<const N: usize, A>(ring: &mut [Block<A>; N], start: usize) -> &mut Block<A> {
    match ring.get_mut(start / BLOCK % N) {
        Some(block) => block,
        None => unreachable!("a remainder is less than what was divided by"),
    }
}

impl<A> Block<A> {
    /// Begins the lookups of the packets from `start` on, if all came in by the same interface.
    #[inline(always)]
    fn begin<L: Chain<Ahead = A>>(
        &mut self,
        frame: &mut Frame,
        memory: Memory,
        start: usize,
        same: &SameInterfaceRun<L::Facts<'_>>,
    ) {
        let end = (start + BLOCK).min(frame.len());
        self.n = end.saturating_sub(start);
        let mut mixed = self.n == 0;
        frame.each_of::<true>(memory, start..end, |i, pkt| {
            mixed |= pkt.rx() != same.interface;
            L::begin(&same.facts, &mut self.ahead, i - start, pkt);
        });
        if !mixed {
            L::begun(&same.facts, &mut self.ahead, self.n);
        }
        self.of = (!mixed).then_some(same.since);
    }

    /// Goes on with them, if the facts are still the same.
    #[inline(always)]
    fn advance<L: Chain<Ahead = A>>(&mut self, same: &SameInterfaceRun<L::Facts<'_>>) {
        if self.of == Some(same.since) {
            L::advance(&same.facts, &mut self.ahead, self.n);
        }
    }

    /// Finishes them; tells whether they were done.
    #[inline(always)]
    fn finish<L: Chain<Ahead = A>>(&mut self, same: &SameInterfaceRun<L::Facts<'_>>) -> bool {
        let done = self.of == Some(same.since);
        if done {
            L::finish_ahead(&same.facts, &mut self.ahead, self.n);
        }
        done
    }
}

/// Packets of a frame that follow each other and came in by the same interface.
struct SameInterfaceRun<F> {
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
    /// Runs a frame, and tells where its packets go then, if it knows already that all go to the same node.
    #[inline(always)]
    fn go<'a>(
        &'a self,
        frame: &mut Frame,
        lane: &mut Lane,
        topology: &'a Topology,
        guard: Guard<'a>,
    ) -> Option<NodeIndex> {
        let nowhere = topology.nodes.first()?;
        let Lane { memory, counters, thread, now, exits, left, states, .. } = &mut *lane;
        let common = Common { guard, thread: *thread, now: *now, topology, counters, states };
        let (any_left, second) = (Cell::default(), Cell::default());
        let fans = [LastTarget::new(nowhere), LastTarget::new(nowhere)];
        let walk = Walk {
            common: &common,
            nodes: &self.nodes,
            nowhere,
            left: &*left,
            any_left: &any_left,
            second: &second,
            fans: &fans,
        };
        let n = frame.len();
        let memory = *memory;
        let interface = frame.packet(memory, 0).map_or(SwIfIndex::NONE, |first| first.rx());
        let mut same = SameInterfaceRun { interface, since: 0, facts: self.chain.facts(interface, &walk) };
        if let Some(found) = self.alike(frame, memory, &same, guard) {
            let left = self.go_alike(found, frame, (memory, exits), &same, &walk);
            if left < n {
                self.go_each(left, frame, (memory, exits), &mut same, &walk);
            }
        } else if !self.chain.is_far(&same.facts) {
            self.go_each(0, frame, (memory, exits), &mut same, &walk);
        } else if n <= BLOCK {
            self.go_ahead::<1>(frame, (memory, exits), &mut same, &walk);
        } else {
            self.go_ahead::<RING>(frame, (memory, exits), &mut same, &walk);
        }
        self.flush(&same, n, &walk);
        let common_exit = walk.common_exit(n);
        self.chain.finish(&walk);
        walk.forget();
        common_exit
    }

    /// What all packets find, if it seems that they look for the same: some of them do.
    #[inline(always)]
    fn alike<'g>(
        &'g self,
        frame: &mut Frame,
        memory: Memory,
        same: &SameInterfaceRun<L::Facts<'g>>,
        guard: Guard<'g>,
    ) -> Option<L::Found<'g>> {
        if !L::LOOKS_UP || frame.len() < WORTH_A_LOOK {
            return None;
        }
        let mut all = [L::Query::default(); SAMPLES];
        for (place, query) in samples(frame.len()).into_iter().zip(&mut all) {
            let pkt = frame.packet(memory, place).filter(|pkt| pkt.rx() == same.interface)?;
            *query = L::query(&pkt);
        }
        let [first, ..] = all;
        if all.iter().any(|other| *other != first) {
            return None;
        }
        self.chain.look_up(&same.facts, first, guard)
    }

    /// Runs packets with what was found for the first, up to one from another interface, which may have another table;
    /// tells where that is. A function of its own, so that the loop has all registers for itself.
    #[inline(never)]
    fn go_alike<'g>(
        &'g self,
        found: L::Found<'g>,
        frame: &mut Frame,
        (memory, exits): (Memory, &mut [NodeIndex]),
        same: &SameInterfaceRun<L::Facts<'g>>,
        walk: &Walk<'g>,
    ) -> usize {
        let (interface, facts) = (same.interface, &same.facts);
        frame.each_while(memory, 0, |i, pkt| {
            if pkt.rx() != interface {
                return false;
            }
            let exit = self.chain.go(facts, Hint::Frame(&found), pkt, walk);
            if let Some(slot) = exits.get_mut(i) {
                *slot = exit;
            }
            true
        })
    }

    /// Runs packets from one on, each with its own lookup.
    #[inline(never)]
    fn go_each<'g>(
        &'g self,
        from: usize,
        frame: &mut Frame,
        (memory, exits): (Memory, &mut [NodeIndex]),
        same: &mut SameInterfaceRun<L::Facts<'g>>,
        walk: &Walk<'g>,
    ) {
        frame.each_while(memory, from, |i, pkt| {
            if pkt.rx() != same.interface {
                self.turn(same, i, pkt.rx(), walk);
            }
            let exit = self.chain.go(&same.facts, Hint::Nothing, pkt, walk);
            if let Some(slot) = exits.get_mut(i) {
                *slot = exit;
            }
            true
        });
    }

    /// Runs all packets, block by block, each after its lookups. A block of packets from several interfaces, which may
    /// have several tables, goes without.
    #[inline(never)]
    fn go_ahead<'g, const N: usize>(
        &'g self,
        frame: &mut Frame,
        (memory, exits): (Memory, &mut [NodeIndex]),
        same: &mut SameInterfaceRun<L::Facts<'g>>,
        walk: &Walk<'g>,
    ) {
        let n = frame.len();
        let mut ring = [Block::default(); N];
        frame.prefetch_first(memory, BLOCK);
        for begun in (0..n + (N - 1) * BLOCK).step_by(BLOCK) {
            at(&mut ring, begun).begin::<L>(frame, memory, begun, same);
            if let Some(before) = begun.checked_sub((N - 1) / 2 * BLOCK) {
                at(&mut ring, before).advance::<L>(same);
            }
            let Some(start) = begun.checked_sub((N - 1) * BLOCK) else { continue };
            let block = at(&mut ring, start);
            let packets = start..(start + BLOCK).min(n);
            if !block.finish::<L>(same) {
                self.go_without(packets, frame, (memory, &mut *exits), same, walk);
                continue;
            }
            // All came in by the same interface.
            let facts = &same.facts;
            frame.each_of::<false>(memory, packets, |i, pkt| {
                let exit = self.chain.go(facts, Hint::Block(&block.ahead, i - start), pkt, walk);
                if let Some(slot) = exits.get_mut(i) {
                    *slot = exit;
                }
            });
        }
    }

    /// Runs some packets, each with its own lookup.
    #[cold]
    #[inline(never)]
    fn go_without<'g>(
        &'g self,
        packets: Range<usize>,
        frame: &mut Frame,
        (memory, exits): (Memory, &mut [NodeIndex]),
        same: &mut SameInterfaceRun<L::Facts<'g>>,
        walk: &Walk<'g>,
    ) {
        frame.each_of::<false>(memory, packets, |i, pkt| {
            if pkt.rx() != same.interface {
                self.turn(same, i, pkt.rx(), walk);
            }
            let exit = self.chain.go(&same.facts, Hint::Nothing, pkt, walk);
            if let Some(slot) = exits.get_mut(i) {
                *slot = exit;
            }
        });
    }

    /// Packet `i` came in by another interface than the one before.
    #[cold]
    #[inline(never)]
    fn turn<'g>(
        &'g self,
        same: &mut SameInterfaceRun<L::Facts<'g>>,
        i: usize,
        interface: SwIfIndex,
        walk: &Walk<'g>,
    ) {
        self.flush(same, i, walk);
        walk.forget();
        walk.second.set(0);
        let facts = self.chain.facts(interface, walk);
        *same = SameInterfaceRun { interface, since: i, facts };
    }

    /// Counts the packets before packet `i`.
    fn flush<'g>(&'g self, same: &SameInterfaceRun<L::Facts<'_>>, i: usize, walk: &Walk<'g>) {
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
        let common_exit = self.go(&mut frame, lane, topology, guard);
        lane.states.get_mut().return_lent();
        if let Some(exit) = common_exit {
            lane.forward(exit, frame);
            return;
        }
        let exits = lane.exits.get(..frame.len()).unwrap_or_default();
        let first = exits.first().copied().unwrap_or(topology.drop);
        if all_same(exits, first) {
            lane.forward(first, frame);
        } else {
            lane.scatter_to(frame);
        }
    }
}
