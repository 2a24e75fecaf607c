//! `ip4-drop`, `ip6-drop`: packets that have no way, and the errors to their senders. RFC 1812, 5.2.7.1; RFC 4443, 3.1.
//! ip4-lookup -> **ip4-drop** -> error-drop | features of `ip4-drop` | ip4-icmp-error
//!
//! Packets whose sender gets an error do not end here and are not on the arc. A node that reports a missing route to
//! the sender says [`Unreachables`].

use std::marker::PhantomData;

use shoal_adj::{AdjIndex, AdjKind, AdjTable};
use shoal_buffer::Packet;
use shoal_derive::ErrorCounters;
use shoal_graph::{ALL_INTERFACES, Cx, Edge, FeatureArc, NextNodes, PacketNode};

use crate::{Headers, IpFamily, Unreachable, Unreachables};

/// Where a packet goes next.
#[derive(Clone, Copy, Debug)]
pub enum Next<F> {
    /// Its sender gets an error.
    IcmpError(PhantomData<F>),
    /// A feature.
    Feature(Edge),
}

impl<F: IpFamily> NextNodes for Next<F> {
    const NAMES: &'static [&'static str] = F::ICMP_ERROR_NEXT;

    fn edge(self) -> Edge {
        match self {
            Next::IcmpError(_) => Edge(1),
            Next::Feature(edge) => edge,
        }
    }
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
    /// no module finds neighbours on the link
    #[severity(warn)]
    NoResolver,
}

/// Needs to know why the route ends.
pub struct IpDrop<F> {
    adjacencies: AdjTable,
    arc: FeatureArc,
    unreachables: Unreachables,
    family: PhantomData<F>,
}

impl<F: IpFamily> IpDrop<F> {
    /// `arc` has the features of packets that end, for all interfaces.
    pub fn new(adjacencies: AdjTable, arc: FeatureArc, unreachables: Unreachables) -> Self {
        IpDrop { adjacencies, arc, unreachables, family: PhantomData }
    }

    /// Ends a packet silently, or gives it to the arc's features.
    fn end(&self, why: Error, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next<F>, Error> {
        cx.blame(why, pkt);
        cx.start_arc(&self.arc, ALL_INTERFACES, pkt).map(Next::Feature).ok_or(why)
    }
}

impl<F: IpFamily> PacketNode for IpDrop<F> {
    const NAME: &'static str = F::NODES.drop;
    type Next = Next<F>;
    type Error = Error;
    type Trace = Headers<F>;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next<F>, Error> {
        cx.trace(pkt, || Headers::<F>::of(pkt));
        let kind = self.adjacencies.get(AdjIndex(pkt.meta().adj), cx.guard()).kind();
        let (counter, why) = match kind {
            AdjKind::None => (Error::NoRoute, Unreachable::NoRoute),
            AdjKind::Unreachable => (Error::Unreachable, Unreachable::Route),
            AdjKind::Prohibit => (Error::Prohibited, Unreachable::Prohibited),
            AdjKind::Incomplete | AdjKind::Glean => (Error::NoResolver, Unreachable::Address),
            _ => return self.end(Error::Drop, pkt, cx),
        };
        let asked_for = matches!(why, Unreachable::Route | Unreachable::Prohibited);
        if !asked_for && !self.unreachables.are_sent() {
            return self.end(counter, pkt, cx);
        }
        cx.count(counter, 1);
        F::ask_unreachable(why, pkt);
        Ok(Next::IcmpError(PhantomData))
    }
}
