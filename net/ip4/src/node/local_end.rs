//! `ip4-local-end-of-arc`: after the last feature of packets for this router.
//! the last feature of `ip4-local` -> **ip4-local-end-of-arc** -> where ip4-local would have sent them

use std::sync::Arc;

use shoal_buffer::Packet;
use shoal_graph::{Cx, PacketNode};

use super::local::{Error, Next};
use crate::{Headers, Listeners};

/// The node's name.
pub const NAME: &str = "ip4-local-end-of-arc";

/// Delivers packets that `ip4-local` has checked. It has the edges of that node.
pub struct Ip4LocalEnd {
    /// Who takes them.
    pub listeners: Arc<Listeners>,
}

impl PacketNode for Ip4LocalEnd {
    const NAME: &'static str = NAME;
    type Next = Next;
    type Error = Error;
    type Trace = Headers;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, Error> {
        cx.trace(pkt, || Headers::of(pkt));
        super::local::deliver(&self.listeners, pkt, cx)
    }
}
