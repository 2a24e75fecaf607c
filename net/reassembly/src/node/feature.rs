//! `ip4-full-reassembly-feature`, `ip6-full-reassembly-feature`: fragments that an interface receives are put together
//! before anybody looks where they go.
//! features of `ip4-unicast` -> **ip4-full-reassembly-feature** -> the next feature | ip4-full-reassembly

use std::marker::PhantomData;

use shoal_buffer::Packet;
use shoal_graph::{Cx, NoError, PacketNode};

use super::Way;
use crate::family::Family;
use crate::state::Ticket;

/// Picks fragments out.
pub struct FullFeature<F>(PhantomData<F>);

impl<F> Default for FullFeature<F> {
    fn default() -> Self {
        FullFeature(PhantomData)
    }
}

impl<F: Family> PacketNode for FullFeature<F> {
    const NAME: &'static str = F::NODES.feature;
    type Next = Way<F, false>;
    type Error = NoError;
    type Trace = &'static str;

    #[inline(always)]
    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Self::Next, NoError> {
        let next = cx.next_feature(pkt);
        if !F::is_fragment(pkt) {
            cx.trace(pkt, || "not a fragment");
            return Ok(Way::On(next));
        }
        cx.trace(pkt, || "fragment");
        Ticket::to(cx.target(next), cx.thread()).put(pkt);
        Ok(Way::FRAGMENT)
    }
}
