//! `ip6-discover-neighbor`: the route names a neighbour whose link-layer address is not known, or in doubt.
//! ip6-lookup | ip4-lookup -> **ip6-discover-neighbor** -> interface-output for the solicitation | ip6-rewrite;
//! packets wait in the control plane. RFC 4861 7.2.2, 7.3.3.
//!
//! A frame node, because it makes packets of its own and gives packets away.

use std::net::{IpAddr, Ipv6Addr};

use shoal_adj::{Adj, AdjIndex, AdjKind};
use shoal_buffer::{Buffer, Frame};
use shoal_graph::{FrameCx, FrameNode};

pub use super::ask::{Error, Next};
use super::ask::{Solicitor, Target};
use crate::fact::Fact;

/// Asks for next hops.
pub(crate) struct Discover(pub(crate) Solicitor);

impl Discover {
    fn one(&self, mut buffer: Buffer, cx: &mut FrameCx<'_>) {
        let index = AdjIndex(cx.cache().packet(&mut buffer).meta().adj);
        let adj = *self.0.adjacencies.get(index, cx.guard());
        match (adj.kind(), adj.next_hop()) {
            (AdjKind::Incomplete, Some(IpAddr::V6(next_hop))) => {
                if let Some(way) = adj.rewrite().first_chunk() {
                    self.stale(buffer, &adj, next_hop, AdjIndex(u32::from_be_bytes(*way)), cx);
                } else {
                    let target = Target { interface: adj.tx(), next_hop, source: None, link: adj.link() };
                    self.0.ask(buffer, &target, cx);
                }
            }
            // The neighbour answered between the lookup and here.
            (AdjKind::Rewrite, _) => {
                cx.count(Error::Resolved, 1);
                Solicitor::rewrite(buffer, adj.link(), cx);
            }
            _ => cx.drop(buffer, Error::NonArpAdj),
        }
    }

    /// The neighbour is known but has not been heard of lately: the packet goes on, and the control plane learns that
    /// packets go there.
    fn stale(&self, mut buffer: Buffer, adj: &Adj, next_hop: Ipv6Addr, way: AdjIndex, cx: &mut FrameCx<'_>) {
        let interface = adj.tx();
        if self.0.told_used(interface, next_hop, cx) == 0 {
            // A full channel is no harm: the next packet tells it again.
            let _ = self.0.eyes.tell.try_send(Fact::Used { interface, next_hop });
        }
        cx.cache().packet(&mut buffer).meta_mut().adj = way.0;
        cx.count(Error::Stale, 1);
        Solicitor::rewrite(buffer, adj.link(), cx);
    }
}

impl FrameNode for Discover {
    const NAME: &'static str = "ip6-discover-neighbor";
    type Next = Next;
    type Error = Error;

    fn frame(&self, frame: &mut Frame, cx: &mut FrameCx<'_>) {
        frame.drain().for_each(|buffer| self.one(buffer, cx));
    }
}
