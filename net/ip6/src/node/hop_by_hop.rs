//! `ip6-hop-by-hop`: packets with hop-by-hop options, off the fast path. RFC 8200, 4.2 and 4.3; RFC 2711.
//! ip6-input -> **ip6-hop-by-hop** -> ip6-lookup | features of `ip6-unicast` and `ip6-multicast` | ip6-icmp-error
//!
//! The arcs start here as they do at ip6-input: a feature must not be avoided by an option that means nothing.

use shoal_buffer::Packet;
use shoal_derive::{ErrorCounters, NextNodes};
use shoal_graph::{Cx, Edge, FeatureArc, PacketNode};
use shoal_wire::Ip6Header;
use shoal_wire::ip6_ext::{Ip6ExtError, Reader, walk};

use crate::{Headers, IcmpError};

/// Where a packet goes next.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// On its way, options untouched.
    #[node("ip6-lookup")]
    Lookup,
    /// An option is unknown and says that it must not be.
    #[node("ip6-icmp-error")]
    IcmpError,
    /// A feature, or the end of the arc of packets to a group.
    Feature(Edge),
}

/// Why a packet is dropped here, and what else is counted.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// packets with a router alert
    #[severity(info)]
    RouterAlert,
    /// hop-by-hop options are cut short
    TooShort,
    /// unknown hop-by-hop option asks for discard
    Discard,
    /// hop-by-hop option is unknown or wrong
    #[severity(warn)]
    Problem,
    /// too many or too long extension headers
    TooMany,
}

/// Looks at options.
pub struct Ip6HopByHop {
    /// Features of packets to one host.
    pub unicast: FeatureArc,
    /// Features of packets to a group.
    pub multicast: FeatureArc,
}

impl PacketNode for Ip6HopByHop {
    const NAME: &'static str = "ip6-hop-by-hop";
    type Next = Next;
    type Error = Error;
    type Trace = Headers;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, Error> {
        cx.trace(pkt, || Headers::of(pkt));
        match walk(pkt.data(), Reader::Router) {
            Ok(chain) => {
                if chain.router_alert.is_some() {
                    cx.count(Error::RouterAlert, 1);
                }
            }
            // What follows the hop-by-hop header is not this router's to judge.
            Err(Ip6ExtError::Truncated { offset }) if offset > Ip6Header::LEN => {}
            Err(Ip6ExtError::Truncated { .. }) => return Err(Error::TooShort),
            Err(Ip6ExtError::Discard { .. }) => return Err(Error::Discard),
            Err(Ip6ExtError::Problem(problem)) => {
                cx.count(Error::Problem, 1);
                IcmpError::parameter_problem(problem).ask(pkt);
                return Ok(Next::IcmpError);
            }
            Err(_) => return Err(Error::TooMany),
        }
        if pkt.header::<Ip6Header>().is_some_and(|ip| ip.dst().is_multicast()) {
            return Ok(Next::Feature(cx.run_arc(&self.multicast, pkt.rx(), pkt)));
        }
        Ok(cx.start_arc(&self.unicast, pkt.rx(), pkt).map_or(Next::Lookup, Next::Feature))
    }
}
