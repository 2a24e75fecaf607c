//! The end of a chain.

use std::sync::Arc;

use shoal_buffer::{Packet, SwIfIndex};
use shoal_infra::Guard;

use super::link::Link;
use super::walk::{Spot, Walk};
use super::{Finds, Known, Plain, Uses};
use crate::node::NodeIndex;

/// The end of a chain: a lookup, the node that uses what it finds, and the one of many nodes which that sends packets
/// to (`<interface>-output`): they all run `O`'s code, each with an entry of its own.
pub struct Forward<L, R, O>(pub Arc<L>, pub Arc<R>, pub O);

impl<L, R, O> Link for Forward<L, R, O>
where
    L: Finds,
    R: for<'g> Uses<L::Found<'g>>,
    O: Plain,
{
    type Facts<'g> = L::Facts<'g>;
    type Lookup = L;
    const NODES: usize = 2;
    const PULLS: usize = 0;

    fn names(list: &mut Vec<&'static str>) {
        list.extend([L::NAME, R::NAME]);
    }

    fn facts<'g>(&'g self, interface: SwIfIndex, guard: Guard<'g>) -> Option<Self::Facts<'g>> {
        self.0.facts(interface, guard)
    }

    #[inline(always)]
    fn of_lookup(facts: Self::Facts<'_>) -> L::Facts<'_> {
        facts
    }

    #[inline(always)]
    fn go<'g>(
        &'g self,
        facts: Self::Facts<'g>,
        known: Known<L::Sought>,
        pkt: &mut Packet<'_>,
        walk: &Walk<'g>,
        spot: Spot,
    ) -> NodeIndex {
        let Some(found) = self.0.find(facts, known, pkt, walk.common.guard) else { return walk.leave(spot) };
        let Some(edge) = self.1.plain_with(found, pkt) else { return walk.leave(spot.next()) };
        let fan = walk.fan(spot);
        if fan.edge.get() != edge
            && let Err(node) = fan.turn(&self.2, pkt.tx(), walk.common, walk.entry(spot.next()), edge)
        {
            return node;
        }
        fan.packets.set(fan.packets.get() + 1);
        fan.bytes.set(fan.bytes.get() + pkt.len() as u64);
        fan.exit.get()
    }

    fn count(&self, _: SwIfIndex, _: u64, _: &Walk<'_>, _: Spot) {}

    fn finish(&self, walk: &Walk<'_>, spot: Spot) {
        walk.fan(spot).flush(&self.2, walk.common);
    }
}
