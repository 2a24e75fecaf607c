//! `ip4-load-balance`, `ip6-load-balance`: packets whose route another node has chosen.
//! a feature of `ip4-unicast` that knows better than the table -> **ip4-load-balance** -> where ip4-lookup would
//! have sent them
//!
//! It goes on where the lookup has found an adjacency: a balance, another table, the router itself. It has the edges of
//! the lookup.

use std::sync::Arc;

use shoal_adj::AdjIndex;
use shoal_buffer::Packet;
use shoal_graph::{Cx, PacketNode, StagedNode};
use shoal_infra::Guard;

use crate::IpFamily;

/// A family's lookup, as far as a packet goes on with the adjacency it has.
pub trait RouteLookup: StagedNode {
    /// The family.
    type Family: IpFamily;
    /// What is known of a packet before it is looked up.
    type Packet: Copy;
    /// What is wrong with a packet without a whole header.
    const TOO_SHORT: Self::Error;

    /// What is known of a packet before it is looked up; `None` when its header is cut short.
    fn known(&self, pkt: &Packet<'_>) -> Option<Self::Packet>;

    /// What `show trace` says.
    fn trace(&self, known: Self::Packet, index: AdjIndex, pkt: &Packet<'_>, guard: Guard<'_>) -> Self::Trace;

    /// Where a packet goes that has found an adjacency.
    ///
    /// # Errors
    /// Why it is dropped.
    fn follow(
        &self,
        known: Self::Packet,
        index: AdjIndex,
        pkt: &mut Packet<'_>,
        reader: (usize, Guard<'_>),
    ) -> Result<Self::Next, Self::Error>;
}

/// Follows the adjacency that a packet has.
pub struct LoadBalance<L>(Arc<L>);

impl<L: RouteLookup> LoadBalance<L> {
    /// `lookup` is the node whose edges it has.
    pub fn new(lookup: Arc<L>) -> Self {
        LoadBalance(lookup)
    }
}

impl<L: RouteLookup> PacketNode for LoadBalance<L> {
    const NAME: &'static str = L::Family::NODES.load_balance;
    type Next = L::Next;
    type Error = L::Error;
    type Trace = L::Trace;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<L::Next, L::Error> {
        let index = AdjIndex(pkt.meta().adj);
        let known = self.0.known(pkt).ok_or(L::TOO_SHORT)?;
        cx.trace(pkt, || self.0.trace(known, index, pkt, cx.guard()));
        self.0.follow(known, index, pkt, (cx.thread(), cx.guard()))
    }
}
