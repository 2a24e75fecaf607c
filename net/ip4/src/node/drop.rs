//! `ip4-drop`: packets that have no way, and what their senders are told. RFC 1812, 5.2.7.1.
//! ip4-lookup -> **ip4-drop** -> error-drop | features of `ip4-drop` | ip4-icmp-error
//!
//! Packets whose sender is told do not end here and are not on the arc.

use shoal_adj::{AdjIndex, AdjKind, AdjTable};
use shoal_buffer::Packet;
use shoal_derive::{ErrorCounters, NextNodes};
use shoal_graph::{Cx, EVERYBODY, Edge, FeatureArc, PacketNode};

use crate::{Headers, IcmpError};

/// Where a packet goes next.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Its sender is told.
    #[node("ip4-icmp-error")]
    IcmpError,
    /// A feature.
    Feature(Edge),
}

/// What is counted here.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// blackholed packets
    #[counter("blackholed")]
    Drop,
    /// no route to destination
    #[severity(warn)]
    NoRoute,
    /// destination unreachable by route
    #[severity(warn)]
    Unreachable,
    /// destination prohibited by route
    #[severity(warn)]
    Prohibited,
}

/// Needs to know why the route ends.
pub struct Ip4Drop {
    /// All adjacencies.
    pub adjacencies: AdjTable,
    /// Features of packets that end, whatever interface they came in by.
    pub arc: FeatureArc,
}

impl PacketNode for Ip4Drop {
    const NAME: &'static str = "ip4-drop";
    type Next = Next;
    type Error = Error;
    type Trace = Headers;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, Error> {
        cx.trace(pkt, || Headers::of(pkt));
        let kind = self.adjacencies.get(AdjIndex(pkt.meta().adj), cx.guard()).kind();
        let (counter, message) = match kind {
            AdjKind::None => (Error::NoRoute, IcmpError::NET),
            AdjKind::Unreachable => (Error::Unreachable, IcmpError::HOST),
            AdjKind::Prohibit => (Error::Prohibited, IcmpError::PROHIBITED),
            _ => {
                cx.blame(Error::Drop, pkt);
                return cx.start_arc(&self.arc, EVERYBODY, pkt).map(Next::Feature).ok_or(Error::Drop);
            }
        };
        cx.count(counter, 1);
        message.ask(pkt);
        Ok(Next::IcmpError)
    }
}
