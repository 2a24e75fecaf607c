//! `ip4-arp`: the route names a neighbour whose link-layer address is not known, or in doubt.
//! RFC 1122, 2.3.2.
//! ip4-lookup -> **ip4-arp** -> interface-output for the request | ip4-rewrite; packets wait in the control plane
//!
//! A frame node, because it makes packets of its own and gives packets away.

use shoal_adj::{AdjIndex, AdjKind};
use shoal_buffer::{Buffer, Frame};
use shoal_graph::{FrameCx, FrameNode};

use super::ask::{ArpRequester, Target};
pub use super::ask::{Error, Next};

/// Asks for next hops.
pub(crate) struct Ip4Arp(pub(crate) ArpRequester);

impl Ip4Arp {
    fn one(&self, mut buffer: Buffer, cx: &mut FrameCx<'_>) {
        let index = AdjIndex(cx.cache().packet(&mut buffer).meta().adj);
        let adj = *self.0.subnets.adjacencies.get(index, cx.guard());
        match (adj.kind(), adj.rewrite().first_chunk()) {
            (AdjKind::Incomplete, Some(way)) => {
                self.0.stale(buffer, &adj, AdjIndex(u32::from_be_bytes(*way)), cx);
            }
            (AdjKind::Incomplete, None) => {
                let (interface, next_hop) = (adj.tx(), adj.next_hop_ip4());
                let source = self.0.subnets.source(interface, next_hop, cx.guard());
                self.0.ask(buffer, &Target { interface, next_hop, source }, cx);
            }
            (AdjKind::Rewrite, _) => ArpRequester::resolved(buffer, cx),
            _ => cx.drop(buffer, Error::NonArpAdj),
        }
    }
}

impl FrameNode for Ip4Arp {
    const NAME: &'static str = "ip4-arp";
    type Next = Next;
    type Error = Error;

    fn frame(&self, frame: &mut Frame, cx: &mut FrameCx<'_>) {
        frame.drain().for_each(|buffer| self.one(buffer, cx));
    }
}
