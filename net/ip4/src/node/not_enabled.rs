//! `ip4-not-enabled`: on the input arcs of every interface without IPv4, so that the others need not ask.
//! ip4-input -> **ip4-not-enabled** -> error-drop | features of `ip4-drop`

use shoal_buffer::Packet;
use shoal_derive::{ErrorCounters, NextNodes};
use shoal_graph::{Cx, EVERYBODY, Edge, FeatureArc, PacketNode};

use crate::Headers;

/// The node's name, and the feature's.
pub const NOT_ENABLED: &str = "ip4-not-enabled";

/// Where a packet goes next, unless it ends here.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// A feature.
    Feature(Edge),
}

/// Why a packet is dropped here.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// ip4 is not enabled on the interface
    NotEnabled,
}

/// Drops everything.
pub struct Ip4NotEnabled {
    /// Features of packets that end, whatever interface they came in by.
    pub arc: FeatureArc,
}

impl PacketNode for Ip4NotEnabled {
    const NAME: &'static str = NOT_ENABLED;
    type Next = Next;
    type Error = Error;
    type Trace = Headers;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, Error> {
        cx.trace(pkt, || Headers::of(pkt));
        cx.blame(Error::NotEnabled, pkt);
        cx.start_arc(&self.arc, EVERYBODY, pkt).map(Next::Feature).ok_or(Error::NotEnabled)
    }
}
