//! `ip6-rewrite`: take a hop off, put the neighbour's header in front. RFC 8200, 3 and 5.
//! ip6-lookup -> **ip6-rewrite** -> `<interface>-output` | features of `ip6-output` | ip6-icmp-error
//!
//! A router cuts no IPv6 packet: one that is too long goes back as "packet too big". Its own it may cut.

use std::net::{IpAddr, Ipv6Addr};

use shoal_adj::{Adj, AdjIndex, AdjTable};
use shoal_buffer::{Flags, Packet, SwIfIndex};
use shoal_derive::{ErrorCounters, NextNodes, TraceLine};
use shoal_graph::superpath::{Uses, UsesOut};
use shoal_graph::{Cx, Edge, FeatureArc, PacketNode};
use shoal_ip::forward::{self, Forwarded, fits_in_pieces};
use shoal_wire::Ip6Header;
use shoal_wire::ip6_address::is_link_local;

use crate::edges::Ip6Edges;
use crate::{Headers, IcmpError};

/// Where a packet goes next.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Its sender gets an error: it goes no further.
    #[node("ip6-icmp-error")]
    IcmpError,
    /// It was made here and is too long.
    #[node("ip6-frag")]
    Frag,
    /// The neighbour's interface, or a feature of packets on their way there.
    Output(Edge),
    /// It leaves by the way it came: the sender may get a redirect.
    Redirect(Edge),
}

/// Why a packet is dropped here.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// ip6 header is cut short
    TooShort,
    /// ip6 ttl <= 1
    #[counter("time_expired")]
    #[at("ip6-input")]
    HopLimit,
    /// ip6 MTU exceeded
    #[counter("mtu_exceeded")]
    #[at("ip6-input")]
    MtuExceeded,
    /// link-local source beyond its link
    #[severity(warn)]
    Scope,
    /// no headroom for the new header
    NoHeadroom,
    /// link-layer multicast is not forwarded
    LinkMulticast,
    /// next hop went away while the packet was on its way
    Gone,
}

/// What `show trace` says.
#[derive(TraceLine)]
#[line("tx_sw_if_index {tx} adj-idx {adj} : ipv6 via {next_hop} mtu:{mtu}")]
#[line("{headers}")]
pub struct Trace {
    tx: u32,
    adj: u32,
    next_hop: IpAddr,
    mtu: u16,
    headers: Headers,
}

impl Trace {
    fn of(pkt: &Packet<'_>, adj: &Adj) -> Trace {
        Trace {
            tx: adj.tx().0,
            adj: pkt.meta().adj,
            next_hop: adj.next_hop().unwrap_or(IpAddr::V6(Ipv6Addr::UNSPECIFIED)),
            mtu: adj.mtu,
            headers: Headers::behind(adj.rewrite().len(), pkt),
        }
    }
}

/// Puts rewrites in front.
pub struct Ip6Rewrite {
    /// All adjacencies.
    pub adjacencies: AdjTable,
    /// Where packets go that leave by the way they came.
    pub edges: Ip6Edges,
    /// Features of packets behind the rewrite.
    pub output: FeatureArc,
}

impl PacketNode for Ip6Rewrite {
    const NAME: &'static str = "ip6-rewrite";
    type Next = Next;
    type Error = Error;
    type Trace = Trace;

    #[inline(always)]
    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, Error> {
        let adj = self.adjacencies.get(AdjIndex(pkt.meta().adj), cx.guard());
        if let Some(edge) = self.plain_with(adj, pkt).or_else(|| self.plain_otherwise(adj, pkt)) {
            cx.trace(pkt, || Trace::of(pkt, adj));
            return Ok(Next::Output(edge));
        }
        let next = self.rest(pkt.reborrow(), adj, cx.aside());
        if let Ok(Next::Output(_)) = next {
            cx.trace(pkt, || Trace::of(pkt, adj));
        }
        next
    }
}

impl Uses<&Adj> for Ip6Rewrite {
    #[inline(always)]
    fn plain_with(&self, adj: &Adj, pkt: &mut Packet<'_>) -> Option<Edge> {
        forward::put_in_front::<Ip6Header, _>(adj.ethernet_rewrite()?, adj, pkt)
    }

