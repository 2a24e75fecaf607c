//! `ip6-local-end-of-arc`: after the last feature of packets for this router.
//! the last feature of `ip6-local` -> **ip6-local-end-of-arc** -> where ip6-local would have sent them

use std::sync::Arc;

use shoal_buffer::Packet;
use shoal_graph::{Cx, PacketNode};

use super::local::{Error, Next};
use shoal_ip4::Listeners;

use crate::Headers;

/// The node's name.
pub const NAME: &str = "ip6-local-end-of-arc";

/// Delivers packets that `ip6-local` has checked. It has the edges of that node.
pub struct Ip6LocalEnd {
    /// Who takes them.
    pub listeners: Arc<Listeners>,
}

impl PacketNode for Ip6LocalEnd {
    const NAME: &'static str = NAME;
    type Next = Next;
    type Error = Error;
    type Trace = Headers;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, Error> {
        cx.trace(pkt, || Headers::of(pkt));
        super::local::deliver(&self.listeners, pkt, cx)
    }
}
