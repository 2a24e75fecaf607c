//! `ip6-load-balance`: packets whose way somebody else has chosen.
//! a feature of `ip6-unicast` that knows better than the table -> **ip6-load-balance** -> where ip6-lookup would
//! have sent them
//!
//! It goes on where `ip6-lookup` has found an adjacency: a balance, another table, the router itself. It has the edges
//! of that node.

use std::sync::Arc;

use shoal_adj::AdjIndex;
use shoal_buffer::Packet;
use shoal_graph::{Cx, PacketNode};

use super::lookup::{Error, Ip6Lookup, Next, Trace};

/// Follows the adjacency that a packet has.
pub struct Ip6LoadBalance {
    /// Whose code it shares.
    pub lookup: Arc<Ip6Lookup>,
}

impl PacketNode for Ip6LoadBalance {
    const NAME: &'static str = "ip6-load-balance";
    type Next = Next;
    type Error = Error;
    type Trace = Trace;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, Error> {
        let index = AdjIndex(pkt.meta().adj);
        let key = self.lookup.key(pkt).ok_or(Error::TooShort)?;
        cx.trace(pkt, || self.lookup.trace(key, index, pkt, cx.guard()));
        self.lookup.follow(key, index, pkt, (cx.thread(), cx.guard()))
    }
}
