//! `ip4-glean`: the destination is on a connected network and has not been seen yet. RFC 1122, 2.3.2.
//! ip4-lookup -> **ip4-glean** -> interface-output for the request; packets wait in the control plane
//!
//! A frame node, because it makes packets of its own and gives packets away.

use shoal_adj::{AdjIndex, AdjKind};
use shoal_buffer::{Buffer, Frame};
use shoal_graph::{FrameCx, FrameNode};
use shoal_wire::Ip4Header;

use super::ask::{ArpRequester, Target};
pub use super::ask::{Error, Next};

/// Asks for destinations.
pub(crate) struct Ip4Glean(pub(crate) ArpRequester);

impl Ip4Glean {
    fn one(&self, mut buffer: Buffer, cx: &mut FrameCx<'_>) {
        let pkt = cx.cache().packet(&mut buffer);
        let index = AdjIndex(pkt.meta().adj);
        let adj = *self.0.subnets.adjacencies.get(index, cx.guard());
        match pkt.header::<Ip4Header>().map(Ip4Header::dst_u32) {
            Some(next_hop) if adj.kind() == AdjKind::Glean => {
                let interface = adj.tx();
                let source = match adj.source_ip4() {
                    0 => self.0.subnets.source(interface, next_hop, cx.guard()),
                    source => source,
                };
                self.0.ask(buffer, &Target { interface, next_hop, source }, cx);
            }
            _ => cx.drop(buffer, Error::NonArpAdj),
        }
    }
}

impl FrameNode for Ip4Glean {
    const NAME: &'static str = "ip4-glean";
    type Next = Next;
    type Error = Error;

    fn frame(&self, frame: &mut Frame, cx: &mut FrameCx<'_>) {
        frame.drain().for_each(|buffer| self.one(buffer, cx));
    }
}
