//! How a lookup is run whose answer the next node needs: at once if the table is in the caches, or if all packets look for
//! the same; else in stages.

use std::sync::Arc;

use shoal_buffer::{FRAME_SIZE, Frame, Memory, Packet, SwIfIndex};
use shoal_infra::Guard;

use super::{Dispatch, Run, follow, staged, staged_traced, verdict};
use crate::cx::{Common, Cx};
use crate::lane::Lane;
use crate::node::Edge;
use crate::superpath::{FIRST, Known, ResolvingNode, SAMPLES, StagedLookup, WORTH_A_LOOK, samples};
use crate::topology::NodeEntry;

type Facts<'g, N> = <N as StagedLookup>::Facts<'g>;
type Query<N> = <N as StagedLookup>::Query;

/// Runs a node that [`ResolvingNode`].
pub(crate) struct ResolvingRunner<N>(pub(crate) Arc<N>);

impl<N: ResolvingNode> ResolvingRunner<N> {
    #[inline(always)]
    fn go(&self, mut frame: Box<Frame>, run: Run<'_>) {
        let memory = run.lane.memory;
        let first = frame.packet(memory, 0).map_or(SwIfIndex::NONE, |pkt| pkt.rx());
        let Some(facts) = self.facts(first, run.guard) else { return self.in_stages(frame, run) };
        let alike = self.alike(facts, &mut frame, memory, (first, run.guard));
        if alike.is_none() && N::is_far(facts) {
            return self.in_stages(frame, run);
        }
        let Run { lane, entry, topology, guard } = run;
        {
            let Lane { counters, nexts, thread, now, states, .. } = &mut *lane;
            let common = Common { guard, thread: *thread, now: *now, topology, counters, states };
            let mut left = 0;
            if let Some(query) = alike {
                left = self.go_alike(&query, first, &mut frame, (memory, nexts), &common, entry);
            }
            if left < frame.len() {
                self.go_each(left, &mut frame, (memory, nexts), &common, entry);
            }
        }
        follow(frame, lane, topology, entry);
    }

    #[inline(never)]
    fn in_stages(&self, frame: Box<Frame>, run: Run<'_>) {
        staged::<false, N>(&self.0, frame, run);
    }

    #[cold]
    #[inline(never)]
    fn facts<'g>(&'g self, interface: SwIfIndex, guard: Guard<'g>) -> Option<Facts<'g, N>> {
        ResolvingNode::facts(&*self.0, interface, guard)
    }

    /// What all packets look for, with the answer, if it seems that they look for the same: some of them do.
    #[inline(always)]
    fn alike<'g>(
        &'g self,
        facts: Facts<'g, N>,
        frame: &mut Frame,
        memory: Memory,
        (interface, guard): (SwIfIndex, Guard<'g>),
    ) -> Option<Query<N>> {
        if frame.len() < WORTH_A_LOOK {
            return None;
        }
        let mut all = [Query::<N>::default(); SAMPLES];
        for (place, query) in samples(frame.len()).into_iter().zip(&mut all) {
            let pkt = frame.packet(memory, place).filter(|pkt| pkt.rx() == interface)?;
            *query = N::query(&pkt, 0);
        }
        let [mut first, ..] = all;
        if all.iter().any(|other| *other != first) {
            return None;
        }
        N::look_up(facts, &mut first);
        self.0.found(&first, guard).map(|_| first)
    }

    /// Runs packets with what was found for the first, up to one from another interface, which may have another table;
    /// tells where that is.
    #[inline(always)]
    fn go_alike(
        &self,
        query: &Query<N>,
        interface: SwIfIndex,
        frame: &mut Frame,
        (memory, nexts): (Memory, &mut [u16; FRAME_SIZE]),
        common: &Common<'_>,
        entry: &NodeEntry,
    ) -> usize {
        frame.each_while(memory, 0, |i, pkt| {
            if pkt.rx() != interface {
                return false;
            }
            let edge = if N::takes(query, pkt) { FIRST } else { self.rest(pkt.reborrow(), common, entry) };
            if let Some(slot) = nexts.get_mut(i) {
                *slot = edge.0;
            }
            true
        })
    }

    /// Runs packets from one on, each with its own lookup.
    #[inline(never)]
    fn go_each(
        &self,
        from: usize,
        frame: &mut Frame,
        (memory, nexts): (Memory, &mut [u16; FRAME_SIZE]),
        common: &Common<'_>,
        entry: &NodeEntry,
    ) {
        let guard = common.guard;
        let (mut interface, mut facts) = (SwIfIndex::NONE, None);
        frame.each_while(memory, from, |i, pkt| {
            if pkt.rx() != interface {
                interface = pkt.rx();
                facts = self.facts(interface, guard);
            }
            let found = match facts {
                Some(facts) => self.0.find(facts, Known::Nothing, pkt, guard),
                None => None,
            };
            let edge = match found {
                Some(_) => FIRST,
                None => self.rest(pkt.reborrow(), common, entry),
            };
            if let Some(slot) = nexts.get_mut(i) {
                *slot = edge.0;
            }
            true
        });
    }

    /// A packet that does not take the first edge, or not for sure.
    #[cold]
    #[inline(never)]
    fn rest(&self, mut pkt: Packet<'_>, common: &Common<'_>, entry: &NodeEntry) -> Edge {
        let mut key = self.0.prepare(&pkt, &mut Cx::new(common, entry));
        self.0.seek(std::slice::from_mut(&mut key), &mut Cx::new(common, entry));
        verdict(self.0.packet(key, &mut pkt, &mut Cx::new(common, entry)), &mut pkt, entry)
    }
}

impl<N: ResolvingNode> Dispatch for ResolvingRunner<N> {
    fn dispatch(&self, frame: Box<Frame>, run: Run<'_>) {
        if run.lane.tracer.active { staged_traced(&*self.0, frame, run) } else { self.go(frame, run) }
    }
}