    /// On interfaces without a link layer, and on sub-interfaces.
    #[inline(always)]
    fn plain_otherwise(&self, adj: &Adj, pkt: &mut Packet<'_>) -> Option<Edge> {
        forward::put_other_in_front::<Ip6Header>(adj, pkt)
    }
}

impl UsesOut<&Adj> for Ip6Rewrite {
    #[inline(always)]
    fn arc(&self) -> &FeatureArc {
        &self.output
    }

    #[inline(always)]
    fn featured(adj: &Adj) -> Option<SwIfIndex> {
        adj.featured_ethernet_rewrite().map(|_| adj.tx())
    }

    #[inline(always)]
    fn plain_featured(&self, adj: &Adj, pkt: &mut Packet<'_>) -> Option<Edge> {
        forward::rewrite_featured::<Ip6Header>(adj, pkt)
    }
}

/// The sender gets an error with the reason.
#[cold]
fn tell(mut pkt: Packet<'_>, why: Error, message: IcmpError, cx: Cx<'_, Ip6Rewrite>) -> Next {
    cx.count(why, 1);
    message.ask(&mut pkt);
    Next::IcmpError
}

impl Ip6Rewrite {
    /// Packets made here, packets that leave by the way they came, other rewrites than an Ethernet header, ways out with
    /// features, what is counted by adjacency, and what goes no further.
    #[cold]
    fn rest(&self, mut pkt: Packet<'_>, adj: &Adj, cx: Cx<'_, Self>) -> Result<Next, Error> {
        let (flags, mtu, back) = (pkt.flags(), adj.mtu, adj.tx() == pkt.rx());
        let ours = flags.has(Flags::LOCALLY_ORIGINATED);
        if flags.has(Flags::LINK_MULTICAST) && !flags.has(Flags::FLOODED) && !ours {
            // Every router on the link would forward its copy.
            return Err(Error::LinkMulticast);
        }
        let ip = pkt.header::<Ip6Header>().ok_or(Error::TooShort)?;
        let (hop_limit, total, src) = (ip.hop_limit(), ip.total(), ip.src());
        if !ours && !back && is_link_local(src) {
            // RFC 4291, 2.5.6; RFC 4443, 3.1.
            return Ok(tell(pkt, Error::Scope, IcmpError::SCOPE, cx));
        }
        if total > usize::from(mtu) && !fits_in_pieces(pkt.meta(), pkt.current(), mtu) {
            // RFC 8200, 5: only the source cuts a packet.
            if ours {
                return Ok(Next::Frag);
            }
            // The hop is taken off first, and the sender is shown the packet without it, as by VPP.
            pkt.header_mut::<Ip6Header>().ok_or(Error::TooShort)?.decrement_hop_limit();
            return Ok(tell(pkt, Error::MtuExceeded, IcmpError::too_big(mtu), cx));
        }
        if !ours && hop_limit <= 1 {
            return Ok(tell(pkt, Error::HopLimit, IcmpError::HOP_LIMIT, cx));
        }
        let redirect = self.edges.redirect();
        if back && !ours && !flags.has(Flags::REDIRECT_DONE) && redirect != Edge::DROP {
            return Ok(Next::Redirect(redirect));
        }
        if !adj.is_rewrite() {
            // The adjacency has changed since it was looked up.
            return Err(Error::Gone);
        }
        if !ours {
            pkt.header_mut::<Ip6Header>().ok_or(Error::TooShort)?.decrement_hop_limit();
        }
        let rewrite = adj.rewrite();
        pkt.push(rewrite.len()).ok_or(Error::NoHeadroom)?;
        pkt.data_mut().get_mut(..rewrite.len()).ok_or(Error::NoHeadroom)?.copy_from_slice(rewrite);
        let l3 = pkt.current() + rewrite.len() as i16;
        let meta = pkt.meta_mut();
        (meta.tx, meta.l3) = (adj.tx(), l3);
        self.adjacencies.count(adj, AdjIndex(meta.adj), cx.thread(), pkt.len());
        let feature = if adj.has_features() { cx.start_arc(&self.output, adj.tx(), &mut pkt) } else { None };
        Ok(Next::Output(feature.unwrap_or(adj.edge())))
    }
}
