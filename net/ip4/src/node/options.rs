//! `ip4-options`: packets with options, off the fast path. RFC 1812, 5.3.13; RFC 7126.
//! ip4-input -> **ip4-options** -> ip4-lookup | features of `ip4-unicast` and `ip4-multicast` | ip4-icmp-error
//!
//! The arcs start here as they do at ip4-input: a feature must not be avoided by an option that means nothing.

use shoal_buffer::Packet;
use shoal_derive::{ErrorCounters, NextNodes};
use shoal_graph::{Cx, Edge, FeatureArc, PacketNode};
use shoal_wire::{Ip4Header, Ip4Options};

use crate::{Headers, IcmpError};

/// Where a packet goes next.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// On its way, options untouched.
    #[node("ip4-lookup")]
    Lookup,
    /// The options make no sense.
    #[node("ip4-icmp-error")]
    IcmpError,
    /// A feature, or the end of the arc of packets to a group.
    Feature(Edge),
}

/// Why a packet is dropped here.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// ip4 source route option
    SourceRoute,
    /// ip4 options are malformed
    #[severity(warn)]
    Malformed,
}

/// Loose and strict source routing, which routers do not forward any more.
const SOURCE_ROUTES: [u8; 2] = [131, 137];

/// Looks at options.
pub struct Ip4OptionsNode {
    /// Features of packets to one host.
    pub unicast: FeatureArc,
    /// Features of packets to a group.
    pub multicast: FeatureArc,
}

impl PacketNode for Ip4OptionsNode {
    const NAME: &'static str = "ip4-options";
    type Next = Next;
    type Error = Error;
    type Trace = Headers;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, Error> {
        cx.trace(pkt, || Headers::of(pkt));
        let mut malformed = None;
        for option in Ip4Options::of_packet(pkt.data()) {
            match option {
                // RFC 7126, 4.3 and 4.4: drop by default.
                Ok(option) if SOURCE_ROUTES.contains(&option.kind) => return Err(Error::SourceRoute),
                Ok(_) => {}
                Err(bad) => {
                    malformed = Some(bad.offset);
                    break;
                }
            }
        }
        match malformed {
            None if pkt.header::<Ip4Header>().is_some_and(|ip| ip.dst().is_multicast()) => {
                Ok(Next::Feature(cx.run_arc(&self.multicast, pkt.rx(), pkt)))
            }
            None => Ok(cx.start_arc(&self.unicast, pkt.rx(), pkt).map_or(Next::Lookup, Next::Feature)),
            Some(offset) => {
                cx.count(Error::Malformed, 1);
                IcmpError::parameter_problem((20 + offset) as u8).ask(pkt);
                Ok(Next::IcmpError)
            }
        }
    }
}
