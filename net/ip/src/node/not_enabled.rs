//! `ip4-not-enabled`, `ip6-not-enabled`: on the input arcs of every interface without the family, so that other features
//! need not ask.
//! ip4-input -> **ip4-not-enabled** -> error-drop | features of `ip4-drop`

use std::marker::PhantomData;

use shoal_buffer::Packet;
use shoal_derive::NextNodes;
use shoal_graph::{ALL_INTERFACES, Cx, Edge, ErrorCounter, ErrorCounters, FeatureArc, PacketNode};

use crate::{Headers, IpFamily};

/// Where a packet goes next, unless it ends here.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// A feature.
    Feature(Edge),
}

/// The packet's interface does not run the family.
#[derive(Clone, Copy, Debug)]
pub struct Error<F>(PhantomData<F>);

impl<F: IpFamily> ErrorCounters for Error<F> {
    const COUNTERS: &'static [ErrorCounter] = F::NOT_ENABLED;

    fn index(self) -> u32 {
        0
    }
}

/// Drops everything.
pub struct NotEnabled<F> {
    arc: FeatureArc,
    family: PhantomData<F>,
}

impl<F: IpFamily> NotEnabled<F> {
    /// `arc` has the features of packets that end, for all interfaces.
    pub fn new(arc: FeatureArc) -> Self {
        NotEnabled { arc, family: PhantomData }
    }
}

impl<F: IpFamily> PacketNode for NotEnabled<F> {
    const NAME: &'static str = F::NODES.not_enabled;
    type Next = Next;
    type Error = Error<F>;
    type Trace = Headers<F>;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, Error<F>> {
        cx.trace(pkt, || Headers::<F>::of(pkt));
        let error = Error(PhantomData);
        cx.blame(error, pkt);
        cx.start_arc(&self.arc, ALL_INTERFACES, pkt).map(Next::Feature).ok_or(error)
    }
}
