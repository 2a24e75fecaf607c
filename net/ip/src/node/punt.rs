//! `ip4-punt`, `ip6-punt`: packets for the host this router runs on.
//! ip4-lookup | nodes that have no use for a packet -> **ip4-punt** -> features of `ip4-punt` | error-punt

use std::marker::PhantomData;

use shoal_buffer::Packet;
use shoal_derive::NextNodes;
use shoal_graph::{ALL_INTERFACES, Cx, Edge, FeatureArc, NoError, PacketNode};

use crate::{Headers, IpFamily};

/// Where a packet goes next.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// No feature takes it.
    #[node("error-punt")]
    End,
    /// A feature.
    Feature(Edge),
}

/// Starts packets on the arc.
pub struct Punt<F> {
    arc: FeatureArc,
    family: PhantomData<F>,
}

impl<F: IpFamily> Punt<F> {
    /// `arc` has the features of packets for the host, for all interfaces.
    pub fn new(arc: FeatureArc) -> Self {
        Punt { arc, family: PhantomData }
    }
}

impl<F: IpFamily> PacketNode for Punt<F> {
    const NAME: &'static str = F::NODES.punt;
    type Next = Next;
    type Error = NoError;
    type Trace = Headers<F>;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, NoError> {
        cx.trace(pkt, || Headers::<F>::of(pkt));
        Ok(cx.start_arc(&self.arc, ALL_INTERFACES, pkt).map_or(Next::End, Next::Feature))
    }
}
