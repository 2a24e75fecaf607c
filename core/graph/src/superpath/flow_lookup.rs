//! A lookup in front of the lookup at the chain's end.

use std::sync::Arc;

use shoal_buffer::{Packet, SwIfIndex};
use shoal_infra::Guard;

use super::bind::Binder;
use super::link::Link;
use super::walk::{ChainPosition, Walk};
use super::{FlowLookupNode, Known, Pass};
use crate::cx::Cx;
use crate::graph::GraphError;
use crate::node::NodeIndex;

/// A node with a table of its own (of flows), and the rest. The lookups in its table are done ahead; those of the rest
/// when the packet comes there, because the node may have given it another destination.
pub struct FlowLookup<A, Rest>(pub Arc<A>, pub Rest);

impl<A: FlowLookupNode, Rest: Link> Link for FlowLookup<A, Rest> {
    type Facts<'g> = (A::Facts<'g>, Rest::Facts<'g>);
    type Lookup = A;
    type Found<'g> = ();
    const NODES: usize = 1 + Rest::NODES;
    const PULLS: usize = 0;

    fn bind(&mut self, binder: &mut Binder<'_>) -> Result<(), GraphError> {
        binder.node(A::NAME)?;
        self.1.bind(binder)
    }

    fn facts<'g>(&'g self, interface: SwIfIndex, walk: &Walk<'g>) -> Option<Self::Facts<'g>> {
        Some((self.0.facts(interface, walk.common.guard)?, self.1.facts(interface, walk)?))
    }

    #[inline(always)]
    fn of_lookup<'g>(facts: &Self::Facts<'g>) -> A::Facts<'g> {
        facts.0
    }

    #[inline(always)]
    fn found<'g>(&'g self, _: &A::Query, _: Guard<'g>) -> Option<()> {
        // Each packet is asked whether it looks for the same.
        Some(())
    }

    #[inline(always)]
    fn go<'g>(
        &'g self,
        facts: &Self::Facts<'g>,
        known: Known<'_, A::Query>,
        pkt: &mut Packet<'_>,
        walk: &Walk<'g>,
        spot: ChainPosition,
    ) -> NodeIndex {
        let next = match known {
            Known::Chosen(number, node) => Known::Chosen(number, node),
            known => match self.0.consult(facts.0, known, pkt, &Cx::new(walk.common, walk.entry(spot))) {
                Pass::On | Pass::Redirected => Known::Nothing,
                Pass::Chosen(number) => walk.chosen(number, spot),
                Pass::Leave => return walk.leave(spot),
            },
        };
        self.1.go(&facts.1, next, pkt, walk, spot.next())
    }

    fn count(&self, interface: SwIfIndex, packets: u64, walk: &Walk<'_>, spot: ChainPosition) {
        let passed = walk.after(spot, packets);
        if passed > 0 {
            self.0.count_passed(passed, &Cx::new(walk.common, walk.entry(spot)));
        }
        self.1.count(interface, passed, walk, spot.next());
    }

    fn finish(&self, walk: &Walk<'_>, spot: ChainPosition) {
        self.1.finish(walk, spot.next());
    }
}
