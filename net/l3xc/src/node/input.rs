//! `l3xc-input-ip4`, `l3xc-input-ip6`: packets of an interface take its cross-connect's paths.
//! ip4-input -> **l3xc-input-ip4** -> ip4-load-balance

use shoal_buffer::Packet;
use shoal_derive::{ErrorCounters, TraceLine};
use shoal_graph::{Cx, Edge, NextNodes, PacketNode};

use crate::control::CrossConnects;

/// Where a packet goes next: its paths, or the next feature.
#[derive(Clone, Copy)]
pub struct Next<const IP6: bool>(Edge);

impl<const IP6: bool> NextNodes for Next<IP6> {
    const NAMES: &'static [&'static str] = &[if IP6 { "ip6-load-balance" } else { "ip4-load-balance" }];

    fn edge(self) -> Edge {
        self.0
    }
}

/// What is counted here.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// matched
    #[severity(info)]
    Matched,
}

/// What `show trace` says.
#[derive(TraceLine)]
#[line("l3xc-index:{index} lb-index:{adj}")]
pub struct Trace {
    index: u32,
    adj: u32,
}

/// Sends on.
pub struct L3xcInput<const IP6: bool> {
    pub(crate) ways: CrossConnects,
}

impl<const IP6: bool> PacketNode for L3xcInput<IP6> {
    const NAME: &'static str = if IP6 { "l3xc-input-ip6" } else { "l3xc-input-ip4" };
    type Next = Next<IP6>;
    type Error = Error;
    type Trace = Trace;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next<IP6>, Error> {
        let rx = pkt.rx();
        let Some(adj) = self.ways.of(rx) else {
            // It was taken away a moment ago.
            return Ok(Next(cx.next_feature(pkt)));
        };
        cx.trace(pkt, || Trace { index: rx.0, adj });
        cx.count(Error::Matched, 1);
        pkt.meta_mut().adj = adj;
        Ok(Next(Edge(1)))
    }
}
