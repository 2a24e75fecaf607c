//! `ip4-rewrite`: take a hop off, put the neighbour's header in front. RFC 1812, 5.2 and 5.3.1.
//! ip4-lookup -> **ip4-rewrite** -> `<interface>-output` | features of `ip4-output` | ip4-icmp-error | ip4-frag

use std::net::{IpAddr, Ipv4Addr};

use shoal_adj::{Adj, AdjIndex, AdjTable};
use shoal_buffer::{Flags, Packet, SwIfIndex};
use shoal_derive::{ErrorCounters, NextNodes, TraceLine};
use shoal_graph::superpath::{Uses, UsesOut};
use shoal_graph::{Cx, Edge, FeatureArc, PacketNode};
use shoal_ip::forward::{self, fits_in_pieces};
use shoal_wire::Ip4Header;

use crate::{Headers, IcmpError};

/// Where a packet goes next.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Its sender gets an error: it goes no further.
    #[node("ip4-icmp-error")]
    IcmpError,
    /// It is too long and may be cut.
    #[node("ip4-frag")]
    Frag,
    /// It leaves by the way it came: the sender may get a redirect.
    #[node("ip4-redirect")]
    Redirect,
    /// The neighbour's interface, or a feature of packets on their way there.
    Output(Edge),
}

/// Why a packet is dropped here.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// ip4 header is cut short
    TooShort,
    /// ip4 ttl <= 1
    #[counter("time_expired")]
    #[at("ip4-input")]
    TtlExpired,
    /// ip4 MTU exceeded and DF set
    #[counter("mtu_exceeded")]
    #[at("ip4-input")]
    MtuExceeded,
    /// no headroom for the new header
    NoHeadroom,
    /// link-layer broadcast is not forwarded
    LinkBroadcast,
    /// next hop went away while the packet was on its way
    Gone,
}

/// What `show trace` says.
#[derive(TraceLine)]
#[line("tx_sw_if_index {tx} dpo-idx {adj} : ipv4 via {next_hop} mtu:{mtu}")]
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
            next_hop: adj.next_hop().unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED)),
            mtu: adj.mtu,
            headers: Headers::behind(adj.rewrite().len(), pkt),
        }
    }
}

/// Puts rewrites in front.
pub struct Ip4Rewrite {
    /// All adjacencies.
    pub adjacencies: AdjTable,
    /// Features of packets behind the rewrite.
    pub output: FeatureArc,
}

#[cold]
fn too_long(mut pkt: Packet<'_>, mtu: u16, cx: Cx<'_, Ip4Rewrite>) -> Next {
    if pkt.header::<Ip4Header>().is_some_and(|ip| !ip.dont_fragment()) {
        return Next::Frag;
    }
    cx.count(Error::MtuExceeded, 1);
    IcmpError::too_big(mtu).ask(&mut pkt);
    Next::IcmpError
}

#[cold]
fn expired(mut pkt: Packet<'_>, cx: Cx<'_, Ip4Rewrite>) -> Next {
    cx.count(Error::TtlExpired, 1);
    IcmpError::TTL.ask(&mut pkt);
    Next::IcmpError
}

impl PacketNode for Ip4Rewrite {
    const NAME: &'static str = "ip4-rewrite";
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

impl Uses<&Adj> for Ip4Rewrite {
    #[inline(always)]
    fn plain_with(&self, adj: &Adj, pkt: &mut Packet<'_>) -> Option<Edge> {
        forward::put_in_front::<Ip4Header, _>(adj.ethernet_rewrite()?, adj, pkt)
    }

    /// On interfaces without a link layer, and on sub-interfaces.
    #[inline(always)]
    fn plain_otherwise(&self, adj: &Adj, pkt: &mut Packet<'_>) -> Option<Edge> {
        forward::put_other_in_front::<Ip4Header>(adj, pkt)
    }
}

impl UsesOut<&Adj> for Ip4Rewrite {
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
        forward::rewrite_featured::<Ip4Header>(adj, pkt)
    }
}

impl Ip4Rewrite {
    /// Packets made here, packets whose sender got a redirect, other rewrites than an Ethernet header, ways out with
    /// features, what is counted by adjacency, and what goes no further.
    #[cold]
    fn rest(&self, mut pkt: Packet<'_>, adj: &Adj, cx: Cx<'_, Self>) -> Result<Next, Error> {
        let (flags, mtu) = (pkt.flags(), adj.mtu);
        let in_pieces = fits_in_pieces(pkt.meta(), pkt.current(), mtu);
        let ours = flags.has(Flags::LOCALLY_ORIGINATED);
        if flags.has(Flags::LINK_MULTICAST) && !flags.has(Flags::FLOODED) && !ours {
            // RFC 1812, 5.3.4: every station on the link would forward its copy. A BVI routes it, as VPP's does.
            return Err(Error::LinkBroadcast);
        }
        let redirect = adj.tx() == pkt.rx() && !ours && !flags.has(Flags::REDIRECT_DONE);
        let ip = pkt.header_mut::<Ip4Header>().ok_or(Error::TooShort)?;
        if ip.total_length() > mtu && !in_pieces {
            return Ok(too_long(pkt, mtu, cx));
        }
        if !ours && ip.ttl() <= 1 {
            return Ok(expired(pkt, cx));
        }
        if redirect {
            return Ok(Next::Redirect);
        }
        if !adj.is_rewrite() {
            // The adjacency has changed since it was looked up.
            return Err(Error::Gone);
        }
        if !ours {
            ip.decrement_ttl();
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
