//! `ip4-punt`: packets for the host this router runs on.
//! ip4-lookup | whoever has no use for a packet -> **ip4-punt** -> features of `ip4-punt` | error-punt

use shoal_buffer::Packet;
use shoal_derive::NextNodes;
use shoal_graph::{Cx, EVERYBODY, Edge, FeatureArc, NoError, PacketNode};

use crate::Headers;

/// Where a packet goes next.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Nobody takes it.
    #[node("error-punt")]
    Nobody,
    /// A feature.
    Feature(Edge),
}

/// Starts packets on the arc.
pub struct Ip4Punt {
    /// Features of packets for the host, whatever interface they came in by.
    pub arc: FeatureArc,
}

impl PacketNode for Ip4Punt {
    const NAME: &'static str = "ip4-punt";
    type Next = Next;
    type Error = NoError;
    type Trace = Headers;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, NoError> {
        cx.trace(pkt, || Headers::of(pkt));
        Ok(cx.start_arc(&self.arc, EVERYBODY, pkt).map_or(Next::Nobody, Next::Feature))
    }
}
