//! `ip6-drop`: packets that have no way, and what their senders are told. RFC 4443, 3.1.
//! ip6-lookup -> **ip6-drop** -> error-drop | features of `ip6-drop` | ip6-icmp-error
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
    #[node("ip6-icmp-error")]
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
    /// nobody finds out where neighbours are
    #[severity(warn)]
    NobodyAsks,
}

/// Needs to know why the route ends.
pub struct Ip6Drop {
    /// All adjacencies.
    pub adjacencies: AdjTable,
    /// Features of packets that end, whatever interface they came in by.
    pub arc: FeatureArc,
}

impl PacketNode for Ip6Drop {
    const NAME: &'static str = "ip6-drop";
    type Next = Next;
    type Error = Error;
    type Trace = Headers;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, Error> {
        cx.trace(pkt, || Headers::of(pkt));
        let kind = self.adjacencies.get(AdjIndex(pkt.meta().adj), cx.guard()).kind();
        let (counter, message) = match kind {
            AdjKind::None => (Error::NoRoute, IcmpError::NO_ROUTE),
            AdjKind::Unreachable => (Error::Unreachable, IcmpError::ADDRESS),
            AdjKind::Prohibit => (Error::Prohibited, IcmpError::PROHIBITED),
            AdjKind::Incomplete | AdjKind::Glean => (Error::NobodyAsks, IcmpError::ADDRESS),
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
