//! `ip4-load-balance`: packets whose way somebody else has chosen.
//! a feature of `ip4-unicast` that knows better than the table -> **ip4-load-balance** -> where ip4-lookup would
//! have sent them
//!
//! It goes on where `ip4-lookup` has found an adjacency: a balance, another table, the router itself. It has the edges
//! of that node.

use std::sync::Arc;

use shoal_adj::AdjIndex;
use shoal_buffer::Packet;
use shoal_graph::{Cx, PacketNode};

use super::lookup::{Error, Ip4Lookup, Next, Trace};

/// Follows the adjacency that a packet has.
pub struct Ip4LoadBalance {
    /// Whose code it shares.
    pub lookup: Arc<Ip4Lookup>,
}

impl PacketNode for Ip4LoadBalance {
    const NAME: &'static str = "ip4-load-balance";
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
