//! `ip6-glean`: the destination is on a connected network and has not been seen yet. RFC 4861 7.2.2.
//! ip6-lookup -> **ip6-glean** -> interface-output for the solicitation; packets wait in the control plane
//!
//! A frame node, because it makes packets of its own and gives packets away.

use shoal_adj::{AdjIndex, AdjKind, Link as Payload};
use shoal_buffer::{Buffer, Frame};
use shoal_graph::{FrameCx, FrameNode};
use shoal_wire::Ip6Header;

pub use super::ask::{Error, Next};
use super::ask::{Solicitor, Target};

/// Asks for destinations.
pub(crate) struct Glean(pub(crate) Solicitor);

impl Glean {
    fn one(&self, mut buffer: Buffer, cx: &mut FrameCx<'_>) {
        let pkt = cx.cache().packet(&mut buffer);
        let index = AdjIndex(pkt.meta().adj);
        let adj = *self.0.adjacencies.get(index, cx.guard());
        match pkt.header::<Ip6Header>().map(Ip6Header::dst) {
            Some(next_hop) if adj.kind() == AdjKind::Glean && !next_hop.is_multicast() => {
                let target = Target { interface: adj.tx(), next_hop, source: None, link: Payload::Ip6 };
                self.0.ask(buffer, &target, cx);
            }
            _ => cx.drop(buffer, Error::NonArpAdj),
        }
    }
}

impl FrameNode for Glean {
    const NAME: &'static str = "ip6-glean";
    type Next = Next;
    type Error = Error;

    fn frame(&self, frame: &mut Frame, cx: &mut FrameCx<'_>) {
        frame.drain().for_each(|buffer| self.one(buffer, cx));
    }
}
