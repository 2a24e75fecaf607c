//! How a node is run that knows its common case: what holds for an interface is asked once while its packets follow each
//! other, and they are counted together.

use std::sync::Arc;

use shoal_buffer::{Frame, Packet, SwIfIndex};
use shoal_infra::Guard;

use super::{Dispatch, Run, follow, packets_traced, verdict};
use crate::cx::{Common, Cx};
use crate::lane::Lane;
use crate::node::Edge;
use crate::superpath::Plain;
use crate::topology::NodeEntry;

/// Runs a [`Plain`] node.
pub(crate) struct PlainRunner<N>(pub(crate) Arc<N>);

impl<N: Plain> PlainRunner<N> {
    #[inline(always)]
    fn go(&self, mut frame: Box<Frame>, run: Run<'_>) {
        let Run { lane, entry, topology, guard } = run;
        {
            let Lane { memory, counters, nexts, thread, now, states, .. } = &mut *lane;
            let common = Common { guard, thread: *thread, now: *now, topology, counters, states };
            let (mut interface, mut facts) = (SwIfIndex::NONE, None);
            // Of its plain packets that follow each other.
            let (mut packets, mut bytes) = (0, 0);
            frame.each(*memory, |i, pkt| {
                let this = N::interface(pkt);
                if this != interface {
                    self.count(interface, packets, bytes, &common, entry);
                    (interface, packets, bytes) = (this, 0, 0);
                    facts = self.facts(this, guard);
                }
                let len = if N::COUNTS_BYTES { pkt.len() as u64 } else { 0 };
                let edge = match facts {
                    Some(facts) => self.0.edge(facts, pkt),
                    None => None,
                };
                let edge = match edge {
                    Some(edge) => {
                        (packets, bytes) = (packets + 1, bytes + len);
                        edge
                    }
                    None => self.rest(pkt.reborrow(), &common, entry),
                };
                if let Some(slot) = nexts.get_mut(i) {
                    *slot = edge.0;
                }
            });
            self.count(interface, packets, bytes, &common, entry);
        }
        follow(frame, lane, topology, entry);
    }

    #[cold]
    #[inline(never)]
    fn facts<'g>(&'g self, interface: SwIfIndex, guard: Guard<'g>) -> Option<N::Facts<'g>> {
        self.0.facts_alone(interface, guard)
    }

    #[cold]
    #[inline(never)]
    fn count(&self, interface: SwIfIndex, packets: u64, bytes: u64, common: &Common<'_>, entry: &NodeEntry) {
        if packets > 0 {
            self.0.count(interface, packets, bytes, &Cx::new(common, entry));
        }
    }

    /// A packet that is not plain.
    #[cold]
    #[inline(never)]
    fn rest(&self, mut pkt: Packet<'_>, common: &Common<'_>, entry: &NodeEntry) -> Edge {
        verdict(self.0.packet(&mut pkt, &mut Cx::new(common, entry)), &mut pkt, entry)
    }
}

impl<N: Plain> Dispatch for PlainRunner<N> {
    fn dispatch(&self, frame: Box<Frame>, run: Run<'_>) {
        if run.lane.tracer.active { packets_traced(&*self.0, frame, run) } else { self.go(frame, run) }
    }
}
