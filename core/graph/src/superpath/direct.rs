//! The end of a chain without a lookup.

use std::sync::Arc;

use shoal_buffer::{Packet, SwIfIndex};
use shoal_infra::Guard;

use super::bind::Binder;
use super::link::Link;
use super::walk::{ChainPosition, Walk};
use super::{DirectingNode, Known, Plain, StagedLookup};
use crate::cx::Cx;
use crate::graph::GraphError;
use crate::node::NodeIndex;

/// A node that sends packets straight to one of many nodes (`<interface>-output`), which all run `O`'s code: a
/// cross-connect, for instance.
pub struct Direct<N, O>(pub Arc<N>, pub O);

impl<N: DirectingNode, O: Plain> Link for Direct<N, O> {
    type Facts<'g> = N::Facts<'g>;
    type Lookup = ();
    type Found<'g> = ();
    const NODES: usize = 1;
    const PULLS: usize = 0;

    fn bind(&mut self, binder: &mut Binder<'_>) -> Result<(), GraphError> {
        binder.node(N::NAME)
    }

    fn facts<'g>(&'g self, interface: SwIfIndex, walk: &Walk<'g>) -> Option<Self::Facts<'g>> {
        self.0.facts(interface, walk.common.guard)
    }

    #[inline(always)]
    fn of_lookup<'g>(_: &Self::Facts<'g>) -> <() as StagedLookup>::Facts<'g> {}

    #[inline(always)]
    fn found<'g>(&'g self, (): &(), _: Guard<'g>) -> Option<()> {
        None
    }

    #[inline(always)]
    fn go<'g>(
        &'g self,
        facts: &Self::Facts<'g>,
        _: Known<'_, ()>,
        pkt: &mut Packet<'_>,
        walk: &Walk<'g>,
        spot: ChainPosition,
    ) -> NodeIndex {
        match self.0.direct(*facts, pkt) {
            Some(edge) => walk.fan_out(&self.1, pkt, edge, spot),
            None => walk.leave(spot),
        }
    }

    fn count(&self, interface: SwIfIndex, packets: u64, walk: &Walk<'_>, spot: ChainPosition) {
        let packets = walk.after(spot, packets);
        if packets > 0 {
            self.0.count(interface, packets, 0, &Cx::new(walk.common, walk.entry(spot)));
        }
    }

    fn finish(&self, walk: &Walk<'_>, spot: ChainPosition) {
        walk.fan(spot).flush(&self.1, walk.common);
    }
}
